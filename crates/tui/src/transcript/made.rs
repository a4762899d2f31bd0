//! The lines of a cell, kept for one width; those of a text that grows grow with it. Pure.

use std::rc::Rc;

use ratatui::text::{Line, Span};

use super::cell::Cell;
use super::draw;
use crate::markdown::{Dress, Flow};
use crate::theme::Theme;
use crate::wrap::wrap;

/// How many lines of a thought are shown, folded.
const THOUGHT_LINES: usize = 3;
/// Stands before a thought.
const THOUGHT: &str = "∴ ";

/// What lines are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Counts the changes of the cell, other than growth.
    pub(super) version: u64,
    pub(super) columns: usize,
    pub(super) unfolded: bool,
}

/// The lines of a cell.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) shape: Shape,
    theme: Theme,
    lines: Lines,
}

#[derive(Debug)]
enum Lines {
    Fixed(Rc<Vec<Line<'static>>>),
    Growing(Box<Flow>),
}

impl Made {
    pub(super) fn new(cell: &Cell, shape: Shape, theme: Theme) -> Self {
        let lines = match cell {
            Cell::Said { nested, .. } => {
                let (sign, indent) = if *nested { ("  ", 2) } else { ("", 0) };
                let dress = Dress { apart: true, sign, indent, style: Default::default() };
                Lines::Growing(Box::new(Flow::new(shape.columns, theme, dress)))
            }
            Cell::Thought { nested, .. } => {
                let (sign, indent) = if *nested { ("  ∴ ", 4) } else { (THOUGHT, 2) };
                let dress = Dress { apart: false, sign, indent, style: theme.thought() };
                Lines::Growing(Box::new(Flow::new(shape.columns, theme, dress)))
            }
            Cell::User { .. }
            | Cell::Tool(_)
            | Cell::Changed(_)
            | Cell::Ruled { .. }
            | Cell::Plan(_)
            | Cell::Wrong(_)
            | Cell::Retry(_)
            | Cell::TurnEnd(_)
            | Cell::Ended(_)
            | Cell::Note(_)
            | Cell::TakenBack { .. }
            | Cell::Gone => Lines::Fixed(Rc::new(draw::lines(cell, shape.columns, shape.unfolded, theme))),
        };
        Self { shape, theme, lines }
    }

    /// The same cell in another shape: a long text is not laid out whole for its last lines.
    pub(super) fn again(self, cell: &Cell, shape: Shape) -> Self {
        match self.lines {
            Lines::Growing(flow) if self.shape.version == shape.version => {
                Self { shape, theme: self.theme, lines: Lines::Growing(Box::new(flow.anew(shape.columns))) }
            }
            Lines::Growing(_) | Lines::Fixed(_) => Self::new(cell, shape, self.theme),
        }
    }

    /// The last lines as they are now: so many at least, or all of them.
    pub(super) fn end(&mut self, cell: &Cell, rows: usize) -> Rc<Vec<Line<'static>>> {
        match (&mut self.lines, cell) {
            (Lines::Growing(flow), Cell::Said { text, .. }) => {
                flow.lay_out_end(text.trim_end(), rows);
                flow.lines()
            }
            _ => self.lines(cell),
        }
    }

    /// The lines as they are now.
    pub(super) fn lines(&mut self, cell: &Cell) -> Rc<Vec<Line<'static>>> {
        match (&mut self.lines, cell) {
            (Lines::Growing(flow), Cell::Said { text, .. }) => {
                flow.lay_out_whole(text.trim_end());
                flow.lines()
            }
            (Lines::Growing(flow), Cell::Thought { text, nested }) => {
                let text = text.trim();
                flow.lay_out_whole(text);
                let lines = flow.lines();
                if self.shape.unfolded { lines } else { self.folded(lines, has_subject(text), *nested) }
            }
            (Lines::Fixed(lines), _) => lines.clone(),
            (Lines::Growing(flow), _) => flow.lines(),
        }
    }

    /// What a thought is about, and its last lines.
    fn folded(&self, lines: Rc<Vec<Line<'static>>>, has_subject: bool, nested: bool) -> Rc<Vec<Line<'static>>> {
        let kept = usize::from(has_subject);
        let hidden = lines.len().saturating_sub(kept + THOUGHT_LINES);
        if hidden == 0 {
            return lines;
        }
        let margin = if nested { "  " } else { "" };
        let hint = Line::from(Span::styled(format!("{margin}  … {hidden} more lines (Ctrl+O)"), self.theme.quiet()));
        let mut shown: Vec<Line<'static>> = lines[..kept].to_vec();
        shown.extend(wrap(hint, self.shape.columns, 2));
        let first = shown.len();
        shown.extend(lines[kept + hidden..].iter().cloned());
        // The sign stands before the first line of it that is seen.
        let sign = Span::styled(format!("{margin}{THOUGHT}"), self.theme.thought());
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

/// Whether a thought begins with a line that says what it is about, as some agents write them.
fn has_subject(text: &str) -> bool {
    let first = text.split('\n').next().unwrap_or_default().trim();
    first.strip_prefix("**").and_then(|rest| rest.strip_suffix("**")).is_some_and(|subject| !subject.contains("**"))
}
