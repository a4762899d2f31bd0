//! With a real ACP agent from npm: Claude behind the protocol, driven as any such agent.

use std::path::Path;

use multitap_event::{
    AgentKind, ApprovalMode, Command, Decide, Details, EventKind, FileChangeType, LaunchError, McpReach, Mode, Resume,
    SessionConfig, ToolOutcome, TurnStatus, option,
};
use multitap_testkit::cli::CLAUDE_ACP;
use multitap_testkit::fake::Fake;
use multitap_testkit::interop;
use serde_json::json;

use crate::scene::{Place, native_id, results, said};

fn place(agent: &Path) -> Place {
    Place::of(AgentKind::Claude, agent)
}

/// The agent is named by its command line, and by nothing else.
fn config(place: &Place) -> SessionConfig {
    SessionConfig {
        agent: AgentKind::Acp { command: format!("'{}'", place.program().display()) },
        program: None,
        ..place.config()
    }
}

macro_rules! place {
    () => {{
        let Some(agent) = interop::find(CLAUDE_ACP) else { return };
        place(&agent)
    }};
}

#[tokio::test]
async fn interop_text_thoughts_and_two_turns() {
    let place = place!();
    let mut scene = place.start(config(&place)).await;
    let end = scene.turn("[[think:hm]][[text:hello there]]").await;
    assert_eq!((end.status, end.text.as_deref()), (TurnStatus::Completed, Some("hello there")));
    assert!(end.usage.is_some_and(|usage| usage.total_tokens > 0) && end.total_cost_usd.is_some());
    scene.turn("[[recall]]").await;
    let told = scene.close().await;
    assert!(said(&told).starts_with("hello thereearlier you said: [[think:hm]]"), "{told:#?}");
    let thought: String = told
        .iter()
        .filter_map(|kind| if let EventKind::Reasoning(thought) = kind { Some(thought.content.as_str()) } else { None })
        .collect();
    assert_eq!(thought, "hm");
    assert!(!told.iter().any(|kind| matches!(kind, EventKind::Unrecognized { .. })), "{told:#?}");
}

#[tokio::test]
async fn interop_commands_are_asked_about() {
    let place = place!();
    let mut scene = place.start(config(&place)).await;
    scene.prompt("[[tool:touch made.txt; exit 3]]").await;
    let question = scene.question().await;
    let Details::Command { command, .. } = &question.details else { panic!("{question:#?}") };
    assert_eq!(command, "touch made.txt; exit 3");
    scene.decide(&question, option::PROCEED_ONCE).await;
    scene.turn_end().await;
    scene.prompt("[[tool:touch never.txt]]").await;
    let question = scene.question().await;
    scene.decide(&question, option::CANCEL).await;
    let end = scene.turn_end().await;
    let told = scene.close().await;
    let done = results(&told);
    assert_eq!((done[0].outcome, done[0].exit_code), (ToolOutcome::Failed, Some(3)), "{told:#?}");
    assert_eq!(done[1].outcome, ToolOutcome::Denied, "{told:#?}");
    assert_eq!((done.len(), end.denials.len()), (2, 1), "{told:#?}");
    assert!(place.scratch.path("made.txt").exists() && !place.scratch.path("never.txt").exists());
}

