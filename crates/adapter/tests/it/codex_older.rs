//! The shapes that an older description of Codex's stream gives, and those of its stored sessions.

use multitap_adapter::{Codec as _, CodexCodec};
use multitap_event::{
    Command, Decide, Details, EventKind, FileChangeType, SessionEndReason, ToolKind, ToolOutcome, TurnStatus,
};
use serde_json::{Value, json};

use crate::recording::{events, now, play_as};
use crate::schema::Schemas;
use crate::shown::shown;

/// The events of some lines, and the end that follows them.
fn told(lines: &[&str]) -> Vec<EventKind> {
    let events = events(play_as(&mut CodexCodec::recorded(), lines.iter().copied(), false));
    Schemas::new().check(&lines.join("\n"), &events);
    events.into_iter().map(|event| event.kind).collect()
}

/// The types of the events, without the session's beginning and end.
fn types(lines: &[&str]) -> Vec<String> {
    let kinds =
        told(lines).into_iter().map(|kind| serde_json::to_value(kind).unwrap()["type"].as_str().unwrap().to_owned());
    kinds.filter(|kind| kind != "sessionStarted" && kind != "sessionEnded").collect()
}

fn item(phase: &str, item: &Value) -> String {
    json!({ "type": format!("item.{phase}"), "item": item }).to_string()
}

/// An item's whole life.
fn life(fields: &Value) -> Vec<EventKind> {
    let mut begun = fields.clone();
    begun["status"] = "in_progress".into();
    let lines = [item("started", &begun), item("updated", &begun), item("completed", fields)];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let told = told(&lines);
    told.into_iter().filter(|kind| !matches!(kind, EventKind::SessionStarted(_) | EventKind::SessionEnded(_))).collect()
}

#[test]
fn the_flow_of_the_description() {
    let lines = [
        r#"{"type":"thread.started","thread_id":"sess_abc123"}"#,
        r#"{"type":"turn.started"}"#,
        r#"{"type":"item.started","item":{"id":"1","type":"reasoning","text":""}}"#,
        r#"{"type":"item.updated","item":{"id":"1","type":"reasoning","text":"I need to analyze the auth module first..."}}"#,
        r#"{"type":"item.completed","item":{"id":"1","type":"reasoning","text":"I need to analyze the auth module first..."}}"#,
        r#"{"type":"item.started","item":{"id":"2","type":"command_execution","command":"cat src/auth.ts","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
        r#"{"type":"item.updated","item":{"id":"2","type":"command_execution","command":"cat src/auth.ts","aggregated_output":"export function login() {...","exit_code":null,"status":"in_progress"}}"#,
        r#"{"type":"item.completed","item":{"id":"2","type":"command_execution","command":"cat src/auth.ts","aggregated_output":"export function login() {...","exit_code":0,"status":"completed"}}"#,
        r#"{"type":"item.started","item":{"id":"3","type":"file_change","changes":[{"path":"src/auth.ts","kind":"update"}],"status":"in_progress"}}"#,
        r#"{"type":"item.completed","item":{"id":"3","type":"file_change","changes":[{"path":"src/auth.ts","kind":"update"}],"status":"completed"}}"#,
        r#"{"type":"item.started","item":{"id":"4","type":"agent_message","text":""}}"#,
        r#"{"type":"item.updated","item":{"id":"4","type":"agent_message","text":"I've refactored the login function to be async."}}"#,
        r#"{"type":"item.completed","item":{"id":"4","type":"agent_message","text":"I've refactored the login function to be async."}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":1250,"cached_input_tokens":500,"output_tokens":487}}"#,
    ];
    insta::assert_snapshot!(shown(&events(play_as(&mut CodexCodec::recorded(), lines, false))));
}

