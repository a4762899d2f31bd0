use std::fs;

use multitap_event::{Details, Edit, FileChangeType, ToolOutcome};
use serde_json::Value;

use super::super::files::tests::Scene;
use super::super::read;
use super::*;
use crate::job::{Access, Job};
use crate::tool::Outcome;

async fn job(scene: &Scene, path: &str, content: &str) -> Job {
    scene.prepare(NAME, json!({ "file_path": path, "content": content })).await.unwrap()
}

async fn refusal(scene: &Scene, arguments: Value) -> String {
    let BadCall(why) = scene.prepare(NAME, arguments).await.unwrap_err();
    why
}

#[track_caller]
fn failed(outcome: &Outcome, words: &str) {
    assert_eq!(outcome.outcome, ToolOutcome::Failed, "{}", outcome.text);
    assert!(outcome.text.contains(words), "{}", outcome.text);
    assert!(outcome.changes.is_empty());
}

#[tokio::test]
async fn a_question_shows_what_would_be_written() {
    let scene = Scene::new(&[("a.txt", "old\n")]);
    let job = job(&scene, "a.txt", "new\n").await;
    let file_path = scene.path("a.txt").display().to_string();
    assert_eq!(job.title(), "Change a.txt");
    assert_eq!(job.access(), Access::Change { file: &scene.path("a.txt") });
    assert_eq!(job.edits(), [Edit::NewContent]);
    let details = Details::FileEdit {
        file_path: file_path.clone(),
        before: Some("old\n".to_owned()),
        after: Some("new\n".to_owned()),
        diff: Some("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n".to_owned()),
    };
    assert_eq!(job.details(), details);
    assert_eq!(scene.text("a.txt"), "old\n", "nothing is written before it is allowed");
    let outcome = scene.run(job).await;
    assert_eq!(outcome.text, "Wrote a.txt (1 line).");
    assert_eq!(scene.text("a.txt"), "new\n");
    assert_eq!(outcome.changes[0].change_type, FileChangeType::Modified);
}

#[tokio::test]
async fn a_new_file_comes_with_its_folders() {
    let scene = Scene::new(&[]);
    let job = job(&scene, "deep/er/a.txt", "one\ntwo").await;
    assert_eq!(job.title(), "Create deep/er/a.txt");
    assert!(!scene.path("deep").exists());
    let outcome = scene.run(job).await;
    assert_eq!(outcome.text, "Created deep/er/a.txt (2 lines).");
    let change = &outcome.changes[0];
    assert_eq!((change.change_type, change.before.as_deref()), (FileChangeType::Created, None));
    assert!(change.diff.as_deref().unwrap().starts_with("--- /dev/null\n+++ b/deep/er/a.txt\n"));
}

#[tokio::test]
async fn the_users_text_is_written_instead_and_the_model_told() {
    let scene = Scene::new(&[("a.txt", "one\r\ntwo\r\n")]);
    let first = job(&scene, "a.txt", "one\n2\n").await;
    let outcome = scene.run(first.with_content("one\nzwei\n".to_owned(), serde_json::Map::new()).unwrap().0).await;
    assert_eq!(scene.text("a.txt"), "one\r\nzwei\r\n", "with the file's own line ends");
    assert!(outcome.text.contains("The user changed your text before it was written:"), "{}", outcome.text);
    assert!(outcome.text.contains("-2\r\n+zwei\r\n"), "{}", outcome.text);
    assert_eq!(outcome.changes[0].after.as_deref(), Some("one\r\nzwei\r\n"));
    let second = job(&scene, "a.txt", "x").await;
    let outcome = scene.run(second.with_content("one\nzwei\n".to_owned(), serde_json::Map::new()).unwrap().0).await;
    assert_eq!(outcome.text, "a.txt was left as it is: the user took the change out.");
    assert!(outcome.changes.is_empty());
}

#[tokio::test]
async fn what_changed_on_disk_is_not_overwritten() {
    let scene = Scene::new(&[("a.txt", "old")]);
    let change = job(&scene, "a.txt", "new").await;
    let create = job(&scene, "b.txt", "new").await;
    let gone = {
        scene.write("c.txt", "old");
        job(&scene, "c.txt", "new").await
    };
    scene.write("a.txt", "odd");
    scene.write("b.txt", "theirs");
    fs::remove_file(scene.path("c.txt")).unwrap();
    failed(&scene.run(change).await, "changed on disk after this change was worked out");
    failed(&scene.run(create).await, "changed on disk after this change was worked out");
    failed(&scene.run(gone).await, "changed on disk after this change was worked out");
    assert_eq!((scene.text("a.txt"), scene.text("b.txt")), ("odd".to_owned(), "theirs".to_owned()));
    assert!(!scene.path("c.txt").exists());
}

