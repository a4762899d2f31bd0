//! Finds the lines that differ: Myers' algorithm in linear space, on numbered lines, within a budget.
//!
//! Lines that only one side has are excluded before the search. A search that takes too many steps is cut where it
//! came furthest, like Git's; once the whole budget is spent, the rest counts as replaced.

use std::collections::HashMap;
use std::ops::Range;

/// Differences one search may cross before it is cut.
const DEEPEST: isize = 512;

/// Lines removed from the old text and added in the new one. The unmarked lines of both are equal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) removed: Vec<bool>,
    pub(crate) added: Vec<bool>,
    /// Operations that were spent; for tests.
    pub(crate) spent: u64,
}

pub(crate) fn compare(old: &[&str], new: &[&str], budget: u64) -> Marks {
    let mut marks = Marks { removed: vec![false; old.len()], added: vec![false; new.len()], spent: 0 };
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);

    let mut numbers = Numbers::default();
    let old: Vec<u32> = old.iter().map(|line| numbers.of(line)).collect();
    let new: Vec<u32> = new.iter().map(|line| numbers.of(line)).collect();
    let removed = &mut marks.removed[start..start + old.len()];
    let added = &mut marks.added[start..start + new.len()];
    let (old_places, new_places) = (shared(&old, &new, removed), shared(&new, &old, added));
    let old_lines: Vec<u32> = old_places.iter().map(|place| old[*place]).collect();
    let new_lines: Vec<u32> = new_places.iter().map(|place| new[*place]).collect();

    let mut search = Search::new(&old_lines, &new_lines, budget);
    search.run();
    for (place, removed_line) in old_places.iter().zip(&search.removed) {
        removed[*place] = *removed_line;
    }
    for (place, added_line) in new_places.iter().zip(&search.added) {
        added[*place] = *added_line;
    }
    let mut left = search.left;
    settle(&old, removed, &mut left);
    settle(&new, added, &mut left);
    marks.spent = budget - left;
    marks
}

/// A number for each distinct line.
#[derive(Default)]
struct Numbers<'a>(HashMap<&'a str, u32>);

impl<'a> Numbers<'a> {
    fn of(&mut self, line: &'a str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(line).or_insert(next)
    }
}

/// Indexes of lines that the other side has too; the others are marked.
fn shared(lines: &[u32], others: &[u32], marked: &mut [bool]) -> Vec<usize> {
    let most = lines.iter().chain(others).max().map_or(0, |most| *most as usize + 1);
    let mut theirs = vec![false; most];
    for other in others {
        theirs[*other as usize] = true;
    }
    let mut places = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        marked[place] = !theirs[*line as usize];
        if !marked[place] {
            places.push(place);
        }
    }
    places
}

/// Takes `cost` from what is left, if it suffices.
fn spend(left: &mut u64, cost: u64) -> bool {
    match left.checked_sub(cost) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => {
            *left = 0;
            false
        }
    }
}

/// Moves each run of marked lines up as far as its text allows and then down, so that it joins its neighbours, where
/// readers expect a change. Correct wherever it stops.
fn settle(lines: &[u32], marked: &mut [bool], left: &mut u64) {
    let mut at = 0;
    while let Some(offset) = marked.get(at..).and_then(|rest| rest.iter().position(|marked| *marked)) {
        let mut start = at + offset;
        let mut end = start + marked[start..].iter().take_while(|marked| **marked).count();
        while start > 0 && !marked[start - 1] && lines[start - 1] == lines[end - 1] && spend(left, 1) {
            (start, end) = (start - 1, end - 1);
            (marked[start], marked[end]) = (true, false);
            while start > 0 && marked[start - 1] && spend(left, 1) {
                start -= 1;
            }
        }
        while end < lines.len() && !marked[end] && lines[start] == lines[end] && spend(left, 1) {
            (marked[start], marked[end]) = (false, true);
            (start, end) = (start + 1, end + 1);
            while end < lines.len() && marked[end] {
                end += 1;
            }
        }
        at = end;
    }
}

struct Search<'a> {
    old: &'a [u32],
    new: &'a [u32],
    removed: Vec<bool>,
    added: Vec<bool>,
    /// Furthest position in `old` on each diagonal, from the start and from the end.
    forward: Vec<usize>,
    backward: Vec<usize>,
    left: u64,
}

/// A box of the edit graph.
type Piece = (Range<usize>, Range<usize>);

impl<'a> Search<'a> {
    fn new(old: &'a [u32], new: &'a [u32], budget: u64) -> Self {
        let diagonals = 2 * DEEPEST.unsigned_abs() + 4;
        Self {
            old,
            new,
            removed: vec![false; old.len()],
            added: vec![false; new.len()],
            forward: vec![0; diagonals],
            backward: vec![0; diagonals],
            left: budget,
        }
    }

