//! The last of what the agent said, for whoever copies it. Pure.

use super::{Cell, Transcript};

impl Transcript {
    /// What the agent said last.
    pub(crate) fn last_said(&self) -> Option<String> {
        let said = |cell: &Cell| if let Cell::Said { text, .. } = cell { Some(text.trim().to_owned()) } else { None };
        self.cells.iter().rev().find_map(|held| said(&held.cell)).filter(|said| !said.is_empty())
    }

    /// The last code that the agent wrote.
    pub(crate) fn last_code(&self) -> Option<String> {
        let code =
            |cell: &Cell| if let Cell::Said { text, .. } = cell { crate::markdown::last_code(text) } else { None };
        self.cells.iter().rev().find_map(|held| code(&held.cell))
    }
}
