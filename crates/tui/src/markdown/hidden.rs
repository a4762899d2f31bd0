//! Shows what a markdown parser drops: link definitions, surplus cells of a table, words after the language of code. So
//! nothing can be hidden in a text. Pure.

use std::ops::Range;

use pulldown_cmark::{Event, Tag, TagEnd};
use ratatui::text::Span;

use super::Page;
use crate::clean::clean;

/// Maximum length of the name of a language.
const LANGUAGE: usize = 20;

impl Page {
    /// Shows what lies between the last event and this one, and is in neither.
    pub(super) fn show_left_out(&mut self, text: &str, event: &Event<'_>, range: &Range<usize>) {
        let end = match event {
            Event::Start(_) => range.start,
            // The target of a link is shown after it.
            Event::End(TagEnd::Link | TagEnd::Image) => self.shown,
            Event::End(_) => range.end,
            _ => range.start,
        };
        let left_out = text.get(self.shown..end).unwrap_or_default();
        match event {
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => self.add_cell(left_out),
            Event::End(TagEnd::TableCell) => {}
            _ => self.define(left_out),
        }
        let shown = match event {
            // Its content follows as text.
            Event::Start(Tag::CodeBlock(_)) => range.end,
            Event::Start(_) => range.start,
            _ => range.end,
        };
        self.shown = self.shown.max(shown);
    }

    pub(super) fn define(&mut self, left_out: &str) {
        let Some(from) = left_out.find('[').filter(|from| left_out[*from..].contains("]:")) else { return };
        let is_beside = self.spans.is_empty();
        if is_beside {
            self.block();
        } else {
            self.end_line();
        }
        for line in left_out[from..].trim_end().lines() {
            let line = line.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
            self.spans.push(Span::styled(clean(line), self.theme.quiet()));
            self.break_line();
        }
        self.apart = is_beside;
    }

    fn add_cell(&mut self, left_out: &str) {
        let cell = left_out.trim_matches(|c: char| c.is_whitespace() || c == '|');
        if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut())
            && !cell.is_empty()
        {
            row.push(clean(cell).replace('\n', " "));
        }
    }
}

pub(super) fn language(info: &str) -> &str {
    info.split_whitespace().next().unwrap_or_default()
}

/// The words after a code fence, if they are more than the name of a language.
pub(super) fn beside_language(info: &str) -> Option<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "+-#._".contains(c);
    let info = info.trim();
    (info.len() > LANGUAGE || !info.chars().all(is_name)).then_some(info)
}