#[tokio::test]
async fn what_changed_since_the_model_read_it_must_be_read_again() {
    let scene = Scene::new(&[("a.txt", "old"), ("long", &"line\n".repeat(5000))]);
    scene.call(read::NAME, json!({ "path": "a.txt" })).await;
    scene.call(read::NAME, json!({ "path": "long", "limit": 1 })).await;
    scene.write("a.txt", "odd");
    scene.write("long", format!("{}Line\n", "line\n".repeat(4999)));
    for path in ["a.txt", "long"] {
        let why = refusal(&scene, json!({ "path": path, "content": "new" })).await;
        assert!(why.contains("changed on disk since you last read it"), "{why}");
        let edit = json!({ "path": path, "old_string": "odd", "new_string": "new" });
        let BadCall(why) = scene.prepare(super::super::replace::NAME, edit).await.unwrap_err();
        assert!(why.contains("changed on disk since you last read it"), "{why}");
        scene.call(read::NAME, json!({ "path": path })).await;
        assert_eq!(scene.run(job(&scene, path, "new").await).await.outcome, ToolOutcome::Completed);
        assert_eq!(scene.run(job(&scene, path, "newer").await).await.outcome, ToolOutcome::Completed);
    }
    // The same text again is no change, whatever the time on it says.
    scene.write("a.txt", "newer");
    assert_eq!(scene.run(job(&scene, "a.txt", "newest").await).await.outcome, ToolOutcome::Completed);
}

#[tokio::test]
async fn a_picture_that_was_looked_at_is_known_again() {
    let scene = Scene::new(&[]);
    scene.write("a.png", b"\x89PNG\0");
    scene.call(read::NAME, json!({ "path": "a.png" })).await;
    job(&scene, "a.png", "no longer a picture").await;
    scene.write("a.png", b"\x89PNG\0\0");
    let why = refusal(&scene, json!({ "path": "a.png", "content": "x" })).await;
    assert!(why.contains("changed on disk since you last read it"), "{why}");
}

#[tokio::test]
async fn what_is_no_text_can_be_overwritten_but_not_shown() {
    let scene = Scene::new(&[]);
    scene.write("a.bin", b"\xff\0");
    let job = job(&scene, "a.bin", "text").await;
    let Details::FileEdit { before, after, diff, .. } = job.details() else { panic!("{job:?}") };
    assert_eq!((before, after.as_deref(), diff), (None, Some("text"), None));
    let again = job.clone();
    assert_eq!(scene.run(job).await.changes[0].change_type, FileChangeType::Modified);
    failed(&scene.run(again).await, "changed on disk");
}

#[tokio::test]
async fn of_a_large_text_only_the_diff_is_shown() {
    let large = "a line of text\n".repeat(100_000);
    let scene = Scene::new(&[("large", &large)]);
    let job = job(&scene, "large", &large.replacen("text", "words", 1)).await;
    let Details::FileEdit { before, after, diff, .. } = job.details() else { panic!("{job:?}") };
    assert!(before.is_none() && after.is_none() && diff.unwrap().len() < 1000);
    assert!(job.edits().is_empty(), "what cannot be seen cannot be edited");
    assert_eq!(scene.run(job).await.outcome, ToolOutcome::Completed);
    assert!(scene.text("large").starts_with("a line of words\na line of text\n"));
}

#[tokio::test]
async fn wrong_calls_are_refused() {
    let scene = Scene::new(&[("a.txt", "same"), ("b/c", "")]);
    for (arguments, words) in [
        (json!({ "path": "a.txt", "content": "same" }), "nothing to change"),
        (json!({ "path": "b", "content": "x" }), "cannot change b: it is a folder"),
        (json!({ "path": "a.txt/b", "content": "x" }), "does not exist"),
        (json!({ "path": "../x", "content": "x" }), "lies outside"),
        (json!({ "path": "/tmp/x", "content": "x" }), "lies outside"),
        (json!({ "path": "x", "content": { "a": 1 } }), "content: invalid type: map, expected a string"),
        (json!({ "path": "x" }), "missing field `content`"),
        (json!({ "path": true, "content": "x" }), "path: invalid type: boolean `true`"),
        (json!([1]), "must be a JSON object"),
    ] {
        let why = refusal(&scene, arguments).await;
        assert!(why.contains(words), "{why}");
    }
}

