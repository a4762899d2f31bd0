//! Looking for words in a transcript. Pure.

use multitap_event::TodoItem;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::scroll::{Scroll, Shape};
use super::{Cell, Transcript};

impl Transcript {
    /// The line before or after that place which has these words, whatever their case; it is put a little below the
    /// top, so that what leads to it is seen too.
    pub(crate) fn find(&self, words: &str, from: (i64, usize), earlier: bool, shape: Shape) -> Option<(i64, usize)> {
        let words = words.to_lowercase();
        if words.is_empty() {
            return None;
        }
        let cells: Box<dyn Iterator<Item = i64>> =
            if earlier { Box::new((self.base..=from.0).rev()) } else { Box::new(from.0.max(self.base)..self.end()) };
        let has = |at: &i64| self.held(*at).is_some_and(|held| held.cell.has(&words));
        cells.filter(has).find_map(|at| {
            let lines = self.lines(at, shape);
            let is_beyond = |line: &usize| match earlier {
                true => (at, *line) < from,
                false => (at, *line) > from,
            };
            let mut found = (0..lines.len()).filter(|line| lines[*line].to_string().to_lowercase().contains(&words));
            let line = match earlier {
                true => found.rfind(is_beyond),
                false => found.find(is_beyond),
            };
            line.map(|line| (at, line))
        })
    }

    /// The place from which a search goes backward first.
    pub(crate) fn search_start(&self) -> (i64, usize) {
        (self.end(), 0)
    }

    /// Shows a place that was found.
    pub(crate) fn show(&self, found: (i64, usize), shape: Shape) -> Scroll {
        let lead = (shape.rows / 3).cast_signed();
        self.scrolled(Scroll::At { cell: found.0, line: found.1 }, -lead, shape)
    }
}

impl Cell {
    /// Whether these words, in small letters, are anywhere in it.
    fn has(&self, words: &str) -> bool {
        let has = |text: &str| text.to_lowercase().contains(words);
        match self {
            Self::User { text, from, .. } => {
                has(text) || from.as_ref().is_some_and(|from| has(&super::cell::who(from)))
            }
            Self::Said { text, .. } | Self::Thought { text, .. } | Self::Note(text) => has(text),
            Self::Tool(tool) => {
                let end = tool.run.end.as_ref();
                has(&tool.call.tool_name)
                    || tool.call.title.as_deref().is_some_and(has)
                    || has(&tool.run.output)
                    || tool.run.change.as_ref().and_then(|change| change.diff.as_deref()).is_some_and(has)
                    || end.and_then(|end| end.error.as_deref()).is_some_and(has)
                    || end.and_then(|end| end.result.as_ref()).is_some_and(|result| match result.as_str() {
                        Some(text) => has(text),
                        None => has(&result.to_string()),
                    })
            }
            Self::Changed(change) => has(&change.file_path) || change.diff.as_deref().is_some_and(has),
            Self::Plan(list) => list.items.iter().any(|TodoItem { text, .. }| has(text)),
            // Short, and their words are made when they are drawn.
            Self::Ruled { .. } | Self::Wrong(_) | Self::Retry(_) | Self::TurnEnd(_) | Self::Ended(_) => true,
            Self::Gone => false,
        }
    }
}

/// Sets off some words in a line, whatever their case.
pub(crate) fn mark(line: &mut Line<'static>, words: &str, style: Style) {
    let words = words.to_lowercase();
    // Where a letter's small form is longer or shorter than it, places would not be the same.
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
