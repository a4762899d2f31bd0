//! With the real Codex: what only the adapter can show. The suite that all agents share is elsewhere.

use std::collections::BTreeMap;

use multitap_adapter::read;
use multitap_event::{
    AgentErrorKind, AgentKind, AgentType, ApprovalMode, Command, Decide, Details, EventKind, Image, LaunchError,
    McpReach, Mode, Prompt, Query, Resume, SandboxMode, SessionConfig, SessionEndReason, ToolOutcome, TurnStatus,
    option,
};
use multitap_testkit::interop;
use serde_json::{Map, Value, json};

use crate::history::store;
use crate::scene::{Place, Scene, native_id, outcomes, results, said};

fn notes<'a>(told: &'a [EventKind], subtype: &str) -> Vec<&'a Map<String, Value>> {
    let note = |kind: &'a EventKind| match kind {
        EventKind::System(note) if note.subtype == subtype => Some(&note.data),
        _ => None,
    };
    told.iter().filter_map(note).collect()
}

fn mode(mode: ApprovalMode) -> Option<Mode> {
    Some(Mode::Unified(mode))
}

async fn decide(scene: &Scene, decide: Decide) {
    scene.send(Command::Decide(decide)).await;
}

macro_rules! place {
    () => {{
        let Some(codex) = interop::find(multitap_testkit::cli::CODEX) else { return };
        Place::passing(AgentKind::Codex, &codex, &["SUFFIX"])
    }};
}

// After the macro, which it uses.
mod exec;

#[tokio::test]
async fn interop_codex_says_and_thinks() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    let end = scene.turn("[[think:hm, let me see]][[text:hello from the model, in pieces]]").await;
    assert_eq!(end.status, TurnStatus::Completed);
    assert_eq!(end.text.as_deref(), Some("hello from the model, in pieces"));
    assert_eq!(end.usage.unwrap().total_tokens, 110);
    let end = scene.turn("[[text:again]]").await;
    assert_eq!(end.usage.unwrap().total_tokens, 110);
    let told = scene.close().await;
    assert_eq!(said(&told), "hello from the model, in piecesagain");
    assert!(matches!(&told[0], EventKind::SessionStarted(start)
        if start.agent_version.as_deref() == Some("0.166.0") && start.transport.as_deref() == Some("app-server")));
    let thought = told.iter().filter_map(|kind| match kind {
        EventKind::Reasoning(thought) => Some(thought.content.as_str()),
        _ => None,
    });
    assert_eq!(thought.collect::<String>(), "hm, let me see");
    let Some(EventKind::SessionEnded(end)) = told.last() else { panic!("{told:#?}") };
    assert_eq!((end.reason, end.exit_code), (SessionEndReason::Completed, Some(0)));
    assert_eq!(end.final_usage.unwrap().total_tokens, 220);
}

