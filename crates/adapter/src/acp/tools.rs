//! Tool calls: `tool_call`, `tool_call_update`, and those that only a question shows.

use multitap_event::{Timestamp, ToolKind, ToolOutcome, one_line};
use serde_json::Value;

use super::content::{Change, Shown, made};
use super::decode::AcpCodec;
use super::wire::ToolCall;
use crate::codec::Step;
use crate::emit::{OpenTool, ToolEnd, Tools};
use crate::json::JsonFields as _;

/// Data about an open call that only this codec needs.
#[derive(Debug, Default)]
pub(super) struct Native {
    /// The protocol's word for the kind of call.
    pub(super) kind: String,
    pub(super) shown: Shown,
    /// The changes that the permission question showed.
    pub(super) foreseen: Vec<Change>,
    /// The part of the text that was reported as progress.
    progress: String,
    terminal: String,
    exit_code: Option<i32>,
    output: Option<Value>,
}

impl AcpCodec {
    pub(super) fn tool_call(&mut self, call: ToolCall, now: Timestamp, out: &mut Step) {
        if self.emit.tools.is_over(&call.tool_call_id) {
            self.late(call, out);
            return;
        }
        self.at_work(now, out);
        self.emit.messages.pause();
        let id = call.tool_call_id.clone();
        let before = self.emit.tools.find(&id).map(|tool| tool.arguments.clone());
        let status = call.status.clone();
        self.merge(call, now);
        let after = self.emit.tools.find(&id).map(|tool| &tool.arguments);
        // Content that comes with the call or with its arguments describes the call; it is not output yet.
        let is_output = before.as_ref() == after;
        match status.as_deref() {
            Some("completed") => self.tool_ended(&id, true, now, out),
            Some("failed" | "cancelled") => self.tool_ended(&id, false, now, out),
            status => {
                // An agent may announce a call before it knows the arguments: then the start is reported later.
                if status == Some("in_progress") || self.is_told_enough(&id) {
                    self.emit.tools.report(&id, out);
                }
                self.progress(&id, is_output, out);
            }
        }
    }

    /// Whether enough is known of a call to report its start.
    fn is_told_enough(&self, id: &str) -> bool {
        self.emit.tools.find(id).is_some_and(|tool| {
            let shown = &tool.native.shown;
            // For a command, an agent may know only the folder at first.
            let has_arguments = match tool.kind {
                ToolKind::Shell => tool.arguments.contains_key("command"),
                _ => !tool.arguments.is_empty(),
            };
            has_arguments || !shown.text.is_empty() || !shown.changes.is_empty()
        })
    }

    /// Updates a call from a message, or begins it if it is new.
    pub(super) fn merge(&mut self, call: ToolCall, now: Timestamp) {
        let flavor = self.flavor;
        let shown =
            Shown::of(call.content.as_deref().unwrap_or_default(), call.locations.as_deref().unwrap_or_default());
        let name = flavor.tool_name(&call);
        let kind = call.kind.clone().unwrap_or_else(|| "other".to_owned());
        if self.emit.tools.find(&call.tool_call_id).is_none() {
            let named = name.clone().unwrap_or_else(|| kind.clone());
            let tool = OpenTool::new(call.tool_call_id.as_str(), named, ToolKind::Other, now);
            self.emit.tools.begin(OpenTool { native: Native { kind, ..Native::default() }, ..tool });
        }
        let Some(tool) = self.emit.tools.find_mut(&call.tool_call_id) else { return };
        if let Some(name) = name {
            tool.name = name;
        }
        if let Some(kind) = &call.kind {
            tool.native.kind.clone_from(kind);
        }
        let server = flavor.mcp(&tool.name, call.title.as_deref()).map(|(server, _)| server);
        tool.server = server.or(tool.server.take());
        tool.kind = match tool.server {
            Some(_) => ToolKind::Mcp,
            None => flavor.tool_kind(&tool.native.kind, &tool.name),
        };
        let arguments = flavor.arguments(&call, &shown, tool.server.is_some());
        if !arguments.is_empty() {
            tool.arguments = arguments;
        }
        if let Some(title) = call.title.as_deref().map(one_line).filter(|title| !title.is_empty()) {
            tool.title = Some(title);
        }
        if call.content.is_some() {
            tool.native.shown = shown;
        }
        tool.native.output = call.raw_output.filter(|value| !value.is_null()).or(tool.native.output.take());
        let meta = &call.meta;
        tool.parent = meta.field("claudeCode").text("parentToolUseId").map(Into::into).or(tool.parent.take());
        tool.native.terminal.push_str(meta.field("terminal_output").text("data").unwrap_or_default());
        let exit_code = meta.field("terminal_exit").field("exit_code").and_then(Value::as_i64);
        tool.native.exit_code = exit_code.and_then(|code| code.try_into().ok()).or(tool.native.exit_code);
    }

