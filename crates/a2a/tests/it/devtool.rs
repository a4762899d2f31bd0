//! The `development-tool` extension: settings and decisions in every shape, events in the shipped one.

use multitap_a2a::devtool::coder::{self, Beside};
use multitap_a2a::devtool::{
    AgentSettings, ConfirmationDetails, ConfirmationOption, ConfirmationRequest, DevtoolEventKind, EditKind,
    ErrorDetails, ExecuteDetails, FileDiff, GenericDetails, McpDetails, SlashArgument, SlashCommand, Spelling,
    ToolCall, ToolCallConfirmation, ToolCallStatus, ToolOutput, URI,
};
use multitap_a2a::{CommandExecute, ErrorKind, Map};
use proptest::prelude::*;
use serde_json::{Value, json};

fn metadata(key: &str, value: Value) -> Map {
    Map::from_iter([("other".to_owned(), json!(1)), (key.to_owned(), value)])
}

#[test]
fn settings_are_found_under_either_key() {
    let expected = AgentSettings {
        workspace_path: Some("/w".to_owned()),
        auto_execute: None,
        more: Map::from_iter([("allowedTools".to_owned(), json!(["read_file"]))]),
    };
    for key in ["workspace_path", "workspacePath"] {
        let found = AgentSettings::find(&metadata(URI, json!({ key: "/w", "allowedTools": ["read_file"] })));
        assert_eq!(found.unwrap(), Some((expected.clone(), Spelling::Specified)));
    }
    let shipped = json!({ "kind": "agent-settings", "workspacePath": "/w", "autoExecute": true, "isTrusted": true });
    let settings = AgentSettings { workspace_path: Some("/w".to_owned()), auto_execute: Some(true), more: Map::new() };
    let found = AgentSettings::find(&metadata("coderAgent", shipped)).unwrap();
    assert_eq!(found, Some((settings, Spelling::Coder)), "and nobody is trusted for saying so");
}

#[test]
fn settings_may_be_absent_but_not_of_the_wrong_type() {
    assert_eq!(AgentSettings::find(&Map::new()).unwrap(), None);
    assert_eq!(AgentSettings::find(&metadata(URI, json!(null))).unwrap(), None);
    assert_eq!(AgentSettings::find(&metadata("coderAgent", json!({ "kind": "thought" }))).unwrap(), None);
    let check = |value: Value, message: &str| {
        let error = AgentSettings::find(&metadata(URI, value)).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidParams, message));
    };
    check(json!("/w"), "AgentSettings: must be an object, not a string");
    check(json!({ "workspace_path": 1 }), "workspace_path: must be a string, not a number");
    check(
        json!({ "workspace_path": "/a", "workspacePath": "/b" }),
        "workspacePath: says something else than workspace_path",
    );
    check(json!({ "autoExecute": "yes" }), "autoExecute: must be true or false, not a string");
}

fn decision() -> ToolCallConfirmation {
    ToolCallConfirmation {
        tool_call_id: "call".to_owned(),
        selected_option_id: "proceed_once".to_owned(),
        ..ToolCallConfirmation::default()
    }
}

#[test]
fn a_decision_is_read_from_every_shape() {
    let check = |value: Value, expected: ToolCallConfirmation| {
        assert_eq!(ToolCallConfirmation::read(&value).unwrap(), expected, "{value}");
    };
    check(json!({ "tool_call_id": "call", "selected_option_id": "proceed_once" }), decision());
    check(json!({ "toolCallId": "call", "selectedOptionId": "proceed_once", "modified_details": null }), decision());
    let edited = ToolCallConfirmation { new_content: Some("new".to_owned()), ..decision() };
    let inner = [json!({ "new_content": "new" }), json!({ "newContent": "new" })];
    for details in inner {
        for (more, edit_kind) in [
            (json!({ "file_details": details }), Some(EditKind::File)),
            (json!({ "fileDetails": details }), Some(EditKind::File)),
            (json!({ "modified_details": { "file_details": details } }), Some(EditKind::File)),
            (json!({ "modifiedDetails": { "fileDetails": details } }), Some(EditKind::File)),
            (json!({ "modified_details": details }), None),
            (details.clone(), None),
        ] {
            let mut value = json!({ "tool_call_id": "call", "selected_option_id": "proceed_once" });
            value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            check(value, ToolCallConfirmation { edit_kind, ..edited.clone() });
        }
    }
    let command = json!({ "execute_details": { "command": "ls -l" } });
    check(
        json!({ "tool_call_id": "call", "selected_option_id": "proceed_once", "modified_details": command }),
        ToolCallConfirmation {
            new_content: Some("ls -l".to_owned()),
            edit_kind: Some(EditKind::Command),
            ..decision()
        },
    );
    let file = json!({ "new_content": "new", "file_path": "/w/a" });
    for details in [json!({ "file_details": file }), json!({ "modified_details": { "file_details": file } })] {
        let mut value = json!({ "tool_call_id": "call", "selected_option_id": "proceed_once" });
        value.as_object_mut().unwrap().extend(details.as_object().unwrap().clone());
        let (edit_target, edit_kind) = (Some("/w/a".to_owned()), Some(EditKind::File));
        check(value.clone(), ToolCallConfirmation { edit_target, edit_kind, ..edited.clone() });
        value["fileDetails"] = json!({ "newContent": "new", "filePath": "/w/b" });
        assert!(ToolCallConfirmation::read(&value).unwrap_err().to_string().contains("another file"), "{value}");
    }
    check(
        json!({ "callId": "call", "outcome": "proceed_once", "newContent": "new" }),
        ToolCallConfirmation { is_coder: true, ..edited },
    );
    check(
        json!({ "tool_call_id": "call", "selected_option_id": "proceed_once", "feedback": "not so",
            "answers": { "which": "b" }, "correlationId": "q1" }),
        ToolCallConfirmation {
            feedback: Some("not so".to_owned()),
            answers: Some(Map::from_iter([("which".to_owned(), json!("b"))])),
            correlation_id: Some("q1".to_owned()),
            ..decision()
        },
    );
}

