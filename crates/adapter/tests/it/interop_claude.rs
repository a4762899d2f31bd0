//! With the real Claude Code: what only the adapter can show. The suite that all agents share is elsewhere.

use std::collections::BTreeMap;

use multitap_event::{
    AgentErrorKind, ApprovalMode, Command, Decide, Details, EventKind, Image, LaunchError, McpReach, McpServer, Mode,
    PermissionPath, Prompt, Query, Resume, SandboxMode, SessionConfig, SessionEndReason, ToolOutcome, TurnStatus,
    option,
};
use multitap_testkit::cli::CLAUDE;
use multitap_testkit::fake::Fake;
use multitap_testkit::interop;
use serde_json::{Value, json};

use crate::scene::{Place, native_id, outcomes, results};

fn system<'a>(told: &'a [EventKind], subtype: &str) -> Option<&'a serde_json::Map<String, Value>> {
    told.iter().find_map(|kind| match kind {
        EventKind::System(note) if note.subtype == subtype => Some(&note.data),
        _ => None,
    })
}

/// The first other native id that the session got.
fn renamed(told: &[EventKind]) -> Option<&str> {
    told.iter().find_map(|kind| match kind {
        EventKind::NativeSessionChanged { native_session_id } => Some(native_session_id.as_str()),
        _ => None,
    })
}

macro_rules! place {
    () => {{
        let Some(claude) = interop::find(CLAUDE) else { return };
        Place::new(&claude)
    }};
}

#[tokio::test]
async fn interop_permission_by_our_tool() {
    let place = place!();
    let config = SessionConfig { permission_path: PermissionPath::Mcp, ..place.config() };
    let mut scene = place.start(config).await;

    scene.prompt("[[tool:touch a.txt]][[next]][[tool:touch b.txt]][[next]][[tool:touch c.txt]][[next]][[tool:touch d.txt]][[next]][[tool:touch d.txt]]").await;
    let question = scene.question().await;
    let ids: Vec<&str> = question.options.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["proceed_once", "proceed_always", "cancel", "cancel_always"]);
    scene.decide(&question, option::PROCEED_ONCE).await;

    let question = scene.question().await;
    let changed = Decide {
        new_content: Some("touch changed.txt".into()),
        ..Decide::new(&question.question_id, option::PROCEED_ONCE)
    };
    scene.send(Command::Decide(changed)).await;

    let question = scene.question().await;
    scene.send(Command::Decide(Decide::new(&question.question_id, option::CANCEL).with_feedback("not this one"))).await;

    let question = scene.question().await;
    scene.decide(&question, option::PROCEED_ALWAYS).await;
    let end = scene.turn_end().await;
    assert_eq!(end.status, TurnStatus::Completed);

    use ToolOutcome::{Completed, Denied};
    assert_eq!(outcomes(&scene.told), [Completed, Completed, Denied, Completed, Completed]);
    assert_eq!(results(&scene.told)[2].error.as_deref(), Some("not this one"));
    let made: Vec<bool> =
        ["a.txt", "b.txt", "changed.txt", "c.txt", "d.txt"].map(|name| place.scratch.path(name).exists()).to_vec();
    assert_eq!(made, [true, false, true, false, true]);

    // No for the rest of the session.
    scene.prompt("[[tool:touch e.txt]][[next]][[tool:touch e.txt]]").await;
    let question = scene.question().await;
    scene.decide(&question, "cancel_always").await;
    scene.turn_end().await;
    assert_eq!(outcomes(&scene.told)[5..], [Denied, Denied]);

    // Cancelled with a question open.
    scene.prompt("[[tool:touch f.txt]]").await;
    let question = scene.question().await;
    scene.send(Command::Cancel).await;
    let withdrawn = |kind: &EventKind| {
        if let EventKind::PermissionWithdrawn(gone) = kind { Some(gone.question_id.clone()) } else { None }
    };
    assert_eq!(scene.until(withdrawn).await, question.question_id);
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    assert_eq!(scene.turn("[[text:alive]]").await.text.as_deref(), Some("alive"));
    scene.close().await;
}

