//! The differing part of two texts, found by bytes: their common beginning and end are never split into lines.

use crate::{CONTEXT, head};

/// The differing part of both texts, with as many lines around it as a hunk shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Window<'a> {
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Lines before the window, the same on both sides.
    pub(crate) skipped: usize,
    /// Bytes of context at its start and its end.
    above: usize,
    below: usize,
}

impl<'a> Window<'a> {
    pub(crate) fn of(old: &'a str, new: &'a str) -> Self {
        let start = common_start(old.as_bytes(), new.as_bytes());
        let end = common_end(&old.as_bytes()[start..], &new.as_bytes()[start..]);
        let above = old[..start].split_inclusive('\n').rev().take(CONTEXT).map(str::len).sum();
        let below = old[old.len() - end..].split_inclusive('\n').take(CONTEXT).map(str::len).sum();
        let from = start - above;
        let part = |text: &'a str| &text[from..text.len() - end + below];
        Self { old: part(old), new: part(new), skipped: line_ends(&old[..from]), above, below }
    }

    /// Lines of both sides together.
    pub(crate) fn lines(&self) -> usize {
        count(self.old) + count(self.new)
    }

    /// One hunk that replaces the whole window, written without a table of lines.
    pub(crate) fn write_replaced(&self, diff: &mut String) {
        let middle = |text: &'a str| &text[self.above..text.len() - self.below];
        let (removed, added) = (middle(self.old), middle(self.new));
        diff.reserve(self.old.len() + added.len() + self.lines());
        head(&(0..count(self.old)), &(0..count(self.new)), self.skipped, diff);
        for (mark, text) in [
            (' ', &self.old[..self.above]),
            ('-', removed),
            ('+', added),
            (' ', &self.old[self.old.len() - self.below..]),
        ] {
            write_marked(mark, text, diff);
        }
    }
}

/// Each line of a text with a mark before it. By characters rather than lines: where so many are replaced, they are
/// short.
fn write_marked(mark: char, text: &str, diff: &mut String) {
    let mut is_start = true;
    for character in text.chars() {
        if is_start {
            diff.push(mark);
        }
        diff.push(character);
        is_start = character == '\n';
    }
    if !is_start {
        diff.push_str("\n\\ No newline at end of file\n");
    }
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn count(text: &str) -> usize {
    line_ends(text) + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// Bytes of the whole lines at the beginning that both texts share.
fn common_start(old: &[u8], new: &[u8]) -> usize {
    /// Bytes compared at once, before single bytes.
    const BLOCK: usize = 256;
    let blocks = old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK)).take_while(|(old, new)| old == new).count();
    let from = blocks * BLOCK;
    let same = from + old[from..].iter().zip(&new[from..]).take_while(|(old, new)| old == new).count();
    if same == old.len() && same == new.len() {
        return same;
    }
    old[..same].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Bytes of the whole lines at the end that both texts share.
fn common_end(old: &[u8], new: &[u8]) -> usize {
    const BLOCK: usize = 256;
    let blocks = old.rchunks_exact(BLOCK).zip(new.rchunks_exact(BLOCK)).take_while(|(old, new)| old == new).count();
    let rest = |text: &[u8]| text.len() - blocks * BLOCK;
    let (old_rest, new_rest) = (&old[..rest(old)], &new[..rest(new)]);
    let same = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let same = blocks * BLOCK + same;
    let begins_line = |text: &[u8]| text.len() == same || text[text.len() - same - 1] == b'\n';
    if begins_line(old) && begins_line(new) {
        return same;
    }
    let tail = &old[old.len() - same..];
    tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| same - at - 1)
}
