//! The published description of the three streams: each of its samples, the types it lists, and the one table that says
//! which native lines mean the same (R002-93, R002-94, R002-118 to R002-120).

use multitap_adapter::{Codec, recorded};
use multitap_event::{AgentType, Draft, EventKind};
use serde_json::{Value, json};

use crate::invariants::check;
use crate::recording::{events, fixtures, play_as, recordings};
use crate::schema::Schemas;

const CLIS: [AgentType; 3] = [AgentType::Claude, AgentType::Codex, AgentType::Gemini];

fn codec(agent: AgentType) -> Box<dyn Codec> {
    recorded(agent).unwrap()
}

fn play(agent: AgentType, lines: &[&str]) -> Vec<Draft> {
    play_as(codec(agent).as_mut(), lines.iter().copied(), true)
}

/// The samples of the description, with the heading each stands under.
fn samples(agent: AgentType) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(fixtures(&format!("description/{agent}.jsonl"))).unwrap();
    let sample = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        (sample["sample"].as_str().unwrap().to_owned(), sample["line"].as_str().unwrap().to_owned())
    };
    text.lines().map(sample).collect()
}

/// The types of the events, without the session's beginning and end.
fn types(told: &[Draft]) -> Vec<String> {
    let kinds =
        told.iter().map(|draft| serde_json::to_value(&draft.kind).unwrap()["type"].as_str().unwrap().to_owned());
    kinds.filter(|kind| kind != "sessionEnded").collect()
}

fn check_understood(from: &str, lines: &[&str], told: Vec<Draft>, schemas: &Schemas) {
    let unknown = told.iter().find(|draft| matches!(draft.kind, EventKind::Unrecognized { .. }));
    assert_eq!(unknown, None, "{from}: everything is understood");
    check(from, &lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), &told);
    schemas.check(from, &events(told));
}

/// Alone, and one after the other as if an agent had written them all.
#[test]
fn every_sample_is_understood() {
    let schemas = Schemas::new();
    for agent in CLIS {
        let samples = samples(agent);
        for (name, line) in &samples {
            let lines = [line.as_str()];
            check_understood(&format!("{agent}: {name}"), &lines, play(agent, &lines), &schemas);
        }
        let lines: Vec<&str> = samples.iter().map(|(_, line)| line.as_str()).collect();
        check_understood(&format!("{agent}: all"), &lines, play(agent, &lines), &schemas);
    }
}

