//! With further real ACP agents: opencode, and Codex behind the protocol. Each has its own habits within ACP.

use std::fs;
use std::time::Duration;

use multitap_event::{
    AgentErrorKind, AgentKind, Command, Decide, Details, EventKind, FileChangeType, LaunchError, Mode, Resume,
    SessionConfig, ToolOutcome, TurnStatus, option,
};
use multitap_testkit::cli::{CODEX_ACP, Cli, OPENCODE};
use multitap_testkit::interop;
use serde_json::json;

use crate::scene::{Place, native_id, results, said};

/// How one agent is started, and what it does its own way.
struct Habits {
    cli: Cli,
    /// Variables and arguments around the program.
    command: fn(&str) -> String,
    /// The mode in which it asks.
    mode: Option<&'static str>,
    /// A model's call of its shell.
    shell: fn(&str) -> String,
    write: fn(&str, &str) -> String,
    /// The end of a turn in which a call was denied.
    denied: TurnStatus,
    /// The error about a conversation that it does not have.
    gone: AgentErrorKind,
}

/// It asks about everything that the settings of the test say.
const OPENCODE_HABITS: Habits = Habits {
    cli: OPENCODE,
    command: |program| format!("env OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 '{program}' acp"),
    mode: None,
    shell: |command| call("bash", &json!({ "command": command, "description": "A command" })),
    write: |path, content| call("write", &json!({ "filePath": path, "content": content })),
    denied: TurnStatus::Completed,
    // It reports an internal error without a reason.
    gone: AgentErrorKind::ProtocolError,
};

/// Its only refusal also ends the turn.
const CODEX_HABITS: Habits = Habits {
    cli: CODEX_ACP,
    command: |program| format!("'{program}'"),
    mode: Some("read-only"),
    shell: |command| {
        let escalated = json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "Try?" });
        call("exec_command", &escalated)
    },
    write: |path, content| format!("[[write:{path}:{content}]]"),
    denied: TurnStatus::Cancelled,
    gone: AgentErrorKind::SessionNotFound,
};

fn call(tool: &str, arguments: &serde_json::Value) -> String {
    format!("[[call:{tool}:{arguments}]]")
}

