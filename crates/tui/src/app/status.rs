//! Messages to this user alone: notices on the screen, and notifications when they look elsewhere. Pure.

use crate::effect::Effect;
use crate::keys::Action;

#[derive(Debug, Default)]
pub(crate) struct Status {
    /// Stays until the next key.
    pub(crate) notice: Option<String>,
    /// The key that was just pressed and does more when pressed again.
    armed: Option<Action>,
}

impl Status {
    pub(crate) fn show(&mut self, notice: impl Into<String>) {
        self.notice = Some(notice.into());
    }

    /// Says what that key does when it is pressed again.
    pub(super) fn arm(&mut self, action: Action, notice: impl Into<String>) {
        self.armed = Some(action);
        self.show(notice);
    }

    /// A key was pressed. Returns whether it repeats the one before.
    pub(super) fn pressed(&mut self, action: Action) -> bool {
        self.notice = None;
        self.armed.take() == Some(action)
    }

    pub(super) fn disarm(&mut self) {
        if self.armed.take().is_some() {
            self.notice = None;
        }
    }
}

/// Where the user looks. Not every terminal reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attention {
    Unknown,
    Here,
    Elsewhere,
}

impl Attention {
    /// Notifies a user who looks elsewhere, or may.
    pub(super) fn notify(self, words: &str) -> Option<Effect> {
        (self != Self::Here).then(|| Effect::Notify { words: words.to_owned(), is_sure: self == Self::Elsewhere })
    }
}