#[test]
fn a_decision_that_is_not_clear_is_refused() {
    let ok = |more: Value| {
        let mut value = json!({ "tool_call_id": "call", "selected_option_id": "proceed_once" });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    let table = [
        (json!("proceed_once"), "ToolCallConfirmation: must be an object, not a string"),
        (json!({}), "tool_call_id: is missing"),
        (json!({ "tool_call_id": "" , "selected_option_id": "x" }), "tool_call_id: must not be empty"),
        (json!({ "tool_call_id": 7, "selected_option_id": "x" }), "tool_call_id: must be a string, not a number"),
        (json!({ "tool_call_id": "call" }), "selected_option_id: is missing"),
        (json!({ "callId": "call" }), "outcome: is missing"),
        (json!({ "callId": "call", "outcome": true }), "outcome: must be a string, not a boolean"),
        (json!({ "callId": "call", "outcome": "" }), "outcome: must not be empty"),
        (ok(json!({ "callId": "other" })), "callId: says something else than tool_call_id"),
        (ok(json!({ "outcome": "cancel" })), "outcome: says something else than selected_option_id"),
        (ok(json!({ "new_content": 1 })), "new_content: must be a string, not a number"),
        (ok(json!({ "file_details": "x" })), "file_details: must be an object, not a string"),
        (ok(json!({ "file_details": {} })), "file_details.new_content: is missing"),
        (ok(json!({ "modified_details": {} })), "modified_details: must hold file_details with new_content"),
        (
            ok(json!({ "modified_details": { "mcp_details": {} } })),
            "modified_details: must hold file_details with new_content",
        ),
        (
            ok(json!({ "new_content": "a", "file_details": { "new_content": "b" } })),
            "file_details: says something else than before",
        ),
        (
            ok(
                json!({ "modified_details": { "file_details": { "new_content": "a" }, "execute_details": { "command": "b" } } }),
            ),
            "modified_details.execute_details: says something else than before",
        ),
        (
            ok(json!({ "file_details": { "new_content": "a" }, "execute_details": { "command": "a" } })),
            "execute_details: says something else than before",
        ),
        (ok(json!({ "answers": ["b"] })), "answers: must be an object, not a list"),
        (ok(json!({ "feedback": {} })), "feedback: must be a string, not an object"),
        (
            ok(json!({ "correlation_id": "a", "correlationId": "b" })),
            "correlationId: says something else than correlation_id",
        ),
    ];
    for (value, message) in table {
        let error = ToolCallConfirmation::read(&value).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidParams, message), "{value}");
    }
    // The word "false" is a string like any other: an option's id, which whoever knows the options will not find.
    let word = ToolCallConfirmation::read(&json!({ "callId": "call", "outcome": "false" })).unwrap();
    assert_eq!(word.selected_option_id, "false");
}

proptest! {
    #[test]
    fn a_decision_is_read_as_it_was_written(
        (tool_call_id, selected_option_id) in ("[a-z0-9]{1,8}", "[a-z_]{1,12}"),
        new_content in proptest::option::of(".*"),
        feedback in proptest::option::of(".*"),
        correlation_id in proptest::option::of("[a-z]{1,4}"),
        is_command in any::<bool>(),
    ) {
        let edit_kind = new_content.as_ref().map(|_| if is_command { EditKind::Command } else { EditKind::File });
        let decision = ToolCallConfirmation {
            tool_call_id, selected_option_id, new_content, feedback, correlation_id, answers: None, edit_target: None,
            edit_kind, is_coder: false,
        };
        prop_assert_eq!(ToolCallConfirmation::read(&decision.write()).unwrap(), decision);
    }
}

