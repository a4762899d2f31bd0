//! A changed mode or model is confirmed or refused, once, whichever agent is asked.

use multitap_adapter::{ClaudeCodec, Codec as _, CodexCodec, Files, Step};
use multitap_event::{AgentKind, Command, EventKind, SessionConfig};
use serde_json::json;

use crate::recording::now;

struct NoFile;

impl Files for NoFile {
    fn read(&self, _path: &std::path::Path) -> Option<String> {
        None
    }
}

/// What the events say of settings: `mode X`, `model X`, `refused Mode`.
fn settings(step: &Step) -> Vec<String> {
    let one = |kind: &EventKind| match kind {
        EventKind::ModeChanged { native_mode, .. } => Some(format!("mode {}", native_mode.as_deref().unwrap_or("?"))),
        EventKind::ModelChanged { model, .. } => Some(format!("model {model}")),
        EventKind::Error(error) => error.refused_setting.map(|setting| format!("refused {setting:?}")),
        EventKind::System(note) if note.subtype == "thinkingLimit" => Some("thinking".to_owned()),
        _ => None,
    };
    step.events.iter().filter_map(one).collect()
}

fn set_mode(mode: &str) -> Command {
    Command::SetMode { mode: mode.to_owned() }
}

fn set_model(model: &str) -> Command {
    Command::SetModel { model: model.to_owned() }
}

fn claude() -> ClaudeCodec {
    let config = SessionConfig::new(AgentKind::Claude);
    let mut codec = ClaudeCodec::live(&config, None, Box::new(NoFile));
    codec.begin(now());
    let response = json!({ "commands": [], "models": [], "current_permission_mode": "default" });
    let reply = json!({ "type": "control_response",
        "response": { "subtype": "success", "request_id": "multitap-init", "response": response } });
    codec.decode(&reply.to_string(), now());
    codec
}

fn answer(codec: &mut ClaudeCodec, number: u32, subtype: &str, more: &serde_json::Value) -> Vec<String> {
    let mut response = json!({ "subtype": subtype, "request_id": format!("multitap-{number}") });
    response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    settings(&codec.decode(&json!({ "type": "control_response", "response": response }).to_string(), now()))
}

#[test]
fn claude_confirms_or_refuses_every_change() {
    let codec = &mut claude();
    assert!(settings(&codec.encode(set_mode("ask"), now())).is_empty(), "Claude has not answered yet");
    let same = answer(codec, 1, "success", &json!({ "response": { "mode": "default" } }));
    assert_eq!(same, ["mode default"], "also a mode that is not new");
    codec.encode(set_mode("auto-all"), now());
    assert_eq!(answer(codec, 2, "error", &json!({ "error": "not launched so" })), ["refused Mode"]);
    codec.encode(set_mode("auto-all"), now());
    let other = answer(codec, 3, "success", &json!({ "response": { "mode": "default" } }));
    assert_eq!(other, ["refused Mode"], "a success that changes nothing is a refusal");
    // Claude may announce the mode before it answers.
    codec.encode(set_mode("plan"), now());
    let status = json!({ "type": "system", "subtype": "status", "permissionMode": "plan", "session_id": "s" });
    let told = settings(&codec.decode(&status.to_string(), now()));
    let then = answer(codec, 4, "success", &json!({ "response": { "mode": "plan" } }));
    assert_eq!([told, then].concat(), ["mode plan"], "once");
    codec.encode(set_model("one"), now());
    assert_eq!(answer(codec, 5, "success", &json!({ "response": {} })), ["model one"]);
    codec.encode(set_model("one"), now());
    assert_eq!(answer(codec, 6, "success", &json!({ "response": {} })), ["model one"]);
    codec.encode(set_model("two"), now());
    assert_eq!(answer(codec, 7, "error", &json!({ "error": "no such model" })), ["refused Model"]);
    codec.encode(Command::SetThinking { tokens: Some(1) }, now());
    assert_eq!(answer(codec, 8, "error", &json!({ "error": "no" })), ["refused Thinking"]);
    assert_eq!(settings(&codec.encode(set_mode("ask-dangerous"), now())), ["refused Mode"]);
    let level = Command::SetThinkingLevel { level: "high".to_owned() };
    assert_eq!(settings(&codec.encode(level, now())), ["refused Thinking"]);
}

#[test]
fn codex_confirms_or_refuses_every_change() {
    let mut codec = CodexCodec::live(&SessionConfig::new(AgentKind::Codex), Box::new(NoFile), None).unwrap();
    codec.begin(now());
    for _ in 0..2 {
        assert_eq!(settings(&codec.encode(set_mode("ask"), now())), ["mode untrusted"]);
        assert_eq!(settings(&codec.encode(set_model("m"), now())), ["model m"]);
    }
    assert_eq!(settings(&codec.encode(set_mode("auto-edit"), now())), ["refused Mode"]);
    assert_eq!(settings(&codec.encode(Command::SetThinking { tokens: None }, now())), ["refused Thinking"]);
}
