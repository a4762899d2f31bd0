//! Tool calls: `tool_call`, `tool_call_update`, and those that only a question shows.

use multitap_event::{EventKind, Timestamp, ToolCompleted, ToolKind, ToolOutcome, ToolProgress};
use serde_json::{Map, Value};

use super::content::{Change, Shown, made};
use super::decode::{AcpCodec, note};
use super::wire::ToolCall;
use crate::codec::Step;
use crate::track::OpenTool;
use crate::words::one_line;

/// What is kept beside an open call.
#[derive(Debug, Default)]
pub(super) struct More {
    /// The protocol's word for what sort it is.
    pub(super) kind: String,
    pub(super) shown: Shown,
    /// The changes as they were shown when somebody was asked.
    pub(super) foreseen: Vec<Change>,
    /// How much of the text was told as progress.
    progress: String,
    /// What its terminal showed.
    terminal: String,
    exit_code: Option<i32>,
    output: Option<Value>,
}

impl AcpCodec {
    pub(super) fn tool_call(&mut self, call: ToolCall, now: Timestamp, out: &mut Step) {
        if self.tools.is_over(&call.tool_call_id) {
            self.late(call, out);
            return;
        }
        self.at_work(now, out);
        self.texts.pause();
        let id = call.tool_call_id.clone();
        let before = self.tools.find(&id).map(|tool| tool.arguments.clone());
        let status = call.status.clone();
        self.merge(call, now);
        let after = self.tools.find(&id).map(|tool| &tool.arguments);
        // What comes with the call itself, or with more of its arguments, is about the call: nothing came of it yet.
        let is_output = before.as_ref() == after;
        match status.as_deref() {
            Some("completed") => self.tool_ended(&id, true, now, out),
            Some("failed" | "cancelled") => self.tool_ended(&id, false, now, out),
            status => {
                // An agent may announce a call before it knows with what: then the start waits for that.
                if status == Some("in_progress") || self.is_told_enough(&id) {
                    self.tools.tell(&id, out);
                }
                self.progress(&id, is_output, out);
            }
        }
    }

    /// Whether enough is known of a call to tell its start.
    fn is_told_enough(&self, id: &str) -> bool {
        self.tools.find(id).is_some_and(|tool| {
            let shown = &tool.more.shown;
            // Of a command the folder alone may be known at first.
            let has_arguments = match tool.kind {
                ToolKind::Shell => tool.arguments.contains_key("command"),
                _ => !tool.arguments.is_empty(),
            };
            has_arguments || !shown.text.is_empty() || !shown.changes.is_empty()
        })
    }

    /// Takes over what a message says of a call; it begins if it is new.
    pub(super) fn merge(&mut self, call: ToolCall, now: Timestamp) {
        let flavor = self.flavor;
        let shown =
            Shown::of(call.content.as_deref().unwrap_or_default(), call.locations.as_deref().unwrap_or_default());
        let name = flavor.tool_name(&call);
        let kind = call.kind.clone().unwrap_or_else(|| "other".to_owned());
        if self.tools.find(&call.tool_call_id).is_none() {
            self.tools.begin(OpenTool {
                id: call.tool_call_id.as_str().into(),
                name: name.clone().unwrap_or_else(|| kind.clone()),
                kind: ToolKind::Other,
                title: None,
                arguments: Map::new(),
                server: None,
                parent: None,
                started: now,
                denied: false,
                told: false,
                more: More { kind, ..More::default() },
            });
        }
        let Some(tool) = self.tools.find_mut(&call.tool_call_id) else { return };
        if let Some(name) = name {
            tool.name = name;
        }
        if let Some(kind) = &call.kind {
            tool.more.kind.clone_from(kind);
        }
        let server = flavor.mcp(&tool.name, call.title.as_deref()).map(|(server, _)| server);
        tool.server = server.or(tool.server.take());
        tool.kind = match tool.server {
            Some(_) => ToolKind::Mcp,
            None => flavor.tool_kind(&tool.more.kind, &tool.name),
        };
        let arguments = flavor.arguments(&call, &shown, tool.server.is_some());
        if !arguments.is_empty() {
            tool.arguments = arguments;
        }
        if let Some(title) = call.title.as_deref().map(one_line).filter(|title| !title.is_empty()) {
            tool.title = Some(title);
        }
        if call.content.is_some() {
            tool.more.shown = shown;
        }
        tool.more.output = call.raw_output.filter(|value| !value.is_null()).or(tool.more.output.take());
        if let Some(meta) = call.meta {
            tool.parent =
                meta.claude.and_then(|claude| claude.parent_tool_use_id).map(Into::into).or(tool.parent.take());
            tool.more.terminal.push_str(meta.terminal_output.map(|output| output.data).unwrap_or_default().as_str());
            tool.more.exit_code = meta.terminal_exit.and_then(|exit| exit.exit_code).or(tool.more.exit_code);
        }
    }