#[tokio::test]
async fn interop_questions_and_plans() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    scene
        .prompt(r#"[[call:AskUserQuestion:{"questions":[{"question":"Which color?","header":"Color","multiSelect":false,"options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]}]}]]"#)
        .await;
    let question = scene.question().await;
    assert_eq!(question.title, "Which color?");
    let names: Vec<&str> = question.options.iter().map(|choice| choice.name.as_str()).collect();
    assert_eq!(names, ["Red", "Blue", "Do not answer"]);
    scene.decide(&question, "answer_2").await;
    scene.turn_end().await;
    let said = results(&scene.told)[0].result.clone().unwrap();
    assert!(said.as_str().unwrap().contains(r#""Which color?"="Blue""#), "{said}");

    scene.send(Command::SetMode { mode: "plan".into() }).await;
    scene.prompt(r#"[[call:ExitPlanMode:{"plan":"1. make it"}]][[next]][[tool:touch planned.txt]]"#).await;
    let question = scene.question().await;
    assert_eq!(question.details, Details::Plan { plan: "1. make it".into() });
    scene.decide(&question, option::PROCEED_ONCE).await;
    let question = scene.question().await;
    assert!(matches!(question.details, Details::Command { .. }));
    scene.decide(&question, option::PROCEED_ONCE).await;
    scene.turn_end().await;
    assert!(place.scratch.path("planned.txt").exists());
    let modes: Vec<Option<ApprovalMode>> = scene
        .told
        .iter()
        .filter_map(|kind| if let EventKind::ModeChanged { mode, .. } = kind { Some(*mode) } else { None })
        .collect();
    assert_eq!(modes, [Some(ApprovalMode::Plan), Some(ApprovalMode::Ask)]);

    scene.send(Command::SetMode { mode: "plan".into() }).await;
    scene.prompt(r#"[[call:ExitPlanMode:{"plan":"2. worse"}]]"#).await;
    let question = scene.question().await;
    scene.send(Command::Decide(Decide::new(&question.question_id, option::CANCEL).with_feedback("think more"))).await;
    let end = scene.turn_end().await;
    assert_eq!(end.text.as_deref(), Some("tool said: think more"));
    scene.close().await;
}

#[tokio::test]
async fn interop_edits_as_somebody_else_wants_them() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    let path = place.scratch.write("crlf.txt", "a\r\nb\r\nc\r\n").unwrap();
    scene.prompt(&format!("[[read:{0}]][[next]][[edit:{0}:b=>B]]", path.display())).await;
    let question = scene.question().await;
    let Details::FileEdit { before, after, diff, .. } = &question.details else { panic!("{question:#?}") };
    assert_eq!(before.as_deref(), Some("a\r\nb\r\nc\r\n"));
    assert_eq!(after.as_deref(), Some("a\r\nB\r\nc\r\n"));
    assert!(diff.as_ref().unwrap().contains("+B"));
    let other = Decide {
        new_content: Some("a\r\nX\r\nY\r\n".into()),
        ..Decide::new(&question.question_id, option::PROCEED_ONCE)
    };
    scene.send(Command::Decide(other)).await;
    scene.turn_end().await;
    assert_eq!(place.scratch.read("crlf.txt").unwrap(), "a\r\nX\r\nY\r\n");
    let change = scene
        .told
        .iter()
        .find_map(|kind| if let EventKind::FileChanged(change) = kind { Some(change.clone()) } else { None });
    assert_eq!(change.unwrap().after.as_deref(), Some("a\nX\nY\n"));

    // An answer that was not offered changes nothing.
    let path = place.scratch.path("new.txt");
    scene.prompt(&format!("[[write:{0}:one]][[next]][[write:{0}:two]]", path.display())).await;
    let question = scene.question().await;
    scene.decide(&question, "proceed_always_server").await;
    let error = scene.until(|kind| if let EventKind::Error(error) = kind { Some(error.clone()) } else { None }).await;
    assert!(error.message.contains("it offers proceed_once, proceed_always, cancel"), "{}", error.message);
    scene.decide(&question, option::PROCEED_ALWAYS).await;
    scene.turn_end().await;
    assert_eq!(place.scratch.read("new.txt").unwrap(), "two");
    scene.close().await;
}

#[tokio::test]
async fn interop_mcp_servers_and_what_is_allowed_of_them() {
    let place = place!();
    let fake = Fake::mcp().unwrap();
    let server = McpReach::program(fake.program().display().to_string(), Vec::new()).into();
    let config = SessionConfig { mcp_servers: BTreeMap::from([("tiny".to_owned(), server)]), ..place.config() };
    let mut scene = place.start(config).await;
    scene.send(Command::Query { what: Query::McpStatus }).await;
    scene.prompt(r#"[[mcp:tiny:echo:{"message":"hi"}]][[next]][[mcp:tiny:fail:{}]]"#).await;
    let question = scene.question().await;
    assert!(matches!(&question.details, Details::Mcp { server, tool, .. } if server == "tiny" && tool == "echo"));
    scene.decide(&question, option::PROCEED_ALWAYS_SERVER).await;
    scene.turn_end().await;
    assert_eq!(outcomes(&scene.told), [ToolOutcome::Completed, ToolOutcome::Failed]);
    let status = system(&scene.told, "mcpStatus").unwrap();
    assert_eq!(status["mcpServers"][0]["name"], "tiny");
    scene.close().await;
    place.tasks.close();
    place.tasks.wait().await;
    let left = std::fs::read_dir(std::env::temp_dir()).unwrap().filter_map(Result::ok);
    let mine = format!("multitap-claude-{}-", std::process::id());
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&mine)).count(), 0);
}

/// A trusted server runs unasked in the folder that is set; what is excluded does not run.
#[tokio::test]
async fn interop_what_is_set_for_an_mcp_server_holds() {
    let place = place!();
    let fake = Fake::mcp().unwrap();
    let mut server = McpServer::from(McpReach::program("./mcp", Vec::new()));
    if let McpReach::Stdio { cwd, .. } = &mut server.reach {
        *cwd = Some(fake.path().to_owned());
    }
    (server.trust, server.exclude_tools) = (true, vec!["fail".to_owned()]);
    server.timeout = Some(std::time::Duration::from_secs(20));
    let config = SessionConfig { mcp_servers: BTreeMap::from([("tiny".to_owned(), server)]), ..place.config() };
    let mut scene = place.start(config).await;
    scene.turn(r#"[[mcp:tiny:echo:{"message":"hi"}]][[next]][[mcp:tiny:fail:{}]]"#).await;
    assert!(!scene.told.iter().any(|kind| matches!(kind, EventKind::PermissionAsked(_))), "{:#?}", scene.told);
    let done = results(&scene.told);
    assert_eq!(done[0].result, Some("echo: hi".into()), "{:#?}", scene.told);
    assert_ne!(done[1].error.as_deref(), Some("failed on purpose"), "it must not run: {done:#?}");
    scene.close().await;
}

#[tokio::test]
async fn interop_modes_models_thinking_and_what_claude_tells_of_itself() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    scene.send(Command::SetModel { model: "claude-sonnet-4-5".into() }).await;
    scene.send(Command::SetMode { mode: "auto-edit".into() }).await;
    scene.send(Command::SetMode { mode: "ask-dangerous".into() }).await;
    scene.send(Command::SetThinking { tokens: Some(2000) }).await;
    for what in [Query::Commands, Query::Models, Query::Account, Query::Context] {
        scene.send(Command::Query { what }).await;
    }
    scene.turn("[[think:well]][[text:hi]]").await;
    let request = place.model.conversation().pop().unwrap();
    assert_eq!(request.model(), Some("claude-sonnet-4-5"));
    assert_eq!(request.thinking_budget(), Some(2000));
    for what in [Query::Commands, Query::Models] {
        let lists = |kind: &EventKind| matches!(kind, EventKind::Capabilities(all) if all.lists(what));
        assert!(scene.told.iter().any(lists), "no {what:?} in {:#?}", scene.told);
    }
    for subtype in ["account", "context", "thinkingLimit"] {
        assert!(system(&scene.told, subtype).is_some(), "no {subtype} in {:#?}", scene.told);
    }
    let models = scene.told.iter().filter(|kind| matches!(kind, EventKind::ModelChanged { .. })).count();
    let modes = scene.told.iter().filter(|kind| matches!(kind, EventKind::ModeChanged { .. })).count();
    assert_eq!((models, modes), (1, 1));
    let refused = scene
        .told
        .iter()
        .find_map(|kind| if let EventKind::Error(error) = kind { Some(error.message.clone()) } else { None });
    assert!(refused.unwrap().contains("claude cannot honour approval mode ask-dangerous"));
    scene.close().await;
}

/// A change that Claude refuses changes nothing, and each one is answered once, also one to what it is already.
#[tokio::test]
async fn interop_claude_confirms_or_refuses_each_change() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    for mode in ["auto-edit", "auto-edit", "auto-all", "plan"] {
        scene.send(Command::SetMode { mode: mode.into() }).await;
    }
    for model in ["claude-sonnet-4-5", "claude-sonnet-4-5"] {
        scene.send(Command::SetModel { model: model.into() }).await;
    }
    scene.turn("[[text:hi]]").await;
    let answer = |kind: &EventKind| match kind {
        EventKind::ModeChanged { native_mode, .. } => native_mode.clone(),
        EventKind::ModelChanged { model, .. } => Some(model.clone()),
        EventKind::Error(error) => error.refused_setting.map(|setting| format!("{setting:?} refused")),
        _ => None,
    };
    let answers: Vec<String> = scene.told.iter().filter_map(answer).collect();
    let expected = ["acceptEdits", "acceptEdits", "Mode refused", "plan", "claude-sonnet-4-5", "claude-sonnet-4-5"];
    assert_eq!(answers, expected, "{:#?}", scene.told);
    scene.close().await;
}

