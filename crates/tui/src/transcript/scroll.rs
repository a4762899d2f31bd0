//! The part of a transcript that is on the screen. Pure.

use std::rc::Rc;

use ratatui::text::Line;

use super::rendered::{self, Rendered};
use super::{Cell, Transcript};
use crate::theme::Theme;

/// Above this number of cells with lines, those far away drop theirs.
const RENDERED: usize = 2000;
/// Cells this close to the screen keep their lines.
const NEAR: i64 = 250;
/// Up to how many new lines are counted.
pub(crate) const COUNTED: usize = 999;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// The end, as it grows.
    #[default]
    Latest,
    At {
        cell: i64,
        line: usize,
    },
}

/// The layout parameters of lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) theme: Theme,
}

/// The position of the end at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(super) cell: i64,
    pub(super) lines: usize,
}

impl Transcript {
    pub(super) fn lines(&self, at: i64, shape: Shape) -> Rc<Vec<Line<'static>>> {
        self.take(at, shape, Rendered::lines)
    }

    pub(super) fn take(
        &self,
        at: i64,
        shape: Shape,
        take: impl FnOnce(&mut Rendered, &Cell) -> Rc<Vec<Line<'static>>>,
    ) -> Rc<Vec<Line<'static>>> {
        let Some(held) = self.held(at) else { return Rc::default() };
        let unfolded = self.unfolded || self.opened.contains(&at);
        let wanted = rendered::RenderKey { version: held.version, columns: shape.columns, unfolded };
        let mut kept = held.rendered.borrow_mut();
        if kept.is_none() {
            self.rendered.set(self.rendered.get() + 1);
        }
        let made = match kept.take() {
            Some(made) if made.key == wanted => made,
            Some(made) => made.rekeyed(&held.cell, wanted),
            None => Rendered::new(&held.cell, wanted, shape.theme),
        };
        take(kept.insert(made), &held.cell)
    }

    pub(crate) fn visible(&self, scroll: Scroll, shape: Shape) -> Vec<Line<'static>> {
        let (first, line) = match scroll {
            Scroll::At { .. } => self.settle(scroll, shape),
            Scroll::Latest => return self.latest(shape),
        };
        let mut shown = Vec::with_capacity(shape.rows);
        let mut at = first;
        while at < self.end() && shown.len() < shape.rows {
            let lines = self.lines(at, shape);
            let skip = if at == first { line } else { 0 };
            shown.extend(lines.iter().skip(skip).take(shape.rows - shown.len()).cloned());
            at += 1;
        }
        self.drop_far(first, at);
        shown
    }

    /// The last screen. Nothing above it is laid out.
    fn latest(&self, shape: Shape) -> Vec<Line<'static>> {
        let (mut shown, mut at) = (Vec::with_capacity(shape.rows), self.end());
        while at > self.base && shown.len() < shape.rows {
            at -= 1;
            let room = shape.rows - shown.len();
            shown.extend(self.take(at, shape, |made, cell| made.end(cell, room)).iter().rev().take(room).cloned());
        }
        shown.reverse();
        self.drop_far(at, self.end());
        shown
    }

    fn drop_far(&self, first: i64, end: i64) {
        if self.rendered.get() <= RENDERED {
            return;
        }
        let mut left = 0;
        for (at, held) in (self.base..).zip(&self.cells) {
            let is_near = at >= first - NEAR && at < end + NEAR;
            let mut made = held.rendered.borrow_mut();
            if !is_near {
                *made = None;
            }
            left += usize::from(made.is_some());
        }
        self.rendered.set(left);
    }

    /// Where the screen begins, at the beginning of the last screen at most.
    pub(super) fn settle(&self, scroll: Scroll, shape: Shape) -> (i64, usize) {
        let last = self.first_of_latest(shape);
        match scroll {
            Scroll::At { cell, line } if (cell, line) < last => self.within((cell.max(self.base), line), shape),
            Scroll::At { .. } | Scroll::Latest => last,
        }
    }

    /// The same place, or the last line of its cell, which may have become shorter.
    fn within(&self, (cell, line): (i64, usize), shape: Shape) -> (i64, usize) {
        (cell, line.min(self.lines(cell, shape).len().saturating_sub(1)))
    }

    fn first_of_latest(&self, shape: Shape) -> (i64, usize) {
        let mut room = shape.rows;
        for at in (self.base..self.end()).rev() {
            let lines = self.lines(at, shape).len();
            if lines >= room {
                return (at, lines - room);
            }
            room -= lines;
        }
        (self.base, 0)
    }

    /// Scrolls by that many lines, up if they are negative.
    pub(crate) fn scrolled(&self, scroll: Scroll, by: isize, shape: Shape) -> Scroll {
        let (mut cell, mut line) = self.settle(scroll, shape);
        let mut left = by.unsigned_abs();
        if by < 0 {
            (cell, line) = self.before((cell, line), left, shape);
        } else {
            while cell < self.end() {
                let rest = self.lines(cell, shape).len().saturating_sub(line);
                if left < rest {
                    break;
                }
                left -= rest;
                (cell, line) = (cell + 1, 0);
            }
            line += left;
        }
        self.at(cell, line, shape)
    }

    /// The place that many lines before, or the first.
    pub(super) fn before(&self, place: (i64, usize), lines: usize, shape: Shape) -> (i64, usize) {
        let (mut cell, mut line) = self.within(place, shape);
        let mut left = lines;
        while left > line && cell > self.base {
            left -= line;
            cell -= 1;
            line = self.lines(cell, shape).len();
        }
        (cell, line.saturating_sub(left))
    }

    /// Scrolls to that line, or to the end if the line is on the last screen.
    pub(super) fn at(&self, cell: i64, line: usize, shape: Shape) -> Scroll {
        if (cell, line) < self.first_of_latest(shape) { Scroll::At { cell, line } } else { Scroll::Latest }
    }

    pub(crate) fn top(&self, shape: Shape) -> Scroll {
        self.at(self.base, 0, shape)
    }

    /// Where the end is now. A text that still grows may come before notes about other clients.
    pub(crate) fn mark(&self, shape: Shape) -> Mark {
        let last = self.end() - 1;
        let cell = self.open_text.as_ref().map_or(last, |open| open.at.min(last));
        Mark { cell, lines: (cell..self.end()).map(|at| self.lines(at, shape).len()).sum() }
    }

    /// How many lines came since then, as far as they are counted.
    pub(crate) fn since(&self, mark: Mark, shape: Shape) -> usize {
        let mut lines = 0;
        for at in mark.cell..self.end() {
            if lines > COUNTED + mark.lines {
                break;
            }
            lines += self.lines(at, shape).len();
        }
        lines.saturating_sub(mark.lines)
    }
}
