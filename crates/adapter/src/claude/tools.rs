//! Tool calls from their start to their one end.

use std::collections::{HashMap, HashSet};

use multitap_event::{EventKind, Timestamp, ToolCompleted, ToolId, ToolKind, ToolOutcome, ToolProgress, ToolStarted};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::change;
use super::decode::{ClaudeCodec, note};
use super::name;
use super::wire::{Block, ResultMeta, ShellResult};
use crate::codec::Step;
use crate::track::Calls;

/// The calls that have begun.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: Calls<OpenTool>,
    /// Calls whose work goes on after they returned: sub-agents and shells in the background.
    background: HashSet<String>,
    /// Which call began which task.
    tasks: HashMap<String, String>,
    /// Where the plan was written that is to be approved.
    pub(super) plan_file: Option<String>,
}

#[derive(Debug)]
pub(super) struct OpenTool {
    pub(super) id: ToolId,
    pub(super) name: String,
    pub(super) kind: ToolKind,
    pub(super) arguments: Map<String, Value>,
    pub(super) parent: Option<ToolId>,
    started: Timestamp,
    /// A person or a rule said no to it.
    denied: bool,
}

/// Which open calls to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forgotten {
    All,
    /// All but those of background work.
    OfTurn,
}

/// Open calls that are searched for a sub-agent's: the newest.
const MOST_AGENTS: usize = 256;
/// Sub-agents above one another that are followed; a circle of them has no end.
const DEEPEST_AGENT: usize = 32;

impl Tools {
    pub(super) fn find(&self, id: &str) -> Option<&OpenTool> {
        self.calls.find(id)
    }

    fn find_mut(&mut self, id: &str) -> Option<&mut OpenTool> {
        self.calls.find_mut(id)
    }

    /// Somebody said no to the call; false if there is no such call.
    pub(super) fn deny(&mut self, id: &str) -> bool {
        self.find_mut(id).map(|tool| tool.denied = true).is_some()
    }

    /// The call of a sub-agent that was told this; else any that is open, the last one first.
    pub(super) fn agent_told(&self, prompt: &str) -> Option<&OpenTool> {
        let agents = || self.calls.iter().rev().take(MOST_AGENTS).filter(|tool| tool.kind == ToolKind::Agent);
        let told = |tool: &&OpenTool| tool.arguments.get("prompt").and_then(Value::as_str) == Some(prompt);
        agents().find(told).or_else(|| agents().next())
    }

    /// Whether a call is open that is none of a sub-agent's.
    pub(super) fn any_open(&self) -> bool {
        self.calls.iter().any(|tool| tool.parent.is_none())
    }

    /// Somebody gave the call other arguments.
    pub(super) fn replace_arguments(&mut self, id: &str, arguments: &Map<String, Value>) {
        if let Some(tool) = self.find_mut(id) {
            tool.arguments.clone_from(arguments);
        }
    }

    /// A call began a task; one in the background outlives the call and the turn.
    pub(super) fn task_began(&mut self, task: &str, id: &str, background: bool) {
        self.tasks.insert(task.to_owned(), id.to_owned());
        if background {
            self.background.insert(id.to_owned());
        }
    }

    pub(super) fn task_ended(&mut self, task: &str) {
        if let Some(id) = self.tasks.remove(task) {
            self.background.remove(&id);
        }
    }

    pub(super) fn of_task(&self, task: &str) -> Option<&str> {
        self.tasks.get(task).map(String::as_str)
    }

    fn take(&mut self, id: &str) -> Option<OpenTool> {
        self.calls.take(id)
    }

    /// Whether the call belongs to work in the background, itself or through the sub-agents above it.
    fn goes_on(&self, tool: &OpenTool) -> bool {
        let mut above = tool.parent.as_ref();
        for _ in 0..DEEPEST_AGENT {
            let Some(id) = above else { return false };
            if self.background.contains(id.as_str()) {
                return true;
            }
            above = self.find(id.as_str()).and_then(|tool| tool.parent.as_ref());
        }
        false
    }