#[tokio::test]
async fn interop_every_setting_is_accepted() {
    let place = place!();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    let config = SessionConfig {
        model: Some("claude-sonnet-4-5".into()),
        mode: Some(Mode::Unified(ApprovalMode::AutoAll)),
        sandbox: Some(SandboxMode::FullAccess),
        allowed_tools: vec!["Bash(git log:*)".into(), "Read".into()],
        blocked_tools: vec!["WebFetch".into(), "WebSearch".into()],
        max_turns: Some(7),
        add_dirs: vec![place.scratch.home()],
        append_system_prompt: Some("Answer in verse.".into()),
        output_schema: Some(schema),
        agent_args: vec!["--effort".into(), "low".into()],
        ..place.config()
    };
    let mut scene = place.start(config).await;
    let end = scene.turn(r#"[[call:StructuredOutput:{"a":"b"}]]"#).await;
    assert_eq!(end.structured_output, Some(json!({ "a": "b" })));
    assert!(place.model.conversation()[0].system().contains("Answer in verse."));
    scene.close().await;

    let config = SessionConfig {
        system_prompt: Some("You are a parrot.".into()),
        allowed_tools: vec!["Bash(touch allowed.txt)".into(), "WebFetch".into()],
        blocked_tools: vec!["Edit".into(), "Write".into()],
        ..place.config()
    };
    let mut scene = place.start(config).await;
    scene.turn("[[tool:touch allowed.txt]]").await;
    assert!(place.scratch.path("allowed.txt").exists());
    let tools = place.model.conversation().pop().unwrap().tools().to_vec();
    assert!(!tools.iter().any(|tool| tool == "Edit" || tool == "Write"), "{tools:?}");
    assert!(place.model.conversation().pop().unwrap().system().contains("You are a parrot."));
    scene.close().await;
}

#[tokio::test]
async fn interop_resume_at_a_message_fork_and_continue() {
    let place = place!();
    let mut first = place.start(place.config()).await;
    let end = first.turn("one [[text:first answer]]").await;
    first.turn("two [[text:second answer]]").await;
    let told = first.close().await;
    let (id, at) = (native_id(&told), end.message_id.unwrap().to_string());
    let resume = |at: Option<String>| Resume::Session { native_id: id.clone(), at };

    // Forked at the first answer: the second was never said, and the id is known at once.
    let config = SessionConfig { resume: resume(Some(at)), fork: true, ..place.config() };
    let mut fork = place.start(config).await;
    assert_eq!(fork.turn("[[recall]]").await.text.as_deref(), Some("earlier you said: one [[text:first answer]]"));
    let told = fork.close().await;
    assert_ne!(native_id(&told), id);
    assert_eq!(renamed(&told), None);

    // The original goes on where it was.
    let config = SessionConfig { resume: resume(None), ..place.config() };
    let mut again = place.start(config).await;
    let text = again.turn("[[recall]]").await.text.unwrap();
    assert!(text.contains("one") && text.contains("two"), "{text}");
    let told = again.close().await;
    assert_eq!(native_id(&told), id);

    // The newest in this folder tells its id with its first turn.
    let config = SessionConfig { resume: Resume::Latest, ..place.config() };
    let mut latest = place.start(config).await;
    assert!(latest.turn("[[recall]]").await.text.unwrap().contains("two"));
    let told = latest.close().await;
    assert_eq!(renamed(&told), Some(id.as_str()));
}

#[tokio::test]
async fn interop_a_session_or_message_that_does_not_exist() {
    let place = place!();
    for (native_id, at) in [("99999999-2222-4333-8444-555555555555", None), ("nope", None)] {
        let resume = Resume::Session { native_id: native_id.into(), at };
        let failed = place.try_start(SessionConfig { resume, ..place.config() }).await;
        let Err(LaunchError::Agent(error)) = failed.map(|_| ()) else { panic!("{native_id} was resumed") };
        assert_eq!((error.kind, error.exit_code), (AgentErrorKind::SessionNotFound, Some(1)), "{error:#?}");
    }
}

#[tokio::test]
async fn interop_sub_agents_in_front_and_behind() {
    let place = place!();
    let config = SessionConfig { mode: Some(Mode::Unified(ApprovalMode::AutoAll)), ..place.config() };
    let mut scene = place.start(config).await;
    let call = |background: bool| {
        let input = json!({ "description": "sub", "prompt": "((tool:echo in-sub))", "subagent_type": "general-purpose", "run_in_background": background });
        format!("[[call:Agent:{input}]]")
    };
    scene.turn(&call(false)).await;
    let sub = scene.told.iter().find_map(|kind| match kind {
        EventKind::ToolStarted(tool) if tool.tool_name == "Bash" => Some(tool.clone()),
        _ => None,
    });
    let agent = scene.told.iter().find_map(|kind| match kind {
        EventKind::ToolStarted(tool) if tool.tool_name == "Agent" => Some(tool.tool_id.clone()),
        _ => None,
    });
    assert_eq!(sub.unwrap().parent_tool_id, agent);
    assert_eq!(outcomes(&scene.told), [ToolOutcome::Completed, ToolOutcome::Completed]);

    scene.turn(&call(true)).await;
    let end = scene.turn_end().await;
    assert_eq!(end.origin.as_deref(), Some("task-notification"));
    let told = scene.close().await;
    assert_eq!(outcomes(&told), [ToolOutcome::Completed; 4]);
    check_pairs(&told);
}

#[tokio::test]
async fn interop_letting_go_in_the_middle_ends_the_turn_and_the_session() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    scene.prompt("[[text:begun]][[hang]]").await;
    scene.until(|kind| matches!(kind, EventKind::TextChunk(_)).then_some(())).await;
    let started = std::time::Instant::now();
    let told = scene.close().await;
    assert!(started.elapsed().as_secs_f32() < 5.0, "{:?}", started.elapsed());
    let [.., EventKind::TurnCompleted(turn), EventKind::SessionEnded(end)] = told.as_slice() else {
        panic!("{told:#?}")
    };
    assert_eq!((turn.status, end.reason), (TurnStatus::Cancelled, SessionEndReason::Cancelled));
    assert!(!told.iter().any(|kind| matches!(kind, EventKind::Error(_))), "{told:#?}");
}

