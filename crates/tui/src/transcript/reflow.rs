//! Moves places in a transcript to another width, so that they stay with their text. Pure.

use std::collections::HashMap;

use super::Transcript;
use super::scroll::{Mark, Scroll, Shape};

pub(crate) struct Reflow<'a> {
    transcript: &'a Transcript,
    from: Shape,
    to: Shape,
    /// Number of lines of a cell before and after: laying out a long cell is expensive.
    counted: HashMap<i64, (usize, usize)>,
}

impl<'a> Reflow<'a> {
    pub(crate) fn new(transcript: &'a Transcript, from: Shape, to: Shape) -> Self {
        Self { transcript, from, to, counted: HashMap::new() }
    }

    fn lines(&mut self, cell: i64) -> (usize, usize) {
        let count = |shape| self.transcript.lines(cell, shape).len();
        *self.counted.entry(cell).or_insert_with(|| (count(self.from), count(self.to)))
    }

    /// The place as far into its cell as before.
    pub(crate) fn place(&mut self, (cell, line): (i64, usize)) -> (i64, usize) {
        let (before, after) = self.lines(cell);
        (cell, line * after / before.max(1))
    }

    pub(crate) fn scroll(&mut self, scroll: Scroll) -> Scroll {
        match scroll {
            Scroll::Latest => Scroll::Latest,
            Scroll::At { cell, line } => {
                let (cell, line) = self.place((cell, line));
                Scroll::At { cell, line }
            }
        }
    }

    /// Existing lines must not count as new.
    pub(crate) fn mark(&mut self, mark: Mark) -> Mark {
        let (mut left, mut lines) = (mark.lines, 0);
        for cell in mark.cell..self.transcript.end() {
            if left == 0 {
                break;
            }
            let (before, after) = self.lines(cell);
            let known = left.min(before);
            lines += (known * after).div_ceil(before.max(1));
            left -= known;
        }
        Mark { lines, ..mark }
    }
}
