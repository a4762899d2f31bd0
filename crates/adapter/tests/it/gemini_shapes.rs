//! Gemini's lines as an older description gives them: each sample, each row of its tables, its schema.

use multitap_adapter::recorded;
use multitap_event::{AgentType, EventKind, SessionEndReason, Severity, TurnStatus};
use serde_json::{Value, json};

use crate::recording::{events, play_as};
use crate::schema::{Schemas, instances, schema, validator};

/// The events of some lines, and the end that follows them.
fn told(lines: &[&str]) -> Vec<EventKind> {
    let mut codec = recorded(AgentType::Gemini).unwrap();
    let events = events(play_as(codec.as_mut(), lines.iter().copied(), false));
    Schemas::new().check(&lines.join("\n"), &events);
    events.into_iter().map(|event| event.kind).collect()
}

/// The types of the events, without the session's beginning and end.
fn types(lines: &[&str]) -> Vec<String> {
    let kinds = told(lines).into_iter().map(|kind| json(&kind)["type"].as_str().unwrap().to_owned());
    kinds.filter(|kind| kind != "sessionStarted" && kind != "sessionEnded").collect()
}

fn json(kind: &EventKind) -> Value {
    serde_json::to_value(kind).unwrap()
}

fn end(lines: &[&str]) -> SessionEndReason {
    match told(lines).pop() {
        Some(EventKind::SessionEnded(end)) => end.reason,
        other => panic!("{other:#?}"),
    }
}

