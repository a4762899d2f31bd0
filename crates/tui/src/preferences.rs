//! The user's preferences for the terminal.

/// Colours, notifications and the mouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalPreferences {
    pub colours: bool,
    pub notify: Notifications,
    /// The wheel scrolls. Most terminals then select text only while Shift is held.
    pub mouse: bool,
}

impl Default for TerminalPreferences {
    fn default() -> Self {
        Self { colours: true, notify: Notifications::default(), mouse: false }
    }
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
