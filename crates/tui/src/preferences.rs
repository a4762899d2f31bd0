//! How whoever sits here wants their terminal used.

/// What they prefer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preferences {
    pub colours: bool,
    pub notify: Notify,
    /// The wheel scrolls. The terminal then marks text only with a key held down, mostly Shift.
    pub mouse: bool,
}

impl Default for Preferences {
    fn default() -> Self {
        Self { colours: true, notify: Notify::default(), mouse: false }
    }
}

/// How they are called while they look elsewhere, when a question comes or a turn ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Notify {
    Off,
    Bell,
    /// A notification of the desktop, from terminals that make one.
    Desktop,
    #[default]
    Both,
}

impl Notify {
    pub(crate) fn rings(self) -> bool {
        matches!(self, Self::Bell | Self::Both)
    }

    pub(crate) fn shows(self) -> bool {
        matches!(self, Self::Desktop | Self::Both)
    }
}