/// A type of the catalogue, and the fields that it is said to have.
type Listed = (&'static str, &'static [&'static str]);

const CLAUDE: &[Listed] = &[
    ("system", &["/subtype"]),
    ("system:init", &["/session_id", "/tools", "/model", "/permissionMode"]),
    ("system:compact_boundary", &["/compact_metadata"]),
    ("system:status", &["/status"]),
    ("system:hook_response", &["/hook_name"]),
    ("user", &["/message", "/parent_tool_use_id", "/isSynthetic"]),
    ("assistant", &["/message", "/parent_tool_use_id", "/error"]),
    ("tool_use", &["/id", "/name", "/input"]),
    ("tool_result", &["/tool_use_id", "/content", "/is_error"]),
    ("tool_progress", &["/tool_use_id", "/tool_name", "/elapsed_time_seconds"]),
    ("result", &["/subtype", "/usage", "/modelUsage", "/permission_denials"]),
    ("error", &["/error/type", "/error/message"]),
    ("stream_event", &["/event", "/parent_tool_use_id"]),
    ("auth_status", &["/isAuthenticating", "/output"]),
];

const CODEX: &[Listed] = &[
    ("thread.started", &["/thread_id"]),
    ("turn.started", &[]),
    ("turn.completed", &["/usage"]),
    ("turn.failed", &["/error/message"]),
    ("error", &["/message"]),
    ("item.started", &["/item/id", "/item/type"]),
    ("item.updated", &["/item/id", "/item/type"]),
    ("item.completed", &["/item/id", "/item/type"]),
    ("agent_message", &["/text"]),
    ("reasoning", &["/text"]),
    ("command_execution", &["/command", "/aggregated_output", "/exit_code", "/status"]),
    ("file_change", &["/changes/0/path", "/changes/0/kind", "/status"]),
    ("mcp_tool_call", &["/server", "/tool", "/arguments", "/result", "/error", "/status"]),
    ("web_search", &["/query"]),
    ("todo_list", &["/items/0/text", "/items/0/completed"]),
    ("command_execution=in_progress", &[]),
    ("command_execution=completed", &[]),
    ("command_execution=failed", &[]),
    ("command_execution=declined", &[]),
    ("command_execution=skipped", &[]),
];

const GEMINI: &[Listed] = &[
    ("init", &["/session_id", "/model", "/timestamp"]),
    ("message", &["/role", "/content", "/delta", "/timestamp"]),
    ("tool_use", &["/tool_name", "/tool_id", "/parameters", "/timestamp"]),
    ("tool_result", &["/tool_id", "/status", "/output", "/error", "/timestamp"]),
    ("result", &["/status", "/stats", "/timestamp", "/error"]),
    ("error", &["/severity", "/message", "/timestamp"]),
    ("error=warning", &[]),
    ("error=error", &[]),
];

/// Whether an object is of a listed type: `type`, `type:subtype`, or `type=status`.
fn is_listed(object: &Value, listed: &str) -> bool {
    let (kind, key, word) = match listed.split_once([':', '=']) {
        Some((kind, word)) if listed.contains(':') => (kind, "subtype", Some(word)),
        Some((kind @ "error", word)) => (kind, "severity", Some(word)),
        Some((kind, word)) => (kind, "status", Some(word)),
        None => (listed, "", None),
    };
    object["type"] == kind && word.is_none_or(|word| object[key] == word)
}

/// Every object of a listed type in a line, however deep.
fn found<'a>(value: &'a Value, listed: &str, into: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            if is_listed(value, listed) {
                into.push(value);
            }
            map.values().for_each(|value| found(value, listed, into));
        }
        Value::Array(list) => list.iter().for_each(|value| found(value, listed, into)),
        _ => {}
    }
}

/// For each type and field that the description lists there is a line with it, recorded or given; and what such a line
/// becomes is told here.
#[test]
fn the_catalogue_is_complete() {
    let mut told = String::new();
    for (agent, listed) in CLIS.into_iter().zip([CLAUDE, CODEX, GEMINI]) {
        let recorded = recordings(agent.as_str()).into_iter().flat_map(|recording| recording.lines);
        let lines: Vec<String> = samples(agent).into_iter().map(|(_, line)| line).chain(recorded).collect();
        let values: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for (kind, fields) in listed {
            let mut objects = Vec::new();
            values.iter().for_each(|value| found(value, kind, &mut objects));
            assert!(!objects.is_empty(), "{agent}: no line has a {kind}");
            for field in *fields {
                let has = objects.iter().any(|object| object.pointer(field).is_some());
                assert!(has, "{agent}: no {kind} has {field}");
            }
            let first = values.iter().find(|value| {
                let mut objects = Vec::new();
                found(value, kind, &mut objects);
                !objects.is_empty()
            });
            let became = types(&play(agent, &[&first.unwrap().to_string()]));
            told += &format!("{agent} {kind}: {}\n", became.join(" "));
        }
    }
    insta::assert_snapshot!(told);
}

/// One thing that can happen, the lines that say so in each stream, and the event it is in all of them. Nothing for a
/// stream that has no such thing.
struct Same {
    what: &'static str,
    lines: [Option<&'static [&'static str]>; 3],
    event: &'static str,
    with: Value,
}

