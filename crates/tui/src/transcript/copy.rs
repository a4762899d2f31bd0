//! The last answer and the last code, to copy them. Pure.

use super::cell::TextKind;
use super::{Cell, Transcript};

impl Transcript {
    pub(crate) fn last_message(&self) -> Option<String> {
        let message = self.messages().next().map(|text| text.trim().to_owned());
        message.filter(|text| !text.is_empty())
    }

    pub(crate) fn last_code(&self) -> Option<String> {
        self.messages().find_map(crate::markdown::last_code)
    }

    /// The messages of the agent, the last first.
    fn messages(&self) -> impl Iterator<Item = &str> {
        let messages = self.cells.iter().rev().map(|held| &held.cell);
        messages.filter(|cell| matches!(cell, Cell::Text { kind: TextKind::Message, .. })).map(Cell::text)
    }
}
