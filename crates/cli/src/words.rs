//! Shortens text of agents and clients, and makes JSON safe to print on a terminal. `out` makes text visible.

use std::borrow::Cow;

use anyhow::Context as _;
use multitap_event::is_hidden;
use serde::Serialize;

/// How much of a tool's arguments or error is shown.
const SHOWN: usize = 200;

/// The first line, truncated.
pub(crate) fn short(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    let head = head(first, SHOWN);
    let more = if head.len() < text.trim().len() { " …" } else { "" };
    format!("{head}{more}")
}

/// A prefix of at most that many bytes, at a character boundary.
pub(crate) fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// JSON with the same value, in which control and hidden characters are written as `\uXXXX`.
pub(crate) fn plain_json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            // Characters outside the basic plane take two groups of four digits.
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| plain.push_str(&format!("\\u{unit:04x}")));
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// A value as indented JSON, with a final newline.
pub(crate) fn pretty_json(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value).context("write JSON")?;
    Ok(format!("{}\n", plain_json(&text)))
}

pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    Ok(format!("{}\n", plain_json(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_without_anything_to_obey() {
        let said = "é\u{9b}31m\u{7f}\u{85}\u{202e}\u{2067}\u{61c}\u{2028}\u{200f}\u{200b}\u{e0041} \"\\ — 日本 \u{1f600} \u{1b}";
        let value = serde_json::json!({ said: [said] });
        let line = json_line(&value).unwrap();
        let pretty = pretty_json(&value).unwrap();
        for text in [&line, &pretty] {
            assert_eq!(multitap_event::visible(text), **text);
            assert!(text.contains("\\u009b31m\\u007f\\u0085\\u202e") && text.contains("日本 \u{1f600}"), "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), value);
        }
        assert!(matches!(plain_json("{\"as it is\":\"— été\"}"), Cow::Borrowed(_)));
    }
}
