//! Tool calls of `stream-json`: `tool_use` and `tool_result`, or both in one.

use std::path::Path;

use multitap_diff::of_file;
use multitap_event::{FileChange, FileChangeType, Timestamp, TodoItem, TodoList, ToolOutcome};
use serde_json::Value;

use super::decode::StreamCodec;
use super::name;
use super::wire::{Failure, ToolCall, ToolResult, ToolUse};
use crate::codec::Step;
use crate::emit::{OpenTool, ToolEnd, todo_status};
use crate::json::{JsonFields as _, text_of};

impl StreamCodec {
    pub(super) fn tool_use(&mut self, call: ToolUse, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        self.emit.messages.pause();
        let arguments = call.parameters.unwrap_or_default();
        let title = Some(name::title(&call.tool_name, &arguments));
        self.emit.tools.start(OpenTool { title, arguments, ..open_tool(&call.tool_id, &call.tool_name, now) }, out);
    }

    pub(super) fn tool_result(&mut self, result: ToolResult, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        self.emit.messages.pause();
        let success = result.status != "error";
        let tool = self.emit.tools.take(&result.tool_id, out);
        let said = result.output.as_ref().map(text_of).filter(|text| !text.is_empty());
        let Failure { kind, message } = result.error.unwrap_or_default();
        let outcome = match kind.as_deref() {
            _ if success => ToolOutcome::Completed,
            Some("policy_violation" | "permission_denied") => ToolOutcome::Denied,
            _ if self.emit.turns.is_cancelling() => ToolOutcome::Cancelled,
            _ => ToolOutcome::Failed,
        };
        let done = tool.as_ref().filter(|_| success);
        let end = ToolEnd {
            changes: done.and_then(|tool| change(tool, said.as_deref(), self)).into_iter().collect(),
            todos: done.and_then(todos),
            error: Some(message.or(said).or(kind).unwrap_or_else(|| "the agent did not say why".to_owned())),
            result: result.output,
            ..ToolEnd::of(outcome)
        };
        match tool {
            Some(tool) => self.emit.end_tool(&tool, end, now, out),
            // A result of a call that has ended already adds nothing.
            None => {
                self.emit.tools.end_unbegun(&result.tool_id, end, out);
            }
        }
    }

    /// A call with its result in one line.
    pub(super) fn whole_call(&mut self, call: ToolCall, now: Timestamp, out: &mut Step) {
        let call = match call.value {
            Some(inner) => *inner,
            None => call,
        };
        let tool_name = call.name.unwrap_or_else(|| "tool".to_owned());
        self.calls += 1;
        let tool_id = call.id.unwrap_or_else(|| format!("{tool_name}-{}", self.calls));
        let failed = call.error.as_ref().is_some_and(|error| !error.is_null());
        let status = if failed { "error".to_owned() } else { call.status.unwrap_or_default() };
        let message = call.error.as_ref().map(|error| error.string("message").unwrap_or_else(|| text_of(error)));
        self.tool_use(ToolUse { tool_name, tool_id: tool_id.clone(), parameters: call.args }, now, out);
        let error = message.map(|message| Failure { kind: None, message: Some(message) });
        self.tool_result(ToolResult { tool_id, status, output: call.result, error }, now, out);
    }
}

/// A call that begins, with the facts that its name tells.
pub(super) fn open_tool(id: &str, tool: &str, now: Timestamp) -> OpenTool<()> {
    let server = name::mcp(tool, None).map(|(server, _)| server.to_owned());
    OpenTool { server, ..OpenTool::new(id, tool, name::kind(tool), now) }
}

/// The change that a file tool made. Gemini does not report it here, so it is reconstructed from the call.
fn change(tool: &OpenTool<()>, said: Option<&str>, codec: &StreamCodec) -> Option<FileChange> {
    let text = |key: &str| tool.arguments.text(key);
    let path = text("file_path").or(text("absolute_path"))?;
    let (before, after, created) = match tool.name.as_str() {
        "write_file" => (None, text("content")?, said.is_some_and(|said| said.contains("created"))),
        "replace" => (Some(text("old_string")?), text("new_string")?, text("old_string") == Some("")),
        _ => return None,
    };
    // Part of a line is shown as a whole line.
    let line = |text: &str| if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    let whole = match before {
        Some(_) => codec.files.read(Path::new(path)),
        None => Some(after.to_owned()),
    };
    let diff = match before {
        Some(before) => Some(of_file(path, Some(&line(before)), &line(after))),
        None if created => Some(of_file(path, None, after)),
        None => None,
    };
    let change_type = if created { FileChangeType::Created } else { FileChangeType::Modified };
    let diff = diff.filter(|diff| !diff.is_empty());
    Some(FileChange { diff, after: whole, ..FileChange::of(path, change_type, &tool.id) })
}

pub(super) fn todos(tool: &OpenTool<()>) -> Option<TodoList> {
    if tool.name != "write_todos" {
        return None;
    }
    let item = |todo: &Value| {
        let text = todo.string("description").or_else(|| todo.string("content"))?;
        Some(TodoItem { text, status: todo_status(todo.text("status")), id: None })
    };
    let todos = tool.arguments.field("todos").and_then(Value::as_array)?;
    Some(TodoList { items: todos.iter().filter_map(item).collect(), explanation: None })
}
