//! Facts about models, by name: their provider, context window, way of thinking.
//!
//! Unknown names count as newer members of their family. Nothing here asks a server; a provider that knows better
//! says so in its errors.

use super::vendor::Vendor;

/// A short list of each provider's current models, its default first.
pub(crate) fn listed(vendor: Vendor) -> &'static [&'static str] {
    match vendor {
        Vendor::Anthropic => &["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1"],
        Vendor::OpenAi => &["gpt-6.1-sol", "gpt-6-astra", "gpt-6-luna"],
        Vendor::Gemini => &["gemini-3.8-flash", "gemini-3.1-pro-preview", "gemini-3.5-flash-lite"],
    }
}

pub(crate) fn default(vendor: Vendor) -> &'static str {
    listed(vendor).first().copied().unwrap_or_default()
}

/// The provider of a bare model name.
pub(crate) fn vendor_of(model: &str) -> Option<Vendor> {
    let model = model.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| model.starts_with(word));
    // Others serve the open weights.
    if begins(&["gpt-oss"]) {
        return None;
    }
    let known: [(&[&str], Vendor); 3] = [
        (&["claude"], Vendor::Anthropic),
        (&["gpt", "o1", "o3", "o4", "chatgpt", "codex"], Vendor::OpenAi),
        (&["gemini"], Vendor::Gemini),
    ];
    known.into_iter().find(|(words, _)| begins(words)).map(|(_, vendor)| vendor)
}

/// The model's context window, guessed from its family; rather too small than too large.
pub(crate) fn window(vendor: Vendor, model: &str) -> Option<u64> {
    match vendor {
        Vendor::Anthropic => Some(match claude(model)? {
            ("haiku", _) => 200_000,
            (_, version) if version >= (4, 8) => 1_000_000,
            _ => 200_000,
        }),
        Vendor::OpenAi => openai_window(model),
        Vendor::Gemini => model.starts_with("gemini").then_some(1_000_000),
    }
}

fn openai_window(model: &str) -> Option<u64> {
    if model.starts_with("gpt-oss") || model.contains("codex-mini") {
        return None;
    }
    if let Some(version) = gpt(model) {
        return Some(match version {
            _ if model.contains("-chat") => 128_000,
            version if version >= (5, 4) && !model.contains("-mini") && !model.contains("-nano") => 1_000_000,
            version if version >= (5, 0) => 400_000,
            version if version >= (4, 1) => 1_000_000,
            (4, _) if model.starts_with("gpt-4o") || model.contains("turbo") => 128_000,
            (4, _) => 8_000,
            _ => 16_000,
        });
    }
    match model.as_bytes() {
        [b'o', b'1', rest @ ..] if rest.starts_with(b"-mini") || rest.starts_with(b"-preview") => Some(128_000),
        [b'o', b'1' | b'3' | b'4', ..] => Some(200_000),
        _ => None,
    }
}

/// How to configure a model's thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// The model decides by itself, and accepts an effort level. `off` says how to switch thinking off.
    Adaptive { off: Off },
    /// The model takes a number of tokens, and does not think without one.
    Budget,
    /// The model cannot think, or not in a known way.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Off {
    Never,
    /// By an explicit setting.
    Explicit,
    /// By leaving the setting out.
    Omitted,
}

pub(crate) fn claude_thinking(model: &str) -> Thinking {
    match claude(model) {
        Some(("fable" | "mythos", _)) => Thinking::Adaptive { off: Off::Never },
        Some(("haiku", (4, _))) => Thinking::Budget,
        Some((_, version)) if version >= (5, 5) => Thinking::Adaptive { off: Off::Never },
        Some((_, version)) if version >= (5, 0) => Thinking::Adaptive { off: Off::Explicit },
        Some((_, version)) if version >= (4, 6) => Thinking::Adaptive { off: Off::Omitted },
        Some((_, version)) if version >= (3, 7) => Thinking::Budget,
        _ => Thinking::None,
    }
}

pub(crate) fn gemini_thinking(model: &str) -> Thinking {
    match number_after(model, "gemini-") {
        Some(version) if version >= (3, 0) => Thinking::Adaptive { off: Off::Never },
        Some(version) if version >= (2, 5) => Thinking::Budget,
        _ => Thinking::None,
    }
}

