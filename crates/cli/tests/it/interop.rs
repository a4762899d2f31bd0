//! The binary with the real Claude Code on a scripted model: what a user would do first, and the worst that can happen.

use std::time::Duration;

use multitap_testkit::interop;
use multitap_testkit::model::{ModelServer, Script};
use multitap_testkit::wait::{marked, until_blocking};
use serde_json::{Value, json};

use crate::scene::{PATIENCE, Scene, of, the, whole};

const LINES: [&str; 5] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];

/// The real thing, or nothing if this machine has none.
fn real() -> Option<(ModelServer, Scene)> {
    let claude = interop::claude()?;
    let server = ModelServer::start(Script::new()).unwrap();
    let scene = Scene::real(&server, &claude);
    Some((server, scene))
}

#[test]
fn interop_an_answer_in_every_format() {
    let Some((_server, scene)) = real() else { return };
    let run = scene.run(&["-p", "[[text:Hello there]]"]).exits(0);
    assert_eq!(run.stdout, "Hello there\n");
    let events = scene.run(&["-p", "[[text:Hello]]", "--output-format", "stream-json"]).exits(0).events();
    whole(&events);
    assert_eq!(events[0]["type"], "sessionStarted");
    assert_eq!(events[0]["agentVersion"], "2.1.325");
    let run = scene.run(&["-p", "[[text:Hello]][[usage:7:5]]", "--output-format", "json"]).exits(0);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&value["text"], &value["usage"]["totalTokens"]), (&json!("Hello"), &json!(12)));
    scene.nothing_left(Duration::from_secs(2));
}

#[test]
fn interop_a_conversation_is_taken_up_again() {
    let Some((_server, scene)) = real() else { return };
    let run = scene.run(&["-p", "my name is Ann [[text:hi]]", "--output-format", "json"]).exits(0);
    let first: Value = serde_json::from_str(&run.stdout).unwrap();
    let id = first["nativeSessionId"].as_str().unwrap();
    assert!(scene.run(&["-p", "[[recall]]", "-c"]).exits(0).stdout.contains("Ann"));
    assert!(scene.run(&["-p", "[[recall]]", "-r", id]).exits(0).stdout.contains("Ann"));
    let run = scene.run(&["-p", "[[recall]]", "-r", id, "--fork", "--output-format", "json"]).exits(0);
    let fork: Value = serde_json::from_str(&run.stdout).unwrap();
    assert!(fork["text"].as_str().unwrap().contains("Ann"), "{fork}");
    assert_ne!(fork["nativeSessionId"], first["nativeSessionId"]);
    let nobody = "00000000-0000-4000-8000-000000000000";
    let run = scene.run(&["-p", "hi", "-r", nobody, "--output-format", "stream-json"]).exits(3);
    assert_eq!(the(&run.events(), "error")["kind"], "sessionNotFound");
}

#[test]
fn interop_questions_are_answered_by_lines() {
    let Some((_server, scene)) = real() else { return };
    let mut live = scene.start(&LINES);
    live.tell(&json!({"type": "prompt", "text": "[[tool:touch made.txt]][[next]][[text:done]]"}));
    let asked = live.until_type("permissionAsked");
    assert!(!scene.scratch.path("made.txt").exists());
    live.tell(&json!({"type": "decide", "questionId": asked["questionId"], "optionId": "proceed_once"}));
    assert_eq!(live.until_type("turnCompleted")["status"], "completed");
    assert!(scene.scratch.path("made.txt").exists());
    live.tell(&json!({"type": "prompt", "text": "[[tool:touch other.txt]][[next]][[text:well then]]"}));
    let asked = live.until_type("permissionAsked");
    live.tell(&json!({
        "type": "decide", "questionId": asked["questionId"], "optionId": "cancel", "feedback": "not that one",
    }));
    live.until_type("turnCompleted");
    let events = live.end().exits(0).events();
    whole(&events);
    assert!(!scene.scratch.path("other.txt").exists());
    assert_eq!(of(&events, "toolCompleted")[1]["outcome"], "denied");
    scene.nothing_left(Duration::from_secs(2));
}

#[test]
fn interop_nobody_answers() {
    let Some((_server, scene)) = real() else { return };
    let run = scene.run(&["-p", "[[tool:touch made.txt]][[next]][[text:never mind]]"]).exits(4);
    assert_eq!(run.stdout, "never mind\n");
    assert!(run.stderr.contains("[denied]"), "{run:#?}");
    assert!(!scene.scratch.path("made.txt").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn interop_a_killed_multitap_takes_everything_with_it() {
    let Some((_server, scene)) = real() else { return };
    let mut live = scene.start(&[&LINES[..], &["--approval-mode", "auto-all"]].concat());
    let shell = "[[tool:setsid sleep 4713 </dev/null >/dev/null 2>&1 & tail -f /dev/null]]";
    live.tell(&json!({"type": "prompt", "text": shell}));
    live.until_type("toolStarted");
    let detached = || marked(&scene.scratch).into_iter().find(|process| process.command == "sleep 4713");
    until_blocking("the detached sleep", PATIENCE, detached).unwrap();
    live.signal("-KILL", &scene.scratch);
    scene.nothing_left(Duration::from_secs(2));
}
