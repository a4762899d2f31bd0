//! Tool calls, and the background work that outlives them.

use std::collections::{HashMap, HashSet};

use multitap_event::{EventKind, Timestamp, ToolId, ToolKind, ToolOutcome, ToolProgress};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::change;
use super::decode::{ClaudeCodec, note};
use super::name;
use super::wire::Block;
use crate::codec::Step;
use crate::emit::{self, ToolEnd};
use crate::json::{JsonFields as _, arguments, text_of, text_of_blocks};

pub(super) type Tools = emit::Tools<()>;
pub(super) type OpenTool = emit::OpenTool<()>;

/// Work that goes on after the call that started it has returned: sub-agents and shells in the background.
#[derive(Debug, Default)]
pub(super) struct Background {
    calls: HashSet<String>,
    /// The call that started each task.
    tasks: HashMap<String, String>,
}

/// Maximum number of open calls that are searched for the sub-agent's call, the newest first.
const MOST_AGENTS: usize = 256;
/// Maximum depth of sub-agents within sub-agents; a cycle of them would have no end.
const DEEPEST_AGENT: usize = 32;

impl Background {
    /// A call started a task. If the task runs in the background, it outlives the call and the turn.
    pub(super) fn task_began(&mut self, task: &str, id: &str, background: bool) {
        self.tasks.insert(task.to_owned(), id.to_owned());
        if background {
            self.calls.insert(id.to_owned());
        }
    }

    pub(super) fn task_ended(&mut self, task: &str) {
        if let Some(id) = self.tasks.remove(task) {
            self.calls.remove(&id);
        }
    }

    pub(super) fn call_of(&self, task: &str) -> Option<&str> {
        self.tasks.get(task).map(String::as_str)
    }

    /// Whether a call belongs to work in the background, through the sub-agents above it.
    fn owns(&self, tool: &OpenTool, tools: &Tools) -> bool {
        let mut above = tool.parent.as_ref();
        for _ in 0..DEEPEST_AGENT {
            let Some(id) = above else { return false };
            if self.calls.contains(id.as_str()) {
                return true;
            }
            above = tools.find(id.as_str()).and_then(|tool| tool.parent.as_ref());
        }
        false
    }

    pub(super) fn open_calls(&self, tools: &Tools) -> HashSet<ToolId> {
        tools.iter().filter(|tool| self.owns(tool, tools)).map(|tool| tool.id.clone()).collect()
    }
}

impl Tools {
    /// The call of the sub-agent that got this prompt; else the newest open call of any sub-agent.
    pub(super) fn agent_with(&self, prompt: &str) -> Option<&OpenTool> {
        let agents = || self.iter().rev().take(MOST_AGENTS).filter(|tool| tool.kind == ToolKind::Agent);
        let has_prompt = |tool: &&OpenTool| tool.arguments.get("prompt").and_then(Value::as_str) == Some(prompt);
        agents().find(has_prompt).or_else(|| agents().next())
    }

    /// Whether a call is open that does not belong to a sub-agent.
    pub(super) fn any_of_main(&self) -> bool {
        self.iter().any(|tool| tool.parent.is_none())
    }
}

impl ClaudeCodec {
    pub(super) fn tool_use(&mut self, block: Block, parent: Option<&str>, now: Timestamp, out: &mut Step) {
        let (Some(id), Some(name)) = (block.id, block.name) else {
            out.events.push(note("contentBlock", Some("a tool call without an id or a name".to_owned()), Map::new()));
            return;
        };
        if self.emit.tools.has_seen(&id) {
            return;
        }
        let arguments = arguments(block.input);
        if let Some(path) = arguments.text("file_path")
            && path.contains("/.claude/plans/")
        {
            self.plan_file = Some(path.to_owned());
        }
        let tool = OpenTool::new(id, name.as_str(), name::kind(&name), now);
        let tool = OpenTool {
            title: Some(name::title(&name, &arguments)),
            server: name::mcp(&name).map(|(server, _)| server.to_owned()),
            arguments,
            parent: parent.map(ToolId::from),
            ..tool
        };
        self.emit.tools.start(tool, out);
    }

