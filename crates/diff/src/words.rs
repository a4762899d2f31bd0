//! The words that differ between two lines, within a budget.

use std::ops::Range;

use crate::lines;

/// Longest line whose words are compared.
const LONGEST: usize = 2_000;

/// The byte ranges of the words that only the old line has, and of those that only the new one has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedWords {
    pub old: Vec<Range<usize>>,
    pub new: Vec<Range<usize>>,
}

/// Compares two lines word by word. `None` if they have too little in common to be two versions of one line, if one is
/// too long, or if `budget`, from which the cost is taken, does not suffice.
#[must_use]
pub fn changed_words(old: &str, new: &str, budget: &mut u64) -> Option<ChangedWords> {
    if old.len().max(new.len()) > LONGEST {
        return None;
    }
    *budget = budget.checked_sub((old.len() + new.len()) as u64 + 1)?;
    let (old_words, new_words) = (words(old), words(new));
    let marks = lines::compare(&old_words, &new_words, *budget);
    *budget -= marks.spent.min(*budget);
    let changed = ChangedWords { old: ranges(&old_words, &marks.removed), new: ranges(&new_words, &marks.added) };
    let length = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).sum::<usize>();
    let common = old.len() - length(&changed.old);
    // Indentation does not make two lines alike.
    let blank = common_blanks(&old_words, &marks.removed);
    let text = old.trim_start().len() + new.trim_start().len();
    (4 * common.saturating_sub(blank) >= text).then_some(changed)
}

fn common_blanks(words: &[&str], marked: &[bool]) -> usize {
    let first = words.first().filter(|first| first.starts_with(char::is_whitespace) && !marked[0]);
    first.map_or(0, |first| first.len())
}

/// The words of a line: letters and digits, blanks, and each other character.
fn words(line: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = match kind(first) {
            0 => first.len_utf8(),
            same => rest.find(|c| kind(c) != same).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

/// The byte ranges of the marked words. Marked words with a blank between them are one range.
fn ranges(words: &[&str], marked: &[bool]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut at, mut gap) = (0, 0);
    for (word, marked) in words.iter().zip(marked) {
        let end = at + word.len();
        let is_blank = word.trim().is_empty();
        match ranges.last_mut() {
            Some(last) if *marked && last.end + gap == at => (last.end, gap) = (end, 0),
            _ if *marked => {
                ranges.push(at..end);
                gap = 0;
            }
            Some(last) if is_blank && last.end == at => gap = word.len(),
            _ => gap = 0,
        }
        at = end;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: Option<(&[&str], &[&str])>) {
        let changed = changed_words(old, new, &mut 100_000);
        let shown = changed.as_ref().map(|changed| {
            let of = |line: &'static str, ranges: &[Range<usize>]| {
                ranges.iter().map(|range| line[range.clone()].to_owned()).collect::<Vec<_>>()
            };
            (of(old.to_owned().leak(), &changed.old), of(new.to_owned().leak(), &changed.new))
        });
        let expected = expected.map(|(old, new)| {
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            (owned(old), owned(new))
        });
        assert_eq!(shown, expected, "{old:?} {new:?}");
    }

    #[test]
    fn changed_words_are_found() {
        check("let x = 1;", "let x = 2;", Some((&["1"], &["2"])));
        check("fn old_name(a: u32) {", "fn new_name(a: u32) {", Some((&["old_name"], &["new_name"])));
        check("call(one);", "call(one, two words);", Some((&[], &[", two words"])));
        check("é = « a »", "é = « b »", Some((&["a"], &["b"])));
        check("", "", Some((&[], &[])));
    }

    #[test]
    fn lines_with_little_in_common_are_two_lines() {
        check("        return None;", "        let all = words(line);", None);
        check("one", "two", None);
        check(&"a ".repeat(LONGEST), "a", None);
        assert_eq!(changed_words("let x = 1;", "let x = 2;", &mut 3), None);
    }

    proptest! {
        #[test]
        fn what_is_left_of_both_lines_is_the_same(old in "[ab (é]{0,20}", new in "[ab (é]{0,20}") {
            if let Some(changed) = changed_words(&old, &new, &mut 100_000) {
                let rest = |line: &str, ranges: &[Range<usize>]| {
                    let inside = |at: usize| ranges.iter().any(|range| range.contains(&at));
                    line.char_indices().filter(|(at, _)| !inside(*at)).map(|(_, c)| c).filter(|c| *c != ' ').collect::<String>()
                };
                prop_assert_eq!(rest(&old, &changed.old), rest(&new, &changed.new));
            }
        }
    }
}
