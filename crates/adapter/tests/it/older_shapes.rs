//! The shapes that an older description of the stream gives: each sample, each row of its tables, its test.

use multitap_event::{AgentErrorKind, EventKind, Role, SessionEndReason, TurnStatus};
use serde_json::Value;

use crate::recording::{events, play};
use crate::schema::Schemas;

/// The events of some lines, and the end that follows them.
fn told(lines: &[&str]) -> Vec<EventKind> {
    let events = events(play(lines.iter().copied(), false));
    Schemas::new().check(&lines.join("\n"), &events);
    events.into_iter().map(|event| event.kind).collect()
}

/// The types of the events, without the session's beginning and end.
fn types(lines: &[&str]) -> Vec<String> {
    let kinds =
        told(lines).into_iter().map(|kind| serde_json::to_value(kind).unwrap()["type"].as_str().unwrap().to_owned());
    kinds.filter(|kind| kind != "sessionStarted" && kind != "sessionEnded").collect()
}

fn json(kind: &EventKind) -> Value {
    serde_json::to_value(kind).unwrap()
}

#[test]
fn four_plain_lines_are_a_session() {
    let told = told(&[
        r#"{"type":"init","session_id":"sess_123"}"#,
        r#"{"type":"tool_use","id":"toolu_01","name":"Edit","input":{"file":"test.txt"}}"#,
        r#"{"type":"tool_result","tool_use_id":"toolu_01","content":"OK","is_error":false}"#,
        r#"{"type":"result","status":"success","session_id":"sess_123"}"#,
    ]);
    let [
        EventKind::SessionStarted(start),
        EventKind::ToolStarted(tool),
        EventKind::ToolCompleted(done),
        EventKind::TurnCompleted(turn),
        EventKind::SessionEnded(end),
    ] = told.as_slice()
    else {
        panic!("{told:#?}")
    };
    assert_eq!(start.native_session_id.as_deref(), Some("sess_123"));
    assert_eq!(tool.tool_name, "Edit");
    assert_eq!((done.success, done.result.as_ref()), (true, Some(&Value::from("OK"))));
    assert_eq!((turn.status, end.reason), (TurnStatus::Completed, SessionEndReason::Completed));
}