#[test]
fn each_row_of_the_translation_table() {
    assert!(matches!(told(&[r#"{"type":"init","session_id":"s"}"#])[0], EventKind::SessionStarted(_)));
    assert!(types(&[r#"{"type":"message","role":"user","content":"hi"}"#]).is_empty());
    let whole = told(&[r#"{"type":"message","role":"assistant","content":"hi"}"#]);
    assert!(whole.iter().any(|kind| matches!(kind, EventKind::TextChunk(chunk) if !chunk.is_partial)));
    let piece = told(&[r#"{"type":"message","role":"assistant","content":"hi","delta":true}"#]);
    assert!(piece.iter().any(|kind| matches!(kind, EventKind::TextChunk(chunk) if chunk.is_partial)));
    let call = r#"{"type":"tool_use","tool_name":"Bash","tool_id":"t","parameters":{"command":"ls"}}"#;
    assert_eq!(types(&[call])[..2], ["turnStarted", "toolStarted"]);
    let good = told(&[call, r#"{"type":"tool_result","tool_id":"t","status":"success","output":"a"}"#]);
    assert!(good.iter().any(|kind| matches!(kind, EventKind::ToolCompleted(tool) if tool.success)));
    let bad =
        r#"{"type":"tool_result","tool_id":"t","status":"error","error":{"type":"FILE_NOT_FOUND","message":"no"}}"#;
    let bad = told(&[call, bad]);
    assert!(bad.iter().any(
        |kind| matches!(kind, EventKind::ToolCompleted(tool) if !tool.success && tool.error.as_deref() == Some("no"))
    ));
    assert_eq!(types(&[r#"{"type":"content","value":"hi"}"#])[..2], ["turnStarted", "textChunk"]);
    let atomic = types(&[r#"{"type":"tool_call","name":"read_file","args":{"file_path":"a"},"result":"text"}"#]);
    assert_eq!(atomic[..3], ["turnStarted", "toolStarted", "toolCompleted"]);
    assert_eq!(types(&[r#"{"type":"result","status":"success"}"#]), ["turnStarted", "turnCompleted"]);
    assert_eq!(end(&[r#"{"type":"result","status":"success"}"#]), SessionEndReason::Completed);
    assert_eq!(end(&[r#"{"type":"result","status":"error"}"#]), SessionEndReason::Failed);
    assert_eq!(end(&[r#"{"type":"result","status":"cancelled"}"#]), SessionEndReason::Cancelled);
    assert_eq!(end(&[r#"{"type":"error","severity":"error","message":"x"}"#]), SessionEndReason::Failed);
    let retry = told(&[r#"{"type":"retry","attempt":2,"max_attempts":5,"delay_ms":1000,"reason":"busy"}"#]);
    assert!(retry.iter().any(|kind| matches!(kind, EventKind::Retry(retry) if retry.attempt == 2)));
}

#[test]
fn a_warning_ends_nothing_and_an_error_does() {
    let warning = r#"{"type":"error","timestamp":"2025-12-03T10:00:05.000Z","severity":"warning","message":"Loop detected, stopping execution"}"#;
    let done =
        r#"{"type":"result","status":"success","stats":{"total_tokens":350,"input_tokens":100,"output_tokens":250}}"#;
    let warned = told(&[warning, done]);
    let severity = |told: &[EventKind]| {
        told.iter().find_map(|kind| if let EventKind::Error(error) = kind { Some(error.severity) } else { None })
    };
    let status = |told: &[EventKind]| {
        told.iter().find_map(|kind| if let EventKind::TurnCompleted(end) = kind { Some(end.status) } else { None })
    };
    assert_eq!((severity(&warned), status(&warned)), (Some(Severity::Warning), Some(TurnStatus::Completed)));
    let failed = told(&[&warning.replace("\"warning\"", "\"error\""), done]);
    assert_eq!((severity(&failed), status(&failed)), (Some(Severity::Error), Some(TurnStatus::Failed)));
}

#[test]
fn the_ends_of_a_turn_keep_what_they_tell() {
    let told = told(&[
        r#"{"type":"result","status":"success","stats":{"total_tokens":350,"input_tokens":100,"output_tokens":250,"thought_tokens":7,"cache_tokens":9,"tool_tokens":0,"duration_ms":5000,"tool_calls":2},"timestamp":"2025-12-03T10:30:00Z"}"#,
        r#"{"type":"result","status":"error","stats":null,"error":{"code":"EXECUTION_FAILED","message":"Tool execution timed out"},"timestamp":"2025-12-03T10:30:00Z"}"#,
    ]);
    let ends: Vec<Value> = told.iter().filter(|kind| matches!(kind, EventKind::TurnCompleted(_))).map(json).collect();
    let usage =
        json!({ "inputTokens": 100, "outputTokens": 250, "cachedTokens": 9, "reasoningTokens": 7, "totalTokens": 350 });
    assert_eq!((&ends[0]["usage"], &ends[0]["durationMs"]), (&usage, &5000.into()));
    assert_eq!(ends[1]["error"], "Tool execution timed out");
    let error = told.iter().find_map(|kind| if let EventKind::Error(error) = kind { Some(error) } else { None });
    assert_eq!(error.unwrap().native_code.as_deref(), Some("EXECUTION_FAILED"));
}

/// The whole sample flow.
const FLOW: &str = r#"{"type":"init","timestamp":"2025-12-03T10:00:00.000Z","session_id":"abc123-def456","model":"gemini-2.0-flash-exp"}
{"type":"message","role":"user","content":"Analyze and refactor the auth module","timestamp":"2025-12-03T10:00:01.000Z"}
{"type":"tool_use","tool_name":"Bash","tool_id":"bash-001","parameters":{"command":"cat src/auth.ts"},"timestamp":"2025-12-03T10:00:02.000Z"}
{"type":"tool_result","tool_id":"bash-001","status":"success","output":"export function login() {...}","timestamp":"2025-12-03T10:00:03.000Z"}
{"type":"message","role":"assistant","content":"I found the login function. Let me make it async...","delta":true,"timestamp":"2025-12-03T10:00:04.000Z"}
{"type":"tool_use","tool_name":"write_file","tool_id":"write-001","parameters":{"file_path":"./src/auth.ts","content":"export async function login() {...}"},"timestamp":"2025-12-03T10:00:05.000Z"}
{"type":"tool_result","tool_id":"write-001","status":"success","timestamp":"2025-12-03T10:00:06.000Z"}
{"type":"message","role":"assistant","content":"Done! I've refactored the login function to be async.","timestamp":"2025-12-03T10:00:07.000Z"}
{"type":"result","status":"success","stats":{"total_tokens":350,"input_tokens":100,"output_tokens":250,"duration_ms":5000,"tool_calls":2},"timestamp":"2025-12-03T10:00:08.000Z"}"#;

#[test]
fn the_sample_flow() {
    let lines: Vec<&str> = FLOW.lines().collect();
    let told = told(&lines);
    insta::assert_snapshot!(told.iter().map(|kind| json(kind).to_string()).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_result_that_comes_before_its_call_is_told_once() {
    let result = r#"{"type":"tool_result","tool_id":"t","status":"success","output":"hi"}"#;
    let call = r#"{"type":"tool_use","tool_name":"echo","tool_id":"t","parameters":{}}"#;
    let told = types(&[result, call, result]);
    assert_eq!(told.iter().filter(|kind| kind.starts_with("tool")).collect::<Vec<_>>(), ["toolCompleted"]);
}

#[test]
fn a_message_that_comes_in_pieces_and_whole_is_told_once() {
    let told = told(&[
        r#"{"type":"message","role":"assistant","content":"Hel","delta":true}"#,
        r#"{"type":"message","role":"assistant","content":"lo","delta":true}"#,
        r#"{"type":"message","role":"assistant","content":"Hello"}"#,
    ]);
    let text: String = told
        .iter()
        .filter_map(|kind| if let EventKind::TextChunk(chunk) = kind { Some(chunk.content.as_str()) } else { None })
        .collect();
    assert_eq!(text, "Hello");
}

#[test]
fn every_line_of_the_published_gemini_schema_is_understood() {
    let schema = schema("gemini-event.schema.json");
    let fits = validator(&schema);
    let mut seen = 0;
    for variant in schema["oneOf"].as_array().unwrap() {
        for line in instances(variant).into_iter().filter(|line| fits.is_valid(line)) {
            let line = line.to_string();
            for kind in told(&[&line]) {
                assert_ne!(json(&kind)["type"], "unrecognized", "{line}");
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} lines were made");
}