#[test]
fn each_row_of_the_translation_table() {
    let end = |lines: &[&str]| match told(lines).pop() {
        Some(EventKind::SessionEnded(end)) => end.reason,
        other => panic!("{other:#?}"),
    };
    let start = told(&[r#"{"type":"thread.started","thread_id":"sess_abc123xyz"}"#]);
    assert!(
        matches!(&start[0], EventKind::SessionStarted(start) if start.native_session_id.as_deref() == Some("sess_abc123xyz"))
    );
    assert_eq!(end(&[r#"{"type":"thread.started","thread_id":"s"}"#]), SessionEndReason::Completed);
    assert_eq!(
        types(&[
            r#"{"type":"turn.started"}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":2}}"#
        ]),
        ["turnStarted", "turnCompleted"]
    );

    let message = |text: &str| json!({ "id": "item_001", "type": "agent_message", "text": text });
    let parts = [
        item("started", &message("")),
        item("updated", &message("I'll help")),
        item("completed", &message("I'll help you")),
    ];
    assert_eq!(types(&parts.each_ref().map(String::as_str)), ["textChunk", "textChunk"]);
    assert_eq!(types(&[&parts[2]]), ["textChunk"]);
    let thought = json!({ "id": "item_005", "type": "reasoning", "text": "I need to analyze..." });
    assert_eq!(types(&[&item("updated", &thought)]), ["reasoning"]);
    assert_eq!(types(&[&item("completed", &thought)]), ["reasoning"]);

    let kinds = |told: &[EventKind]| {
        told.iter()
            .map(|kind| serde_json::to_value(kind).unwrap()["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let command = json!({ "id": "item_002", "type": "command_execution", "command": "npm test", "aggregated_output": "[PASS]\n", "exit_code": 0, "status": "completed" });
    assert_eq!(kinds(&life(&command)), ["toolStarted", "toolProgress", "toolCompleted"]);
    let change = json!({ "id": "item_003", "type": "file_change", "changes": [{ "path": "src/auth.ts", "kind": "update" }], "status": "completed" });
    assert_eq!(kinds(&life(&change)), ["toolStarted", "fileChanged", "toolCompleted"]);
    let call = json!({ "id": "item_004", "type": "mcp_tool_call", "server": "database", "tool": "query", "arguments": { "sql": "SELECT" }, "result": { "content": [{ "type": "text", "text": "[]" }], "structured_content": null }, "error": null, "status": "completed" });
    let told_of_call = life(&call);
    assert_eq!(kinds(&told_of_call), ["toolStarted", "toolProgress", "toolCompleted"]);
    assert!(
        matches!(&told_of_call[0], EventKind::ToolStarted(tool) if tool.tool_kind == ToolKind::Mcp && tool.server.as_deref() == Some("database"))
    );
    assert!(matches!(&told_of_call[2], EventKind::ToolCompleted(tool) if tool.result == Some(json!("[]"))));
    let search = json!({ "id": "item_006", "type": "web_search", "query": "typescript async await" });
    let told_of_search = life(&search);
    assert_eq!(kinds(&told_of_search), ["toolStarted", "toolProgress", "toolCompleted"]);
    assert!(
        matches!(&told_of_search[0], EventKind::ToolStarted(tool) if tool.tool_kind == ToolKind::Search && tool.arguments["query"] == "typescript async await")
    );
    let todo = json!({ "id": "item_007", "type": "todo_list", "items": [{ "text": "Analyze", "completed": true }, { "text": "Refactor", "completed": false }] });
    assert_eq!(kinds(&life(&todo)), ["todoList"]);
    let error = json!({ "id": "item_008", "type": "error", "message": "Command exited with non-zero status" });
    assert_eq!(kinds(&life(&error)), ["error"]);

    let failed = r#"{"type":"turn.failed","error":{"message":"Tool execution failed: permission denied"}}"#;
    assert_eq!(end(&[r#"{"type":"turn.started"}"#, failed]), SessionEndReason::Failed);
    assert_eq!(types(&[r#"{"type":"turn.started"}"#, failed]), ["turnStarted", "error", "turnCompleted"]);
    assert_eq!(end(&[r#"{"type":"error","message":"Session terminated unexpectedly"}"#]), SessionEndReason::Failed);
    assert_eq!(types(&[r#"{"type":"error","message":"Reconnecting... 1/5"}"#]), ["retry"]);
}

#[test]
fn other_names_for_a_command_and_every_status() {
    for alias in ["command_execution", "tool_call", "shell"] {
        for (status, outcome) in [
            ("completed", ToolOutcome::Completed),
            ("success", ToolOutcome::Completed),
            ("failed", ToolOutcome::Failed),
            ("declined", ToolOutcome::Denied),
            ("skipped", ToolOutcome::Cancelled),
        ] {
            let told = life(&json!({ "id": "1", "type": alias, "command": "npm test", "status": status }));
            let [EventKind::ToolStarted(tool), EventKind::ToolCompleted(done)] = told.as_slice() else {
                panic!("{told:#?}")
            };
            assert_eq!((tool.tool_kind, tool.arguments["command"].as_str()), (ToolKind::Shell, Some("npm test")));
            assert_eq!((done.outcome, done.success), (outcome, outcome == ToolOutcome::Completed), "{status}");
        }
    }
}

#[test]
fn every_kind_of_change() {
    for (kind, change) in
        [("add", FileChangeType::Created), ("delete", FileChangeType::Deleted), ("update", FileChangeType::Modified)]
    {
        let item = json!({ "id": "1", "type": "file_change", "changes": [{ "path": "a.txt", "kind": kind }], "status": "completed" });
        assert!(matches!(&life(&item)[1], EventKind::FileChanged(made) if made.change_type == change));
    }
    let edit = json!({ "id": "1", "type": "file_edit", "file_path": "a.txt", "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n", "status": "completed" });
    let told = life(&edit);
    assert!(
        matches!(&told[1], EventKind::FileChanged(made) if made.file_path == "a.txt" && made.diff.as_deref().unwrap().contains("+y"))
    );
}

#[test]
fn an_older_approval_is_asked_and_answered_its_way() {
    let line = r#"{"type":"approval.required","id":"approval_001","turn_id":"turn_001","action_type":"shell","description":"Run: npm test","tool_name":"bash","tool_input":{"command":"npm test"},"command":"npm test","file_path":null}"#;
    for (option, feedback, decision) in [
        ("proceed_once", None, json!({ "approval_id": "approval_001", "decision": "allow" })),
        ("proceed_always", None, json!({ "approval_id": "approval_001", "decision": "allow_always" })),
        ("cancel", Some("no"), json!({ "approval_id": "approval_001", "decision": "deny", "message": "no" })),
        ("cancel_always", None, json!({ "approval_id": "approval_001", "decision": "deny_always" })),
    ] {
        let mut codec = CodexCodec::recorded();
        let asked = codec.decode(line, now());
        let Some(EventKind::PermissionAsked(question)) = asked.events.last() else { panic!("{asked:#?}") };
        assert!(matches!(&question.details, Details::Command { command, .. } if command == "npm test"));
        let mut decide = Decide::new(&question.question_id, option);
        decide.feedback = feedback.map(str::to_owned);
        let step = codec.encode(Command::Decide(decide), now());
        let reply: Value = serde_json::from_str(&step.lines[0]).unwrap();
        assert_eq!(reply["method"], "respondToApproval");
        assert_eq!(reply["params"], decision);
    }
    for (kind, details) in [("file_write", "fileEdit"), ("file_read", "text"), ("mcp_tool", "mcp")] {
        let line = json!({ "type": "approval.required", "id": "a", "action_type": kind, "description": "x", "tool_input": { "path": "p" } });
        let asked = CodexCodec::recorded().decode(&line.to_string(), now());
        let asked = serde_json::to_value(asked.events.last()).unwrap();
        assert_eq!(asked["details"]["type"], details);
    }
}

#[test]
fn a_stored_session_reads_like_a_live_one() {
    let lines = [
        r#"{"timestamp":"2026-11-15T08:59:08.620Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a1","id":"01a1","cwd":"/w","originator":"x","cli_version":"0.166.0","source":"exec","model_provider":"fake","base_instructions":{"text":"long"}}}"#,
        r#"{"timestamp":"","type":"event_msg","payload":{"type":"task_started","turn_id":"t1","started_at":1}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n</environment_context>"}]}}"#,
        r#"{"timestamp":"","type":"world_state","payload":{"full":true}}"#,
        r#"{"timestamp":"","type":"turn_context","payload":{"turn_id":"t1","cwd":"/w","approval_policy":"never","sandbox_policy":{"type":"read-only"},"model":"gpt-5.5"}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"make it"}]}}"#,
        r#"{"timestamp":"","type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"UserMessage","id":"u1","content":[{"type":"text","text":"make it","text_elements":[]}]}}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"touch made.txt\"}","call_id":"c1"}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"Chunk ID: 48cf91\nWall time: 0.0 seconds\nProcess exited with code 1\nOriginal token count: 14\nOutput:\ntouch: no\n"}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"c2","name":"apply_patch","input":"*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: old.txt\n@@\n-a\n+b\n*** End Patch\n"}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":"Exit code: 0\nOutput:\nSuccess. Updated the following files:\nA new.txt\n"}}"#,
        r#"{"timestamp":"","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":100,"cached_input_tokens":0,"output_tokens":10,"total_tokens":110},"last_token_usage":{"input_tokens":100,"cached_input_tokens":0,"output_tokens":10,"total_tokens":110},"model_context_window":258400}}}"#,
        r#"{"timestamp":"","type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","id":"m1","content":[{"type":"Text","text":"done"}]}}}"#,
        r#"{"timestamp":"","type":"response_item","payload":{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"done"}]}}"#,
        r#"{"timestamp":"","type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","last_agent_message":"done","duration_ms":361}}"#,
    ];
    insta::assert_snapshot!(shown(&events(play_as(&mut CodexCodec::recorded(), lines, false))));
}

#[test]
fn an_older_stored_session_lists_its_messages() {
    let told = told(&[
        r#"{"type":"session_meta","payload":{"id":"sess_abc123xyz","cwd":"/path/to/project","timestamp":"2025-01-15T10:30:00Z","model_provider":"openai","git":{"branch":"main","remote_url":"https://github.com/user/repo.git"}}}"#,
        r#"{"type":"event_msg","payload":{"type":"user_message","message":"Analyze the authentication module"}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Analyze the authentication module"}]}}"#,
        r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I'll analyze the authentication module for you."}]}}"#,
        r#"{"type":"event_msg","payload":{"type":"agent_message","message":"I'll analyze the authentication module for you."}}"#,
        r#"{"type":"event_msg","payload":{"type":"exec_command_begin","call_id":"c","command":["bash","-lc","ls"],"cwd":"/p"}}"#,
        r#"{"type":"event_msg","payload":{"type":"exec_command_end","call_id":"c","stdout":"a\n","exit_code":0}}"#,
        r#"{"type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}"#,
    ]);
    let said: Vec<String> = told
        .iter()
        .filter_map(|kind| match kind {
            EventKind::UserMessage(message) => Some(format!("user: {}", message.content)),
            EventKind::TextChunk(chunk) => Some(format!("agent: {}", chunk.content)),
            EventKind::ToolCompleted(tool) => Some(format!("tool: {}", tool.result.clone().unwrap())),
            EventKind::TurnCompleted(end) => Some(format!("turn: {:?}", end.status)),
            _ => None,
        })
        .collect();
    assert_eq!(
        said,
        [
            "user: Analyze the authentication module",
            "agent: I'll analyze the authentication module for you.",
            "tool: \"a\\n\"",
            &format!("turn: {:?}", TurnStatus::Cancelled),
        ]
    );
}

#[test]
fn tokens_are_counted_by_the_older_notification_too() {
    let told = told(&[
        r#"{"method":"thread/started","params":{"thread":{"id":"t"}}}"#,
        r#"{"method":"turn/started","params":{"threadId":"t","turn":{"id":"1"}}}"#,
        r#"{"method":"codex/event/token_count","params":{"msg":{"type":"token_count","info":{"total_token_usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10},"last_token_usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}}}"#,
        r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"1","status":"completed"}}}"#,
    ]);
    assert!(
        told.iter().any(|kind| matches!(kind, EventKind::TurnCompleted(end) if end.usage.unwrap().total_tokens == 10))
    );
}
