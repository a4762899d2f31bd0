//! Unified diffs of two texts, at a cost that is linear in their size whatever they contain.
//!
//! [`unified`] compares texts; [`similarity`] and [`changed_words`] compare two lines. `window` skips the common beginning and end;
//! `lines` finds the lines that differ, within a budget of operations; beyond the budget the rest counts as replaced,
//! which is a correct diff, only not the shortest. The budget counts operations and not time, so the same texts give
//! the same diff on any machine.

mod lines;
mod similarity;
mod window;
mod words;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use lines::Marks;
use window::Window;

pub use similarity::similarity;
pub use words::{ChangedWords, changed_words};

/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// Operations one diff may spend on finding the shortest form: a few hundredths of a second.
const BUDGET: u64 = 5_000_000;

/// Budget per byte: a message with thousands of small changes has a total budget that is linear in its size.
const BUDGET_PER_BYTE: u64 = 4;

/// Budget of the smallest texts.
const LEAST_BUDGET: u64 = 2_000;

/// Most lines of both sides together that are compared; more count as replaced. A line costs far more than its bytes
/// (it is hashed, and stored in several tables), so short lines by the million would take seconds.
const MOST_LINES: usize = 400_000;

/// A name as in the header of a diff. Quotes it as Git does if a character of it would end the line, control a terminal
/// or be read as part of the quotes.
#[must_use]
pub fn header_name(name: &str) -> Cow<'_, str> {
    let is_special = |c: char| c.is_control() || matches!(c, '"' | '\\');
    if !name.contains(is_special) {
        return Cow::Borrowed(name);
    }
    let mut quoted = String::with_capacity(name.len() + 8);
    quoted.push('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                quoted.extend(c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}")));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

/// The unified diff of a file from `before` (`None`: it does not exist yet) to `after`, with Git's header; empty if they
/// are equal.
#[must_use]
pub fn of_file(path: &str, before: Option<&str>, after: &str) -> String {
    let path = path.trim_start_matches('/');
    let from = if before.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    unified(&from, before.unwrap_or_default(), &format!("b/{path}"), after)
}

/// The unified diff from `before` to `after`, with both names in its header; empty if the texts are equal.
#[must_use]
pub fn unified(from: &str, before: &str, to: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let window = Window::of(before, after);
    let mut diff = format!("--- {}\n+++ {}\n", header_name(from), header_name(to));
    if window.lines() > MOST_LINES {
        window.write_replaced(&mut diff);
        return diff;
    }
    let (old, new) = (split(window.old), split(window.new));
    let marks = lines::compare(&old, &new, budget(&window));
    for hunk in &hunks(&blocks(&marks), old.len()) {
        hunk.write(&old, &new, window.skipped, &mut diff);
    }
    diff
}

fn budget(window: &Window<'_>) -> u64 {
    let bytes = (window.old.len() + window.new.len()) as u64;
    (BUDGET_PER_BYTE * bytes).clamp(LEAST_BUDGET, BUDGET)
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

/// End of the run of marked lines that begins here.
fn run(marked: &[bool], from: usize) -> usize {
    marked.iter().skip(from).position(|marked| !marked).map_or(marked.len().max(from), |length| from + length)
}

/// Blocks that are close enough to be shown together.
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
    /// `skipped` lines precede the given ones.
    fn write(&self, old: &[&str], new: &[&str], skipped: usize, diff: &mut String) {
        head(&self.old, &self.new, skipped, diff);
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

fn head(old: &Range<usize>, new: &Range<usize>, skipped: usize, diff: &mut String) {
    let moved = |range: &Range<usize>| range.start + skipped..range.end + skipped;
    diff.push_str(&format!("@@ -{} +{} @@\n", Place(&moved(old)), Place(&moved(new))));
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

/// A range of lines as in a hunk header: counted from one; an empty range names the line before it.
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
