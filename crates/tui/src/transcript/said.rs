//! What the agent says: long messages in parts, and the last of it for whoever copies it. Pure.

use super::{Cell, Transcript};

/// How long a message may be before what is complete of it is a cell of its own.
const PART: usize = 4096;

impl Transcript {
    /// What the agent said last.
    pub(crate) fn last_said(&self) -> Option<String> {
        let last = self.cells.iter().rposition(|held| matches!(held.cell, Cell::Said { .. }))?;
        let mut parts = Vec::new();
        for held in self.cells.iter().take(last + 1).rev() {
            let Cell::Said { text, goes_on, .. } = &held.cell else { break };
            parts.push(text.as_str());
            if !goes_on {
                break;
            }
        }
        parts.reverse();
        Some(parts.concat().trim().to_owned()).filter(|said| !said.is_empty())
    }

    /// The last code that the agent wrote.
    pub(crate) fn last_code(&self) -> Option<String> {
        let code =
            |cell: &Cell| if let Cell::Said { text, .. } = cell { crate::markdown::last_code(text) } else { None };
        self.cells.iter().rev().find_map(|held| code(&held.cell))
    }

    /// Puts what is complete of a long message into a cell of its own, so that a little more of it costs a little.
    pub(super) fn part(&mut self, added: usize) {
        let Some((id, at)) = self.saying.clone() else { return };
        let mut rest = None;
        self.change(at, |cell| {
            let Cell::Said { text, nested, .. } = cell else { return };
            // Not looked for with each piece.
            if text.len() / PART == text.len().saturating_sub(added) / PART {
                return;
            }
            if let Some(cut) = crate::markdown::last_cut(text) {
                rest = Some(Cell::Said { text: text.split_off(cut), nested: *nested, goes_on: true });
            }
        });
        if let Some(rest) = rest {
            self.saying = Some((id, self.add(rest)));
        }
    }
}
