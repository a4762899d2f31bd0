//! Unified diffs as agents write them, and texts from diffs.

use multitap_diff::header_name;

/// The unified diff of a file that is removed.
pub(crate) fn removed(path: &str, before: &str) -> String {
    multitap_diff::unified(&format!("a/{}", path.trim_start_matches('/')), before, "/dev/null", "")
}

/// Adds the header of a diff to hunks of a file, which may have been moved.
pub(crate) fn headed(path: &str, moved_to: Option<&str>, hunks: &str) -> String {
    let from = format!("a/{}", path.trim_start_matches('/'));
    let to = format!("b/{}", moved_to.unwrap_or(path).trim_start_matches('/'));
    let end = if hunks.is_empty() || hunks.ends_with('\n') { "" } else { "\n" };
    format!("--- {}\n+++ {}\n{hunks}{end}", header_name(&from), header_name(&to))
}

/// The text after applying the hunks, if they match.
pub(crate) fn apply(text: &str, hunks: &str) -> Option<String> {
    change(text, hunks, Direction::Forward)
}

/// The text before the hunks were applied, if they match.
pub(crate) fn revert(text: &str, hunks: &str) -> Option<String> {
    change(text, hunks, Direction::Back)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Back,
}

fn change(text: &str, hunks: &str, direction: Direction) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut made = String::with_capacity(text.len());
    let mut at = 0;
    let mut rest = hunks.lines().peekable();
    while let Some(line) = rest.next() {
        let from = starts_at(line, direction)?;
        made.extend(lines.get(at..from)?.iter().copied());
        at = from;
        while let Some(line) = rest.next_if(|line| !line.starts_with("@@")) {
            // The marker for a last line without a line ending.
            let ends = if rest.next_if(|next| next.starts_with('\\')).is_some() { "" } else { "\n" };
            let (mark, content) = line.split_at_checked(1).unwrap_or((" ", ""));
            let (taken, given) = match (mark, direction) {
                (" ", _) => (true, true),
                ("-", Direction::Forward) | ("+", Direction::Back) => (true, false),
                ("+", Direction::Forward) | ("-", Direction::Back) => (false, true),
                _ => return None,
            };
            if taken {
                let there = lines.get(at)?;
                if there.trim_end_matches(['\r', '\n']) != content.trim_end_matches('\r') {
                    return None;
                }
                at += 1;
                if given {
                    made.push_str(there);
                }
            } else if given {
                made.push_str(content);
                made.push_str(ends);
            }
        }
    }
    made.extend(lines.get(at..)?.iter().copied());
    Some(made)
}

/// The first line of a hunk, counted from zero: `@@ -3,2 +3,4 @@`.
fn starts_at(head: &str, direction: Direction) -> Option<usize> {
    let mut ranges = head.strip_prefix("@@ ")?.split(' ');
    let (old, new) = (ranges.next()?.strip_prefix('-')?, ranges.next()?.strip_prefix('+')?);
    let range = if direction == Direction::Forward { old } else { new };
    let (start, length) = range.split_once(',').unwrap_or((range, "1"));
    let start: usize = start.parse().ok()?;
    // A hunk that removes nothing comes after the line it names.
    Some(if length == "0" { start } else { start.checked_sub(1)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_applied_and_reverted() {
        for (before, after) in [
            ("a\nb\nc\n", "a\nB\nc\n"),
            ("", "new\n"),
            ("one\ntwo", "one\ntwo\nthree"),
            ("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n", "A\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n"),
            ("gone\n", ""),
            ("x\n\ny\n", "x\n\nz\n"),
        ] {
            let diff = multitap_diff::of_file("f.txt", Some(before), after);
            let hunks = &diff[diff.find("@@").unwrap()..];
            assert_eq!(apply(before, hunks).as_deref(), Some(after), "{diff}");
            assert_eq!(revert(after, hunks).as_deref(), Some(before), "{diff}");
        }
        assert_eq!(apply("other\n", "@@ -1 +1 @@\n-a\n+b\n"), None);
        assert_eq!(apply("a\n", "@@ odd\n"), None);
    }

    #[test]
    fn a_file_that_goes_has_no_other_side() {
        assert_eq!(removed("/w/a.txt", "x\n"), "--- a/w/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n");
        let headed_oddly = headed("/a\n+++ b/x", Some("/é \u{1b}"), "");
        assert_eq!(headed_oddly, "--- \"a/a\\n+++ b/x\"\n+++ \"b/é \\033\"\n");
        assert_eq!(headed("/a", Some("/b"), "@@ -1 +1 @@\n-x\n+y"), "--- a/a\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n");
    }
}