    /// Ends the calls that Claude forgot.
    pub(super) fn close_forgotten(&mut self, which: Forgotten, now: Option<Timestamp>, out: &mut Step) {
        let keep: HashSet<ToolId> = match which {
            Forgotten::All => HashSet::new(),
            Forgotten::OfTurn => {
                self.calls.iter().filter(|tool| self.goes_on(tool)).map(|tool| tool.id.clone()).collect()
            }
        };
        for tool in self.calls.take_if(|tool| !keep.contains(&tool.id)) {
            let outcome = if tool.denied { ToolOutcome::Denied } else { ToolOutcome::Cancelled };
            out.events.push(EventKind::ToolCompleted(ToolCompleted {
                duration_ms: now.map(|now| now.millis_since(tool.started)),
                tool_id: tool.id,
                success: false,
                outcome,
                result: None,
                error: Some("the agent did not tell how this call ended".to_owned()),
                exit_code: None,
            }));
        }
    }
}

impl ClaudeCodec {
    pub(super) fn tool_use(&mut self, block: Block, parent: Option<&str>, now: Timestamp, out: &mut Step) {
        let (Some(id), Some(name)) = (block.id, block.name) else {
            out.events.push(note("contentBlock", Some("a tool call without an id or a name".to_owned()), Map::new()));
            return;
        };
        if self.tools.calls.has_seen(&id) {
            return;
        }
        let arguments = match block.input {
            Some(Value::Object(arguments)) => arguments,
            Some(Value::Null) | None => Map::new(),
            Some(other) => Map::from_iter([("input".to_owned(), other)]),
        };
        let tool = OpenTool {
            id: id.into(),
            kind: name::kind(&name),
            name,
            arguments,
            parent: parent.map(ToolId::from),
            started: now,
            denied: false,
        };
        if let Some(path) = tool.arguments.get("file_path").and_then(Value::as_str)
            && path.contains("/.claude/plans/")
        {
            self.tools.plan_file = Some(path.to_owned());
        }
        out.events.push(EventKind::ToolStarted(ToolStarted {
            tool_id: tool.id.clone(),
            tool_name: tool.name.clone(),
            tool_kind: tool.kind,
            title: Some(name::title(&tool.name, &tool.arguments)),
            arguments: tool.arguments.clone(),
            server: name::mcp(&tool.name).map(|(server, _)| server.to_owned()),
            parent_tool_id: tool.parent.clone(),
        }));
        self.tools.calls.begin(tool.id.clone().as_str(), tool);
    }

    /// A result that stands on its own, as older versions wrote it.
    pub(super) fn plain_tool_result(&mut self, block: Block, now: Timestamp, out: &mut Step) {
        self.tool_result(block, None, None, now, out);
    }

    pub(super) fn tool_result(
        &mut self,
        block: Block,
        structured: Option<&RawValue>,
        meta: Option<&ResultMeta>,
        now: Timestamp,
        out: &mut Step,
    ) {
        let Some(id) = block.tool_use_id else { return };
        let content = Content::of(block.content);
        let tool = self.tools.take(&id);
        if tool.is_none() && !self.tools.calls.ends_unbegun(&id) {
            // The call was already closed: its end came after the end of its turn.
            let data = Map::from_iter([("toolId".to_owned(), id.into()), ("result".to_owned(), content.value)]);
            out.events.push(note("lateToolResult", None, data));
            return;
        }
        self.questions.withdraw_about(&id, out);
        let success = block.is_error != Some(true);
        let outcome = if success { ToolOutcome::Completed } else { self.outcome(tool.as_ref(), meta) };
        if let Some(tool) = tool.as_ref().filter(|_| success) {
            if let Some(change) = change::of(tool, structured, content.text()) {
                out.events.push(EventKind::FileChanged(change));
            }
            self.todos.tool_ended(tool, structured, out);
        }
        let shell = tool.as_ref().is_some_and(|tool| tool.kind == ToolKind::Shell);
        let clock = self.session.clock(now);
        out.events.push(EventKind::ToolCompleted(ToolCompleted {
            tool_id: id.into(),
            success,
            outcome,
            exit_code: if shell { exit_code(success, &content, structured) } else { None },
            error: (!success).then(|| content.error()),
            result: success.then_some(content.value),
            duration_ms: tool.and_then(|tool| Some(clock?.millis_since(tool.started))),
        }));
    }

