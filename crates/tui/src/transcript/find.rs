//! Search in a transcript. Pure.

use multitap_event::TodoItem;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::rendered::{self, Rendered};
use super::scroll::{Scroll, Shape};
use super::{Cell, Transcript};

impl Transcript {
    /// The next line, before or after that position, that contains these words in any case. Folded cells are searched
    /// too, and unfolded if there is a match.
    pub(crate) fn find(
        &mut self,
        words: &str,
        from: (i64, usize),
        earlier: bool,
        shape: Shape,
    ) -> Option<(i64, usize)> {
        let words = words.to_lowercase();
        if words.is_empty() {
            return None;
        }
        let cells: Box<dyn Iterator<Item = i64>> =
            if earlier { Box::new((self.base..=from.0).rev()) } else { Box::new(from.0.max(self.base)..self.end()) };
        for at in cells {
            let Some(held) = self.held(at).filter(|held| held.cell.has(&words)) else { continue };
            let whole = if self.unfolded || self.opened.contains(&at) || !held.cell.folds() {
                self.lines(at, shape)
            } else {
                let unfolded = rendered::RenderKey { version: held.version, columns: shape.columns, unfolded: true };
                Rendered::new(&held.cell, unfolded, shape.theme).lines(&held.cell)
            };
            let is_found = |line: &usize| {
                let is_beyond = if earlier { (at, *line) < from } else { (at, *line) > from };
                is_beyond && has_words(&whole, *line, &words)
            };
            let mut lines = 0..whole.len();
            let found = if earlier { lines.rfind(is_found) } else { lines.find(is_found) };
            let Some(line) = found else { continue };
            if *whole != *self.lines(at, shape) {
                self.opened.insert(at);
            }
            return Some((at, line));
        }
        None
    }

    pub(crate) fn search_start(&self) -> (i64, usize) {
        (self.end(), 0)
    }

    pub(crate) fn show(&self, found: (i64, usize), shape: Shape) -> Scroll {
        let (cell, line) = self.before(found, shape.rows / 3, shape);
        self.at(cell, line, shape)
    }
}

/// Whether a line contains these words, or its end and the next line's beginning do.
fn has_words(lines: &[Line<'static>], at: usize, words: &str) -> bool {
    let lower = |at: usize| lines.get(at).map(|line| line.to_string().to_lowercase()).unwrap_or_default();
    let line = lower(at);
    if line.contains(words) {
        return true;
    }
    let (line, next) = (line.trim_end(), lower(at + 1));
    let next = next.trim_start();
    if line.is_empty() || next.is_empty() || next.contains(words) {
        return false;
    }
    // Lines are wrapped between two words, or within a long one.
    format!("{line} {next}").contains(words) || format!("{line}{next}").contains(words)
}

impl Cell {
    fn folds(&self) -> bool {
        self.is_reasoning() || matches!(self, Self::Tool(_) | Self::Changed { .. })
    }

    /// Whether it has these words, which are in lower case.
    fn has(&self, words: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        match self {
            Self::User { text, from, .. } => {
                has(text) || from.as_ref().is_some_and(|from| has(&super::cell::who(from)))
            }
            Self::Text { text, .. } => {
                let text = text.to_lowercase();
                // Markup or the end of a line may come between the words. Tried last: it costs ten times as much.
                let has_each = || words.contains(' ') && words.split(' ').all(|word| text.contains(word));
                text.contains(words)
                    || has_each() && text.replace(['*', '`', '~'], "").replace('\n', " ").contains(words)
            }
            Self::Note(text) => has(text),
            Self::Tool(tool) => {
                let end = tool.run.end.as_ref();
                has(&tool.label().to_string())
                    || has(&tool.run.output)
                    || tool
                        .run
                        .changes
                        .iter()
                        .any(|change| has(&change.file_path) || change.diff.as_deref().is_some_and(has))
                    || end.and_then(|end| end.error.as_deref()).is_some_and(has)
                    || end.and_then(|end| end.result.as_ref()).is_some_and(|result| match result.as_str() {
                        Some(text) => has(text),
                        None => has(&result.to_string()),
                    })
            }
            Self::Changed { change, .. } => has(&change.file_path) || change.diff.as_deref().is_some_and(has),
            Self::Plan(list) => list.items.iter().any(|TodoItem { text, .. }| has(text)),
            // Short cells: their lines are searched.
            Self::Answered { .. }
            | Self::Error(_)
            | Self::Retry(_)
            | Self::TurnEnd(_)
            | Self::Ended(_)
            | Self::Mode { .. }
            | Self::Marker(_)
            | Self::Withdrawn { .. } => true,
            Self::Empty => false,
        }
    }
}

/// Highlights these words in a line, in any case.
pub(crate) fn mark(line: &mut Line<'static>, words: &str, style: Style) {
    let words = words.to_lowercase();
    // If lower case changes the length of the text, the positions do not match.
    let text = line.to_string();
    let lower = text.to_lowercase();
    if words.is_empty() || lower.len() != text.len() || !lower.contains(&words) {
        return;
    }
    let found: Vec<(usize, usize)> = lower.match_indices(&words).map(|(at, _)| (at, at + words.len())).collect();
    let mut at = 0;
    let mut spans = Vec::new();
    for span in std::mem::take(&mut line.spans) {
        let mut rest = span.content.as_ref();
        while !rest.is_empty() {
            let inside = found.iter().find(|(from, to)| (*from..*to).contains(&at));
            let next = found.iter().map(|(from, _)| *from).find(|from| *from > at).unwrap_or(usize::MAX);
            let length = inside.map_or(next, |(_, to)| *to).saturating_sub(at).min(rest.len());
            let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            let style = if inside.is_some() { span.style.patch(style) } else { span.style };
            spans.push(Span::styled(piece.to_owned(), style));
            at += piece.len();
            rest = after;
        }
    }
    line.spans = spans;
}