fn call(status: ToolCallStatus) -> ToolCall {
    ToolCall {
        tool_call_id: "c1".to_owned(),
        status,
        tool_name: "run_shell_command".to_owned(),
        description: Some("list files".to_owned()),
        input_parameters: Map::from_iter([("command".to_owned(), json!("ls"))]),
        live_content: None,
        output: None,
        error: None,
        confirmation_request: None,
    }
}

fn asked(details: ConfirmationDetails) -> ToolCall {
    let option = ConfirmationOption { id: "cancel".to_owned(), name: "No".to_owned(), description: None };
    let request = ConfirmationRequest { options: vec![option], details };
    ToolCall { confirmation_request: Some(request), ..call(ToolCallStatus::Pending) }
}

fn diff() -> FileDiff {
    FileDiff {
        file_name: "a.txt".to_owned(),
        file_path: "/w/a.txt".to_owned(),
        old_content: None,
        new_content: "x".to_owned(),
        formatted_diff: Some("+x".to_owned()),
    }
}

const BESIDE: Beside<'static> = Beside { prompt_id: "p1", tool_kind: "execute", outcome: None };

#[test]
fn a_tool_call_in_the_shipped_shape() {
    let details = ExecuteDetails { command: "cd \"a;b\" && /bin/ls | wc; ls".to_owned(), working_directory: None };
    assert_eq!(
        coder::tool_call(&asked(ConfirmationDetails::ExecuteDetails(details)), BESIDE),
        json!({
            "request": { "callId": "c1", "name": "run_shell_command", "args": { "command": "ls" },
                "isClientInitiated": false, "prompt_id": "p1" },
            "status": "awaiting_approval",
            "tool": { "name": "run_shell_command", "displayName": "run_shell_command", "description": "list files",
                "kind": "execute", "isOutputMarkdown": false, "canUpdateOutput": true },
            "confirmationDetails": { "type": "exec", "title": "Confirm Shell Command",
                "command": "cd \"a;b\" && /bin/ls | wc; ls", "rootCommand": "cd, ls, wc",
                "rootCommands": ["cd", "ls", "wc"] },
        })
    );
}

#[test]
fn each_kind_of_question_in_the_shipped_shape() {
    let shipped = |details| coder::tool_call(&asked(details), BESIDE)["confirmationDetails"].clone();
    assert_eq!(
        shipped(ConfirmationDetails::FileEditDetails(diff())),
        json!({ "type": "edit", "title": "Confirm Edit: a.txt", "fileName": "a.txt", "filePath": "/w/a.txt",
            "fileDiff": "+x", "originalContent": null, "newContent": "x" })
    );
    let mcp = McpDetails { server_name: "s".to_owned(), tool_name: "t".to_owned() };
    assert_eq!(
        shipped(ConfirmationDetails::McpDetails(mcp)),
        json!({ "type": "mcp", "title": "Confirm MCP Tool Execution", "serverName": "s", "toolName": "t",
            "toolDisplayName": "t" })
    );
    let generic = GenericDetails { description: "fetch a page".to_owned() };
    assert_eq!(
        shipped(ConfirmationDetails::GenericDetails(generic)),
        json!({ "type": "info", "title": "Confirm run_shell_command", "prompt": "fetch a page" })
    );
}

#[test]
fn the_life_of_a_call_in_the_shipped_words() {
    let words = [
        (ToolCallStatus::StatusUnspecified, "validating"),
        (ToolCallStatus::Pending, "scheduled"),
        (ToolCallStatus::Executing, "executing"),
        (ToolCallStatus::Succeeded, "success"),
        (ToolCallStatus::Failed, "error"),
        (ToolCallStatus::Cancelled, "cancelled"),
    ];
    for (status, word) in words {
        let shipped = coder::tool_call(&call(status), BESIDE);
        assert_eq!(shipped["status"], word);
        assert_eq!(shipped.get("response").is_some(), status.is_terminal(), "{word}");
    }
    let running = ToolCall { live_content: Some("a\nb".to_owned()), ..call(ToolCallStatus::Executing) };
    let decided = Beside { outcome: Some("proceed_once"), ..BESIDE };
    let shipped = coder::tool_call(&running, decided);
    assert_eq!((&shipped["liveOutput"], &shipped["outcome"]), (&json!("a\nb"), &json!("proceed_once")));
}

