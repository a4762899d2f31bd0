//! Commands to Codex's lines: how a conversation is opened, prompts, and answers to its questions.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use multitap_adapter::{Codec as _, CodexCodec, Files, Step};
use multitap_event::{
    AgentKind, ApprovalMode, Command, Decide, EventKind, Image, McpReach, McpServer, Mode, PermissionPath, Prompt,
    Query, Question, Resume, SandboxMode, SessionConfig,
};
use serde_json::{Value, json};

use crate::recording::now;

/// One file, whatever it is called.
struct OneFile;

impl Files for OneFile {
    fn read(&self, path: &Path) -> Option<String> {
        (!path.ends_with("new.txt")).then(|| "alpha\nbeta\ngamma\n".to_owned())
    }
}

fn config() -> SessionConfig {
    SessionConfig { working_directory: Some("/w".into()), ..SessionConfig::new(AgentKind::Codex) }
}

fn greeted(config: &SessionConfig) -> (CodexCodec, Step) {
    let mut codec = CodexCodec::live(config, Box::new(OneFile), None).unwrap();
    codec.begin(now());
    let step = codec.decode(r#"{"id":1,"result":{"userAgent":"multitap/0.166.0 (Debian 12)"}}"#, now());
    (codec, step)
}

/// A conversation that is open, with Codex's own settings in it.
fn opened(config: &SessionConfig) -> CodexCodec {
    let (codec, step) = opened_with(config, &json!({ "result": { "config": {}, "origins": {} } }));
    assert!(step.ready);
    codec
}

/// The same, where Codex replies this when it is asked what the user's settings say.
fn opened_with(config: &SessionConfig, settings: &Value) -> (CodexCodec, Step) {
    let (mut codec, _) = greeted(config);
    let reply = json!({ "id": 2, "result": { "thread": { "id": "t1", "cwd": "/w" }, "model": "gpt-5.5", "cwd": "/w", "approvalPolicy": "on-request", "sandbox": { "type": "readOnly" } } });
    let step = codec.decode(&reply.to_string(), now());
    if step.ready {
        return (codec, step);
    }
    assert_eq!(step.lines, [r#"{"id":3,"method":"config/read","params":{"cwd":"/w","includeLayers":false}}"#]);
    let mut reply = settings.clone();
    reply["id"] = 3.into();
    let step = codec.decode(&reply.to_string(), now());
    (codec, step)
}

fn in_a_turn() -> CodexCodec {
    let mut codec = opened(&config());
    codec.encode(Command::Prompt(Prompt::text("go")), now());
    codec.decode(
        r#"{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"turn1","status":"inProgress"}}}"#,
        now(),
    );
    codec
}

/// The lines a step writes and what it tells, for reading.
fn shown(step: &Step) -> String {
    let lines = step.lines.iter().map(|line| format!("> {line}"));
    let events = step.events.iter().map(|kind| format!("! {}", serde_json::to_value(kind).unwrap()));
    lines.chain(events).collect::<Vec<_>>().join("\n")
}

fn opens(config: &SessionConfig) -> String {
    let (_, step) = greeted(config);
    step.lines.last().cloned().unwrap()
}

#[test]
fn how_a_conversation_is_opened() {
    let with = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = config();
        change(&mut config);
        opens(&config)
    };
    let mode = |mode| with(&|config| config.mode = Some(Mode::Unified(mode)));
    let resume = || Resume::Session { native_id: "01a1".to_owned(), at: None };
    let lines = [
        with(&|_| {}),
        with(&|config| config.model = Some("gpt-6".to_owned())),
        mode(ApprovalMode::Ask),
        mode(ApprovalMode::AskDangerous),
        mode(ApprovalMode::AutoAll),
        mode(ApprovalMode::Plan),
        mode(ApprovalMode::DontAsk),
        with(&|config| config.sandbox = Some(SandboxMode::None)),
        with(&|config| config.sandbox = Some(SandboxMode::FullAccess)),
        with(&|config| config.sandbox = Some(SandboxMode::ReadOnly)),
        with(&|config| {
            config.sandbox = Some(SandboxMode::WorkspaceWrite);
            config.add_dirs = vec!["/more".into()];
        }),
        with(&|config| {
            config.system_prompt = Some("base".to_owned());
            config.append_system_prompt = Some("more".to_owned());
        }),
        with(&|config| {
            let env = BTreeMap::from([("KEY".to_owned(), "secret".to_owned())]);
            let cwd = Some("server".into());
            let stdio = McpReach::Stdio { command: "serve".to_owned(), args: vec!["-v".to_owned()], env, cwd };
            let stdio = McpServer {
                timeout: Some(Duration::from_millis(1500)),
                trust: true,
                include_tools: Some(vec!["a".to_owned()]),
                exclude_tools: vec!["b".to_owned()],
                ..McpServer::from(stdio)
            };
            let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer x".to_owned())]);
            let http = McpReach::Http { url: "http://127.0.0.1:1/mcp".to_owned(), headers };
            config.mcp_servers = BTreeMap::from([("a".to_owned(), stdio), ("b".to_owned(), http.into())]);
        }),
        with(&|config| config.resume = resume()),
        with(&|config| {
            config.resume = resume();
            config.fork = true;
        }),
        with(&|config| {
            config.resume = Resume::Session { native_id: "01a1".to_owned(), at: Some("turn3".to_owned()) };
            config.fork = true;
        }),
        with(&|config| config.resume = Resume::Latest),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_it_cannot_honour_is_named() {
    let refused = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = config();
        change(&mut config);
        CodexCodec::live(&config, Box::new(OneFile), None).unwrap_err().to_string()
    };
    let lines = [
        refused(&|config| config.mode = Some(Mode::Unified(ApprovalMode::AutoEdit))),
        refused(&|config| config.mode = Some(Mode::Native("on-failure".to_owned()))),
        refused(&|config| config.mode = Some(Mode::Native("granular".to_owned()))),
        refused(&|config| config.max_turns = Some(3)),
        refused(&|config| config.allowed_tools = vec!["Bash".to_owned()]),
        refused(&|config| config.blocked_tools = vec!["Bash".to_owned()]),
        refused(&|config| config.permission_path = PermissionPath::Mcp),
        refused(&|config| config.fork = true),
        refused(&|config| config.resume = Resume::Session { native_id: "x".to_owned(), at: Some("y".to_owned()) }),
        refused(&|config| {
            config.mode = Some(Mode::Unified(ApprovalMode::Plan));
            config.sandbox = Some(SandboxMode::FullAccess);
        }),
        refused(&|config| {
            config.sandbox = Some(SandboxMode::ReadOnly);
            config.add_dirs = vec!["/more".into()];
        }),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn commands_become_lines() {
    let mut codec = opened(&SessionConfig { mode: Some(Mode::Unified(ApprovalMode::AskDangerous)), ..config() });
    let image = Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let mut steps = Vec::new();
    let mut send = |command: Command| {
        let step = codec.encode(command, now());
        steps.push(shown(&step));
        for line in &step.lines {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["method"].as_str().is_some_and(|method| method != "turn/interrupt") {
                let over =
                    r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"x","status":"completed"}}}"#;
                codec.decode(over, now());
            }
        }
    };
    send(Command::Prompt(Prompt::text("hello")));
    send(Command::Prompt(Prompt { images: vec![image], ..Prompt::text("what is this?") }));
    send(Command::SetMode { mode: "plan".to_owned() });
    send(Command::Prompt(Prompt::text("plan it")));
    send(Command::SetMode { mode: "untrusted".to_owned() });
    send(Command::SetModel { model: "gpt-6".to_owned() });
    send(Command::Prompt(Prompt::text("do it")));
    send(Command::SetMode { mode: "auto-all".to_owned() });
    send(Command::Prompt(Prompt::text("all of it")));
    send(Command::Prompt(Prompt::text("/compact")));
    send(Command::Prompt(Prompt::text("/review")));
    send(Command::Prompt(Prompt::text("/review the tests")));
    send(Command::SetMode { mode: "auto-edit".to_owned() });
    send(Command::SetMode { mode: "on-failure".to_owned() });
    send(Command::SetThinking { tokens: Some(1000) });
    send(Command::Cancel);
    for what in [Query::Models, Query::Commands, Query::McpStatus, Query::Account, Query::Context] {
        send(Command::Query { what });
    }
    insta::assert_snapshot!(steps.join("\n---\n"));
}

#[test]
fn a_turn_is_interrupted_when_it_has_begun() {
    let mut codec = opened(&config());
    codec.encode(Command::Prompt(Prompt::text("go")), now());
    assert!(codec.encode(Command::Cancel, now()).lines.is_empty());
    assert!(codec.decode(r#"{"id":4,"result":{"turn":{"id":"turn1","status":"inProgress"}}}"#, now()).lines.is_empty());
    let begun = r#"{"method":"turn/started","params":{"threadId":"t1","turn":{"id":"turn1","status":"inProgress"}}}"#;
    let step = codec.decode(begun, now());
    assert_eq!(step.lines, [r#"{"id":5,"method":"turn/interrupt","params":{"threadId":"t1","turnId":"turn1"}}"#]);
    assert!(codec.encode(Command::Cancel, now()).lines.is_empty(), "once is enough");
}

#[test]
fn a_prompt_that_is_refused_is_a_turn_that_failed() {
    let mut codec = opened(&config());
    codec.encode(Command::Prompt(Prompt::text("go")), now());
    let step = codec.decode(r#"{"error":{"code":-32600,"message":"thread not found: t1"},"id":4}"#, now());
    let kinds: Vec<String> =
        step.events.iter().map(|kind| serde_json::to_value(kind).unwrap()["type"].to_string()).collect();
    assert_eq!(kinds, [r#""turnStarted""#, r#""error""#, r#""turnCompleted""#]);
}

#[test]
fn a_refusal_waits_for_its_reason() {
    for reply in [r#"{"id":5,"result":{"turnId":"turn1"}}"#, r#"{"error":{"code":-32600,"message":"no"},"id":5}"#] {
        let mut codec = in_a_turn();
        let request = json!({ "method": "item/commandExecution/requestApproval", "id": 0, "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c1", "command": "ls" } });
        let asked = question(codec.decode(&request.to_string(), now()));
        let decide = Decide::new(&asked.question_id, "cancel").with_feedback("not now");
        let step = codec.encode(Command::Decide(decide), now());
        assert_eq!(step.lines.len(), 1);
        assert!(step.lines[0].contains("turn/steer") && step.lines[0].contains("not now"));
        let step = codec.decode(reply, now());
        assert_eq!(step.lines, [r#"{"id":0,"result":{"decision":"decline"}}"#]);
    }
}

fn question(step: Step) -> Question {
    let asked = step.events.into_iter().find_map(|kind| match kind {
        EventKind::PermissionAsked(asked) => Some(asked),
        _ => None,
    });
    asked.unwrap()
}

/// Asks, answers in each way that is offered, and in the ways that do not fit.
fn answers(before: &[Value], request: &Value, more: &[Decide]) -> String {
    let ask = || {
        let mut codec = in_a_turn();
        for line in before {
            codec.decode(&line.to_string(), now());
        }
        let asked = question(codec.decode(&request.to_string(), now()));
        (codec, asked)
    };
    let (_, asked) = ask();
    let mut shown_all = vec![serde_json::to_string(&asked).unwrap()];
    let offered = asked.options.iter().map(|choice| Decide::new(&asked.question_id, choice.id.clone()));
    for decide in offered.chain(more.iter().cloned()) {
        let (mut codec, _) = ask();
        let name = serde_json::to_string(&decide).unwrap();
        shown_all.push(format!("{name}\n{}", shown(&codec.encode(Command::Decide(decide), now()))));
    }
    shown_all.join("\n---\n")
}

fn started(item: &Value) -> Value {
    json!({ "method": "item/started", "params": { "threadId": "t1", "turnId": "turn1", "item": item } })
}

#[test]
fn answers_to_a_command() {
    let item = json!({ "type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'touch made.txt'", "cwd": "/w", "status": "inProgress" });
    let request = json!({ "method": "item/commandExecution/requestApproval", "id": 0, "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c1", "command": "/bin/bash -lc 'touch made.txt'", "cwd": "/w", "reason": "needs to write", "proposedExecpolicyAmendment": ["touch", "made.txt"], "availableDecisions": ["accept", { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["touch", "made.txt"] } }, "cancel"] } });
    let id = "request-0".into();
    let more = [
        Decide::new(&id, "cancel").with_feedback("use another name"),
        Decide { new_content: Some("ls".to_owned()), ..Decide::new(&id, "proceed_once") },
        Decide::new(&id, "proceed_always_server"),
    ];
    insta::assert_snapshot!(answers(&[started(&item)], &request, &more));
}

#[test]
fn answers_to_a_patch() {
    let item = json!({ "type": "fileChange", "id": "c1", "status": "inProgress", "changes": [
        { "path": "/w/old.txt", "kind": { "type": "update", "move_path": null }, "diff": "@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma\n" },
    ] });
    let request = json!({ "method": "item/fileChange/requestApproval", "id": 1, "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c1", "reason": null, "grantRoot": null } });
    insta::assert_snapshot!(answers(&[started(&item)], &request, &[]));
}

#[test]
fn answers_to_a_patch_of_several_files() {
    let item = json!({ "type": "fileChange", "id": "c1", "status": "inProgress", "changes": [
        { "path": "/w/new.txt", "kind": { "type": "add" }, "diff": "one\n" },
        { "path": "/w/gone.txt", "kind": { "type": "delete" }, "diff": "x\n" },
        { "path": "/w/old.txt", "kind": { "type": "update", "move_path": "/w/moved.txt" }, "diff": "@@ -1,3 +1,3 @@\n alpha\n-beta\n+BETA\n gamma\n\n\nMoved to: /w/moved.txt" },
    ] });
    let request = json!({ "method": "item/fileChange/requestApproval", "id": 1, "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c1", "grantRoot": "/w" } });
    insta::assert_snapshot!(answers(&[started(&item)], &request, &[]));
}

#[test]
fn answers_to_an_mcp_tool() {
    let item = json!({ "type": "mcpToolCall", "id": "c1", "server": "tiny", "tool": "echo", "arguments": { "message": "hi" }, "status": "inProgress" });
    let request = json!({ "method": "mcpServer/elicitation/request", "id": 2, "params": { "threadId": "t1", "turnId": "turn1", "serverName": "tiny", "mode": "form", "_meta": { "codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"], "tool_params": { "message": "hi" } }, "message": "Allow the tiny MCP server to run tool \"echo\"?", "requestedSchema": { "type": "object", "properties": {} } } });
    let more = [Decide::new(&"request-2".into(), "cancel").with_feedback("not now")];
    insta::assert_snapshot!(answers(&[started(&item)], &request, &more));
}

#[test]
fn answers_to_a_form() {
    let schema = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "title": "Name", "description": "Your name" },
        "age": { "type": "integer" },
        "ok": { "type": "boolean" },
        "colors": { "type": "array", "items": { "enum": ["red", "blue"] } },
    } });
    let request = json!({ "method": "mcpServer/elicitation/request", "id": 3, "params": { "threadId": "t1", "serverName": "tiny", "mode": "form", "_meta": null, "message": "Who are you?", "requestedSchema": schema } });
    let id = "request-3".into();
    let answered = |answers: Value| Decide {
        answers: serde_json::from_value(answers).unwrap(),
        ..Decide::new(&id, "proceed_once")
    };
    let more = [
        answered(json!({ "Your name": "Ann", "age": 7, "ok": "no", "colors": ["red", "blue"] })),
        answered(json!({ "Your name": "Ann", "age": null, "ok": "", "colors": [] })),
        answered(json!({ "Your name": "", "age": null, "ok": "", "colors": [] })),
        answered(json!({ "Your name": "Ann", "age": "old", "ok": "yes", "colors": [] })),
    ];
    let one = json!({ "type": "object", "properties": { "color": { "type": "string", "enum": ["red", "blue"] } } });
    let mut single = request.clone();
    single["params"]["requestedSchema"] = one;
    let link = json!({ "method": "mcpServer/elicitation/request", "id": 3, "params": { "serverName": "tiny", "mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "e" } });
    let all = [answers(&[], &request, &more), answers(&[], &single, &[]), answers(&[], &link, &[])];
    insta::assert_snapshot!(all.join("\n=====\n"));
}

#[test]
fn answers_to_other_requests() {
    let permissions = json!({ "method": "item/permissions/requestApproval", "id": "p", "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c1", "cwd": "/w", "reason": "the network", "permissions": { "network": { "enabled": true }, "fileSystem": null } } });
    let input = json!({ "method": "item/tool/requestUserInput", "id": 5, "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c1", "questions": [{ "id": "q1", "header": "Color", "question": "Which color?", "options": [{ "label": "red", "description": "" }, { "label": "blue", "description": "" }] }] } });
    let exec = json!({ "method": "execCommandApproval", "id": 6, "params": { "conversationId": "t1", "callId": "c1", "command": ["bash", "-lc", "ls"], "cwd": "/w", "reason": null, "parsedCmd": [] } });
    let patch = json!({ "method": "applyPatchApproval", "id": 7, "params": { "conversationId": "t1", "callId": "c1", "fileChanges": { "/w/new.txt": { "type": "add", "content": "x\n" } }, "reason": null, "grantRoot": null } });
    let own_words = [Decide::new(&"request-5".into(), "answer_1").with_feedback("a dark one")];
    let all = [
        answers(&[], &permissions, &[]),
        answers(&[], &input, &own_words),
        answers(&[], &exec, &[]),
        answers(&[], &patch, &[]),
    ];
    insta::assert_snapshot!(all.join("\n=====\n"));
}

#[test]
fn what_nobody_serves_is_refused_so_that_nothing_hangs() {
    let mut codec = in_a_turn();
    let methods = ["item/tool/call", "attestation/generate", "account/chatgptAuthTokens/refresh", "something/new"];
    let steps = methods.map(|method| {
        let line = json!({ "method": method, "id": 9, "params": { "threadId": "t1", "tool": "x" } });
        shown(&codec.decode(&line.to_string(), now()))
    });
    insta::assert_snapshot!(steps.join("\n---\n"));
}

#[test]
fn an_answer_to_a_question_that_is_gone_is_refused() {
    let mut codec = in_a_turn();
    let request = json!({ "method": "item/commandExecution/requestApproval", "id": 0, "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c1", "command": "ls" } });
    let asked = question(codec.decode(&request.to_string(), now()));
    let gone = codec.decode(r#"{"method":"serverRequest/resolved","params":{"threadId":"t1","requestId":0}}"#, now());
    assert!(matches!(gone.events.as_slice(), [EventKind::PermissionWithdrawn(_)]));
    let step = codec.encode(Command::Decide(Decide::new(&asked.question_id, "proceed_once")), now());
    assert!(step.lines.is_empty());
    assert!(matches!(step.events.as_slice(), [EventKind::Error(error)] if error.message.contains("no open question")));
}

/// What the first turn says of the sandbox, and what the start told.
fn first_turn(mode: ApprovalMode, add_dir: bool, settings: &Value) -> (Value, String) {
    let add_dirs = if add_dir { vec!["/more".into()] } else { Vec::new() };
    let config = SessionConfig { mode: Some(Mode::Unified(mode)), add_dirs, ..config() };
    let (mut codec, opened) = opened_with(&config, settings);
    assert!(opened.ready);
    let step = codec.encode(Command::Prompt(Prompt::text("go")), now());
    let line: Value = serde_json::from_str(&step.lines[0]).unwrap();
    (line["params"]["sandboxPolicy"].clone(), shown(&opened))
}

#[test]
fn a_review_does_not_run_under_the_mode_before() {
    for prompt in ["/review", "/review the tests", "/compact"] {
        let mut codec = opened(&config());
        codec.encode(Command::SetMode { mode: "plan".to_owned() }, now());
        let step = codec.encode(Command::Prompt(Prompt::text(prompt)), now());
        assert_eq!(step.lines, [] as [&str; 0], "{prompt}");
        let told = shown(&step);
        assert!(told.contains("only with a prompt") && told.contains(r#""status":"failed""#), "{told}");
        // With the next prompt Codex knows of it.
        codec.encode(Command::Prompt(Prompt::text("go")), now());
        codec.decode(
            r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"x","status":"completed"}}}"#,
            now(),
        );
        assert_eq!(codec.encode(Command::Prompt(Prompt::text(prompt)), now()).lines.len(), 1, "{prompt}");
    }
}

#[test]
fn an_error_of_a_sub_agent_is_not_the_turns_own() {
    let error = |thread: &str| {
        let error = json!({ "message": "overloaded" });
        json!({ "method": "error", "params": { "threadId": thread, "turnId": "x", "willRetry": false, "error": error } })
    };
    let mut codec = in_a_turn();
    let step = codec.decode(&error("t2").to_string(), now());
    assert!(matches!(step.events.as_slice(), [EventKind::System(note)] if note.subtype == "subAgent"), "{step:?}");
    // So the turn's own error of the same words is told.
    let step = codec.decode(&error("t1").to_string(), now());
    assert!(matches!(step.events.as_slice(), [EventKind::Error(_)]), "{step:?}");
}

#[test]
fn only_a_sandbox_that_nobody_chose_is_raised() {
    let set = |config: Value| json!({ "result": { "config": config, "origins": {} } });
    for mode in [ApprovalMode::Ask, ApprovalMode::AutoAll] {
        let (sandbox, told) = first_turn(mode, false, &set(json!({ "model": "gpt-6", "sandbox_mode": null })));
        assert_eq!(sandbox, json!({ "type": "workspaceWrite", "writableRoots": [] }));
        assert!(told.contains("may write in the workspace"), "{told}");
        for own in [json!({ "sandbox_mode": "read-only" }), json!({ "default_permissions": ":read-only" })] {
            let (sandbox, told) = first_turn(mode, false, &set(own));
            assert_eq!(sandbox, Value::Null);
            assert!(told.contains("own settings only let it read, so"), "{told}");
        }
        // One that does not tell its settings.
        let unknown = json!({ "error": { "code": -32600, "message": "unknown method" } });
        let (sandbox, told) = first_turn(mode, false, &unknown);
        assert_eq!(sandbox, Value::Null);
        assert!(told.contains(r#""severity":"warning""#) && told.contains("does not tell"), "{told}");
    }
    let (sandbox, told) = first_turn(ApprovalMode::AskDangerous, false, &set(json!({})));
    assert_eq!((sandbox, told.as_str()), (Value::Null, ""));
}

#[test]
fn added_folders_that_change_nothing_are_told() {
    let set = |config: Value| json!({ "result": { "config": config, "origins": {} } });
    let read_only = json!({ "sandbox_mode": "read-only" });
    let (_, told) = first_turn(ApprovalMode::AskDangerous, true, &set(read_only));
    assert!(told.contains("the added directories change nothing") && told.contains("warning"), "{told}");
    let (sandbox, told) = first_turn(ApprovalMode::Ask, true, &set(json!({})));
    assert!(!told.contains("added directories"), "{told}");
    assert_eq!(sandbox["writableRoots"], json!(["/more"]));
}

/// After a mode that means a sandbox the user's own holds again.
#[test]
fn the_users_own_sandbox_comes_back_after_a_mode_with_another() {
    for (own, policy) in [("read-only", "readOnly"), ("danger-full-access", "dangerFullAccess")] {
        let config = SessionConfig { mode: Some(Mode::Unified(ApprovalMode::DontAsk)), ..config() };
        let settings = json!({ "result": { "config": { "sandbox_mode": own }, "origins": {} } });
        let (mut codec, _) = opened_with(&config, &settings);
        codec.encode(Command::SetMode { mode: "ask".to_owned() }, now());
        let step = codec.encode(Command::Prompt(Prompt::text("go")), now());
        let line: Value = serde_json::from_str(&step.lines[0]).unwrap();
        assert_eq!(line["params"]["sandboxPolicy"]["type"], policy, "{line}");
    }
}

#[test]
fn a_sandbox_that_does_not_work_is_told() {
    let config = SessionConfig { mode: Some(Mode::Unified(ApprovalMode::AutoAll)), ..config() };
    let mut codec = CodexCodec::live(&config, Box::new(OneFile), Some("bwrap: no".to_owned())).unwrap();
    codec.begin(now());
    codec.decode(r#"{"id":1,"result":{"userAgent":"multitap/0.166.0"}}"#, now());
    let reply = json!({ "id": 2, "result": { "thread": { "id": "t1" }, "approvalPolicy": "never", "sandbox": { "type": "readOnly" } } });
    codec.decode(&reply.to_string(), now());
    let reply = json!({ "id": 3, "result": { "config": {}, "origins": {} } });
    insta::assert_snapshot!(shown(&codec.decode(&reply.to_string(), now())));
}

#[test]
fn a_prompt_joins_the_running_turn_and_is_not_lost_with_it() {
    let mut codec = in_a_turn();
    let step = codec.encode(Command::Steer(Prompt::text("and also this")), now());
    let line = r#"> {"id":5,"method":"turn/steer","params":{"threadId":"t1","expectedTurnId":"turn1","input":[{"type":"text","text":"and also this","text_elements":[]}]}}"#;
    assert_eq!(shown(&step), line);
    let request: Value = serde_json::from_str(&step.lines[0]).unwrap();
    // The turn was over before Codex read it: then it is a prompt like any other.
    let refused = json!({ "id": request["id"], "error": { "code": -32600, "message": "no active turn to steer" } });
    let step = codec.decode(&refused.to_string(), now());
    assert!(step.lines[0].contains("turn/start") && step.lines[0].contains("and also this"), "{step:?}");
    assert_eq!(step.events, []);
    let mut codec = opened(&config());
    let step = codec.encode(Command::Steer(Prompt::text("nothing runs")), now());
    assert!(step.lines[0].contains("turn/start"), "{step:?}");
}