#[tokio::test]
async fn interop_codex_commands_are_allowed_denied_and_remembered() {
    let place = place!();
    let mut scene = place.start(SessionConfig { mode: mode(ApprovalMode::Ask), ..place.config() }).await;
    scene.prompt("[[tool:touch a.txt]][[next]][[tool:touch b.txt]]").await;

    let question = scene.question().await;
    let ids: Vec<&str> = question.options.iter().map(|choice| choice.id.as_str()).collect();
    assert_eq!(ids, ["proceed_once", "proceed_always", "proceed_always_and_save", "cancel"]);
    assert!(matches!(&question.details, Details::Command { command, .. } if command == "touch a.txt"));
    // It cannot be given another command: that is said, and the question is still there.
    let edited =
        Decide { new_content: Some("touch x.txt".into()), ..Decide::new(&question.question_id, option::PROCEED_ONCE) };
    decide(&scene, edited).await;
    let error = scene.until(|kind| if let EventKind::Error(error) = kind { Some(error.clone()) } else { None }).await;
    assert!(error.message.contains("newContent"), "{error}");
    scene.decide(&question, option::PROCEED_ONCE).await;

    let question = scene.question().await;
    decide(&scene, Decide::new(&question.question_id, option::CANCEL).with_feedback("not this one")).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Completed);
    scene.prompt("[[tool:touch c.txt]][[next]][[tool:touch c.txt]]").await;
    let question = scene.question().await;
    scene.decide(&question, option::PROCEED_ALWAYS).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Completed);

    use ToolOutcome::{Completed, Denied};
    assert_eq!(outcomes(&scene.told), [Completed, Denied, Completed, Completed], "{:#?}", results(&scene.told));
    let made = ["a.txt", "b.txt", "c.txt", "x.txt"].map(|name| place.scratch.path(name).exists());
    assert_eq!(made, [true, false, true, false]);
    let asked = place.model.requests();
    assert!(asked.iter().any(|request| request.body.to_string().contains("not this one")), "the model hears why");
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_two_questions_at_once() {
    let place = place!();
    let mut scene = place.start(SessionConfig { mode: mode(ApprovalMode::Ask), ..place.config() }).await;
    scene.prompt("[[tool:touch a.txt]][[tool:touch b.txt]]").await;
    let (first, second) = (scene.question().await, scene.question().await);
    scene.decide(&second, option::PROCEED_ONCE).await;
    scene.decide(&first, option::CANCEL).await;
    scene.turn_end().await;
    let mut all = outcomes(&scene.told);
    all.sort_by_key(|outcome| format!("{outcome:?}"));
    assert_eq!(all, [ToolOutcome::Completed, ToolOutcome::Denied]);
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_patches_show_their_diff() {
    let place = place!();
    place.scratch.write("old.txt", "one\ntwo\nthree\n").unwrap();
    let mut scene = place.start(SessionConfig { mode: mode(ApprovalMode::Ask), ..place.config() }).await;
    scene.prompt("[[write:new.txt:alpha]][[next]][[edit:old.txt:two=>TWO]][[next]][[write:no.txt:x]]").await;
    let question = scene.question().await;
    let Details::FileEdit { file_path, before, after, diff } = &question.details else { panic!("{question:#?}") };
    assert_eq!(*file_path, place.scratch.path("new.txt").display().to_string());
    assert_eq!((before.as_deref(), after.as_deref()), (None, Some("alpha\n")));
    assert!(diff.as_ref().unwrap().contains("+alpha"));
    scene.decide(&question, option::PROCEED_ONCE).await;

    let question = scene.question().await;
    let Details::FileEdit { before, after, diff, .. } = &question.details else { panic!("{question:#?}") };
    assert_eq!((before.as_deref(), after.as_deref()), (Some("one\ntwo\nthree\n"), Some("one\nTWO\nthree\n")));
    assert!(diff.as_ref().unwrap().contains("-two\n+TWO"));
    scene.decide(&question, option::PROCEED_ONCE).await;

    let question = scene.question().await;
    scene.decide(&question, option::CANCEL).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Completed);
    let changes: Vec<_> = scene
        .told
        .iter()
        .filter_map(|kind| match kind {
            EventKind::FileChanged(change) => Some((change.before.clone(), change.after.clone().unwrap())),
            _ => None,
        })
        .collect();
    let edited = (Some("one\ntwo\nthree\n".to_owned()), "one\nTWO\nthree\n".to_owned());
    assert_eq!(changes, [(None, "alpha\n".to_owned()), edited]);
    assert!(!place.scratch.path("no.txt").exists());
    assert_eq!(place.scratch.read("old.txt").unwrap(), "one\nTWO\nthree\n");
    scene.close().await;
}

/// A server with a tool that echoes, and one that asks the user by a form.
const SERVER: &str = include_str!("asking_server.py");

