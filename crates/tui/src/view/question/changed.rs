//! The change that an edited file would make, as a unified diff with one hunk. Pure, in linear time: what is the same at
//! the beginning and at the end is left out, and all between is shown.

use std::fmt::Write as _;

/// How many lines that stay are shown around the change.
const AROUND: usize = 3;

pub(super) fn changed_lines(before: &str, after: &str) -> String {
    // Both end with a line end, or there was nothing: no empty line follows it.
    let (old, new) = match (before.strip_suffix('\n'), after.strip_suffix('\n')) {
        (Some(before), Some(after)) => (lines(before), lines(after)),
        (None, Some(after)) if before.is_empty() => (Vec::new(), lines(after)),
        _ => (lines(before), lines(after)),
    };
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let from = same.saturating_sub(AROUND);
    let tail = end.min(AROUND);
    let (gone, came) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let around = same - from + tail;
    let (gone_lines, came_lines) = (gone.len() + around, came.len() + around);
    let mut diff = String::new();
    // Writing to a string cannot fail.
    writeln!(diff, "@@ -{first},{gone_lines} +{first},{came_lines} @@", first = from + 1).unwrap_or_default();
    let parts = [(' ', &old[from..same]), ('-', gone), ('+', came), (' ', &old_rest[old_rest.len() - end..][..tail])];
    for (sign, lines) in parts {
        lines.iter().for_each(|line| writeln!(diff, "{sign}{line}").unwrap_or_default());
    }
    diff
}

/// The lines of a text; the last one may be empty, where it ends with a line end.
fn lines(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_and_its_surroundings_are_shown() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        assert_eq!(changed_lines(before, after), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
        assert_eq!(changed_lines("", "a\nb"), "@@ -1,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(changed_lines("", "a\n"), "@@ -1,0 +1,1 @@\n+a\n");
        assert_eq!(changed_lines("a", "a\n"), "@@ -1,1 +1,2 @@\n a\n+\n");
    }
}
