//! One event of every kind, with everything filled in that it can hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use multitap_event::*;
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn client() -> ClientRef {
    ClientRef {
        client: "phone".into(),
        door: Door::A2a,
        client_id: Some("client-1".into()),
        role: Some(ClientRole::Controller),
        account: None,
    }
}

pub(crate) fn usage() -> TokenUsage {
    TokenUsage { cached_tokens: Some(3), reasoning_tokens: Some(1), ..TokenUsage::of(100, 20) }
}

/// The eight types that the printed schema of the three CLIs knows.
pub(crate) fn eight() -> Vec<EventKind> {
    let mut config = SessionConfig::new(AgentKind::Claude).with_prompt("hi");
    config.model = Some("opus".into());
    config.mode = Some(Mode::Unified(ApprovalMode::AutoEdit));
    config.sandbox = Some(SandboxMode::WorkspaceWrite);
    config.working_directory = Some("/workspace".into());
    config.allowed_tools = vec!["Bash(git log:*)".into()];
    config.max_turns = Some(3);
    vec![
        EventKind::SessionStarted(SessionStart {
            agent_type: AgentType::Claude,
            config: Some(config.stated()),
            native_session_id: Some("n-1".into()),
            native_mode: Some("acceptEdits".into()),
            agent_version: Some("2.1.325".into()),
            transport: Some("stream-json".into()),
        }),
        EventKind::TextChunk(TextChunk {
            content: "héllo 多人".into(),
            is_partial: true,
            role: Some(Role::Assistant),
            message_id: Some("msg:0".into()),
            parent_tool_id: Some("toolu_0".into()),
        }),
        EventKind::ToolStarted(ToolStarted {
            tool_id: "toolu_1".into(),
            tool_name: "Bash".into(),
            tool_kind: ToolKind::Shell,
            title: Some("ls".into()),
            arguments: object(json!({"command": "ls"})),
            server: None,
            parent_tool_id: None,
        }),
        EventKind::ToolProgress(ToolProgress {
            output: Some("a\n".into()),
            progress: Some(0.5),
            elapsed_ms: Some(5200),
            message: Some("listing".into()),
            ..ToolProgress::of("toolu_1".into())
        }),
        EventKind::ToolCompleted(ToolCompleted {
            tool_id: "toolu_1".into(),
            success: false,
            outcome: ToolOutcome::Failed,
            result: Some(json!("a")),
            error: Some("exit code 3".into()),
            exit_code: Some(3),
            duration_ms: Some(12),
        }),
        EventKind::FileChanged(FileChange {
            file_path: "/workspace/a.txt".into(),
            change_type: FileChangeType::Modified,
            diff: Some("@@".into()),
            before: Some("a".into()),
            after: Some("b".into()),
            tool_id: Some("toolu_1".into()),
            old_path: None,
        }),
        EventKind::TurnCompleted(TurnEnd {
            turn_id: Some("turn-1".into()),
            usage: Some(usage()),
            duration_ms: Some(674),
            cost_usd: Some(0.0016),
            total_cost_usd: Some(0.0032),
            model_usage: BTreeMap::from([(
                "opus".into(),
                ModelUsage { usage: usage(), cost_usd: Some(0.0016), context_window: Some(1_000_000) },
            )]),
            denials: vec![Denial {
                tool_name: "Bash".into(),
                tool_id: Some("toolu_1".into()),
                arguments: object(json!({"command": "rm -rf /"})),
            }],
            structured_output: Some(json!({"ok": true})),
            ..TurnEnd::of(TurnStatus::Completed)
        }),
        EventKind::SessionEnded(SessionEnd {
            reason: SessionEndReason::Completed,
            error: None,
            final_usage: Some(usage()),
            exit_code: Some(0),
        }),
    ]
}

/// All the others.
pub(crate) fn others() -> Vec<EventKind> {
    let question = Question {
        question_id: "q-1".into(),
        tool_id: Some("toolu_1".into()),
        tool_name: Some("Bash".into()),
        title: "Run ls".into(),
        options: vec![
            Choice::new(option::PROCEED_ONCE, "Allow", ChoiceKind::AllowOnce),
            Choice::new(option::CANCEL, "Deny", ChoiceKind::RejectOnce),
        ],
        details: Details::Command {
            command: "ls".into(),
            directory: Some("/workspace".into()),
            description: Some("list".into()),
        },
        edits: vec![Edit::NewContent, Edit::NewInput],
        reason: Some("outside the workspace".into()),
    };
    vec![
        EventKind::TurnStarted { turn_id: "turn-1".into() },
        EventKind::Reasoning(Reasoning {
            content: "hm".into(),
            is_partial: false,
            message_id: None,
            parent_tool_id: None,
        }),
        EventKind::TodoList(TodoList {
            items: vec![TodoItem { text: "one".into(), status: TodoStatus::InProgress, id: Some("1".into()) }],
            explanation: None,
        }),
        EventKind::System(SystemNote {
            subtype: SystemSubtype::COMPACTED.into(),
            message: Some("made room".into()),
            data: object(json!({"trigger": "auto"})),
        }),
        EventKind::RawDelta { native_type: Some("stream_event".into()) },
        EventKind::Error(
            AgentError::new(AgentErrorKind::ProcessExitError, "it died")
                .of(AgentType::Claude)
                .native("boom")
                .code("rate_limit")
                .exited(Some(1)),
        ),
        EventKind::Retry(Retry {
            attempt: 1,
            max_attempts: Some(10),
            delay_ms: Some(500),
            status_code: Some(429),
            reason: Some("rate_limit".into()),
        }),
        EventKind::AuthStatus(AuthStatus { is_authenticating: true, output: vec!["…".into()], error: None }),
        EventKind::UserMessage(UserMessage {
            content: "hi".into(),
            images: vec![Image { media_type: "image/png".into(), data: "AAAA".into() }],
            prompt_id: Some("p-1".into()),
            from: Some(client()),
            steering: false,
            message_id: None,
            ..UserMessage::default()
        }),
        EventKind::PromptQueued { prompt: Prompt::text("next"), from: Some(client()), first: true },
        EventKind::PromptWithdrawn { prompt_id: "p-1".into(), by: Some(client()) },
        EventKind::PermissionAsked(question),
        EventKind::PermissionSettled(Ruling {
            question_id: "q-1".into(),
            selected_option_id: option::PROCEED_ONCE.into(),
            kind: ChoiceKind::AllowOnce,
            settled_by: client(),
            at: Timestamp::from_millis(0),
            feedback: None,
            edited: false,
            new_content: None,
            new_input: None,
            runs: None,
        }),
        EventKind::PermissionWithdrawn(Withdrawal { question_id: "q-1".into(), reason: None }),
        EventKind::ModeChanged { mode: Some(ApprovalMode::Plan), native_mode: Some("plan".into()), by: Some(client()) },
        EventKind::ModelChanged { model: "opus".into(), by: None },
        EventKind::ClientJoined { client: client() },
        EventKind::ClientLeft { client: client(), reason: Some("gone".into()) },
        EventKind::Unrecognized { line: "?".into(), reason: "not JSON".into(), bytes: None },
    ]
}

pub(crate) fn stamped(kinds: Vec<EventKind>) -> Vec<Event> {
    let session = SessionId::from("s-1");
    let stamp = |(index, kind): (usize, EventKind)| {
        let mut draft = Draft::new(Timestamp::from_millis(1_794_724_009_805), kind);
        draft.raw.push(Arc::from("{\"type\":\"x\"}"));
        draft.stamp(session.clone(), index as u64 + 1)
    };
    kinds.into_iter().enumerate().map(stamp).collect()
}
