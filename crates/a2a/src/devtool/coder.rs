//! The `development-tool` extension in the dialect of Google's own server: another key, other words, other shapes.
//!
//! Used only for clients that have used this form themselves. Tool schemas are left out: we do not know them.

use serde_json::{Value, json};

use crate::devtool::{
    ConfirmationDetails, ConfirmationRequest, DevtoolEventKind, FileDiff, SlashCommand, ToolCall, ToolCallStatus,
    ToolOutput,
};
use crate::error::Error;
use crate::read::Node;
use crate::request::CommandExecute;
use crate::write::present;

/// The key of its objects in any `metadata`.
pub const KEY: &str = "coderAgent";

/// The kind of a client's settings.
pub const SETTINGS: &str = "agent-settings";

/// The kind of an event, as this dialect spells it.
pub fn event_kind(kind: DevtoolEventKind) -> &'static str {
    match kind {
        DevtoolEventKind::ToolCallConfirmation => "tool-call-confirmation",
        DevtoolEventKind::ToolCallUpdate => "tool-call-update",
        DevtoolEventKind::TextContent => "text-content",
        DevtoolEventKind::StateChange => "state-change",
        DevtoolEventKind::Thought => "thought",
    }
}

/// The metadata of an event, under [`KEY`].
pub fn metadata(kind: DevtoolEventKind) -> Value {
    json!({ "kind": event_kind(kind) })
}

/// The artifact to which a tool's output goes while it runs.
pub fn output_artifact_id(tool_call_id: &str) -> String {
    format!("tool-{tool_call_id}-output")
}

/// Facts about a call that the shipped shape has and a [`ToolCall`] of the specification lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beside<'a> {
    /// The prompt that caused the call.
    pub prompt_id: &'a str,
    /// Such as `read`, `edit`, `execute`, `search`, `fetch`, `think`; empty is `other`.
    pub tool_kind: &'a str,
    /// The outcome of the confirmation, once there is one.
    pub outcome: Option<&'a str>,
}

/// A tool call in the shipped shape.
pub fn tool_call(call: &ToolCall, beside: Beside<'_>) -> Value {
    let confirmation = call.confirmation_request.as_ref();
    Value::Object(present(json!({
        "request": request(call, beside.prompt_id),
        "status": status(call),
        "tool": tool(call, beside.tool_kind),
        "confirmationDetails": confirmation.map(|ask| confirmation_details(call, ask)),
        "liveOutput": call.live_content,
        "outcome": beside.outcome,
        "response": call.status.is_terminal().then(|| response(call)),
    })))
}

/// Status of a call, as Google's server names it.
pub fn status(call: &ToolCall) -> &'static str {
    match call.status {
        ToolCallStatus::StatusUnspecified => "validating",
        ToolCallStatus::Pending if call.confirmation_request.is_some() => "awaiting_approval",
        ToolCallStatus::Pending => "scheduled",
        ToolCallStatus::Executing => "executing",
        ToolCallStatus::Succeeded => "success",
        ToolCallStatus::Failed => "error",
        ToolCallStatus::Cancelled => "cancelled",
    }
}

fn request(call: &ToolCall, prompt_id: &str) -> Value {
    json!({
        "callId": call.tool_call_id,
        "name": call.tool_name,
        "args": call.input_parameters,
        "isClientInitiated": false,
        "prompt_id": prompt_id,
    })
}

fn tool(call: &ToolCall, kind: &str) -> Value {
    json!({
        "name": call.tool_name,
        "displayName": call.tool_name,
        "description": call.description.as_deref().unwrap_or_default(),
        "kind": if kind.is_empty() { "other" } else { kind },
        "isOutputMarkdown": false,
        "canUpdateOutput": call.live_content.is_some() || kind == "execute",
    })
}

fn confirmation_details(call: &ToolCall, ask: &ConfirmationRequest) -> Value {
    match &ask.details {
        ConfirmationDetails::ExecuteDetails(details) => {
            let roots = root_commands(&details.command);
            json!({
                "type": "exec",
                "title": "Confirm Shell Command",
                "command": details.command,
                "rootCommand": roots.join(", "),
                "rootCommands": roots,
            })
        }
        ConfirmationDetails::FileEditDetails(diff) => json!({
            "type": "edit",
            "title": format!("Confirm Edit: {}", diff.file_name),
            "fileName": diff.file_name,
            "filePath": diff.file_path,
            "fileDiff": diff.formatted_diff.as_deref().unwrap_or_default(),
            "originalContent": diff.old_content,
            "newContent": diff.new_content,
        }),
        ConfirmationDetails::McpDetails(details) => json!({
            "type": "mcp",
            "title": "Confirm MCP Tool Execution",
            "serverName": details.server_name,
            "toolName": details.tool_name,
            "toolDisplayName": details.tool_name,
        }),
        ConfirmationDetails::GenericDetails(details) => {
            let url = call.input_parameters.get("url").and_then(Value::as_str);
            Value::Object(present(json!({
                "type": "info",
                "title": format!("Confirm {}", call.tool_name),
                "prompt": details.description,
                "urls": url.map(|url| [url]),
            })))
        }
    }
}

