//! Facts about tool calls that only Codex has: processes that outlive their turn, and changes that are known before
//! they are made.

use multitap_event::{EventKind, FileChange, Timestamp, ToolId, ToolOutcome, ToolProgress};
use serde_json::Value;

use super::decode::CodexCodec;
use crate::codec::Step;
use crate::emit::{self, NoEnd, ToolEnd};
use crate::json::without_nulls;

pub(super) type Tools = emit::Tools<Native>;
pub(super) type OpenTool = emit::OpenTool<Native>;

#[derive(Debug, Default)]
pub(super) struct Native {
    /// The changes of files that the call would make or has made.
    pub(super) changes: Vec<FileChange>,
    /// The call runs in a process of its own, which may outlive the turn.
    process: bool,
    /// The call has outlived its turn.
    runs_on: bool,
    /// How many bytes of its output were emitted.
    output: usize,
}

impl Native {
    pub(super) fn changing(changes: Vec<FileChange>) -> Self {
        Self { changes, ..Self::default() }
    }
}

/// How a call ended, in Codex's words.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) status: Option<String>,
    pub(super) result: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unended<'a> {
    All,
    /// All calls of the turn, which was cancelled.
    Cancelled,
    /// All calls except for commands that continue and the work of sub-agents.
    OfTurn,
    /// The calls of the sub-agent that this call started.
    OfAgent(&'a ToolId),
}

impl Unended<'_> {
    fn selects(self, tool: &OpenTool) -> bool {
        match self {
            Self::All => true,
            Self::Cancelled => !tool.native.runs_on,
            Self::OfTurn => tool.parent.is_none() && !tool.native.process,
            Self::OfAgent(above) => tool.parent.as_ref() == Some(above) && !tool.native.process,
        }
    }
}

impl Tools {
    pub(super) fn has_process(&mut self, id: &str) {
        if let Some(tool) = self.find_mut(id) {
            tool.native.process = true;
        }
    }

    /// The planned changes of a call became known, or have changed.
    pub(super) fn would_change(&mut self, id: &str, changes: Vec<FileChange>) {
        if let Some(tool) = self.find_mut(id).filter(|_| !changes.is_empty()) {
            tool.native.changes = changes;
        }
    }

    pub(super) fn new_output(&mut self, id: &str, piece: &str, out: &mut Step) {
        if let Some(tool) = self.find_mut(id) {
            tool.native.output += piece.len();
            self.output(id, piece, out);
        }
    }

    /// The whole output of a call so far; only the new part is emitted.
    pub(super) fn output_so_far(&mut self, id: &str, whole: &str, out: &mut Step) {
        if let Some(new) = self.find(id).and_then(|tool| whole.get(tool.native.output..)) {
            self.new_output(id, new, out);
        }
    }
}

impl CodexCodec {
    pub(super) fn end_call(&mut self, id: &ToolId, ended: Ended, now: Timestamp, out: &mut Step) {
        let Some(mut tool) = self.emit.tools.take(id.as_str(), out) else {
            let result = ended.result.filter(|result| !result.is_null()).map(without_nulls);
            let exit_code = ended.exit_code.map(Value::from);
            return Tools::late(id.as_str(), [("result", result), ("exitCode", exit_code)], out);
        };
        let outcome = outcome(&tool, &ended);
        let Ended { result, error, exit_code, duration_ms, .. } = ended;
        let said = match &result {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        };
        let error = error.or(said).unwrap_or_else(|| why(outcome, exit_code));
        let changes = std::mem::take(&mut tool.native.changes);
        let end = ToolEnd { result, error: Some(error), exit_code, duration_ms, changes, ..ToolEnd::of(outcome) };
        self.emit.end_tool(&tool, end, now, out);
    }

    pub(super) fn close_unended(&mut self, which: Unended<'_>, now: Timestamp, out: &mut Step) {
        let no_end = if which == Unended::Cancelled { NoEnd::CANCELLED } else { NoEnd::UNKNOWN };
        self.emit.close_tools(|tool| which.selects(tool), no_end, now, out);
        let left = self.emit.tools.iter_mut().filter(|tool| which == Unended::OfTurn && tool.parent.is_none());
        for tool in left.filter(|tool| !tool.native.runs_on) {
            tool.native.runs_on = true;
            let message = Some("runs on in the background".to_owned());
            out.events.push(EventKind::ToolProgress(ToolProgress { message, ..ToolProgress::of(tool.id.clone()) }));
        }
    }
}

fn outcome(tool: &OpenTool, ended: &Ended) -> ToolOutcome {
    match ended.status.as_deref() {
        Some("declined" | "denied" | "rejected") => ToolOutcome::Denied,
        Some("skipped" | "cancelled" | "canceled" | "interrupted") => ToolOutcome::Cancelled,
        Some("failed" | "error" | "incomplete") if tool.denied => ToolOutcome::Denied,
        Some("failed" | "error" | "incomplete") => ToolOutcome::Failed,
        _ if ended.error.is_some() || ended.exit_code.is_some_and(|code| code != 0) => ToolOutcome::Failed,
        _ => ToolOutcome::Completed,
    }
}

fn why(outcome: ToolOutcome, exit_code: Option<i32>) -> String {
    match (outcome, exit_code) {
        (ToolOutcome::Denied, _) => "declined".to_owned(),
        (ToolOutcome::Cancelled, _) => "not run to its end".to_owned(),
        (_, Some(code)) => format!("exit code {code}"),
        _ => "failed".to_owned(),
    }
}