    /// How a call that did not succeed ended.
    fn outcome(&self, tool: Option<&OpenTool>, meta: Option<&ResultMeta>) -> ToolOutcome {
        let decision = meta.and_then(|meta| meta.permission_decision.as_ref()?.decision.as_deref());
        let not_run = meta.and_then(|meta| meta.non_execution_kind.as_deref());
        if tool.is_some_and(|tool| tool.denied) || decision == Some("reject") {
            ToolOutcome::Denied
        } else if not_run == Some("user-rejected") || self.turns.is_cancelling() {
            ToolOutcome::Cancelled
        } else if decision.is_none() && not_run.is_some() {
            ToolOutcome::Denied
        } else {
            ToolOutcome::Failed
        }
    }

    pub(super) fn tool_progress(&mut self, line: Map<String, Value>, out: &mut Step) {
        let text = |key: &str| line.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        // A heartbeat has an id of its own and names its tool as the parent.
        let ids = [text("tool_use_id"), text("parent_tool_use_id")];
        let known = ids.into_iter().flatten().find(|id| self.tools.find(id).is_some());
        let elapsed = line.get("elapsed_time_seconds").and_then(Value::as_f64);
        let Some(id) = known.or(ids[0].filter(|id| !self.tools.calls.has_seen(id) && !id.contains("-heartbeat-")))
        else {
            out.events.push(note("tool_progress", None, line));
            return;
        };
        out.events.push(EventKind::ToolProgress(ToolProgress {
            elapsed_ms: elapsed.map(millis),
            ..ToolProgress::of(id.into())
        }));
    }
}

/// Whole milliseconds; a time that is none is zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// What a tool answered: text if it is nothing but text.
struct Content {
    value: Value,
}

impl Content {
    fn of(content: Option<Value>) -> Self {
        match content {
            Some(Value::Array(blocks)) => {
                let text = |block: &Value| {
                    let text = block.get("text")?.as_str()?;
                    (block.get("type").and_then(Value::as_str) == Some("text")).then(|| text.to_owned())
                };
                match blocks.iter().map(text).collect::<Option<Vec<_>>>() {
                    Some(texts) => Self { value: texts.join("\n").into() },
                    None => Self { value: Value::Array(blocks) },
                }
            }
            Some(value) => Self { value },
            None => Self { value: String::new().into() },
        }
    }

    fn text(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// The same as words about what went wrong.
    fn error(&self) -> String {
        let text = self.text().map_or_else(|| self.value.to_string(), str::to_owned);
        let inner = text.strip_prefix("<tool_use_error>").and_then(|text| text.strip_suffix("</tool_use_error>"));
        inner.map_or(text.clone(), str::to_owned)
    }
}

/// The exit code of a shell command, where Claude lets it be known.
fn exit_code(success: bool, content: &Content, structured: Option<&RawValue>) -> Option<i32> {
    if !success {
        let rest = content.text()?.strip_prefix("Exit code ")?;
        return rest.split(|c: char| c != '-' && !c.is_ascii_digit()).next()?.parse().ok();
    }
    let told: ShellResult = serde_json::from_str(structured?.get()).ok()?;
    // Another code may have been read as a success, and work in the background has none yet.
    let doubts = [told.return_code_interpretation, told.background_task_id, told.interrupted];
    let doubtful = doubts.into_iter().flatten().any(|value| value != Value::Bool(false));
    (told.stdout.is_some() && !doubtful).then_some(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec::Codec as _;

    /// Each result was once searched among what the line says about all of them.
    #[test]
    fn a_line_may_have_very_many_results() {
        const RESULTS: usize = 50_000;
        let id = |number: usize| format!("toolu_{number:030}");
        let result =
            |number| json!({ "type": "tool_result", "tool_use_id": id(number), "content": "no", "is_error": true });
        let meta = |number| json!({ "id": id(number), "permission_decision": { "decision": "reject" } });
        let line = json!({
            "type": "user",
            "message": { "role": "user", "content": (0..RESULTS).map(result).collect::<Vec<_>>() },
            "tool_result_meta": (0..RESULTS).rev().map(meta).collect::<Vec<_>>(),
        });
        let events = ClaudeCodec::recorded().decode(&line.to_string(), Timestamp::from_millis(0)).events;
        let denied =
            |kind: &&EventKind| matches!(kind, EventKind::ToolCompleted(end) if end.outcome == ToolOutcome::Denied);
        assert_eq!(events.iter().filter(denied).count(), RESULTS);
    }
}