    /// Tells what a running call shows beyond what it showed.
    fn progress(&mut self, id: &str, is_output: bool, out: &mut Step) {
        let Some(tool) = self.tools.find_mut(id) else { return };
        let now = if tool.more.terminal.is_empty() { &tool.more.shown.text } else { &tool.more.terminal };
        let news = now.strip_prefix(tool.more.progress.as_str()).unwrap_or(now).to_owned();
        let is_output = tool.told && (is_output || !tool.more.terminal.is_empty());
        if news.is_empty() {
            return;
        }
        tool.more.progress.clone_from(now);
        if is_output {
            let tool_id = tool.id.clone();
            out.events.push(EventKind::ToolProgress(ToolProgress { output: Some(news), ..ToolProgress::of(tool_id) }));
        }
    }

    fn tool_ended(&mut self, id: &str, success: bool, now: Timestamp, out: &mut Step) {
        let Some(tool) = self.tools.take(id, out) else { return };
        self.questions.withdraw_about(id, out);
        let more = &tool.more;
        let text = if more.shown.text.is_empty() { &more.terminal } else { &more.shown.text };
        let stopped = self.flavor.was_stopped(text, self.turns.is_cancelling());
        let exit_code = more.exit_code.or_else(|| exit_code(more.output.as_ref()?));
        let exit_code = exit_code.filter(|_| tool.kind == ToolKind::Shell);
        // To some agents a command that ended has ended well.
        let success = success && !stopped && exit_code.is_none_or(|code| code == 0);
        let outcome = match success {
            true => ToolOutcome::Completed,
            false if tool.denied || self.flavor.was_denied(text) => ToolOutcome::Denied,
            false if stopped || self.turns.is_cancelling() => ToolOutcome::Cancelled,
            false => ToolOutcome::Failed,
        };
        if outcome == ToolOutcome::Denied {
            self.tools.refused(&tool);
        }
        if success {
            // Where the end shows no change, what was approved was made.
            let changes = if more.shown.changes.is_empty() { &more.foreseen } else { &more.shown.changes };
            let changes = made(changes, &more.foreseen, &tool.id, self.files.as_ref());
            out.events.extend(changes.into_iter().map(EventKind::FileChanged));
        }
        let said = if text.is_empty() { more.output.clone() } else { Some(Value::from(text.as_str())) };
        out.events.push(EventKind::ToolCompleted(ToolCompleted {
            tool_id: tool.id,
            success,
            outcome,
            error: (!success).then(|| match &said {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => "the agent did not say why".to_owned(),
            }),
            result: said.filter(|_| success),
            exit_code,
            duration_ms: self.session.is_live().then(|| now.millis_since(tool.started)),
        }));
    }

    /// News of a call that is over already.
    fn late(&mut self, call: ToolCall, out: &mut Step) {
        let shown = Shown::of(call.content.as_deref().unwrap_or_default(), &[]);
        let mut data = Map::from_iter([("toolId".to_owned(), Value::from(call.tool_call_id))]);
        data.extend(call.status.map(|status| ("status".to_owned(), status.into())));
        data.extend(Some(shown.text).filter(|text| !text.is_empty()).map(|text| ("result".to_owned(), text.into())));
        out.events.push(note("lateToolResult", None, data));
    }
}

fn exit_code(output: &Value) -> Option<i32> {
    let told = ["/exitCode", "/exit_code", "/metadata/exit"];
    i32::try_from(told.into_iter().find_map(|at| output.pointer(at)?.as_i64())?).ok()
}
