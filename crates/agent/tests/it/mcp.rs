//! MCP servers in a session: told, asked about, called, and gone at its end.

use std::time::Duration;

use multitap_event::{
    ApprovalMode, Command, Decide, Details, EventKind, McpReach, McpServer, Query, SystemSubtype, ToolKind,
    ToolOutcome, option,
};
use multitap_testkit::fake::Fake;
use multitap_testkit::wait::{descendants, until};
use serde_json::json;

use crate::scene::{Scene, completed, server, text, was_asked};

fn tiny(fake: &Fake) -> McpServer {
    McpReach::program(fake.program().display().to_string(), Vec::new()).into()
}

fn sh(script: &str) -> McpServer {
    McpReach::program("/bin/sh", vec!["-c".to_owned(), script.to_owned()]).into()
}

/// R000-35, R002-105: the question names server and tool, and may be answered with other arguments.
#[tokio::test]
async fn a_tool_is_asked_about_and_called() {
    let fake = Fake::mcp().unwrap();
    let mut scene = Scene::start([("tiny", tiny(&fake))]).await;
    let question = scene.asked(r#"call tiny echo {"message":"hi"}"#).await;
    let statuses: Vec<_> = server(&scene.told, "tiny").into_iter().map(|server| server.status).collect();
    assert_eq!(statuses, ["starting", "connected"], "told before the first turn");
    assert_eq!(server(&scene.told, "tiny")[1].tools.as_deref().unwrap(), ["echo", "fail", "pic"]);
    let started = scene.told.iter().find_map(|kind| match kind {
        EventKind::ToolStarted(started) => Some(started.clone()),
        _ => None,
    });
    let started = started.unwrap();
    assert_eq!((started.tool_name.as_str(), started.tool_kind), ("mcp__tiny__echo", ToolKind::Mcp));
    assert_eq!(started.server.as_deref(), Some("tiny"));
    let arguments = json!({ "message": "hi" }).as_object().unwrap().clone();
    assert_eq!(question.details, Details::Mcp { server: "tiny".to_owned(), tool: "echo".to_owned(), arguments });
    let other = json!({ "message": "other" }).as_object().cloned();
    let decide = Decide { new_input: other, ..Decide::new(&question.question_id, option::PROCEED_ONCE) };
    assert_eq!(scene.answer(decide).await.result, Some(json!("echo: other")));
    // For good: all tools of the server.
    let question = scene.asked("call tiny fail {}").await;
    let done = scene.answer(Decide::new(&question.question_id, option::PROCEED_ALWAYS_SERVER)).await;
    assert_eq!((done.outcome, done.error.as_deref()), (ToolOutcome::Failed, Some("failed on purpose")));
    let told = scene.turn(r#"call tiny echo {"message":"again"}"#).await;
    assert!(!was_asked(&told));
    assert_eq!(completed(&told)[0].result, Some(json!("echo: again")));
    scene.close().await;
}

/// R002-88.
#[tokio::test]
async fn a_trusted_server_is_not_asked_about_and_plan_mode_stays_plan_mode() {
    let fake = Fake::mcp().unwrap();
    let trusted = McpServer { trust: true, exclude_tools: vec!["fail".to_owned()], ..tiny(&fake) };
    let mut scene = Scene::start([("tiny", trusted.clone())]).await;
    let told = scene.turn(r#"call tiny echo {"message":"hi"} then call tiny fail {}"#).await;
    assert!(!was_asked(&told));
    let done = completed(&told);
    assert_eq!(done[0].result, Some(json!("echo: hi")));
    assert!(done[1].error.as_deref().unwrap().contains("there is no tool 'mcp__tiny__fail'"), "{:?}", done[1]);
    scene.close().await;
    let mut scene = Scene::in_mode(ApprovalMode::Plan, [("tiny", trusted)]).await;
    let told = scene.turn(r#"call tiny echo {"message":"hi"}"#).await;
    assert_eq!(completed(&told)[0].outcome, ToolOutcome::Denied);
    scene.close().await;
}

#[tokio::test]
async fn one_that_is_dead_is_told_and_the_session_goes_on() {
    let fake = Fake::mcp().unwrap();
    let hangs = McpServer { timeout: Some(Duration::from_secs(1)), ..sh("sleep 300") };
    let servers = [("dead", sh("echo no key >&2; exit 3")), ("hangs", hangs), ("tiny", tiny(&fake))];
    let mut scene = Scene::in_mode(ApprovalMode::AutoAll, servers).await;
    let told = scene.turn(r#"call tiny echo {"message":"hi"}"#).await;
    assert_eq!(completed(&told)[0].result, Some(json!("echo: hi")));
    for (name, why) in [("dead", "it ended (exit code 3): no key"), ("hangs", "it did not answer within 1 s")] {
        let last = server(&scene.told, name).pop().unwrap();
        assert_eq!((last.status.as_str(), last.error.as_deref()), ("failed", Some(why)));
    }
    let shown = text(&scene.turn("/mcp").await);
    assert!(shown.contains("MCP server dead: failed: it ended (exit code 3): no key"), "{shown}");
    assert!(shown.contains("MCP server tiny: connected, 3 tools\n  echo, fail, pic\n"), "{shown}");
    scene.send(Command::Query { what: Query::McpStatus }).await;
    let status = scene.until("the status", |kind| match kind {
        EventKind::System(note) if note.subtype == SystemSubtype::MCP_STATUS => Some(note.data["mcpServers"].clone()),
        _ => None,
    });
    let status = status.await;
    assert_eq!(status[0], json!({ "name": "dead", "status": "failed", "error": "it ended (exit code 3): no key" }));
    assert_eq!(status[2], json!({ "name": "tiny", "status": "connected", "tools": ["echo", "fail", "pic"] }));
    scene.close().await;
}

#[tokio::test]
async fn one_that_dies_later_is_told_when_it_does() {
    let fake = Fake::mcp().unwrap();
    let pid = fake.path().join("pid");
    let wrapped = sh(&format!("echo $$ > {}; exec {}", pid.display(), fake.program().display()));
    let mut scene = Scene::in_mode(ApprovalMode::AutoAll, [("tiny", wrapped)]).await;
    scene.turn(r#"call tiny echo {"message":"hi"}"#).await;
    kill(std::fs::read_to_string(pid).unwrap().trim());
    let gone = scene.until("its end", |kind| match kind {
        EventKind::McpServerStatus(server) if server.status == "disconnected" => Some(server.summary()),
        _ => None,
    });
    assert_eq!(gone.await, "MCP server tiny: disconnected: it ended (signal 9)");
    let told = scene.turn(r#"call tiny echo {"message":"back"}"#).await;
    assert_eq!(completed(&told)[0].result, Some(json!("echo: back")), "the call brought it back");
    scene.close().await;
}

#[expect(clippy::disallowed_methods, reason = "a test kills the server it started")]
fn kill(pid: &str) {
    assert!(std::process::Command::new("kill").args(["-9", pid]).status().unwrap().success());
}

#[tokio::test]
async fn nothing_of_a_server_outlives_the_session() {
    let fake = Fake::mcp().unwrap();
    let program = fake.program().display().to_string();
    let running = || descendants(std::process::id()).into_iter().any(|process| process.command.contains(&program));
    let mut scene = Scene::in_mode(ApprovalMode::AutoAll, [("tiny", tiny(&fake))]).await;
    scene.turn(r#"call tiny echo {"message":"hi"}"#).await;
    assert!(running());
    scene.close().await;
    until("its end", Duration::from_secs(5), || (!running()).then_some(())).await.unwrap();
}