#[test]
fn the_result_of_a_call_in_the_shipped_shape() {
    let response = |call: &ToolCall| coder::tool_call(call, BESIDE)["response"].clone();
    let text = ToolCall { output: Some(ToolOutput::Text("out".to_owned())), ..call(ToolCallStatus::Succeeded) };
    assert_eq!(
        response(&text),
        json!({ "callId": "c1", "responseParts": [{ "functionResponse": { "id": "c1", "name": "run_shell_command",
            "response": { "output": "out" } } }], "resultDisplay": "out", "contentLength": 3 })
    );
    let written = ToolCall { output: Some(ToolOutput::Diff(diff())), ..call(ToolCallStatus::Succeeded) };
    assert_eq!(response(&written)["resultDisplay"]["newContent"], "x");
    let error = ErrorDetails { message: "no".to_owned(), r#type: Some("shell".to_owned()), status_code: None };
    let failed = response(&ToolCall { error: Some(error), ..call(ToolCallStatus::Failed) });
    assert_eq!((&failed["error"]["message"], &failed["errorType"]), (&json!("no"), &json!("shell")));
    assert_eq!(failed["responseParts"][0]["functionResponse"]["response"], json!({ "error": "no" }));
}

#[test]
fn event_kinds_have_their_shipped_words() {
    assert_eq!(coder::metadata(DevtoolEventKind::ToolCallConfirmation), json!({ "kind": "tool-call-confirmation" }));
    assert_eq!(coder::metadata(DevtoolEventKind::ToolCallUpdate), json!({ "kind": "tool-call-update" }));
    assert_eq!(coder::metadata(DevtoolEventKind::TextContent), json!({ "kind": "text-content" }));
    assert_eq!(coder::metadata(DevtoolEventKind::StateChange), json!({ "kind": "state-change" }));
    assert_eq!(coder::metadata(DevtoolEventKind::Thought), json!({ "kind": "thought" }));
    assert_eq!(coder::output_artifact_id("c1"), "tool-c1-output");
}

#[test]
fn commands_in_the_shipped_shape() {
    let argument = SlashArgument { name: "text".to_owned(), description: "what".to_owned(), is_required: true };
    let add = SlashCommand {
        name: "add".to_owned(),
        description: "adds".to_owned(),
        arguments: vec![argument],
        sub_commands: Vec::new(),
    };
    let memory = SlashCommand {
        name: "memory".to_owned(),
        description: "keeps".to_owned(),
        arguments: Vec::new(),
        sub_commands: vec![add],
    };
    assert_eq!(
        coder::command_list(&[memory]),
        json!({ "commands": [{ "name": "memory", "description": "keeps", "arguments": [], "subCommands": [
            { "name": "memory add", "description": "adds", "subCommands": [],
              "arguments": [{ "name": "text", "description": "what", "isRequired": true }] }
        ] }] })
    );
    let read = coder::read_command(&json!({ "command": "/memory add", "args": ["a", "b c"] })).unwrap();
    let expected = CommandExecute {
        command_path: vec!["memory".to_owned(), "add".to_owned()],
        args: "a b c".to_owned(),
        context_id: None,
    };
    assert_eq!(read, expected);
    let refused = |value| coder::read_command(&value).unwrap_err().message;
    assert_eq!(refused(json!({})), "command: is missing");
    assert_eq!(refused(json!({ "command": " / " })), "command: must name a command, such as \"memory show\"");
    assert_eq!(refused(json!({ "command": "x", "args": "y" })), "args: must be a list, not a string");
}

#[test]
fn a_tool_call_of_the_specification_is_read_in_either_case() {
    let snake = serde_json::to_value(asked(ConfirmationDetails::FileEditDetails(diff()))).unwrap();
    assert_eq!(
        snake,
        json!({ "tool_call_id": "c1", "status": "PENDING", "tool_name": "run_shell_command",
            "description": "list files", "input_parameters": { "command": "ls" },
            "confirmation_request": { "options": [{ "id": "cancel", "name": "No" }],
                "file_edit_details": { "file_name": "a.txt", "file_path": "/w/a.txt", "new_content": "x",
                    "formatted_diff": "+x" } } })
    );
    let camel = json!({ "toolCallId": "c1", "status": "PENDING", "toolName": "run_shell_command",
        "description": "list files", "inputParameters": { "command": "ls" },
        "confirmationRequest": { "options": [{ "id": "cancel", "name": "No" }],
            "fileEditDetails": { "fileName": "a.txt", "filePath": "/w/a.txt", "newContent": "x",
                "formattedDiff": "+x" } } });
    let read: ToolCall = serde_json::from_value(camel).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), snake);
}