#[test]
fn each_row_of_the_translation_table() {
    let end = |lines: &[&str]| match told(lines).pop() {
        Some(EventKind::SessionEnded(end)) => end.reason,
        other => panic!("{other:#?}"),
    };
    assert!(matches!(told(&[r#"{"type":"init","session_id":"s"}"#])[0], EventKind::SessionStarted(_)));
    assert_eq!(types(&[r#"{"type":"message","role":"assistant","content":"hi"}"#]), ["textChunk"]);
    assert_eq!(types(&[r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#])[..1], ["toolStarted"]);
    assert_eq!(types(&[r#"{"type":"tool_result","tool_use_id":"t","content":"x"}"#]), ["toolCompleted"]);
    assert_eq!(end(&[r#"{"type":"result","status":"success"}"#]), SessionEndReason::Completed);
    assert_eq!(end(&[r#"{"type":"result","subtype":"success","is_error":false}"#]), SessionEndReason::Completed);
    assert_eq!(end(&[r#"{"type":"result","status":"error"}"#]), SessionEndReason::Failed);
    assert_eq!(end(&[r#"{"type":"result","status":"cancelled"}"#]), SessionEndReason::Cancelled);
    assert_eq!(end(&[r#"{"type":"error","error":{"type":"x","message":"y"}}"#]), SessionEndReason::Failed);
    assert_eq!(
        types(&[r#"{"type":"system","subtype":"init","session_id":"s"}"#])[..2],
        ["capabilities", "turnStarted"]
    );
    let compact = r#"{"type":"system","subtype":"compact_boundary","session_id":"s","compact_metadata":{"trigger":"auto","pre_tokens":50000}}"#;
    let compact = told(&[compact]);
    let [_, EventKind::System(note), _] = compact.as_slice() else { panic!("{compact:#?}") };
    assert_eq!(
        (note.subtype.as_str(), &note.data["trigger"], &note.data["pre_tokens"]),
        ("compacted", &"auto".into(), &50000.into())
    );
}

#[test]
fn partial_messages_are_told_once() {
    let told = told(&[
        r#"{"type":"message","role":"assistant","partial":true,"content":"Hel"}"#,
        r#"{"type":"message","role":"assistant","partial":true,"content":[{"type":"text","text":"lo"}]}"#,
        r#"{"type":"message","role":"assistant","partial":false,"content":[{"type":"text","text":"Hello you"}]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"Bye"}]}"#,
        r#"{"type":"message","role":"user","content":[{"type":"text","text":"Your follow-up message here"}]}"#,
    ]);
    let chunks: Vec<(String, bool)> = told
        .iter()
        .filter_map(|kind| match kind {
            EventKind::TextChunk(chunk) => Some((chunk.content.clone(), chunk.is_partial)),
            _ => None,
        })
        .collect();
    let expected = [("Hel", true), ("lo", true), (" you", true), ("Bye", false)];
    assert_eq!(chunks, expected.map(|(text, partial)| (text.to_owned(), partial)));
    assert!(
        told.iter()
            .any(|kind| matches!(kind, EventKind::UserMessage(said) if said.content.starts_with("Your follow-up")))
    );
}

#[test]
fn streamed_text_is_not_told_again() {
    let told = told(&[
        r#"{"type":"stream_event","session_id":"s","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I'll"}},"parent_tool_use_id":null}"#,
        r#"{"type":"assistant","session_id":"s","message":{"role":"assistant","content":[{"type":"text","text":"I'll help"}]}}"#,
    ]);
    let text: String = told
        .iter()
        .filter_map(|kind| if let EventKind::TextChunk(chunk) = kind { Some(chunk.content.as_str()) } else { None })
        .collect();
    assert_eq!(text, "I'll help");
}

#[test]
fn words_for_errors_are_kept_apart() {
    let words = ["authentication_failed", "billing_error", "rate_limit", "invalid_request", "server_error", "unknown"];
    for word in words {
        let line = format!(
            r#"{{"type":"assistant","session_id":"s","message":{{"role":"assistant","content":[{{"type":"text","text":"I was about to"}}]}},"error":"{word}"}}"#
        );
        let told = told(&[&line]);
        let [_, EventKind::Error(error), EventKind::TextChunk(chunk), _] = told.as_slice() else { panic!("{told:#?}") };
        assert_eq!((error.native_code.as_deref(), chunk.content.as_str()), (Some(word), "I was about to"));
    }
    let denied =
        told(&[r#"{"type":"error","error":{"type":"permission_denied","message":"Tool execution blocked by user"}}"#]);
    let [_, EventKind::Error(error), EventKind::SessionEnded(end)] = denied.as_slice() else { panic!("{denied:#?}") };
    assert_eq!(error.kind, AgentErrorKind::PermissionDenied);
    assert_eq!(end.error.as_deref(), Some("Tool execution blocked by user"));
}

#[test]
fn ways_a_turn_can_fail_are_kept_apart() {
    let subtypes =
        ["error_during_execution", "error_max_turns", "error_max_budget_usd", "error_max_structured_output_retries"];
    for subtype in subtypes {
        let line = format!(
            r#"{{"type":"result","subtype":"{subtype}","session_id":"s","duration_ms":5000,"is_error":true,"num_turns":2,"total_cost_usd":0.005,"permission_denials":[{{"tool_name":"Bash","tool_use_id":"toolu_01XYZ","tool_input":{{"command":"rm -rf /"}}}}],"errors":["Tool execution blocked by user"]}}"#
        );
        let told = told(&[&line]);
        let [EventKind::Error(error), EventKind::TurnCompleted(turn), EventKind::SessionEnded(end)] = told.as_slice()
        else {
            panic!("{told:#?}")
        };
        assert_eq!((error.native_code.as_deref(), turn.native_status.as_deref()), (Some(subtype), Some(subtype)));
        assert_eq!((turn.status, end.reason), (TurnStatus::Failed, SessionEndReason::Failed));
        assert_eq!(turn.error.as_deref(), Some("Tool execution blocked by user"));
        assert_eq!(turn.denials[0].arguments["command"], "rm -rf /");
    }
}

#[test]
fn notes_of_the_session() {
    let status = told(&[r#"{"type":"system","subtype":"status","uuid":"u","session_id":"s","status":"compacting"}"#]);
    assert_eq!(json(&status[1])["data"]["status"], "compacting");
    let hook = told(&[
        r#"{"type":"system","subtype":"hook_response","session_id":"s","hook_name":"PreToolUse","hook_event":"Edit","stdout":"Hook output...","stderr":"","exit_code":0}"#,
    ]);
    assert_eq!(json(&hook[1])["data"]["stdout"], "Hook output...");
    let auth = told(&[
        r#"{"type":"auth_status","session_id":"s","isAuthenticating":true,"output":["Authenticating with API key..."],"error":null}"#,
    ]);
    let EventKind::AuthStatus(auth) = &auth[1] else { panic!("{auth:#?}") };
    assert_eq!((auth.is_authenticating, auth.output.len()), (true, 1));
    let replay = r#"{"type":"user","session_id":"s","message":{"role":"user","content":"again"},"isReplay":true}"#;
    assert_eq!(types(&[replay]), Vec::<String>::new());
    let synthetic =
        r#"{"type":"user","session_id":"s","message":{"role":"user","content":"cut off"},"isSynthetic":true}"#;
    assert_eq!(types(&[synthetic]), Vec::<String>::new());
    let user = told(&[
        r#"{"type":"user","uuid":"u1","session_id":"s","message":{"role":"user","content":[{"type":"text","text":"Refactor the auth module"}]},"parent_tool_use_id":null,"isSynthetic":false,"tool_use_result":null}"#,
    ]);
    assert!(matches!(&user[1], EventKind::UserMessage(said) if said.content == "Refactor the auth module"));
    let sub_agent = told(&[
        r#"{"type":"user","session_id":"s","message":{"role":"user","content":"look"},"parent_tool_use_id":"toolu_9"}"#,
    ]);
    assert!(matches!(&sub_agent[1], EventKind::TextChunk(chunk) if chunk.role == Some(Role::User)));
}

#[test]
fn a_whole_flow() {
    let flow = [
        r#"{"type":"system","subtype":"init","uuid":"uuid1","session_id":"sess_abc123","claude_code_version":"1.0.32","cwd":"/project","tools":["Read","Edit"],"model":"claude-sonnet-4-20250514","permissionMode":"default"}"#,
        r#"{"type":"user","uuid":"uuid2","session_id":"sess_abc123","message":{"role":"user","content":[{"type":"text","text":"Refactor the auth module"}]},"parent_tool_use_id":null}"#,
        r#"{"type":"assistant","uuid":"uuid3","session_id":"sess_abc123","message":{"role":"assistant","content":[{"type":"text","text":"I'll analyze the codebase..."},{"type":"tool_use","id":"toolu_01","name":"Read","input":{"file_path":"/src/auth.ts"}}]},"parent_tool_use_id":null}"#,
        r#"{"type":"user","uuid":"uuid4","session_id":"sess_abc123","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"export function login()..."}]},"parent_tool_use_id":"toolu_01","isSynthetic":true}"#,
        r#"{"type":"assistant","uuid":"uuid5","session_id":"sess_abc123","message":{"role":"assistant","content":[{"type":"text","text":"I found the auth module. Let me refactor it..."},{"type":"tool_use","id":"toolu_02","name":"Edit","input":{"file_path":"/src/auth.ts","old_string":"function login()","new_string":"async function login()"}}]},"parent_tool_use_id":null}"#,
        r#"{"type":"tool_progress","uuid":"uuid6","session_id":"sess_abc123","tool_use_id":"toolu_02","tool_name":"Edit","elapsed_time_seconds":0.5}"#,
        r#"{"type":"user","uuid":"uuid7","session_id":"sess_abc123","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_02","content":"File updated"}]},"parent_tool_use_id":"toolu_02","isSynthetic":true}"#,
        r#"{"type":"assistant","uuid":"uuid8","session_id":"sess_abc123","message":{"role":"assistant","content":[{"type":"text","text":"Done! I've made the login function async."}]},"parent_tool_use_id":null}"#,
        r#"{"type":"result","subtype":"success","uuid":"uuid9","session_id":"sess_abc123","duration_ms":12500,"is_error":false,"num_turns":3,"result":"Done!","usage":{"input_tokens":5000,"output_tokens":1200}}"#,
    ];
    let lines: Vec<String> = told(&flow).iter().map(|kind| json(kind).to_string()).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_result_with_everything_in_it() {
    let line = r#"{"type":"result","subtype":"success","uuid":"u","session_id":"s","duration_ms":12500,"duration_api_ms":10200,"is_error":false,"num_turns":3,"result":"Done! I've refactored the auth module.","total_cost_usd":0.0125,"usage":{"input_tokens":5000,"output_tokens":1200,"cache_read_input_tokens":2000,"cache_creation_input_tokens":500,"web_search_requests":0,"costUSD":0.0125,"contextWindow":200000},"modelUsage":{"claude-sonnet-4-20250514":{"inputTokens":5000,"outputTokens":1200,"cacheReadInputTokens":2000,"cacheCreationInputTokens":500,"webSearchRequests":0,"costUSD":0.0125,"contextWindow":200000}},"permission_denials":[],"structured_output":null}"#;
    let told = told(&[line]);
    insta::assert_snapshot!(json(&told[0]).to_string());
}

#[test]
fn a_recording_without_its_beginning_begins_with_whatever_comes() {
    for line in [
        r#"{"type":"message","role":"assistant","content":"hi"}"#,
        r#"{"type":"tool_use","id":"t","name":"Read","input":{}}"#,
        r#"{"type":"tool_result","tool_use_id":"t","content":"x"}"#,
        r#"{"type":"error","error":{"type":"x","message":"y"}}"#,
        r#"{"type":"auth_status","isAuthenticating":true,"output":[]}"#,
    ] {
        assert!(matches!(told(&[line])[0], EventKind::SessionStarted(_)), "{line}");
    }
    // The result of a session that could not begin.
    assert!(matches!(told(&[r#"{"type":"result","status":"error"}"#])[0], EventKind::Error(_)));
}

#[test]
fn each_of_several_results_has_its_turn() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s"}"#;
    let types = types(&[r#"{"type":"system","subtype":"init","session_id":"s"}"#, result, result]);
    assert_eq!(types, ["capabilities", "turnStarted", "turnCompleted", "turnStarted", "turnCompleted"]);
}