    /// The result of a call. A `tool_result` line of its own, as older versions wrote it, has no structured result.
    pub(super) fn tool_result(
        &mut self,
        block: Block,
        structured: Option<&RawValue>,
        meta: Option<&Value>,
        now: Timestamp,
        out: &mut Step,
    ) {
        let Some(id) = block.tool_use_id else { return };
        let content = content(block.content);
        let tool = self.emit.tools.take(&id, out);
        if tool.is_none() && self.emit.tools.has_seen(&id) {
            // The call was already closed: its end came after the end of its turn.
            return Tools::late(&id, [("result", Some(content))], out);
        }
        let success = block.is_error != Some(true);
        let outcome = if success { ToolOutcome::Completed } else { self.outcome(tool.as_ref(), meta) };
        let done = tool.as_ref().filter(|_| success);
        let is_shell = tool.as_ref().is_some_and(|tool| tool.kind == ToolKind::Shell);
        let end = ToolEnd {
            exit_code: if is_shell { exit_code(success, &content, structured) } else { None },
            error: (!success).then(|| error(&content)),
            changes: done.and_then(|tool| change::of(tool, structured, content.as_str())).into_iter().collect(),
            todos: done.and_then(|tool| self.todos.tool_ended(tool, structured)),
            result: Some(content),
            ..ToolEnd::of(outcome)
        };
        match tool {
            Some(tool) => self.emit.end_tool(&tool, end, now, out),
            None => {
                self.emit.questions.withdraw_about(&id, out);
                self.emit.tools.end_unbegun(&id, end, out);
            }
        }
    }

    /// The outcome of a call that did not succeed.
    fn outcome(&self, tool: Option<&OpenTool>, meta: Option<&Value>) -> ToolOutcome {
        let decision = meta.field("permission_decision").text("decision");
        let not_run = meta.text("non_execution_kind");
        if tool.is_some_and(|tool| tool.denied) || decision == Some("reject") {
            ToolOutcome::Denied
        } else if not_run == Some("user-rejected") || self.emit.turns.is_cancelling() {
            ToolOutcome::Cancelled
        } else if decision.is_none() && not_run.is_some() {
            ToolOutcome::Denied
        } else {
            ToolOutcome::Failed
        }
    }

    pub(super) fn tool_progress(&mut self, line: Map<String, Value>, out: &mut Step) {
        let text = |key: &str| line.text(key).filter(|text| !text.is_empty());
        // A heartbeat has its own id, and the tool's id as its parent.
        let ids = [text("tool_use_id"), text("parent_tool_use_id")];
        let known = ids.into_iter().flatten().find(|id| self.emit.tools.find(id).is_some());
        let elapsed = line.get("elapsed_time_seconds").and_then(Value::as_f64);
        let Some(id) = known.or(ids[0].filter(|id| !self.emit.tools.has_seen(id) && !id.contains("-heartbeat-")))
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

/// Whole milliseconds; an invalid time counts as zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// The result of a tool: text, if it contains only text.
fn content(content: Option<Value>) -> Value {
    let text = content.as_ref().and_then(Value::as_array).and_then(|blocks| text_of_blocks(blocks));
    text.map(Value::from).or(content).unwrap_or_else(|| "".into())
}

/// The content of a failed call, as an error message.
fn error(content: &Value) -> String {
    let text = text_of(content);
    let inner = text.strip_prefix("<tool_use_error>").and_then(|text| text.strip_suffix("</tool_use_error>"));
    inner.map_or(text.clone(), str::to_owned)
}

/// The exit code of a shell command, if Claude reports it.
fn exit_code(success: bool, content: &Value, structured: Option<&RawValue>) -> Option<i32> {
    if !success {
        let rest = content.as_str()?.strip_prefix("Exit code ")?;
        return rest.split(|c: char| c != '-' && !c.is_ascii_digit()).next()?.parse().ok();
    }
    let reported: Value = serde_json::from_str(structured?.get()).ok()?;
    // Claude may treat another code as a success, and background work has no code yet.
    let doubts = ["returnCodeInterpretation", "backgroundTaskId", "interrupted"];
    let is_doubtful = doubts.into_iter().any(|key| reported.field(key).is_some_and(|doubt| *doubt != false));
    (reported.field("stdout").is_some() && !is_doubtful).then_some(0)
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