    fn run(&mut self) {
        let mut open = vec![(0..self.old.len(), 0..self.new.len())];
        while let Some(piece) = open.pop() {
            let (old, new) = self.trimmed(piece);
            if old.is_empty() || new.is_empty() {
                self.mark(old, new);
                continue;
            }
            match self.middle(&old, &new) {
                Some((x, y)) => {
                    open.push((x..old.end, y..new.end));
                    open.push((old.start..x, new.start..y));
                }
                None => self.mark(old, new),
            }
        }
    }

    fn mark(&mut self, old: Range<usize>, new: Range<usize>) {
        self.removed[old].fill(true);
        self.added[new].fill(true);
    }

    /// Skips the common beginning and end. Each line is skipped at most once, so this needs no budget.
    fn trimmed(&self, (mut old, mut new): Piece) -> Piece {
        while !old.is_empty() && !new.is_empty() && self.old[old.start] == self.new[new.start] {
            (old.start, new.start) = (old.start + 1, new.start + 1);
        }
        while !old.is_empty() && !new.is_empty() && self.old[old.end - 1] == self.new[new.end - 1] {
            (old.end, new.end) = (old.end - 1, new.end - 1);
        }
        (old, new)
    }

    /// A point on a shortest path, or on a path that came far; `None` once the budget is spent.
    fn middle(&mut self, old: &Range<usize>, new: &Range<usize>) -> Option<(usize, usize)> {
        let (n, m) = (old.len(), new.len());
        let delta = n.cast_signed() - m.cast_signed();
        let slot = |diagonal: isize| (diagonal + DEEPEST + 1).unsigned_abs();
        (self.forward[slot(1)], self.backward[slot(1)]) = (0, 0);
        for depth in 0..=DEEPEST {
            for diagonal in (-depth..=depth).step_by(2) {
                let x = step(&self.forward, slot, depth, diagonal);
                let Some(y) = x.checked_add_signed(-diagonal).filter(|y| x <= n && *y <= m) else {
                    self.forward[slot(diagonal)] = x;
                    continue;
                };
                let ahead = self.old[old.start + x..old.end].iter().zip(&self.new[new.start + y..new.end]);
                let same = ahead.take_while(|(old, new)| old == new).count();
                self.forward[slot(diagonal)] = x + same;
                if !spend(&mut self.left, same as u64 + 1) {
                    return None;
                }
                let there = diagonal - delta;
                if delta % 2 != 0 && there.abs() < depth && x + same + self.backward[slot(-there)] >= n {
                    return Some((old.start + x, new.start + y));
                }
            }
            for diagonal in (-depth..=depth).step_by(2) {
                let x = step(&self.backward, slot, depth, diagonal);
                let Some(y) = x.checked_add_signed(-diagonal).filter(|y| x <= n && *y <= m) else {
                    self.backward[slot(diagonal)] = x;
                    continue;
                };
                let behind = self.old[old.start..old.end - x].iter().rev();
                let same =
                    behind.zip(self.new[new.start..new.end - y].iter().rev()).take_while(|(old, new)| old == new);
                let same = same.count();
                self.backward[slot(diagonal)] = x + same;
                if !spend(&mut self.left, same as u64 + 1) {
                    return None;
                }
                let there = diagonal - delta;
                if delta % 2 == 0 && there.abs() <= depth && x + same + self.forward[slot(-there)] >= n {
                    return Some((old.end - x - same, new.end - y - same));
                }
            }
        }
        self.furthest(n, m, slot).map(|(x, y)| (old.start + x, new.start + y))
    }

    /// Where the search from the start came furthest.
    fn furthest(&self, n: usize, m: usize, slot: impl Fn(isize) -> usize) -> Option<(usize, usize)> {
        let points = (-DEEPEST..=DEEPEST).step_by(2).filter_map(|diagonal| {
            let x = self.forward[slot(diagonal)];
            let y = x.checked_add_signed(-diagonal)?;
            (x <= n && y <= m).then_some((x, y))
        });
        points.max_by_key(|(x, y)| x + y).filter(|(x, y)| x + y > 0 && x + y < n + m)
    }
}

/// Where a path on a diagonal begins its next step: down from the diagonal above, or right from the one below.
fn step(reached: &[usize], slot: impl Fn(isize) -> usize, depth: isize, diagonal: isize) -> usize {
    let (below, above) = (slot(diagonal - 1), slot(diagonal + 1));
    if diagonal == -depth || (diagonal != depth && reached[below] < reached[above]) {
        reached[above]
    } else {
        reached[below] + 1
    }
}