/// The programs that a command line begins with, each once: for display, not for deciding whether it may run.
fn root_commands(command: &str) -> Vec<&str> {
    let mut roots = Vec::new();
    for piece in pieces(command) {
        let word = piece.split_whitespace().next().unwrap_or_default().trim_matches(['"', '\'', '(', ')', '{', '}']);
        let root = word.rsplit(['/', '\\']).next().unwrap_or_default();
        if !root.is_empty() && !roots.contains(&root) {
            roots.push(root);
        }
    }
    roots
}

/// Splits a command line between commands, but not inside quotes.
fn pieces(command: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut quote = None;
    let mut start = 0;
    let mut is_escaped = false;
    for (at, char) in command.char_indices() {
        match (quote, char) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), _) if open == char => quote = None,
            (None, '|' | '&' | ';' | '\n') => {
                pieces.extend(command.get(start..at));
                start = at + char.len_utf8();
            }
            (None | Some(_), _) => {}
        }
    }
    pieces.extend(command.get(start..));
    pieces
}

fn response(call: &ToolCall) -> Value {
    let (said, display) = match (&call.output, &call.error) {
        (_, Some(error)) => (json!({ "error": error.message }), json!(error.message)),
        (Some(output), None) => output_of(output),
        (None, None) if call.status == ToolCallStatus::Cancelled => {
            (json!({ "error": "[Operation Cancelled] Reason: User did not allow tool call" }), Value::Null)
        }
        (None, None) => (json!({ "output": "" }), Value::Null),
    };
    let length = said.as_object().and_then(|said| said.values().next()).and_then(Value::as_str).map(str::len);
    Value::Object(present(json!({
        "callId": call.tool_call_id,
        "responseParts": [{
            "functionResponse": { "id": call.tool_call_id, "name": call.tool_name, "response": said },
        }],
        "resultDisplay": display,
        "contentLength": length,
        "error": call.error.as_ref().map(|error| json!({ "message": error.message })),
        "errorType": call.error.as_ref().and_then(|error| error.r#type.as_ref()),
    })))
}

/// The output for the model, and the output to show.
fn output_of(output: &ToolOutput) -> (Value, Value) {
    match output {
        ToolOutput::Text(text) => (json!({ "output": text }), json!(text)),
        ToolOutput::Diff(diff) => (json!({ "output": format!("Wrote {}", diff.file_path) }), file_diff(diff)),
        ToolOutput::StructuredData(data) => {
            let text = Value::Object(data.clone()).to_string();
            (json!({ "output": text }), json!(text))
        }
    }
}

fn file_diff(diff: &FileDiff) -> Value {
    json!({
        "fileDiff": diff.formatted_diff.as_deref().unwrap_or_default(),
        "fileName": diff.file_name,
        "filePath": diff.file_path,
        "originalContent": diff.old_content,
        "newContent": diff.new_content,
    })
}

/// The answer to `GET /listCommands`, in which a sub-command has its whole path as its name.
pub fn command_list(commands: &[SlashCommand]) -> Value {
    json!({ "commands": commands.iter().map(|command| listed(command, "")).collect::<Vec<_>>() })
}

fn listed(command: &SlashCommand, above: &str) -> Value {
    let name = format!("{above}{}", command.name);
    let below = format!("{name} ");
    let arguments = command.arguments.iter().map(|argument| {
        json!({ "name": argument.name, "description": argument.description, "isRequired": argument.is_required })
    });
    json!({
        "name": name,
        "description": command.description,
        "arguments": arguments.collect::<Vec<_>>(),
        "subCommands": command.sub_commands.iter().map(|sub| listed(sub, &below)).collect::<Vec<_>>(),
    })
}

/// The body of `POST /executeCommand`: `{"command": "memory show", "args": []}`.
pub fn read_command(body: &Value) -> Result<CommandExecute, Error> {
    let node = Node::of_client("body", body)?;
    let command = node.id("command")?;
    let command_path: Vec<_> = command.trim().trim_start_matches('/').split_whitespace().map(str::to_owned).collect();
    if command_path.is_empty() {
        return Err(node.wrong_field("command", "must name a command, such as \"memory show\""));
    }
    Ok(CommandExecute {
        command_path,
        args: node.strings("args")?.join(" "),
        context_id: node.any_string(&["contextId", "context_id"])?,
    })
}
