//! Real CLIs through the model server: that the server's dialect is theirs, and that recording works.

use multitap_testkit::cli::CLAUDE;
use multitap_testkit::fixture::Fixture;
use multitap_testkit::model::{ModelServer, Reply, Role, Tool};
use multitap_testkit::{Scratch, interop, record, wait};
use serde_json::{Value, json};

#[test]
fn interop_claude_says_what_the_model_was_scripted_to_say() {
    let Some(claude) = interop::find(CLAUDE) else { return };
    let server = ModelServer::start(Reply::text("hello from the script")).unwrap();
    let scratch = Scratch::new(&server).unwrap();
    let output = scratch.command(&claude).args(["-p", "hi"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "hello from the script", "{output:?}");
    assert_eq!(server.conversation()[0].last_user_text(), "hi");
    assert!(wait::marked(&scratch).is_empty());
}

#[test]
fn interop_claude_tries_again_and_runs_parallel_tools() {
    let Some(claude) = interop::find(CLAUDE) else { return };
    let tools = Reply::text("two at once").then_call(Tool::shell("echo one")).then_call(Tool::shell("echo two"));
    let server =
        ModelServer::start([Reply::status(429), tools, Reply::text("half").then_cut(), Reply::text("done")]).unwrap();
    let scratch = Scratch::new(&server).unwrap();
    let args = ["-p", "go", "--permission-mode", "bypassPermissions"];
    let output = scratch.command(&claude).args(args).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "done", "{output:?}");
    let results = server.conversation()[2].tool_results();
    let mut said: Vec<&str> = results.iter().map(|result| result.text.as_str()).collect();
    said.sort_unstable(); // the first to end comes first
    assert_eq!(said, ["one", "two"]);
}

#[test]
fn interop_claude_sub_agents_leave_the_script_alone() {
    let Some(claude) = interop::find(CLAUDE) else { return };
    let sub = json!({"description": "sub", "prompt": "[[text:from below]]", "subagent_type": "general-purpose"});
    let script = [Reply::call(Tool::native("Agent", sub)), Reply::text("main, second"), Reply::text("main, third")];
    let server = ModelServer::start(script).unwrap();
    let scratch = Scratch::new(&server).unwrap();
    let output = scratch.command(&claude).args(["-p", "delegate"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(server.requests().iter().any(|request| request.role == Role::SubAgent));
    let taken = server.conversation().len();
    assert!(taken >= 2, "{taken}");
    assert_eq!(server.queued(), 3_usize.saturating_sub(taken));
}

/// Records a case and returns it with the `type` (and `subtype`) of each line on stdout.
async fn recorded(name: &str) -> (Fixture, Vec<String>) {
    let cases = record::cases("claude");
    let Some(case) = cases.iter().find(|case| case.name == name) else { panic!("no case {name}") };
    let fixture = match record::record(CLAUDE, case).await {
        Ok(fixture) => fixture,
        Err(error) => panic!("{error:#}"),
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kinds = fixture.messages().map(|line| match line.get("subtype") {
        Some(subtype) => format!("{}/{}", text(&line["type"]), text(subtype)),
        None => text(&line["type"]),
    });
    let kinds = kinds.collect();
    (fixture, kinds)
}

#[tokio::test]
async fn interop_a_recording_holds_both_sides_and_nothing_of_this_machine() {
    if interop::find(CLAUDE).is_none() {
        return;
    }
    let (fixture, kinds) = recorded("perm_allow").await;
    assert_eq!(kinds, ["system/init", "assistant", "control_request", "user", "assistant", "result/success"]);
    assert_eq!((fixture.stdin().count(), fixture.exit_code()), (2, Some(0)));
    let text = fixture.text().unwrap();
    assert!(text.contains("made.txt") && text.contains("/workspace"), "{text}");
    let temporary = std::env::temp_dir().join("multitap-");
    assert!(!text.contains(&*temporary.to_string_lossy()), "{text}");
}

#[tokio::test]
async fn interop_thinking_is_recorded_as_deltas() {
    if interop::find(CLAUDE).is_none() {
        return;
    }
    let (fixture, _) = recorded("stream_partial").await;
    let deltas = |kind: &str, field: &str| -> String {
        let events = fixture.messages().filter(|line| line["event"]["delta"]["type"] == kind);
        events.map(|line| line["event"]["delta"][field].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(deltas("thinking_delta", "thinking"), "let me think about this");
    assert_eq!(deltas("text_delta", "text"), "the answer is 42");
}
