//! Unified diffs of two texts, at a cost that is linear in their size whatever they hold.
//!
//! [`unified`] is the whole interface. `lines` finds out which lines differ, within a budget of operations; beyond the
//! budget the rest counts as replaced, which is a correct diff, only not the shortest. The budget counts operations and
//! not time, so the same texts give the same diff on any machine.

mod lines;

use std::fmt;
use std::ops::Range;

use lines::Marks;

/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// Operations one diff may spend beyond its linear part: about a tenth of a second.
const BUDGET: u64 = 20_000_000;

/// The unified diff from `before` to `after`, headed with the names of both sides; empty if the texts are the same.
#[must_use]
pub fn unified(from: &str, before: &str, to: &str, after: &str) -> String {
    let (old, new) = (split(before), split(after));
    let marks = lines::compare(&old, &new, BUDGET);
    let blocks = blocks(&marks);
    let hunks = hunks(&blocks, old.len());
    let mut diff = String::new();
    if !hunks.is_empty() {
        diff.push_str(&format!("--- {from}\n+++ {to}\n"));
    }
    for hunk in &hunks {
        hunk.write(&old, &new, &mut diff);
    }
    diff
}

fn split(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Adjacent lines that are replaced by others; one of both sides may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    old: Range<usize>,
    new: Range<usize>,
}

fn blocks(marks: &Marks) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut at, mut to) = (0, 0);
    while at < marks.removed.len() || to < marks.added.len() {
        let old = at..run(&marks.removed, at);
        let new = to..run(&marks.added, to);
        (at, to) = (old.end + 1, new.end + 1);
        if !old.is_empty() || !new.is_empty() {
            blocks.push(Block { old, new });
        }
    }
    blocks
}

/// Where the marked lines that begin here end.
fn run(marked: &[bool], from: usize) -> usize {
    marked.iter().skip(from).position(|marked| !marked).map_or(marked.len().max(from), |length| from + length)
}

/// Blocks that are shown together, because little stands between them.
struct Hunk<'a> {
    blocks: &'a [Block],
    old: Range<usize>,
    new: Range<usize>,
}

fn hunks(blocks: &[Block], old_lines: usize) -> Vec<Hunk<'_>> {
    let near = |first: &Block, second: &Block| second.old.start - first.old.end <= 2 * CONTEXT;
    let around = |blocks| {
        let (first, last): (&Block, &Block) = (<[Block]>::first(blocks)?, blocks.last()?);
        let above = first.old.start.min(CONTEXT);
        let below = (old_lines - last.old.end).min(CONTEXT);
        let old = first.old.start - above..last.old.end + below;
        Some(Hunk { blocks, old, new: first.new.start - above..last.new.end + below })
    };
    blocks.chunk_by(near).filter_map(around).collect()
}

impl Hunk<'_> {
    fn write(&self, old: &[&str], new: &[&str], diff: &mut String) {
        diff.push_str(&format!("@@ -{} +{} @@\n", Place(&self.old), Place(&self.new)));
        let mut at = self.old.start;
        for block in self.blocks {
            lines_with(' ', &old[at..block.old.start], diff);
            lines_with('-', &old[block.old.clone()], diff);
            lines_with('+', &new[block.new.clone()], diff);
            at = block.old.end;
        }
        lines_with(' ', &old[at..self.old.end], diff);
    }
}

fn lines_with(mark: char, lines: &[&str], diff: &mut String) {
    for line in lines {
        diff.push(mark);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Lines as a hunk's head names them: counted from one, the line before where there are none.
struct Place<'a>(&'a Range<usize>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            0 => write!(f, "{},0", self.0.start),
            1 => write!(f, "{}", self.0.start + 1),
            length => write!(f, "{},{length}", self.0.start + 1),
        }
    }
}

#[cfg(test)]
mod tests;