#[tokio::test]
async fn interop_its_own_questions_are_forms() {
    let place = place!();
    let mut scene = place.start(config(&place)).await;
    let options = json!([{ "label": "red", "description": "warm" }, { "label": "blue", "description": "cold" }]);
    let asked = json!({ "question": "Which color?", "header": "Color", "multiSelect": false, "options": options });
    scene.prompt(&format!("[[call:AskUserQuestion:{}]]", json!({ "questions": [asked] }))).await;
    let question = scene.question().await;
    assert_eq!(question.title, "Claude Agent asks: Which color?");
    let mut decide = Decide::new(&question.question_id, option::PROCEED_ONCE);
    decide.answers = Some([("question_0".to_owned(), "blue".into())].into());
    scene.send(Command::Decide(decide)).await;
    scene.turn_end().await;
    let told = scene.close().await;
    assert!(said(&told).contains(r#""Which color?"="blue""#), "{told:#?}");
    assert!(results(&told)[0].success, "{told:#?}");
}

#[tokio::test]
async fn interop_changes_are_shown_before_and_after() {
    let place = place!();
    let path = place.scratch.write("list.txt", "alpha\nbeta\ngamma\n").unwrap();
    let path = path.display();
    let mut scene = place.start(config(&place)).await;
    scene.turn(&format!("[[read:{path}]]")).await;
    scene.prompt(&format!("[[edit:{path}:beta=>BETA]]")).await;
    let question = scene.question().await;
    let Details::FileEdit { before, after, diff, .. } = &question.details else { panic!("{question:#?}") };
    assert_eq!(before.as_deref(), Some("alpha\nbeta\ngamma\n"));
    assert_eq!(after.as_deref(), Some("alpha\nBETA\ngamma\n"));
    assert!(diff.as_deref().unwrap().contains("-beta\n+BETA\n"));
    scene.decide(&question, option::PROCEED_ONCE).await;
    scene.turn_end().await;
    let told = scene.close().await;
    let change =
        told.iter().find_map(|kind| if let EventKind::FileChanged(change) = kind { Some(change) } else { None });
    let change = change.unwrap_or_else(|| panic!("{told:#?}"));
    assert_eq!(change.change_type, FileChangeType::Modified);
    assert_eq!(change.after.as_deref(), Some("alpha\nBETA\ngamma\n"));
    assert_eq!(place.scratch.read("list.txt").unwrap(), "alpha\nBETA\ngamma\n");
}

#[tokio::test]
async fn interop_cancel_wherever_it_is() {
    let place = place!();
    let mut scene = place.start(config(&place)).await;
    scene.prompt("[[text:hm]][[hang]]").await;
    scene.until(|kind| matches!(kind, EventKind::TextChunk(_)).then_some(())).await;
    scene.send(Command::Cancel).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    scene.prompt("[[tool:touch never.txt]]").await;
    scene.question().await;
    scene.send(Command::Cancel).await;
    scene.until(|kind| matches!(kind, EventKind::PermissionWithdrawn(_)).then_some(())).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    assert_eq!(scene.turn("[[text:still here]]").await.status, TurnStatus::Completed);
    let told = scene.close().await;
    assert_eq!(results(&told)[0].outcome, ToolOutcome::Cancelled, "{told:#?}");
    assert!(!place.scratch.path("never.txt").exists());
}

#[tokio::test]
async fn interop_modes_and_models() {
    let place = place!();
    let mode = Some(Mode::Unified(ApprovalMode::AutoEdit));
    let mut scene = place.start(SessionConfig { mode, ..config(&place) }).await;
    let path = place.scratch.path("new.txt");
    assert_eq!(scene.turn(&format!("[[write:{}:x]]", path.display())).await.status, TurnStatus::Completed);
    assert!(path.exists(), "edits run unasked");
    scene.send(Command::SetMode { mode: "plan".to_owned() }).await;
    scene
        .until(|kind| matches!(kind, EventKind::ModeChanged { mode: Some(ApprovalMode::Plan), .. }).then_some(()))
        .await;
    scene.send(Command::SetMode { mode: "bogus".to_owned() }).await;
    let why = scene.until(|kind| if let EventKind::Error(error) = kind { Some(error.message.clone()) } else { None });
    assert!(why.await.contains("bogus"));
    scene.close().await;

    let mode = Some(Mode::Native("bogus".to_owned()));
    let refused = place.try_start(SessionConfig { mode, ..config(&place) }).await;
    let Err(LaunchError::Unsupported(refused)) = refused else { panic!("it started") };
    assert_eq!(refused.setting, "approval mode bogus");
}

#[tokio::test]
async fn interop_conversations_are_taken_up_and_forked() {
    let place = place!();
    let mut scene = place.start(config(&place)).await;
    scene.turn("remember plum [[text:noted]]").await;
    let id = native_id(&scene.close().await);
    let session = Resume::Session { native_id: id.clone(), at: None };
    for (resume, fork) in [(session.clone(), false), (Resume::Latest, false), (session, true)] {
        let mut scene = place.start(SessionConfig { resume, fork, ..config(&place) }).await;
        scene.turn("[[recall]]").await;
        let told = scene.close().await;
        assert!(said(&told).starts_with("earlier you said: remember plum"), "fork {fork}: {told:#?}");
        assert_eq!(native_id(&told) == id, !fork);
    }
    let gone = Resume::Session { native_id: "99999999-2222-4333-8444-555555555555".to_owned(), at: None };
    assert!(place.try_start(SessionConfig { resume: gone, ..config(&place) }).await.is_err());
}

#[tokio::test]
async fn interop_an_mcp_server_is_handed_on() {
    let place = place!();
    let fake = Fake::mcp().unwrap();
    let server = McpReach::program(fake.program().display().to_string(), Vec::new()).into();
    let mut scene =
        place.start(SessionConfig { mcp_servers: [("tiny".to_owned(), server)].into(), ..config(&place) }).await;
    scene.prompt(r#"[[mcp:tiny:echo:{"message":"hi"}]]"#).await;
    let question = scene.question().await;
    assert!(matches!(&question.details, Details::Mcp { server, tool, .. } if server == "tiny" && tool == "echo"));
    scene.decide(&question, option::PROCEED_ONCE).await;
    scene.turn_end().await;
    let told = scene.close().await;
    assert!(results(&told)[0].success, "{told:#?}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let place = Place::of(AgentKind::Claude, Path::new("/bin/true"));
    let agent = AgentKind::Acp { command: "no-such-agent --acp".to_owned() };
    let refused = place.try_start(SessionConfig { agent, program: None, ..place.config() }).await;
    let Err(LaunchError::Agent(error)) = refused else { panic!("it started") };
    assert!(error.message.contains("no-such-agent"), "{error}");
}