/// Whether that model of OpenAI thinks before it answers.
pub(crate) fn openai_thinks(model: &str) -> bool {
    match gpt(model) {
        Some(version) => version >= (5, 0) && !model.contains("-chat"),
        None => matches!(model.as_bytes(), [b'o', b'1' | b'3' | b'4', ..]) || model.starts_with("codex"),
    }
}

/// The family and version in a name such as `claude-opus-4-8` or `claude-3-7-sonnet-latest`.
fn claude(model: &str) -> Option<(&str, (u32, u32))> {
    let words = model.strip_prefix("claude-")?.split('-');
    let version = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let family = words.clone().find(|word| version(word).is_none())?;
    let mut versions = words.filter_map(version);
    Some((family, (versions.next()?, versions.next().unwrap_or(0))))
}

/// The version in a name such as `gpt-5.6-sol` or `gpt-4o`.
fn gpt(model: &str) -> Option<(u32, u32)> {
    number_after(model, "gpt-")
}

fn number_after(model: &str, prefix: &str) -> Option<(u32, u32)> {
    let rest = model.strip_prefix(prefix)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    let mut numbers = rest[..end].split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next().and_then(|minor| minor.parse().ok()).unwrap_or(0);
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_model_is_known() {
        for vendor in Vendor::ALL {
            for model in listed(vendor) {
                assert_eq!(vendor_of(model), Some(vendor), "{model}");
                assert!(window(vendor, model).is_some_and(|window| window >= 200_000), "{model}");
            }
        }
    }

    #[test]
    fn windows_go_by_family() {
        for (vendor, model, tokens) in [
            (Vendor::Anthropic, "claude-opus-5-5", Some(1_000_000)),
            (Vendor::Anthropic, "claude-haiku-4-5-20251001", Some(200_000)),
            (Vendor::Anthropic, "claude-opus-4-20250514", Some(200_000)),
            (Vendor::Anthropic, "claude-3-7-sonnet-latest", Some(200_000)),
            (Vendor::Anthropic, "house-model", None),
            (Vendor::OpenAi, "gpt-6.1-sol", Some(1_000_000)),
            (Vendor::OpenAi, "gpt-5.4-mini", Some(400_000)),
            (Vendor::OpenAi, "gpt-5-codex", Some(400_000)),
            (Vendor::OpenAi, "gpt-4.1-mini", Some(1_000_000)),
            (Vendor::OpenAi, "gpt-4o", Some(128_000)),
            (Vendor::OpenAi, "gpt-4", Some(8_000)),
            (Vendor::OpenAi, "o3", Some(200_000)),
            (Vendor::OpenAi, "gpt-oss:20b", None),
            (Vendor::OpenAi, "qwen3-coder", None),
            (Vendor::Gemini, "gemini-2.5-pro", Some(1_000_000)),
        ] {
            assert_eq!(window(vendor, model), tokens, "{model}");
        }
    }

    #[test]
    fn thinking_goes_by_version() {
        let adaptive = |off| Thinking::Adaptive { off };
        for (model, thinking) in [
            ("claude-3-5-haiku-latest", Thinking::None),
            ("claude-3-7-sonnet-20250219", Thinking::Budget),
            ("claude-sonnet-4-5", Thinking::Budget),
            ("claude-haiku-4-5", Thinking::Budget),
            ("claude-opus-4-8", adaptive(Off::Omitted)),
            ("claude-sonnet-5", adaptive(Off::Explicit)),
            ("claude-opus-5-5", adaptive(Off::Never)),
            ("claude-fable-5-1", adaptive(Off::Never)),
        ] {
            assert_eq!(claude_thinking(model), thinking, "{model}");
        }
        assert_eq!(gemini_thinking("gemini-2.0-flash"), Thinking::None);
        assert_eq!(gemini_thinking("gemini-2.5-flash"), Thinking::Budget);
        assert_eq!(gemini_thinking("gemini-4-argon"), adaptive(Off::Never));
        for (model, thinks) in
            [("gpt-4o", false), ("gpt-5", true), ("gpt-5-chat-latest", false), ("gpt-6-sol", true), ("o3", true)]
        {
            assert_eq!(openai_thinks(model), thinks, "{model}");
        }
    }
}
