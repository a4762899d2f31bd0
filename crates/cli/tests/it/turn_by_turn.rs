//! Agents that are run as a process for each turn (`agents.NAME.transport = "oneShot"`), through the binary.

use multitap_testkit::fake::Fake;
use multitap_testkit::wait::{marked, until_blocking};
use serde_json::json;

use crate::scene::{PATIENCE, Scene, of, the, whole};

/// Speaks as `codex exec --json` does. To `hang` it runs a command that detaches itself and does not end; to `deaf` it
/// says nothing at all; to `stay` it tells the end of its turn and stays; to anything else it says it again.
const CODEX: &str = r#"
printf '%s\n' "$*" >> "$(dirname "$0")/heard"
case $1 in
  sandbox) exit 0 ;;
  app-server) exit 1 ;;
esac
prompt=$(cat)
case $prompt in *deaf*) while :; do sleep 1; done ;; esac
echo '{"type":"thread.started","thread_id":"01a1"}'
echo '{"type":"turn.started"}'
case $prompt in *hang*)
  echo '{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"sleep 4713","status":"in_progress"}}'
  setsid sleep 4713 </dev/null >/dev/null 2>&1 &
  while :; do sleep 1; done ;;
esac
printf '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"%s"}}\n' "$prompt"
echo '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}'
case $prompt in *stay*) trap '' INT TERM; while :; do sleep 1; done ;; esac
"#;

fn place() -> (Scene, Fake) {
    let fake = Fake::shell("codex", CODEX).unwrap();
    let mut scene = Scene::bare();
    scene.scratch.set("MULTITAP_CODEX_BIN", fake.program());
    let folder = scene.scratch.home().join(".config/multitap");
    std::fs::create_dir_all(&folder).unwrap();
    let settings = json!({ "agents": { "codex": { "transport": "oneShot" } } });
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    (scene, fake)
}

/// Lines in and out.
const LINES: [&str; 9] = [
    "-p",
    "--agent",
    "codex",
    "--approval-mode",
    "auto-all",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
];

#[test]
fn turns_of_one_conversation() {
    let (scene, fake) = place();
    let mut live = scene.start(&LINES);
    // There is a session before there is a prompt.
    let started = live.until_type("sessionStarted");
    assert_eq!((&started["transport"], started.get("nativeSessionId")), (&json!("exec"), None));
    live.tell(&json!({"type": "prompt", "text": "one"}));
    live.until_type("turnCompleted");
    live.tell(&json!({"type": "prompt", "text": "two"}));
    live.until_type("turnCompleted");
    let events = live.end().exits(0).events();
    whole(&events);
    let named = of(&events, "nativeSessionChanged");
    assert_eq!((named.len(), &named[0]["nativeSessionId"]), (1, &json!("01a1")));
    assert!(of(&events, "turnCompleted").iter().all(|turn| turn["durationMs"].is_u64()), "{events:#?}");
    let said: Vec<_> = of(&events, "textChunk").iter().map(|text| text["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["one", "two"]);
    let turns: Vec<String> = fake.heard().unwrap().into_iter().filter(|line| line.starts_with("exec")).collect();
    assert!(!turns[0].contains("resume") && turns[1].ends_with("resume 01a1 -"), "{turns:?}");
    // This one does not tell its settings, so its sandbox is left as it is.
    assert!(turns.iter().all(|turn| !turn.contains(" -s ")), "{turns:?}");
    assert!(of(&events, "error").iter().any(|error| error["severity"] == "warning"), "{events:#?}");
}

#[test]
fn a_turn_is_cancelled_and_the_next_one_runs() {
    let (scene, _fake) = place();
    let mut live = scene.start(&LINES);
    live.tell(&json!({"type": "prompt", "text": "hang"}));
    live.until_type("toolStarted");
    live.tell(&json!({"type": "cancel"}));
    let end = live.until_type("turnCompleted");
    assert_eq!(end["status"], "cancelled", "{end}");
    live.tell(&json!({"type": "prompt", "text": "again"}));
    assert_eq!(live.until_type("turnCompleted")["status"], "completed");
    let events = live.end().exits(0).events();
    whole(&events);
    assert_eq!(the(&events, "toolCompleted")["outcome"], "cancelled");
    scene.nothing_left();
}

#[test]
fn a_process_that_says_nothing_times_out() {
    let (scene, _fake) = place();
    let args = ["-p", "deaf", "--agent", "codex", "--start-timeout", "1", "--output-format", "stream-json"];
    let events = scene.run(&args).exits(5).events();
    whole(&events);
    let errors = of(&events, "error");
    assert!(errors.iter().any(|error| error["kind"] == "timeout" && error["severity"] == "error"), "{events:#?}");
    assert_eq!(the(&events, "turnCompleted")["status"], "failed");
    assert_eq!(the(&events, "sessionEnded")["reason"], "timeout");
    scene.nothing_left();
}

#[test]
fn a_process_that_stays_does_not_hold_up_the_next_prompt() {
    let (scene, _fake) = place();
    let mut live = scene.start(&LINES);
    live.tell(&json!({"type": "prompt", "text": "stay"}));
    live.tell(&json!({"type": "prompt", "text": "next"}));
    live.until_type("turnCompleted");
    live.until_type("turnCompleted");
    let events = live.end().exits(0).events();
    whole(&events);
    assert_eq!(of(&events, "textChunk").len(), 2, "{events:#?}");
    scene.nothing_left();
}

#[cfg(target_os = "linux")]
#[test]
fn a_kill_in_a_running_command_leaves_nothing() {
    let (scene, _fake) = place();
    let mut live = scene.start(&LINES);
    live.tell(&json!({"type": "prompt", "text": "hang"}));
    live.until_type("toolStarted");
    let sleeps = || marked(&scene.scratch).iter().any(|process| process.command.contains("sleep 4713")).then_some(());
    until_blocking("the command", PATIENCE, sleeps).unwrap();
    live.signal("-KILL", &scene.scratch);
    scene.nothing_left();
}