fn with_server(place: &Place, config: SessionConfig) -> SessionConfig {
    let script = place.scratch.write("server.py", SERVER).unwrap();
    let args = vec![script.display().to_string()];
    let server = McpReach::program("python3", args).into();
    SessionConfig { mcp_servers: BTreeMap::from([("tiny".to_owned(), server)]), ..config }
}

#[tokio::test]
async fn interop_codex_mcp_tools_ask_and_their_servers_too() {
    let place = place!();
    let config = with_server(&place, SessionConfig { mode: mode(ApprovalMode::Ask), ..place.config() });
    let mut scene = place.start(config).await;
    scene.prompt(r#"[[mcp:tiny:echo:{"message":"hi"}]][[next]][[mcp:tiny:echo:{"message":"two"}]][[next]][[mcp:tiny:echo:{"message":"three"}]]"#).await;
    let question = scene.question().await;
    assert!(matches!(&question.details, Details::Mcp { server, tool, .. } if server == "tiny" && tool == "echo"));
    assert!(question.tool_id.is_some());
    scene.decide(&question, option::CANCEL).await;
    let question = scene.question().await;
    scene.decide(&question, option::PROCEED_ALWAYS_TOOL).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Completed);
    use ToolOutcome::{Completed, Denied};
    assert_eq!(outcomes(&scene.told), [Denied, Completed, Completed], "{:#?}", scene.told);

    scene.prompt("[[mcp:tiny:form:{}]]").await;
    let question = scene.question().await;
    scene.decide(&question, option::PROCEED_ONCE).await;
    let question = scene.question().await;
    let Details::Input { questions } = &question.details else { panic!("{question:#?}") };
    let asked: Vec<&str> = questions.iter().map(|one| one.question.as_str()).collect();
    assert_eq!(asked, ["color (optional)", "Your name", "ok (optional)"]);
    let answers = BTreeMap::from([
        ("Your name".to_owned(), json!("Ann")),
        ("ok".to_owned(), json!("yes")),
        ("color".to_owned(), Value::Null),
    ]);
    decide(&scene, Decide { answers: Some(answers), ..Decide::new(&question.question_id, option::PROCEED_ONCE) }).await;
    scene.turn_end().await;
    let result = results(&scene.told).pop().unwrap();
    assert!(result.result.unwrap().to_string().contains(r#"\"content\": {\"name\": \"Ann\", \"ok\": true}"#));
    scene.close().await;
}

/// A trusted server runs unasked, and what is not included or is excluded does not run.
#[tokio::test]
async fn interop_codex_what_is_set_for_an_mcp_server_holds() {
    let place = place!();
    let mut config = with_server(&place, SessionConfig { mode: mode(ApprovalMode::Ask), ..place.config() });
    if let Some(server) = config.mcp_servers.get_mut("tiny") {
        (server.trust, server.timeout) = (true, Some(std::time::Duration::from_secs(20)));
        server.include_tools = Some(vec!["echo".to_owned()]);
        if let McpReach::Stdio { args, cwd, .. } = &mut server.reach {
            (*args, *cwd) = (vec!["server.py".to_owned()], Some(".".into()));
        }
    }
    let mut scene = place.start(config).await;
    scene.turn(r#"[[mcp:tiny:echo:{"message":"hi"}]][[next]][[mcp:tiny:form:{}]]"#).await;
    assert!(!scene.told.iter().any(|kind| matches!(kind, EventKind::PermissionAsked(_))), "{:#?}", scene.told);
    let done = results(&scene.told);
    assert_eq!(done[0].result, Some(json!("echo: hi")), "{:#?}", scene.told);
    assert!(done.iter().skip(1).all(|tool| tool.outcome != ToolOutcome::Completed), "{:#?}", scene.told);
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_a_turn_is_cancelled() {
    let place = place!();
    let all =
        SessionConfig { mode: mode(ApprovalMode::AutoAll), sandbox: Some(SandboxMode::FullAccess), ..place.config() };
    let mut scene = place.start(all).await;
    scene.prompt("[[tool:echo begin; sleep 50]]").await;
    scene.until(|kind| matches!(kind, EventKind::ToolStarted(_)).then_some(())).await;
    scene.send(Command::Cancel).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    assert_eq!(outcomes(&scene.told), [ToolOutcome::Cancelled]);
    // A turn is cancelled also before Codex has told its id.
    scene.prompt("[[hang]]").await;
    scene.send(Command::Cancel).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    assert_eq!(scene.turn("[[text:alive]]").await.text.as_deref(), Some("alive"));
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_an_open_question_is_withdrawn_by_a_cancel() {
    let place = place!();
    let mut scene = place.start(SessionConfig { mode: mode(ApprovalMode::Ask), ..place.config() }).await;
    scene.prompt("[[tool:touch a.txt]]").await;
    let question = scene.question().await;
    scene.send(Command::Cancel).await;
    scene.turn_end().await;
    let gone = |kind: &&EventKind| matches!(kind, EventKind::PermissionWithdrawn(gone) if gone.question_id == question.question_id);
    assert_eq!(scene.told.iter().filter(gone).count(), 1);
    let told = scene.close().await;
    assert_eq!(told.iter().filter(gone).count(), 1);
}

#[tokio::test]
async fn interop_codex_conversations_are_taken_up_forked_and_continued() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    scene.turn("remember apple [[text:ok]]").await;
    let second = scene.turn("remember pear [[text:ok]]").await;
    let told = scene.close().await;
    let id = native_id(&told);

    let resume = |at: Option<String>| Resume::Session { native_id: id.clone(), at };
    let mut scene = place.start(SessionConfig { resume: resume(None), ..place.config() }).await;
    let end = scene.turn("[[recall]]").await;
    assert!(end.text.unwrap().contains("apple"));
    assert_eq!(end.usage.unwrap().total_tokens, 110, "only what this turn used");
    assert_eq!(native_id(&scene.close().await), id);

    let mut scene = place.start(SessionConfig { resume: Resume::Latest, ..place.config() }).await;
    assert!(scene.turn("[[recall]]").await.text.unwrap().contains("apple"));
    assert_eq!(native_id(&scene.close().await), id);

    let first = told.iter().find_map(|kind| match kind {
        EventKind::TurnCompleted(end) => end.message_id.clone(),
        _ => None,
    });
    assert_ne!(first, second.message_id);
    let at = first.map(|id| id.to_string());
    let mut scene = place.start(SessionConfig { resume: resume(at), fork: true, ..place.config() }).await;
    let text = scene.turn("[[recall]]").await.text.unwrap();
    assert!(text.contains("apple") && !text.contains("pear"), "{text}");
    let fork = native_id(&scene.close().await);
    assert_ne!(fork, id);
    // Its file begins with the fork; what is told of it does not.
    let list = store(AgentType::Codex, &place.scratch.home().join(".codex")).list(None);
    let stored = list.iter().find(|session| session.id == fork).unwrap();
    assert_eq!(stored.title.as_deref(), Some("remember apple [[text:ok]]"));
    let said = read(stored, false).unwrap().filter_map(|draft| match draft.kind {
        EventKind::UserMessage(message) => Some(message.content),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["remember apple [[text:ok]]", "[[recall]]"]);

    let lost = Resume::Session { native_id: "01a1ddd1-b382-75b2-80b5-000000000000".to_owned(), at: None };
    let error = place.try_start(SessionConfig { resume: lost, ..place.config() }).await.err().unwrap();
    assert!(matches!(error, LaunchError::Agent(error) if error.kind == AgentErrorKind::SessionNotFound));
    let elsewhere = place.scratch.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let config = SessionConfig { resume: Resume::Latest, working_directory: Some(elsewhere), ..place.config() };
    let error = place.try_start(config).await.err().unwrap();
    assert!(matches!(error, LaunchError::Agent(error) if error.kind == AgentErrorKind::SessionNotFound));
}

#[tokio::test]
async fn interop_codex_mode_and_model_change_with_the_next_turn() {
    let place = place!();
    let mut scene = place.start(SessionConfig { mode: mode(ApprovalMode::Plan), ..place.config() }).await;
    scene.turn("[[tool:touch a.txt]]").await;
    assert!(!place.scratch.path("a.txt").exists());
    scene.send(Command::SetMode { mode: "auto-all".to_owned() }).await;
    scene.send(Command::SetModel { model: "gpt-5.4".to_owned() }).await;
    scene.until(|kind| matches!(kind, EventKind::ModelChanged { model, .. } if model == "gpt-5.4").then_some(())).await;
    scene.turn("[[tool:touch a.txt]]").await;
    assert!(place.scratch.path("a.txt").exists(), "{:#?}", scene.told);
    assert_eq!(place.model.requests().last().unwrap().model(), Some("gpt-5.4"));
    scene.send(Command::SetMode { mode: "ask".to_owned() }).await;
    scene.prompt("[[tool:touch b.txt]]").await;
    let question = scene.question().await;
    scene.decide(&question, option::PROCEED_ONCE).await;
    scene.turn_end().await;
    scene.send(Command::SetMode { mode: "auto-edit".to_owned() }).await;
    let error = scene.until(|kind| if let EventKind::Error(error) = kind { Some(error.clone()) } else { None }).await;
    assert!(error.message.contains("codex cannot honour approval mode auto-edit"), "{error}");
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_everything_runs_in_auto_all() {
    let place = place!();
    let mut scene = place.start(SessionConfig { mode: mode(ApprovalMode::AutoAll), ..place.config() }).await;
    scene.turn("[[tool:touch a.txt]][[next]][[write:b.txt:x]]").await;
    assert!(place.scratch.path("a.txt").exists() && place.scratch.path("b.txt").exists(), "{:#?}", scene.told);
    assert_eq!(notes(&scene.told, "sandbox").len(), 1);
    scene.close().await;
}

/// No option given: the agent's own setting stands.
#[tokio::test]
async fn interop_codex_a_sandbox_in_its_own_settings_stays() {
    let place = place!();
    let settings = place.scratch.home().join(".codex/config.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("sandbox_mode = \"read-only\"\n{text}")).unwrap();
    let config = SessionConfig { mode: mode(ApprovalMode::AutoAll), ..place.config() };
    let mut scene = place.start(config.clone()).await;
    scene.turn("[[tool:touch a.txt]]").await;
    assert!(!place.scratch.path("a.txt").exists(), "{:#?}", scene.told);
    assert_eq!(notes(&scene.told, "sandbox")[0]["sandbox"], "readOnly", "{:#?}", scene.told);
    scene.close().await;
    let chosen = SessionConfig { sandbox: Some(SandboxMode::WorkspaceWrite), ..config };
    let mut scene = place.start(chosen).await;
    scene.turn("[[tool:touch a.txt]]").await;
    assert!(place.scratch.path("a.txt").exists(), "{:#?}", scene.told);
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_tells_about_itself() {
    let place = place!();
    let config = with_server(&place, place.config());
    let mut scene = place.start(config).await;
    scene.turn("[[text:hi]]").await;
    for what in [Query::Models, Query::Commands] {
        scene.send(Command::Query { what }).await;
        let listed = scene.until(|kind| match kind {
            EventKind::Capabilities(all) => Some(all.lists(what)).filter(|lists| *lists),
            _ => None,
        });
        assert!(listed.await);
    }
    for (what, subtype, key) in [
        (Query::McpStatus, "mcpStatus", "mcpServers"),
        (Query::Account, "account", "requiresOpenaiAuth"),
        (Query::Context, "context", "usedTokens"),
    ] {
        scene.send(Command::Query { what }).await;
        let note = scene.until(|kind| match kind {
            EventKind::System(note) if note.subtype == subtype => Some(note.clone()),
            _ => None,
        });
        let note = note.await;
        assert!(note.data.contains_key(key), "{note:#?}");
    }
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_prompts_pictures_and_schemas_reach_the_model() {
    let place = place!();
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"], "additionalProperties": false });
    let config = SessionConfig {
        system_prompt: Some("You are the base.".to_owned()),
        append_system_prompt: Some("And the rest.".to_owned()),
        output_schema: Some(schema.clone()),
        model: Some("gpt-5.5".to_owned()),
        ..place.config()
    };
    let mut scene = place.start(config).await;
    let image = Image { media_type: "image/png".to_owned(), data: PIXEL.to_owned() };
    let prompt = Prompt { text: r#"[[text:{"a":1}]]"#.to_owned(), images: vec![image], ..Prompt::default() };
    scene.send(Command::Prompt(prompt)).await;
    let end = scene.turn_end().await;
    assert_eq!(end.structured_output, Some(json!({ "a": 1 })));
    let request = place.model.requests().pop().unwrap();
    assert!(request.system().contains("You are the base.") && request.system().contains("And the rest."));
    assert_eq!(request.body.pointer("/text/format/schema"), Some(&schema));
    assert_eq!(request.images().len(), 1);
    scene.close().await;
}

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

#[tokio::test]
async fn interop_codex_reviews_and_compacts() {
    let place = place!();
    let mut scene = place.start(place.config()).await;
    scene.turn("[[text:hello]]").await;
    assert_eq!(scene.turn("/compact").await.status, TurnStatus::Completed);
    assert_eq!(notes(&scene.told, "compacted").len(), 1);
    let end = scene.turn("/review [[text:looks good]]").await;
    assert_eq!((end.status, end.text.as_deref()), (TurnStatus::Completed, Some("looks good")));
    assert_eq!(said(&scene.told), "hellolooks good", "once");
    scene.prompt("/review [[hang]]").await;
    scene.until(|kind| matches!(kind, EventKind::TurnStarted { .. }).then_some(())).await;
    scene.send(Command::Cancel).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    assert_eq!(scene.turn("[[text:alive]]").await.status, TurnStatus::Completed);
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_a_long_command_outlives_its_turn() {
    let place = place!();
    let config = SessionConfig { mode: mode(ApprovalMode::AutoAll), ..place.config() };
    let mut scene = place.start(config).await;
    let end = scene.turn("[[tool:echo begin; sleep 13; echo end]][[next]][[text:it runs]]").await;
    assert_eq!(end.text.as_deref(), Some("it runs"));
    assert!(results(&scene.told).is_empty());
    assert_eq!(scene.turn("[[text:meanwhile]]").await.status, TurnStatus::Completed);
    let done =
        scene.until(|kind| if let EventKind::ToolCompleted(tool) = kind { Some(tool.clone()) } else { None }).await;
    assert_eq!((done.outcome, done.result), (ToolOutcome::Completed, Some(json!("begin\nend\n"))));
    scene.close().await;
}

/// R002-55.
#[tokio::test]
async fn interop_codex_takes_a_prompt_into_the_running_turn() {
    let place = place!();
    let mut scene = place.start(SessionConfig { mode: mode(ApprovalMode::Ask), ..place.config() }).await;
    scene.prompt("[[tool:touch a.txt]][[next]][[text:done with the first]]").await;
    let question = scene.question().await;
    assert!(scene.link.steers);
    scene.send(Command::Steer(Prompt::text("[[text:and the second]]"))).await;
    scene.decide(&question, option::PROCEED_ONCE).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Completed);
    let told = scene.close().await;
    let turns = told.iter().filter(|kind| matches!(kind, EventKind::TurnStarted { .. })).count();
    assert_eq!(turns, 1, "it joined the turn");
    assert!(said(&told).contains("and the second"), "{}", said(&told));
}
