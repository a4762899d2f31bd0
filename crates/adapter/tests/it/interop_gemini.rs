//! With the real Gemini CLI: what only the adapter can show. The suite that all agents share is elsewhere.

use std::fs;
use std::time::Duration;

use multitap_event::{
    AgentErrorKind, AgentKind, ApprovalMode, Command, Details, EventKind, LaunchError, McpReach, McpServer, Mode,
    Resume, SessionConfig, ToolOutcome, Transport, TurnStatus, option,
};
use multitap_testkit::cli::GEMINI;
use multitap_testkit::fake::Fake;
use multitap_testkit::interop;
use multitap_testkit::model::Reply;

use crate::scene::{Place, native_id, results, said};

/// What the adapter tells Gemini by variables.
const VARIABLES: [&str; 3] = ["GEMINI_PTY_INFO", "GEMINI_SYSTEM_MD", "GOOGLE_GEMINI_BASE_URL"];
/// The user's settings: how to sign in, and nothing that would help us.
const SETTINGS: &str = "{ /* mine */ \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}} }";

struct Gemini {
    place: Place,
}

impl Gemini {
    fn new() -> Option<Self> {
        let place = Place::passing(AgentKind::Gemini, &interop::find(GEMINI)?, &VARIABLES);
        fs::write(place.scratch.home().join(".gemini/settings.json"), SETTINGS).unwrap();
        Some(Self { place })
    }

    fn config(&self) -> SessionConfig {
        let mut config = self.place.config();
        config.environment.insert("HOME".to_owned(), self.place.scratch.home().display().to_string());
        config.environment.insert("GOOGLE_GEMINI_BASE_URL".to_owned(), self.place.model.url());
        config
    }

    fn resuming(&self, resume: Resume) -> SessionConfig {
        SessionConfig { resume, ..self.config() }
    }

    /// The files of one conversation.
    fn files(&self, id: &str) -> Vec<String> {
        let chats = self.place.scratch.home().join(".gemini/tmp/workspace/chats");
        let names = fs::read_dir(chats).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains(&id[..8])).collect()
    }

    fn check_settings(&self) {
        let settings = fs::read_to_string(self.place.scratch.home().join(".gemini/settings.json")).unwrap();
        assert_eq!(settings, SETTINGS, "the user's settings are the user's");
    }
}

fn mode(mode: ApprovalMode) -> Option<Mode> {
    Some(Mode::Unified(mode))
}

#[tokio::test]
async fn interop_a_conversation_is_taken_up_at_once_and_again() {
    let Some(gemini) = Gemini::new() else { return };
    let mut scene = gemini.place.start(gemini.config()).await;
    scene.turn("remember plum [[text:noted]]").await;
    let id = native_id(&scene.close().await);
    let session = || Resume::Session { native_id: id.clone(), at: None };
    // In the same minute; by number; as the newest; and each time Gemini cleans up at its start.
    for resume in [session(), Resume::Session { native_id: "1".to_owned(), at: None }, Resume::Latest, session()] {
        let mut scene = gemini.place.start(gemini.resuming(resume)).await;
        scene.turn("[[recall]]").await;
        let told = scene.close().await;
        assert_eq!(native_id(&told), id);
        assert!(said(&told).starts_with("earlier you said: remember plum"), "{told:#?}");
        assert!(!told.iter().any(|kind| matches!(kind, EventKind::UserMessage(_))), "the past is not told again");
        assert_eq!(gemini.files(&id).len(), 1, "no empty record is left");
    }
    gemini.check_settings();
}

#[tokio::test]
async fn interop_a_start_that_was_broken_off_costs_no_conversation() {
    let Some(gemini) = Gemini::new() else { return };
    let mut scene = gemini.place.start(gemini.config()).await;
    scene.turn("remember plum [[text:noted]]").await;
    let id = native_id(&scene.close().await);
    let session = || gemini.resuming(Resume::Session { native_id: id.clone(), at: None });
    // As soon as Gemini has written its empty record, nobody waits for it any more.
    let two = async {
        while gemini.files(&id).len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        started = gemini.place.try_start(session()) => drop(started.unwrap()),
        () = two => {}
    }
    // Nor lived we to remove it; and then the user starts Gemini, which cleans up.
    let chats = gemini.place.scratch.home().join(".gemini/tmp/workspace/chats");
    let text = fs::read_to_string(chats.join(&gemini.files(&id)[0])).unwrap();
    let blank = chats.join(format!("session-2026-01-01T00-00-{}.jsonl", &id[..8]));
    fs::write(&blank, format!("{}\n", text.lines().next().unwrap())).unwrap();
    let args = ["-p", "[[text:hi]]", "-o", "stream-json", "--skip-trust"];
    let own = gemini.place.scratch.command(gemini.place.program()).args(args).output().unwrap();
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));
    assert!(!blank.exists(), "it has cleaned up");

    let mut scene = gemini.place.start(session()).await;
    scene.turn("[[recall]]").await;
    let told = scene.close().await;
    assert!(said(&told).starts_with("earlier you said: remember plum"), "{told:#?}");
}