impl Habits {
    fn place(&self) -> Option<Place> {
        let program = interop::find(self.cli)?;
        let pass = ["OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE"];
        let place = Place::passing(AgentKind::Claude, &program, &pass);
        let models = json!({ "m1": { "name": "M1" } });
        let options = json!({ "baseURL": format!("{}/v1", place.model.url()), "apiKey": "dummy" });
        let settings = json!({
            "model": "fake/m1",
            "small_model": "fake/m1",
            "share": "disabled",
            "provider": { "fake": { "npm": "@ai-sdk/openai-compatible", "options": options, "models": models } },
            "permission": { "edit": "ask", "bash": "ask" },
        });
        let folder = place.scratch.home().join(".config/opencode");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("opencode.json"), settings.to_string()).unwrap();
        Some(place)
    }

    fn config(&self, place: &Place) -> SessionConfig {
        let command = (self.command)(&place.program().display().to_string());
        SessionConfig {
            // opencode takes ten seconds on a quiet machine.
            start_timeout: Duration::from_secs(120),
            agent: AgentKind::Acp { command },
            program: None,
            mode: self.mode.map(|mode| Mode::Native(mode.to_owned())),
            ..place.config()
        }
    }

    async fn commands_and_cancel(&self) {
        let Some(place) = self.place() else { return };
        let mut scene = place.start(self.config(&place)).await;
        let end = scene.turn("[[think:hm]][[text:hello there]]").await;
        assert_eq!((end.status, end.text.as_deref()), (TurnStatus::Completed, Some("hello there")));
        assert!(end.usage.is_some_and(|usage| usage.total_tokens == 110), "{end:#?}");

        scene.prompt(&(self.shell)("touch made.txt; echo hi; exit 3")).await;
        let question = scene.question().await;
        let Details::Command { command, .. } = &question.details else { panic!("{question:#?}") };
        assert_eq!(command, "touch made.txt; echo hi; exit 3");
        scene.decide(&question, option::PROCEED_ONCE).await;
        let end = scene.turn_end().await;
        // Models are counted over the session, whether the agent reports them or not.
        for used in end.model_usage.values() {
            assert_eq!(used.usage.total_tokens, 330, "{end:#?}");
        }

        scene.prompt(&(self.shell)("touch never.txt")).await;
        let question = scene.question().await;
        scene.decide(&question, option::CANCEL).await;
        let end = scene.turn_end().await;
        assert_eq!((end.status, end.denials.len()), (self.denied, 1), "{end:#?}");

        scene.prompt("[[text:hm]][[hang]]").await;
        scene.until(|kind| matches!(kind, EventKind::TextChunk(_)).then_some(())).await;
        scene.send(Command::Cancel).await;
        assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
        scene.prompt(&(self.shell)("touch never.txt")).await;
        scene.question().await;
        scene.send(Command::Cancel).await;
        assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
        assert_eq!(scene.turn("[[text:still here]]").await.status, TurnStatus::Completed);

        let told = scene.close().await;
        let done = results(&told);
        assert_eq!((done[0].outcome, done[0].exit_code), (ToolOutcome::Failed, Some(3)), "{told:#?}");
        assert_eq!(done[1].outcome, ToolOutcome::Denied, "{told:#?}");
        assert_eq!(done[2].outcome, ToolOutcome::Cancelled, "{told:#?}");
        assert!(place.scratch.path("made.txt").exists() && !place.scratch.path("never.txt").exists());
        assert!(told.iter().any(|kind| matches!(kind, EventKind::Reasoning(thought) if thought.content == "hm")));
        assert!(!told.iter().any(|kind| matches!(kind, EventKind::Unrecognized { .. })), "{told:#?}");
    }

    async fn changes(&self) {
        let Some(place) = self.place() else { return };
        let mut scene = place.start(self.config(&place)).await;
        let path = place.scratch.path("new.txt").display().to_string();
        scene.prompt(&(self.write)(&path, "first line")).await;
        let question = scene.question().await;
        let Details::FileEdit { file_path, before, after, .. } = &question.details else { panic!("{question:#?}") };
        assert_eq!((file_path.as_str(), before), (path.as_str(), &None));
        assert_eq!(after.as_deref().map(str::trim_end), Some("first line"));
        scene.decide(&question, option::PROCEED_ONCE).await;
        scene.turn_end().await;
        let told = scene.close().await;
        let mut changes = told.iter().filter_map(|kind| {
            if let EventKind::FileChanged(change) = kind {
                Some((change.change_type, change.file_path.as_str()))
            } else {
                None
            }
        });
        assert_eq!(changes.next(), Some((FileChangeType::Created, path.as_str())), "{told:#?}");
        assert_eq!(changes.next(), None, "{told:#?}");
        assert_eq!(place.scratch.read("new.txt").unwrap().trim_end(), "first line");
    }

    async fn conversations(&self) {
        let Some(place) = self.place() else { return };
        let mut scene = place.start(self.config(&place)).await;
        scene.turn("remember plum [[text:noted]]").await;
        let id = native_id(&scene.close().await);
        let session = Resume::Session { native_id: id.clone(), at: None };
        // Each start takes seconds; the newest conversation is resumed by its id too.
        for (resume, fork) in [(Resume::Latest, false), (session, true)] {
            let mut scene = place.start(SessionConfig { resume, fork, ..self.config(&place) }).await;
            scene.turn("[[recall]]").await;
            let told = scene.close().await;
            assert!(said(&told).starts_with("earlier you said: remember plum"), "fork {fork}: {told:#?}");
            assert_eq!(native_id(&told) == id, !fork);
        }
        let gone = Resume::Session { native_id: "99999999-2222-7333-8444-555555555555".to_owned(), at: None };
        let refused = place.try_start(SessionConfig { resume: gone, ..self.config(&place) }).await;
        let Err(LaunchError::Agent(error)) = refused else { panic!("it started") };
        assert_eq!(error.kind, self.gone, "{error:#?}");
    }
}

#[tokio::test]
async fn interop_opencode_asks_and_is_cancelled() {
    OPENCODE_HABITS.commands_and_cancel().await;
}

#[tokio::test]
async fn interop_opencode_shows_changes() {
    OPENCODE_HABITS.changes().await;
}

#[tokio::test]
async fn interop_opencode_resumes_conversations() {
    OPENCODE_HABITS.conversations().await;
}

#[tokio::test]
async fn interop_codex_acp_asks_and_is_cancelled() {
    CODEX_HABITS.commands_and_cancel().await;
}

#[tokio::test]
async fn interop_codex_acp_shows_changes() {
    CODEX_HABITS.changes().await;
}

#[tokio::test]
async fn interop_codex_acp_resumes_conversations() {
    CODEX_HABITS.conversations().await;
}

/// The model of Codex may ask in plan mode only, which is an option of its own here, switched on by a command.
#[tokio::test]
async fn interop_codex_acp_shows_a_form() {
    let Some(place) = CODEX_HABITS.place() else { return };
    let mut scene = place.start(CODEX_HABITS.config(&place)).await;
    scene.turn("/plan").await;
    let options = json!([{ "label": "red", "description": "warm" }, { "label": "blue", "description": "cold" }]);
    let question = json!({ "id": "color", "header": "Color", "question": "Which color?", "options": options });
    scene.prompt(&call("request_user_input", &json!({ "questions": [question] }))).await;
    let question = scene.question().await;
    let Details::Input { questions } = &question.details else { panic!("{question:#?}") };
    assert_eq!(questions[0].labels[..2], ["red", "blue"], "{question:#?}");
    let mut decide = Decide::new(&question.question_id, option::PROCEED_ONCE);
    decide.answers = Some([("color".to_owned(), "blue".into())].into());
    scene.send(Command::Decide(decide)).await;
    scene.turn_end().await;
    let told = said(&scene.close().await);
    assert!(told.contains("blue"), "{told}");
}
