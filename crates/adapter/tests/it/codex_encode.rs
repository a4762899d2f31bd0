//! Commands to Codex's lines: how a conversation is opened, prompts; answers and the sandbox in files of their own.

mod answer;
mod sandbox;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use multitap_adapter::{Codec as _, CodexCodec, Files, Step};
use multitap_event::{
    AgentKind, ApprovalMode, Command, EventKind, Image, McpReach, McpServer, Mode, PermissionPath, Prompt, Query,
    Resume, SandboxMode, SessionConfig, Setting,
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

/// Each model has its levels of thinking. The one that is chosen goes with the next turn.
#[test]
fn the_level_of_thinking_is_one_of_the_model() {
    let mut codec = opened(&config());
    let set = |codec: &mut CodexCodec, level: &str| {
        let step = codec.encode(Command::SetThinkingLevel { level: level.to_owned() }, now());
        assert!(step.lines.is_empty(), "{step:?}");
        thinking(&step)
    };
    assert_eq!(set(&mut codec, "high"), ["codex has not reported thinking levels of its model"]);
    let asked = codec.encode(Command::Query { what: Query::Models }, now());
    let id = serde_json::from_str::<Value>(&asked.lines[0]).unwrap()["id"].clone();
    let efforts = |levels: &[&str]| -> Vec<Value> {
        levels.iter().map(|level| json!({ "reasoningEffort": level, "description": "" })).collect()
    };
    let models = json!([
        { "id": "large", "supportedReasoningEfforts": efforts(&["low", "high"]), "defaultReasoningEffort": "low" },
        { "id": "small", "supportedReasoningEfforts": efforts(&["low"]), "defaultReasoningEffort": "low" },
        { "id": "none" },
    ]);
    codec.decode(&json!({ "id": id, "result": { "data": models } }).to_string(), now());
    let model = |codec: &mut CodexCodec, model: &str| {
        thinking(&codec.encode(Command::SetModel { model: model.to_owned() }, now()))
    };
    assert_eq!(model(&mut codec, "large"), ["low, high: low"]);
    assert_eq!(set(&mut codec, "ultra"), ["codex has no thinking level 'ultra': its model knows low, high"]);
    assert_eq!(set(&mut codec, "high"), ["low, high: high"]);
    let turn = |codec: &mut CodexCodec| -> Value {
        let step = codec.encode(Command::Prompt(Prompt::text("go")), now());
        let line: Value = serde_json::from_str(&step.lines[0]).unwrap();
        let over = r#"{"method":"turn/completed","params":{"threadId":"t1","turn":{"id":"x","status":"completed"}}}"#;
        codec.decode(&json!({ "id": line["id"], "result": { "turn": { "id": "x" } } }).to_string(), now());
        codec.decode(over, now());
        line["params"]["effort"].clone()
    };
    assert_eq!(turn(&mut codec), "high");
    assert_eq!(turn(&mut codec), Value::Null, "it stays");
    // A level that the next model does not have becomes its default.
    assert_eq!(model(&mut codec, "small"), ["low: low"]);
    assert_eq!(turn(&mut codec), "low");
    assert_eq!(model(&mut codec, "none"), [": "]);
    assert_eq!(set(&mut codec, "low"), ["codex has not reported thinking levels of its model"]);
}

/// What a step says of thinking: the levels and the current one, or why not.
fn thinking(step: &Step) -> Vec<String> {
    let said = step.events.iter().filter_map(|kind| match kind {
        EventKind::Capabilities(now) => {
            let levels = now.thinking_levels.as_ref()?.join(", ");
            Some(format!("{levels}: {}", now.thinking_level.as_deref().unwrap_or_default()))
        }
        EventKind::Error(error) => {
            assert_eq!(error.refused_setting, Some(Setting::Thinking));
            Some(error.message.clone())
        }
        _ => None,
    });
    said.collect()
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

/// Codex took nothing of a turn that it refused, a stricter mode least of all.
#[test]
fn settings_that_were_refused_with_a_turn_come_with_the_next() {
    let mut codec = opened(&config());
    codec.encode(Command::SetMode { mode: "plan".to_owned() }, now());
    codec.encode(Command::SetModel { model: "other".to_owned() }, now());
    let first = codec.encode(Command::Prompt(Prompt::text("one")), now()).lines.concat();
    assert!(first.contains("readOnly") && first.contains("other"), "{first}");
    let id: Value = serde_json::from_str(&first).unwrap();
    let refused = json!({ "id": id["id"], "error": { "code": -32600, "message": "not allowed" } });
    codec.decode(&refused.to_string(), now());
    let second = codec.encode(Command::Prompt(Prompt::text("two")), now()).lines.concat();
    assert!(second.contains("readOnly") && second.contains("other"), "{second}");
}

#[test]
fn a_review_does_not_run_under_the_mode_before() {
    for prompt in ["/review", "/review the tests", "/compact"] {
        let mut codec = opened(&config());
        codec.encode(Command::SetMode { mode: "plan".to_owned() }, now());
        let step = codec.encode(Command::Prompt(Prompt::text(prompt)), now());
        assert_eq!(step.lines, [] as [&str; 0], "{prompt}");
        let told = shown(&step);
        assert!(told.contains("with the next prompt") && told.contains(r#""status":"failed""#), "{told}");
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