#[tokio::test]
async fn interop_an_unknown_conversation_leaves_nothing_behind() {
    let Some(gemini) = Gemini::new() else { return };
    gemini.place.start(gemini.config()).await.turn("[[text:hi]]").await;
    let id = "99999999-2222-4333-8444-555555555555";
    let refused = gemini.place.try_start(gemini.resuming(Resume::Session { native_id: id.to_owned(), at: None })).await;
    let Err(LaunchError::Agent(error)) = refused else { panic!("it started") };
    assert_eq!(error.kind, AgentErrorKind::SessionNotFound);
    assert!(error.message.contains(id));
    assert!(gemini.files(id).is_empty());
}

#[tokio::test]
async fn interop_a_command_shows_its_output() {
    let Some(gemini) = Gemini::new() else { return };
    let config = SessionConfig { mode: mode(ApprovalMode::AutoAll), ..gemini.config() };
    let mut scene = gemini.place.start(config).await;
    scene.turn("[[tool:echo out; echo err >&2; exit 3]]").await;
    let told = scene.close().await;
    assert_eq!(results(&told)[0].result, Some("out\nerr".into()), "{told:#?}");
    gemini.check_settings();
}

#[tokio::test]
async fn interop_a_server_is_allowed_as_a_whole() {
    let Some(gemini) = Gemini::new() else { return };
    let fake = Fake::mcp().unwrap();
    let server = McpReach::program(fake.program().display().to_string(), Vec::new()).into();
    let config = SessionConfig { mcp_servers: [("tiny".to_owned(), server)].into(), ..gemini.config() };
    let mut scene = gemini.place.start(config).await;
    scene.prompt(r#"[[mcp:tiny:echo:{"message":"hi"}]]"#).await;
    let question = scene.question().await;
    let Details::Mcp { server, tool, arguments } = &question.details else { panic!("{question:#?}") };
    assert_eq!((server.as_str(), tool.as_str(), &arguments["message"]), ("tiny", "echo", &"hi".into()));
    scene.decide(&question, option::PROCEED_ALWAYS_SERVER).await;
    scene.turn_end().await;
    // Not asked again.
    scene.turn(r#"[[mcp:tiny:fail:{}]]"#).await;
    let told = scene.close().await;
    let outcomes: Vec<ToolOutcome> = results(&told).iter().map(|tool| tool.outcome).collect();
    assert_eq!(outcomes, [ToolOutcome::Completed, ToolOutcome::Failed], "{told:#?}");
}

/// R002-88: a trusted server runs unasked in the folder that is set; what is excluded does not run.
#[tokio::test]
async fn interop_what_is_set_for_an_mcp_server_holds() {
    let Some(gemini) = Gemini::new() else { return };
    let fake = Fake::mcp().unwrap();
    let mut server = McpServer::from(McpReach::program("./mcp", Vec::new()));
    if let McpReach::Stdio { cwd, .. } = &mut server.reach {
        *cwd = Some(fake.path().to_owned());
    }
    (server.trust, server.exclude_tools) = (true, vec!["fail".to_owned()]);
    let config = SessionConfig { mcp_servers: [("tiny".to_owned(), server)].into(), ..gemini.config() };
    let mut scene = gemini.place.start(config).await;
    scene.turn(r#"[[mcp:tiny:echo:{"message":"hi"}]][[next]][[mcp:tiny:fail:{}]]"#).await;
    let told = scene.close().await;
    assert!(!told.iter().any(|kind| matches!(kind, EventKind::PermissionAsked(_))), "{told:#?}");
    let done = results(&told);
    assert_eq!(done[0].outcome, ToolOutcome::Completed, "{told:#?}");
    let ran = done.iter().any(|tool| format!("{tool:?}").contains("failed on purpose"));
    assert!(!ran, "it must not run: {told:#?}");
}

#[tokio::test]
async fn interop_tools_are_allowed_and_blocked_by_rules() {
    let Some(gemini) = Gemini::new() else { return };
    let allowed = SessionConfig { allowed_tools: vec!["run_shell_command(touch)".to_owned()], ..gemini.config() };
    let mut scene = gemini.place.start(allowed).await;
    scene.turn("[[tool:touch made.txt]]").await;
    scene.prompt("[[tool:mkdir made]]").await;
    let question = scene.question().await;
    scene.decide(&question, option::CANCEL).await;
    let end = scene.turn_end().await;
    assert_eq!(end.denials.len(), 1);
    assert!(gemini.place.scratch.path("made.txt").exists() && !gemini.place.scratch.path("made").exists());

    let blocked = SessionConfig {
        blocked_tools: vec!["run_shell_command".to_owned()],
        mode: mode(ApprovalMode::AutoAll),
        ..gemini.config()
    };
    let mut scene = gemini.place.start(blocked).await;
    scene.turn("[[tool:touch never.txt]]").await;
    assert!(!gemini.place.scratch.path("never.txt").exists());
}

#[tokio::test]
async fn interop_the_system_prompt_is_ours() {
    let Some(gemini) = Gemini::new() else { return };
    let config = SessionConfig { system_prompt: Some("You are a plum.".to_owned()), ..gemini.config() };
    gemini.place.start(config).await.turn("[[text:hi]]").await;
    let body = gemini.place.model.conversation()[0].body.to_string();
    assert!(body.contains("You are a plum."), "{body}");
}

/// R002-91: refused where Gemini's own settings do not switch them on, and so it is with the real program.
#[tokio::test]
async fn interop_checkpoints_are_for_its_own_settings_to_switch_on() {
    let Some(gemini) = Gemini::new() else { return };
    let config = || SessionConfig { checkpointing: true, ..gemini.config() };
    let refused = gemini.place.try_start(config()).await;
    let Err(LaunchError::Unsupported(refused)) = refused else { panic!("it started") };
    assert!(refused.why.contains("general.checkpointing.enabled"), "{refused}");
    let mut scene = gemini.place.start(gemini.config()).await;
    scene.turn("/restore").await;
    assert!(said(&scene.close().await).contains("Checkpointing is not enabled"));

    let on = r#"{"general": {"checkpointing": {"enabled": true}}}"#;
    gemini.place.scratch.write(".gemini/settings.json", on).unwrap();
    let mut scene = gemini.place.start(config()).await;
    scene.turn("/restore").await;
    assert!(said(&scene.close().await).contains("No checkpoints found"));
    gemini.check_settings();
}

#[tokio::test]
async fn interop_turn_by_turn() {
    let Some(gemini) = Gemini::new() else { return };
    let config = |resume| SessionConfig {
        transport: Transport::OneShot,
        mode: mode(ApprovalMode::AutoAll),
        ..gemini.resuming(resume)
    };
    let mut scene = gemini.place.start(config(Resume::New)).await;
    assert_eq!(scene.turn("remember plum [[text:noted]]").await.status, TurnStatus::Completed);
    assert_eq!(scene.turn("[[tool:touch made.txt]]").await.status, TurnStatus::Completed);
    assert_eq!(scene.turn("[[recall]]").await.status, TurnStatus::Completed);
    scene.prompt("[[slow:300:100]]").await;
    scene
        .until(|kind| matches!(kind, EventKind::TextChunk(chunk) if chunk.content.contains("chunk")).then_some(()))
        .await;
    scene.send(Command::Cancel).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    let told = scene.close().await;
    assert!(said(&told).contains("remember plum"), "{told:#?}");
    assert!(gemini.place.scratch.path("made.txt").exists());
    let starts = told.iter().filter(|kind| matches!(kind, EventKind::SessionStarted(_))).count();
    let ends = told.iter().filter(|kind| matches!(kind, EventKind::SessionEnded(_))).count();
    let named = told.iter().filter(|kind| matches!(kind, EventKind::NativeSessionChanged { .. }));
    assert_eq!((starts, ends, named.count()), (1, 1, 1), "one session, one id");
    let Some(EventKind::SessionStarted(start)) = told.first() else { panic!("{told:#?}") };
    assert_eq!(start.native_session_id, None, "there is no conversation yet");

    let mut scene = gemini.place.start(config(Resume::Latest)).await;
    // What the model was saying when it was stopped is not asked for again.
    gemini.place.model.push(Reply::text("hello again"));
    assert_eq!(scene.turn("which word?").await.status, TurnStatus::Completed);
    let again = scene.close().await;
    assert_eq!(native_id(&again), native_id(&told));
    let asked = gemini.place.model.conversation().pop().unwrap().user_texts();
    assert!(asked.iter().any(|text| text.contains("remember plum")), "{asked:?}");
}
