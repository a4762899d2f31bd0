use proptest::prelude::*;

use super::*;

fn diff(before: &str, after: &str) -> String {
    unified("a/x", before, "b/x", after)
}

/// The unmarked lines of both sides, which must be the same.
fn common<'a>(lines: &[&'a str], marked: &[bool]) -> Vec<&'a str> {
    lines.iter().zip(marked).filter(|(_, marked)| !**marked).map(|(line, _)| *line).collect()
}

#[test]
fn hunks_are_written_like_gits() {
    assert_eq!(diff("x\n", "x\n"), "");
    assert_eq!(diff("", "x\n"), "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+x\n");
    assert_eq!(diff("x\n", ""), "--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n-x\n");
    let no_end = "\n\\ No newline at end of file\n";
    assert_eq!(diff("x", "y"), format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x{no_end}+y{no_end}"));
    let before: String = (1..=20).map(|line| format!("{line}\n")).collect();
    let after = before.replace("\n5\n", "\nfive\n").replace("\n13\n", "\n").replace("\n20\n", "\n20\n21\n");
    let made = diff(&before, &after);
    assert!(made.starts_with("--- a/x\n+++ b/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@"), "{made}");
    assert!(made.contains("\n@@ -10,7 +10,6 @@\n 10\n 11\n 12\n-13\n 14\n"), "{made}");
    assert!(made.ends_with("@@ -18,3 +17,4 @@\n 18\n 19\n 20\n+21\n"), "{made}");
}

#[test]
fn an_inserted_block_stands_where_a_reader_expects_it() {
    let before = "fn a() {\n}\n\nfn c() {\n}\n";
    let after = "fn a() {\n}\n\nfn b() {\n}\n\nfn c() {\n}\n";
    assert!(
        diff(before, after).ends_with(" fn a() {\n }\n \n+fn b() {\n+}\n+\n fn c() {\n }\n"),
        "{}",
        diff(before, after)
    );
}

#[test]
fn far_changes_in_a_long_text_stay_small() {
    let before: String = (0..200_000).map(|line| format!("line {}\n", line % 1000)).collect();
    let mut lines: Vec<&str> = before.lines().collect();
    lines[10] = "first";
    lines[199_990] = "last";
    let made = diff(&before, &format!("{}\n", lines.join("\n")));
    assert_eq!(made.lines().count(), 2 + 2 * 9, "{made}");
}

/// The cost is counted, not timed: repeating lines are the worst there is.
#[test]
fn repeating_lines_spend_no_more_than_the_budget() {
    let budget = 200_000;
    let spent = |one: &str, other: &str, size: usize| {
        let (before, after) = (one.repeat(size / one.len()), other.repeat(10 * size / other.len()));
        let (old, new) = (split(&before), split(&after));
        let marks = lines::compare(&old, &new, budget);
        assert_eq!(common(&old, &marks.removed), common(&new, &marks.added));
        assert!(marks.spent <= budget, "{}", marks.spent);
    };
    for (one, other) in [("a\nb\n", "b\na\nc\n"), ("a\n", "a\nb\n"), ("\n", "\na\n"), ("a\nb\nc\n", "c\nb\na\n")] {
        spent(one, other, 64 * 1024);
    }
    spent("the same\nand another\n", "and another\nthe same\nand more\n", 2 * 1024 * 1024);
}

/// A million short lines would take seconds and hundreds of megabytes as lines. They are never split into lines.
#[test]
fn more_lines_than_are_compared_are_replaced_as_a_whole() {
    let many = |line: &str| line.repeat(MOST_LINES);
    let before = format!("one\ntwo\nthree\nfour\n{}five\nend", many("a\nb\n"));
    let after = format!("one\ntwo\nthree\nfour\n{}five\nend", many("c\n"));
    let window = Window::of(&before, &after);
    assert!(window.lines() > MOST_LINES);
    let made = diff(&before, &after);
    let head =
        format!("--- a/x\n+++ b/x\n@@ -2,{} +2,{} @@\n two\n three\n four\n-a\n", 2 * MOST_LINES + 5, MOST_LINES + 5);
    assert!(made.starts_with(&head), "{}", &made[..100]);
    assert!(made.ends_with("+c\n five\n end\n\\ No newline at end of file\n"), "{}", &made[made.len() - 100..]);
    let marked = |mark: char| made.lines().filter(|line| line.starts_with(mark)).count();
    assert_eq!((marked('-'), marked('+')), (2 * MOST_LINES + 1, MOST_LINES + 1));
}

#[test]
fn the_budget_of_small_texts_is_linear() {
    let spent = |size: usize| budget(&Window::of(&"a\n".repeat(size), &"b\n".repeat(size)));
    assert_eq!(4 * spent(10_000), spent(40_000));
    assert_eq!(spent(1), LEAST_BUDGET);
    assert_eq!(spent(10_000_000), BUDGET);
}

#[test]
fn what_exceeds_the_budget_is_replaced_as_a_whole() {
    let (old, new) = (["x", "a", "b", "y"], ["x", "b", "a", "y"]);
    let marks = lines::compare(&old, &new, 0);
    assert_eq!(marks.removed, [false, true, true, false]);
    assert_eq!(marks.added, [false, true, true, false]);
}

proptest! {
    /// What is left out before the comparison is the same on both sides, and whole lines.
    #[test]
    fn a_window_holds_all_that_differs(before in "([ab]{0,2}\n){0,9}[ab]?", after in "([ab]{0,2}\n){0,9}[ab]?") {
        let window = Window::of(&before, &after);
        let start = before.split_inclusive('\n').take(window.skipped).map(str::len).sum::<usize>();
        prop_assert_eq!(&before[..start], &after[..start]);
        prop_assert!(before[start..].starts_with(window.old) && after[start..].starts_with(window.new));
        let (old_end, new_end) = (&before[start + window.old.len()..], &after[start + window.new.len()..]);
        prop_assert_eq!(old_end, new_end);
        prop_assert!(window.old.is_empty() || window.old.ends_with('\n') || old_end.is_empty());
        let written = |lines: &[&str], marked: &[bool]| common(lines, marked).concat();
        let (old, new) = (split(window.old), split(window.new));
        let marks = lines::compare(&old, &new, BUDGET);
        prop_assert_eq!(written(&old, &marks.removed), written(&new, &marks.added));
        let whole = lines::compare(&split(&before), &split(&after), BUDGET);
        let kept = |marks: &Marks| marks.removed.iter().filter(|removed| **removed).count();
        prop_assert_eq!(kept(&marks), kept(&whole), "the window changes what differs");
    }

    #[test]
    fn unmarked_lines_are_the_same_on_both_sides(
        before in prop::collection::vec("[a-d]\n", 0..40),
        after in prop::collection::vec("[a-d]\n", 0..40),
        budget in prop_oneof![Just(0), 1..300u64, Just(BUDGET)],
    ) {
        let old: Vec<&str> = before.iter().map(String::as_str).collect();
        let new: Vec<&str> = after.iter().map(String::as_str).collect();
        let marks = lines::compare(&old, &new, budget);
        prop_assert_eq!(common(&old, &marks.removed), common(&new, &marks.added));
        prop_assert!(marks.spent <= budget);
        if budget == BUDGET {
            prop_assert_eq!(common(&old, &marks.removed).len(), longest(&old, &new));
        }
    }
}

/// The length of the longest common subsequence, by the table that everybody knows.
fn longest(old: &[&str], new: &[&str]) -> usize {
    let mut row = vec![0; new.len() + 1];
    for line in old {
        let before = row.clone();
        for (at, other) in new.iter().enumerate() {
            row[at + 1] = if line == other { before[at] + 1 } else { before[at + 1].max(row[at]) };
        }
    }
    row[new.len()]
}

/// As `git diff` with `core.quotePath=false` writes them.
#[test]
fn a_name_cannot_look_like_another_line_of_the_header() {
    for (name, expected) in [
        ("a/plain.txt", "a/plain.txt"),
        ("a/with space é漢", "a/with space é漢"),
        ("/dev/null", "/dev/null"),
        ("a/x\n+++ b/y", r#""a/x\n+++ b/y""#),
        ("a/\"q\"\\", r#""a/\"q\"\\""#),
        ("a/\u{1b}]0;t\u{7}\r\t\u{7f}\u{9b}", r#""a/\033]0;t\a\r\t\177\302\233""#),
    ] {
        assert_eq!(header_name(name), expected);
    }
    let diff = unified("a/x\n@@ -1 +1 @@", "1\n", "b/x", "2\n");
    assert_eq!(diff, "--- \"a/x\\n@@ -1 +1 @@\"\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n");
}

#[test]
fn a_new_file_comes_from_nowhere() {
    assert_eq!(of_file("/a.txt", None, "x\n"), "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n");
    assert_eq!(of_file("a.txt", Some("x\n"), "y\n"), "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n");
    assert_eq!(of_file("a.txt", Some("x\n"), "x\n"), "");
}
