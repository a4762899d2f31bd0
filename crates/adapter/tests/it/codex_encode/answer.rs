//! Answers to Codex's questions, as the lines it takes.

use multitap_adapter::{Codec as _, Step};
use multitap_event::{Command, Decide, EventKind, Question};
use serde_json::{Value, json};

use super::{in_a_turn, shown};
use crate::recording::now;

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

/// Without its item, a request has neither paths nor diffs.
#[test]
fn a_patch_without_its_item_says_that_the_files_are_unknown() {
    let request = json!({ "method": "item/fileChange/requestApproval", "id": 1, "params": { "threadId": "t1", "turnId": "turn1", "itemId": "c9", "reason": "write outside", "grantRoot": "/etc" } });
    let mut codec = in_a_turn();
    let asked = question(codec.decode(&request.to_string(), now()));
    assert_eq!(asked.title, "Change files that Codex did not name");
    let details = json!({
        "type": "text",
        "text": "Codex did not say which files it would change, or how.",
        "arguments": { "reason": "write outside", "grantRoot": "/etc" },
    });
    assert_eq!(serde_json::to_value(&asked.details).unwrap(), details);
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