    /// Emits the new content of a running call.
    fn progress(&mut self, id: &str, is_output: bool, out: &mut Step) {
        let Some(tool) = self.emit.tools.find_mut(id) else { return };
        let now = if tool.native.terminal.is_empty() { &tool.native.shown.text } else { &tool.native.terminal };
        let news = now.strip_prefix(tool.native.progress.as_str()).unwrap_or(now).to_owned();
        let is_output = tool.reported && (is_output || !tool.native.terminal.is_empty());
        if news.is_empty() {
            return;
        }
        tool.native.progress.clone_from(now);
        if is_output {
            self.emit.tools.output(id, &news, out);
        }
    }

    fn tool_ended(&mut self, id: &str, success: bool, now: Timestamp, out: &mut Step) {
        let Some(tool) = self.emit.tools.take(id, out) else { return };
        let native = &tool.native;
        let text = if native.shown.text.is_empty() { &native.terminal } else { &native.shown.text };
        let stopped = self.flavor.was_stopped(text, self.emit.turns.is_cancelling());
        let exit_code = native.exit_code.or_else(|| exit_code(native.output.as_ref()?));
        let exit_code = exit_code.filter(|_| tool.kind == ToolKind::Shell);
        // Some agents report every command that ended as a success.
        let success = success && !stopped && exit_code.is_none_or(|code| code == 0);
        let outcome = match success {
            true => ToolOutcome::Completed,
            false if tool.denied || self.flavor.was_denied(text) => ToolOutcome::Denied,
            false if stopped || self.emit.turns.is_cancelling() => ToolOutcome::Cancelled,
            false => ToolOutcome::Failed,
        };
        // If the end of a call shows no change, the approved change was made.
        let changes = if native.shown.changes.is_empty() { &native.foreseen } else { &native.shown.changes };
        let changes = if success { made(changes, &native.foreseen, &tool.id, self.files.as_ref()) } else { Vec::new() };
        let said = if text.is_empty() { native.output.clone() } else { Some(Value::from(text.as_str())) };
        let error = match &said {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => "the agent did not say why".to_owned(),
        };
        let end = ToolEnd { result: said, error: Some(error), exit_code, changes, ..ToolEnd::of(outcome) };
        self.emit.end_tool(&tool, end, now, out);
    }

    fn late(&mut self, call: ToolCall, out: &mut Step) {
        let shown = Shown::of(call.content.as_deref().unwrap_or_default(), &[]);
        let result = Some(shown.text).filter(|text| !text.is_empty()).map(Value::from);
        let data = [("status", call.status.map(Value::from)), ("result", result)];
        Tools::<Native>::late(&call.tool_call_id, data, out);
    }
}

fn exit_code(output: &Value) -> Option<i32> {
    let reported = ["/exitCode", "/exit_code", "/metadata/exit"];
    i32::try_from(reported.into_iter().find_map(|at| output.pointer(at)?.as_i64())?).ok()
}
