//! The lines of a cell, laid out for one width. The lines of a text that grows grow with it. Pure.

use std::rc::Rc;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::cell::{Cell, TextKind};
use super::draw;
use crate::markdown::{Flow, TextStyle};
use crate::theme::Theme;
use crate::wrap::wrap;

const REASONING_LINES: usize = 3;
const SIGN: &str = "∴ ";

/// The layout parameters of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RenderKey {
    /// Counts the changes of the cell, other than growth.
    pub(super) version: u64,
    pub(super) columns: usize,
    pub(super) unfolded: bool,
}

#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) key: RenderKey,
    theme: Theme,
    lines: Lines,
}

#[derive(Debug)]
enum Lines {
    Fixed(Rc<Vec<Line<'static>>>),
    Growing(Box<Flow>),
}

impl Rendered {
    pub(super) fn new(cell: &Cell, key: RenderKey, theme: Theme) -> Self {
        let lines = if let Cell::Text { kind, nested, .. } = cell {
            let (apart, sign, indent, style) = match (kind, nested) {
                (TextKind::Message, false) => (true, "", 0, Style::new()),
                (TextKind::Message, true) => (true, "  ", 2, Style::new()),
                (TextKind::Reasoning, false) => (false, SIGN, 2, theme.thought()),
                (TextKind::Reasoning, true) => (false, "  ∴ ", 4, theme.thought()),
            };
            Lines::Growing(Box::new(Flow::new(key.columns, theme, TextStyle { apart, sign, indent, style })))
        } else {
            Lines::Fixed(Rc::new(draw::lines(cell, key.columns, key.unfolded, theme)))
        };
        Self { key, theme, lines }
    }

    /// The cell for another key. Only the needed part of a long text is laid out.
    pub(super) fn rekeyed(self, cell: &Cell, key: RenderKey) -> Self {
        match self.lines {
            Lines::Growing(flow) if self.key.version == key.version => {
                Self { key, theme: self.theme, lines: Lines::Growing(Box::new(flow.resized(key.columns))) }
            }
            Lines::Growing(_) | Lines::Fixed(_) => Self::new(cell, key, self.theme),
        }
    }

    /// The last lines: at least that many, if there are as many.
    pub(super) fn end(&mut self, cell: &Cell, rows: usize) -> Rc<Vec<Line<'static>>> {
        match (&mut self.lines, cell) {
            (Lines::Growing(flow), Cell::Text { kind: TextKind::Message, text, .. }) => {
                flow.lay_out_end(text.trim_end(), rows);
                flow.lines()
            }
            _ => self.lines(cell),
        }
    }

    pub(super) fn lines(&mut self, cell: &Cell) -> Rc<Vec<Line<'static>>> {
        let flow = match &mut self.lines {
            Lines::Fixed(lines) => return lines.clone(),
            Lines::Growing(flow) => flow,
        };
        let is_reasoning = cell.is_reasoning();
        let text = if is_reasoning { cell.text().trim() } else { cell.text().trim_end() };
        flow.lay_out_whole(text);
        let lines = flow.lines();
        if is_reasoning && !self.key.unfolded { self.folded(lines, has_subject(text), cell.is_nested()) } else { lines }
    }

    fn folded(&self, lines: Rc<Vec<Line<'static>>>, has_subject: bool, nested: bool) -> Rc<Vec<Line<'static>>> {
        let kept = usize::from(has_subject);
        let hidden = lines.len().saturating_sub(kept + REASONING_LINES);
        if hidden == 0 {
            return lines;
        }
        let margin = if nested { "  " } else { "" };
        let hint = Line::from(Span::styled(format!("{margin}  … {hidden} more lines (Ctrl+O)"), self.theme.quiet()));
        let mut shown: Vec<Line<'static>> = lines[..kept].to_vec();
        shown.extend(wrap(hint, self.key.columns, 2));
        let first = shown.len();
        shown.extend(lines[kept + hidden..].iter().cloned());
        // The sign comes before the first line that is shown.
        let sign = Span::styled(format!("{margin}{SIGN}"), self.theme.thought());
        if !has_subject
            && let Some(before) = shown.get_mut(first).and_then(|line| line.spans.first_mut())
            && before.content.trim().is_empty()
            && before.width() == sign.width()
        {
            *before = sign;
        }
        Rc::new(shown)
    }
}

/// Whether reasoning begins with a line that names its subject, as some agents write it.
fn has_subject(text: &str) -> bool {
    let first = text.split('\n').next().unwrap_or_default().trim();
    first.strip_prefix("**").and_then(|rest| rest.strip_suffix("**")).is_some_and(|subject| !subject.contains("**"))
}
