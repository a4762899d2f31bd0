//! Which sandbox Codex is told to use, and what people are told of it.

use multitap_adapter::{Codec as _, CodexCodec};
use multitap_event::{ApprovalMode, Command, Mode, Prompt, SessionConfig};
use serde_json::{Value, json};

use super::{OneFile, config, opened_with, shown};
use crate::recording::now;

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
fn only_a_sandbox_that_nobody_chose_is_raised() {
    let set = |config: Value| json!({ "result": { "config": config, "origins": {} } });
    for mode in [ApprovalMode::Ask, ApprovalMode::AutoAll] {
        let (sandbox, told) = first_turn(mode, false, &set(json!({ "model": "gpt-6", "sandbox_mode": null })));
        assert_eq!(sandbox, json!({ "type": "workspaceWrite", "writableRoots": [] }));
        assert!(told.contains("may write in the workspace"), "{told}");
        for own in [json!({ "sandbox_mode": "read-only" }), json!({ "default_permissions": ":read-only" })] {
            let (sandbox, told) = first_turn(mode, false, &set(own));
            assert_eq!(sandbox, Value::Null);
            assert!(told.contains("own settings choose a read-only sandbox, so"), "{told}");
        }
        // One that does not tell its settings.
        let unknown = json!({ "error": { "code": -32600, "message": "unknown method" } });
        let (sandbox, told) = first_turn(mode, false, &unknown);
        assert_eq!(sandbox, Value::Null);
        assert!(told.contains(r#""severity":"warning""#) && told.contains("did not report"), "{told}");
    }
    let (sandbox, told) = first_turn(ApprovalMode::AskDangerous, false, &set(json!({})));
    assert_eq!((sandbox, told.as_str()), (Value::Null, ""));
}

#[test]
fn added_folders_that_change_nothing_are_told() {
    let set = |config: Value| json!({ "result": { "config": config, "origins": {} } });
    let read_only = json!({ "sandbox_mode": "read-only" });
    let (_, told) = first_turn(ApprovalMode::AskDangerous, true, &set(read_only));
    assert!(told.contains("the added directories have no effect") && told.contains("warning"), "{told}");
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