#[tokio::test]
async fn interop_images_and_slash_commands() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = Image { media_type: "image/png".into(), data: data.into() };
    scene.send(Command::Prompt(Prompt { images: vec![image], ..Prompt::text("[[text:seen]]") })).await;
    assert_eq!(scene.turn_end().await.text.as_deref(), Some("seen"));
    assert_eq!(place.model.conversation()[0].images().len(), 1);

    let before = scene.turn("/context").await;
    assert_eq!(before.num_turns, Some(0));
    scene.turn("/compact").await;
    assert_eq!(system(&scene.told, "compacted").unwrap()["trigger"], "manual");
    scene.turn("/clear").await;
    assert!(system(&scene.told, "conversation_reset").is_some());
    assert!(renamed(&scene.told).is_some());
    check_pairs(&scene.close().await);
}

/// Every turn that began ended, and every tool.
fn check_pairs(told: &[EventKind]) {
    let count = |is: fn(&EventKind) -> bool| told.iter().filter(|kind| is(kind)).count();
    let started = count(|kind| matches!(kind, EventKind::TurnStarted { .. }));
    assert_eq!(started, count(|kind| matches!(kind, EventKind::TurnCompleted(_))));
    let tools = count(|kind| matches!(kind, EventKind::ToolStarted(_)));
    assert_eq!(tools, count(|kind| matches!(kind, EventKind::ToolCompleted(_))));
    assert_eq!(count(|kind| matches!(kind, EventKind::SessionEnded(_))), 1);
}