#[tokio::test]
async fn a_stopped_turn_writes_nothing() {
    let scene = Scene::new(&[]);
    let job = job(&scene, "a", "x").await;
    let (progress, _told) = tokio::sync::mpsc::channel(1);
    let stop = tokio_util::sync::CancellationToken::new();
    stop.cancel();
    let outcome =
        scene.tools.run(crate::policy::Approved::in_a_test(job), crate::tool::ToolContext { progress, stop }).await;
    assert_eq!(outcome.outcome, ToolOutcome::Cancelled);
    assert!(!scene.path("a").exists());
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[tokio::test]
    async fn a_link_that_stays_inside_is_written_through() {
        let scene = Scene::new(&[("real/a.sh", "old")]);
        fs::set_permissions(scene.path("real/a.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("real/a.sh", scene.path("link")).unwrap();
        symlink("real/new", scene.path("dangling")).unwrap();
        let outcome = scene.run(job(&scene, "link", "new").await).await;
        assert_eq!(outcome.text, "Wrote real/a.sh (1 line).");
        scene.run(job(&scene, "dangling", "made").await).await;
        assert!(scene.path("link").is_symlink() && scene.path("dangling").is_symlink());
        assert_eq!((scene.text("real/a.sh"), scene.text("real/new")), ("new".to_owned(), "made".to_owned()));
        assert_eq!(fs::metadata(scene.path("real/a.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[tokio::test]
    async fn a_link_that_leads_out_is_refused() {
        let scene = Scene::new(&[]);
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), scene.path("folder")).unwrap();
        symlink(outside.path().join("new"), scene.path("file")).unwrap();
        for path in ["folder/x", "file", "folder/deep/er", "./folder/../x"] {
            let why = refusal(&scene, json!({ "path": path, "content": "x" })).await;
            assert!(why.contains("outside") || why.contains("follows a link out"), "{why}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_link_swapped_in_after_the_question_leads_nothing_out() {
        let scene = Scene::new(&[("src/a.txt", "old"), ("b.txt", "old")]);
        let outside = tempfile::tempdir().unwrap();
        for name in ["a.txt", "b.txt"] {
            fs::write(outside.path().join(name), "old").unwrap();
        }
        let folder = job(&scene, "src/a.txt", "new").await;
        let create = job(&scene, "src/new.txt", "new").await;
        let file = job(&scene, "b.txt", "new").await;
        // Everything is as it was to whoever looks by path, but it is elsewhere.
        fs::rename(scene.path("src"), scene.path("kept")).unwrap();
        symlink(outside.path(), scene.path("src")).unwrap();
        fs::remove_file(scene.path("b.txt")).unwrap();
        symlink(outside.path().join("b.txt"), scene.path("b.txt")).unwrap();
        for job in [folder, create, file] {
            failed(&scene.run(job).await, "leads to another file now");
        }
        // A link to another place inside is not what was shown either.
        let inside = job(&scene, "kept/a.txt", "new").await;
        scene.write("other.txt", "old");
        fs::remove_file(scene.path("kept/a.txt")).unwrap();
        symlink(scene.path("other.txt"), scene.path("kept/a.txt")).unwrap();
        failed(&scene.run(inside).await, "leads to another file now");
        assert_eq!(scene.text("other.txt"), "old");
        for name in ["a.txt", "b.txt"] {
            assert_eq!(fs::read_to_string(outside.path().join(name)).unwrap(), "old");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
    }

    #[cfg(not(target_vendor = "apple"))]
    #[tokio::test]
    async fn a_pipe_is_neither_read_nor_written() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let scene = Scene::new(&[]);
        mknodat(CWD, scene.path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let why = refusal(&scene, json!({ "path": "pipe", "content": "x" })).await;
        assert_eq!(why, "cannot change pipe: it is a pipe, not a plain file");
        let outcome = scene.call(read::NAME, json!({ "path": "pipe" })).await;
        assert_eq!(outcome.text, "cannot read pipe: it is a pipe, not a plain file");
        let outcome = scene.call("search_file_content", json!({ "pattern": "x" })).await;
        assert_eq!(outcome.text, "No line matches 'x'.");
        // One that takes a file's place in the meantime holds nobody up either.
        let job = job(&scene, "later", "x").await;
        mknodat(CWD, scene.path("later"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        failed(&scene.run(job).await, "it is a pipe");
    }
}