fn same() -> Vec<Same> {
    const CLAUDE_USE: &str = r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}}"#;
    const CODEX_USE: &str = r#"{"type":"item.started","item":{"id":"t","type":"command_execution","command":"ls","aggregated_output":"","status":"in_progress"}}"#;
    const GEMINI_USE: &str =
        r#"{"type":"tool_use","tool_name":"run_shell_command","tool_id":"t","parameters":{"command":"ls"}}"#;
    const CLAUDE_SAID: &str =
        r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hello"}]}}"#;
    let row = |what, claude, codex, gemini, event, with| Same { what, lines: [claude, codex, gemini], event, with };
    vec![
        row(
            "the session begins",
            Some(&[r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#]),
            Some(&[r#"{"type":"thread.started","thread_id":"s"}"#]),
            Some(&[r#"{"type":"init","session_id":"s","model":"m"}"#]),
            "sessionStarted",
            json!({ "nativeSessionId": "s" }),
        ),
        row(
            "a turn ends well",
            Some(&[CLAUDE_SAID, r#"{"type":"result","subtype":"success","is_error":false}"#]),
            Some(&[r#"{"type":"turn.started"}"#, r#"{"type":"turn.completed","usage":{}}"#]),
            Some(&[r#"{"type":"result","status":"success"}"#]),
            "turnCompleted",
            json!({ "status": "completed" }),
        ),
        row(
            "a turn fails",
            Some(&[r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["no"]}"#]),
            Some(&[r#"{"type":"turn.started"}"#, r#"{"type":"turn.failed","error":{"message":"no"}}"#]),
            Some(&[r#"{"type":"result","status":"error","error":{"type":"X","message":"no"}}"#]),
            "turnCompleted",
            json!({ "status": "failed" }),
        ),
        row(
            "the session ends well",
            Some(&[r#"{"type":"result","subtype":"success","is_error":false}"#]),
            Some(&[r#"{"type":"turn.started"}"#, r#"{"type":"turn.completed","usage":{}}"#]),
            Some(&[r#"{"type":"result","status":"success"}"#]),
            "sessionEnded",
            json!({ "reason": "completed" }),
        ),
        row(
            "the session fails",
            Some(&[r#"{"type":"error","error":{"type":"x","message":"no"}}"#]),
            Some(&[r#"{"type":"error","message":"no"}"#]),
            Some(&[r#"{"type":"error","severity":"error","message":"no"}"#]),
            "sessionEnded",
            json!({ "reason": "failed", "error": "no" }),
        ),
        row(
            "text",
            Some(&[CLAUDE_SAID]),
            Some(&[r#"{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"hello"}}"#]),
            Some(&[r#"{"type":"message","role":"assistant","content":"hello"}"#]),
            "textChunk",
            json!({ "content": "hello", "isPartial": false }),
        ),
        row(
            "a piece of text",
            Some(&[
                r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}}"#,
                r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}"#,
                r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}}"#,
            ]),
            Some(&[r#"{"type":"item.updated","item":{"id":"m","type":"agent_message","text":"hel"}}"#]),
            Some(&[r#"{"type":"message","role":"assistant","content":"hel","delta":true}"#]),
            "textChunk",
            json!({ "content": "hel", "isPartial": true }),
        ),
        row(
            "a thought",
            Some(&[
                r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}}"#,
            ]),
            Some(&[r#"{"type":"item.completed","item":{"id":"r","type":"reasoning","text":"hm"}}"#]),
            None,
            "reasoning",
            json!({ "content": "hm" }),
        ),
        row(
            "a command begins",
            Some(&[CLAUDE_USE]),
            Some(&[CODEX_USE]),
            Some(&[GEMINI_USE]),
            "toolStarted",
            json!({ "toolId": "t", "toolKind": "shell" }),
        ),
        row(
            "a command goes on",
            Some(&[
                CLAUDE_USE,
                r#"{"type":"tool_progress","tool_use_id":"t","tool_name":"Bash","elapsed_time_seconds":2}"#,
            ]),
            Some(&[
                CODEX_USE,
                r#"{"type":"item.updated","item":{"id":"t","type":"command_execution","command":"ls","aggregated_output":"a","status":"in_progress"}}"#,
            ]),
            None,
            "toolProgress",
            json!({ "toolId": "t" }),
        ),
        row(
            "a tool ends well",
            Some(&[
                CLAUDE_USE,
                r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}}"#,
            ]),
            Some(&[
                CODEX_USE,
                r#"{"type":"item.completed","item":{"id":"t","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":0,"status":"completed"}}"#,
            ]),
            Some(&[GEMINI_USE, r#"{"type":"tool_result","tool_id":"t","status":"success","output":"a"}"#]),
            "toolCompleted",
            json!({ "toolId": "t", "success": true, "outcome": "completed", "result": "a" }),
        ),
        row(
            "a tool fails",
            Some(&[
                CLAUDE_USE,
                r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]}}"#,
            ]),
            Some(&[
                CODEX_USE,
                r#"{"type":"item.completed","item":{"id":"t","type":"command_execution","command":"ls","aggregated_output":"no","exit_code":1,"status":"failed"}}"#,
            ]),
            Some(&[
                GEMINI_USE,
                r#"{"type":"tool_result","tool_id":"t","status":"error","error":{"type":"x","message":"no"}}"#,
            ]),
            "toolCompleted",
            json!({ "toolId": "t", "success": false, "outcome": "failed" }),
        ),
        row(
            "a tool is denied",
            Some(&[
                CLAUDE_USE,
                r#"{"type":"system","subtype":"permission_denied","tool_use_id":"t","tool_name":"Bash"}"#,
                r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]}}"#,
            ]),
            Some(&[
                CODEX_USE,
                r#"{"type":"item.completed","item":{"id":"t","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"declined"}}"#,
            ]),
            Some(&[
                GEMINI_USE,
                r#"{"type":"tool_result","tool_id":"t","status":"error","error":{"type":"policy_violation","message":"no"}}"#,
            ]),
            "toolCompleted",
            json!({ "toolId": "t", "success": false, "outcome": "denied" }),
        ),
        row(
            "a list of tasks",
            Some(&[
                r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"TodoWrite","input":{"todos":[{"content":"look","status":"completed"}]}}]}}"#,
                r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}"#,
            ]),
            Some(&[
                r#"{"type":"item.completed","item":{"id":"l","type":"todo_list","items":[{"text":"look","completed":true}]}}"#,
            ]),
            Some(&[
                r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"t","parameters":{"todos":[{"description":"look","status":"completed"}]}}"#,
                r#"{"type":"tool_result","tool_id":"t","status":"success","output":"ok"}"#,
            ]),
            "todoList",
            json!({ "items": [{ "text": "look", "status": "completed" }] }),
        ),
        row(
            "tokens",
            Some(&[
                r#"{"type":"result","subtype":"success","is_error":false,"usage":{"input_tokens":3,"output_tokens":4}}"#,
            ]),
            Some(&[
                r#"{"type":"turn.started"}"#,
                r#"{"type":"turn.completed","usage":{"input_tokens":3,"cached_input_tokens":0,"output_tokens":4}}"#,
            ]),
            Some(&[
                r#"{"type":"result","status":"success","stats":{"total_tokens":7,"input_tokens":3,"output_tokens":4,"duration_ms":1}}"#,
            ]),
            "sessionEnded",
            json!({ "finalUsage": { "inputTokens": 3, "outputTokens": 4, "totalTokens": 7 } }),
        ),
        row(
            "a warning",
            None,
            Some(&[r#"{"type":"item.completed","item":{"id":"e","type":"error","message":"careful"}}"#]),
            Some(&[r#"{"type":"error","severity":"warning","message":"careful"}"#]),
            "error",
            json!({ "severity": "warning", "message": "careful" }),
        ),
    ]
}

/// Whether everything in `part` is in `whole`.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => whole == part,
    }
}

#[test]
fn the_same_thing_is_the_same_event_whoever_says_it() {
    let schemas = Schemas::new();
    for Same { what, lines, event, with } in same() {
        for (agent, lines) in CLIS.into_iter().zip(lines).filter_map(|(agent, lines)| Some((agent, lines?))) {
            let told = play(agent, lines);
            let kinds: Vec<Value> = told.iter().map(|draft| serde_json::to_value(&draft.kind).unwrap()).collect();
            let of_type: Vec<&Value> = kinds.iter().filter(|kind| kind["type"] == event).collect();
            let fits = of_type.iter().filter(|kind| contains(kind, &with)).count();
            assert_eq!(fits, 1, "{what}, {agent}: no {event} with {with} in {kinds:#?}");
            assert_eq!(of_type.len(), 1, "{what}, {agent}: one {event} in {kinds:#?}");
            check_understood(&format!("{what}, {agent}"), lines, told, &schemas);
        }
    }
}
