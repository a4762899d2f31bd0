//! The user's preferences for the terminal.

/// Colours, notifications and the mouse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalPreferences {
    pub colours: Colours,
    pub notify: Notifications,
    /// The wheel scrolls. Most terminals then select text only while Shift is held.
    pub mouse: bool,
    /// Names of files are links (OSC 8).
    pub links: bool,
}

/// How many colours the terminal shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colours {
    /// Bold, dim and italic only.
    None,
    /// The palette that the user chose for the terminal.
    #[default]
    Sixteen,
    /// Also 240 colours that are the same in every terminal, on a dark ground.
    Dark,
    /// The same on a light ground.
    Light,
}

impl Colours {
    /// What the environment says, by its variables.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let has = |name: &str, words: &[&str]| {
            variable(name).is_some_and(|value| words.iter().any(|word| value.contains(word)))
        };
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let is_rich = has("COLORTERM", &["truecolor", "24bit"])
            || has("TERM", &["256", "direct", "kitty", "ghostty", "alacritty", "foot", "wezterm"]);
        // Foreground and background by their numbers in the palette, as some terminals set it: `0;15`.
        let ground = variable("COLORFGBG").and_then(|value| value.rsplit(';').next()?.parse().ok());
        match ground {
            _ if is_set("NO_COLOR") => Self::None,
            _ if !is_rich => Self::Sixteen,
            Some(7 | 9..=15) => Self::Light,
            Some(0_u8..) | None => Self::Dark,
        }
    }
}

/// Whether the terminal shows links, by the variables that it sets. Terminals that do not know them may print their
/// addresses, and a multiplexer hides which terminal it is in.
pub fn supports_links(variable: impl Fn(&str) -> Option<String>) -> bool {
    let value = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is_one = |name: &str, known: &[&str]| value(name).is_some_and(|value| known.contains(&value.as_str()));
    let is_known = is_one("TERM_PROGRAM", &["iTerm.app", "WezTerm", "vscode", "ghostty", "rio", "Tabby"])
        || is_one("TERM", &["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm"])
        || ["KITTY_WINDOW_ID", "KONSOLE_VERSION", "WT_SESSION"].iter().any(|name| value(name).is_some())
        || value("VTE_VERSION").and_then(|version| version.parse().ok()).is_some_and(|version: u32| version >= 5000);
    is_known && value("TMUX").is_none() && value("STY").is_none()
}

/// How a question or the end of a turn is announced while the user looks elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Notifications {
    Off,
    Bell,
    /// A desktop notification, where the terminal supports it.
    Desktop,
    #[default]
    Both,
}

impl Notifications {
    pub(crate) fn rings(self) -> bool {
        matches!(self, Self::Bell | Self::Both)
    }

    pub(crate) fn shows(self) -> bool {
        matches!(self, Self::Desktop | Self::Both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_for_terminals_that_know_them() {
        for (variables, expected) in [
            (&[("TERM", "xterm-256color")][..], false),
            (&[("TERM", "xterm-kitty")], true),
            (&[("TERM_PROGRAM", "WezTerm")], true),
            (&[("VTE_VERSION", "7600")], true),
            (&[("VTE_VERSION", "4205")], false),
            (&[("VTE_VERSION", "7600"), ("TMUX", "/tmp/tmux")], false),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(supports_links(variable), expected, "{variables:?}");
        }
    }

    #[test]
    fn colours_are_as_many_as_the_terminal_says() {
        for (variables, expected) in [
            (&[("TERM", "xterm")][..], Colours::Sixteen),
            (&[("TERM", "xterm-256color")], Colours::Dark),
            (&[("TERM", "xterm"), ("COLORTERM", "truecolor")], Colours::Dark),
            (&[("TERM", "xterm-256color"), ("COLORFGBG", "0;15")], Colours::Light),
            (&[("TERM", "xterm-256color"), ("COLORFGBG", "15;default;0")], Colours::Dark),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], Colours::None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], Colours::Dark),
            (&[], Colours::Sixteen),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(Colours::of(variable), expected, "{variables:?}");
        }
    }
}