/// What an MCP server asks reaches people, and their answer reaches the server.
#[tokio::test]
async fn interop_claude_forwards_what_an_mcp_server_asks() {
    let place = place!();
    let script = place.scratch.write("server.py", include_str!("asking_server.py")).unwrap();
    let server: McpServer = McpReach::program("python3", vec![script.display().to_string()]).into();
    let config = SessionConfig {
        mcp_servers: BTreeMap::from([("tiny".to_owned(), server)]),
        mode: Some(Mode::Unified(ApprovalMode::AutoAll)),
        ..place.config()
    };
    let mut scene = place.start(config).await;
    scene.prompt("[[mcp:tiny:form:{}]][[next]][[mcp:tiny:form:{}]][[next]][[mcp:tiny:address:{}]]").await;
    let question = scene.question().await;
    assert_eq!(question.title, "tiny asks: Who are you?");
    let answers = |age: Value| {
        let answers = BTreeMap::from([("name".to_owned(), json!("Ann")), ("ok".to_owned(), age)]);
        Decide { answers: Some(answers), ..Decide::new(&question.question_id, option::PROCEED_ONCE) }
    };
    scene.send(Command::Decide(answers(json!("perhaps")))).await;
    scene.send(Command::Decide(answers(json!("yes")))).await;
    let question = scene.question().await;
    scene.decide(&question, option::DECLINE).await;
    let question = scene.question().await;
    let Details::Text { text, .. } = &question.details else { panic!("{question:#?}") };
    assert_eq!(text, "Sign in\nhttps://example.com/in");
    scene.decide(&question, option::PROCEED_ONCE).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Completed);
    let heard: Vec<String> = results(&scene.told).iter().map(|done| done.result.clone().unwrap().to_string()).collect();
    assert!(heard[0].contains(r#"\"content\": {\"name\": \"Ann\", \"ok\": true}"#), "{heard:#?}");
    assert!(heard[1].contains(r#"{\"action\": \"decline\"}"#), "{heard:#?}");
    assert!(heard[2].contains(r#"\"action\": \"accept\""#), "{heard:#?}");
    scene.close().await;
}
