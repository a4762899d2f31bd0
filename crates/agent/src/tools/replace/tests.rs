use multitap_event::{FileChangeType, ToolOutcome};
use proptest::prelude::*;
use serde_json::Value;

use super::super::files::tests::Scene;
use super::*;

async fn refusal(scene: &Scene, arguments: Value) -> String {
    let BadCall(why) = scene.prepare(NAME, arguments).await.unwrap_err();
    why
}

#[tokio::test]
async fn a_piece_is_replaced() {
    let scene = Scene::new(&[("src/a.rs", "one\ntwo\nthree\n")]);
    let outcome = scene.call(NAME, json!({ "file_path": "src/a.rs", "old_string": "two", "new_string": "zwei" })).await;
    assert_eq!(outcome.text, "Replaced 1 place in src/a.rs.");
    assert_eq!(scene.text("src/a.rs"), "one\nzwei\nthree\n");
    let change = &outcome.changes[0];
    assert_eq!(change.change_type, FileChangeType::Modified);
    assert_eq!(change.file_path, scene.path("src/a.rs").display().to_string());
    assert_eq!(change.before.as_deref(), Some("one\ntwo\nthree\n"));
    assert_eq!(change.after.as_deref(), Some("one\nzwei\nthree\n"));
    let diff = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n";
    assert_eq!(change.diff.as_deref(), Some(diff));
}

#[tokio::test]
async fn several_places_are_replaced_when_that_is_said() {
    let scene = Scene::new(&[("a", "x x x")]);
    let why = refusal(&scene, json!({ "path": "a", "old_string": "x", "new_string": "y" })).await;
    assert!(why.starts_with("a was not changed: old_string is there 3 times (lines 1, 1, 1), not 1"), "{why}");
    let all = json!({ "path": "a", "old_string": "x", "new_string": "y", "expected_replacements": 3.0 });
    assert_eq!(scene.call(NAME, all).await.text, "Replaced 3 places in a.");
    let any = json!({ "path": "a", "old_string": "y", "new_string": "z", "replace_all": true });
    assert_eq!(scene.call(NAME, any).await.text, "Replaced 3 places in a.");
    assert_eq!(scene.text("a"), "z z z");
}

#[tokio::test]
async fn line_ends_stay_as_they_are() {
    let scene = Scene::new(&[("crlf", "\u{feff}a\r\nb\r\nc\r\n"), ("mixed", "a\r\nb\nc\n")]);
    let plain = json!({ "path": "crlf", "old_string": "a\nb\n", "new_string": "A\nB\nB2\n" });
    assert_eq!(scene.call(NAME, plain).await.outcome, ToolOutcome::Completed);
    assert_eq!(scene.text("crlf"), "\u{feff}A\r\nB\r\nB2\r\nc\r\n");
    let exact = json!({ "path": "crlf", "old_string": "B\r\nB2\r\n", "new_string": "" });
    assert_eq!(scene.call(NAME, exact).await.outcome, ToolOutcome::Completed);
    assert_eq!(scene.text("crlf"), "\u{feff}A\r\nc\r\n");
    let why = refusal(&scene, json!({ "path": "mixed", "old_string": "a\nb", "new_string": "x" })).await;
    assert!(why.contains("some of its lines end in \\r\\n"), "{why}");
    scene.call(NAME, json!({ "path": "mixed", "old_string": "b\nc", "new_string": "x" })).await;
    assert_eq!(scene.text("mixed"), "a\r\nx\n");
}

#[tokio::test]
async fn an_empty_piece_makes_a_new_file_only() {
    let scene = Scene::new(&[("a", "text")]);
    let outcome = scene.call(NAME, json!({ "path": "new/b", "old_string": "", "new_string": "B" })).await;
    assert_eq!(outcome.text, "Created new/b.");
    assert_eq!(outcome.changes[0].change_type, FileChangeType::Created);
    assert_eq!(scene.text("new/b"), "B");
    let why = refusal(&scene, json!({ "path": "a", "old_string": "", "new_string": "B" })).await;
    assert!(why.contains("old_string is empty, but a exists"), "{why}");
}

#[tokio::test]
async fn what_cannot_be_done_is_told() {
    let scene = Scene::new(&[("a", "text")]);
    scene.write("b.bin", b"\xff\xfe");
    scene.write("large", vec![b'x'; 5 * 1024 * 1024]);
    for (arguments, words) in [
        (json!({ "path": "none", "old_string": "a", "new_string": "b" }), "none: it does not exist"),
        (json!({ "path": ".", "old_string": "a", "new_string": "b" }), "it is a folder"),
        (json!({ "path": "../a", "old_string": "a", "new_string": "b" }), "lies outside"),
        (json!({ "path": "a", "old_string": "text", "new_string": "text" }), "are the same"),
        (json!({ "path": "a", "old_string": "tex", "new_string": "b", "expected_replacements": 0 }), "nothing to do"),
        (json!({ "path": "a", "old_string": "tax", "new_string": "b" }), "not in the file"),
        (json!({ "path": "b.bin", "old_string": "tax", "new_string": "b" }), "not a text"),
        (json!({ "path": "large", "old_string": "x", "new_string": "b" }), "not a text of at most 4 MiB"),
        (json!({ "path": "a", "old_string": 1, "new_string": "b" }), "old_string: invalid type: integer `1`"),
        (json!({ "path": "a", "old_string": "t" }), "missing field `new_string`"),
    ] {
        let why = refusal(&scene, arguments).await;
        assert!(why.contains(words), "{why}");
    }
    assert_eq!(scene.text("a"), "text");
}

#[tokio::test]
async fn a_replacement_that_makes_the_file_huge_is_refused() {
    let scene = Scene::new(&[("a", &"x".repeat(1024 * 1024))]);
    let arguments = json!({ "path": "a", "old_string": "x", "new_string": "y".repeat(17), "replace_all": true });
    let why = refusal(&scene, arguments).await;
    assert!(why.contains("would have 17825792 bytes after 1048576 replacements"), "{why}");
}

proptest! {
    #[test]
    fn it_is_what_the_standard_library_would_do(
        text in "[ab\n]{0,24}",
        old in "[ab\n]{1,3}",
        new in "[abc\n]{0,3}",
        wanted in 1_usize..5,
    ) {
        let count = text.matches(&old).count();
        match replaced(&text, &old, &new, Expected::Exactly(wanted)) {
            Ok((after, times)) => {
                prop_assert_eq!((times, count), (wanted, wanted));
                prop_assert_eq!(&after, &text.replacen(&old, &new, wanted));
                prop_assert_eq!(after.len() + count * old.len(), text.len() + count * new.len());
            }
            Err(_) => prop_assert!(count != wanted || old == new),
        }
        match replaced(&text, &old, &new, Expected::Any) {
            Ok((after, times)) => {
                prop_assert_eq!(times, count);
                prop_assert_eq!(after, text.replace(&old, &new));
            }
            Err(_) => prop_assert!(count == 0 || old == new),
        }
    }

    #[test]
    fn other_line_ends_make_no_difference(text in "[ab\n]{0,24}", old in "[ab\n]{1,3}", new in "[abc\n]{0,3}") {
        let windows = text.replace('\n', "\r\n");
        let ending = Ending::of(&windows);
        prop_assume!(ending == Ending::of("\r\n"));
        let here = replaced(&text, &old, &new, Expected::Any).map(|(after, _)| after.replace('\n', "\r\n"));
        let there = replaced(&ending.plain(&windows), &old, &new, Expected::Any).map(|(after, _)| ending.dress(&after));
        prop_assert_eq!(here, there);
    }
}
