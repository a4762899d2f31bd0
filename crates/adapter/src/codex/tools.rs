//! Tool calls from their start to their one end.

use multitap_event::{
    Denial, EventKind, FileChange, Timestamp, ToolCompleted, ToolId, ToolKind, ToolOutcome, ToolProgress, ToolStarted,
};
use serde_json::{Map, Value};

use super::notice::note;
use crate::codec::Step;
use crate::track::Calls;

/// The calls that have begun.
#[derive(Debug, Default)]
pub(super) struct Tools {
    calls: Calls<OpenTool>,
    /// Calls that were refused in this turn.
    denials: Vec<Denial>,
}

#[derive(Debug)]
pub(super) struct OpenTool {
    pub(super) id: ToolId,
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) server: Option<String>,
    /// The changes it would make or made to files.
    pub(super) changes: Vec<FileChange>,
    /// A sub-agent's call: the call that began the sub-agent.
    parent: Option<ToolId>,
    started: Timestamp,
    /// Somebody said no to it.
    denied: bool,
    /// A process of its own stands behind it, which may outlive the turn.
    process: bool,
    /// It has outlived its turn.
    runs_on: bool,
    /// How much of its output was told.
    told: usize,
}

/// A call that begins.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) id: ToolId,
    pub(super) name: String,
    pub(super) kind: ToolKind,
    pub(super) title: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) server: Option<String>,
    pub(super) changes: Vec<FileChange>,
    pub(super) parent: Option<ToolId>,
}

/// How a call ended, as Codex tells it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) status: Option<String>,
    pub(super) result: Option<Value>,
    pub(super) error: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) duration_ms: Option<u64>,
}

/// Which open calls to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forgotten<'a> {
    All,
    /// All of the turn, which was cancelled.
    Cancelled,
    /// All but the commands that run on, and the work of sub-agents.
    OfTurn,
    /// Those of this sub-agent, by what stands above its calls.
    OfAgent(&'a ToolId),
}

impl Forgotten<'_> {
    fn is(self, tool: &OpenTool) -> bool {
        match self {
            Self::All => true,
            Self::Cancelled => !tool.runs_on,
            Self::OfTurn => tool.parent.is_none() && !tool.process,
            Self::OfAgent(above) => tool.parent.as_ref() == Some(above) && !tool.process,
        }
    }
}

impl Tools {
    pub(super) fn find(&self, id: &str) -> Option<&OpenTool> {
        self.calls.find(id)
    }

    fn find_mut(&mut self, id: &str) -> Option<&mut OpenTool> {
        self.calls.find_mut(id)
    }

    /// The open calls of tools of that MCP server.
    pub(super) fn of_server<'a>(&'a self, server: &'a str) -> impl Iterator<Item = &'a OpenTool> {
        self.calls.iter().filter(move |tool| tool.server.as_deref() == Some(server))
    }

    pub(super) fn any_open(&self) -> bool {
        !self.calls.is_empty()
    }

    pub(super) fn has_seen(&self, id: &ToolId) -> bool {
        self.calls.has_seen(id.as_str())
    }

    /// Somebody said no to the call.
    pub(super) fn deny(&mut self, id: &str) {
        if let Some(tool) = self.find_mut(id) {
            tool.denied = true;
        }
    }

    /// There is a process behind the call.
    pub(super) fn has_process(&mut self, id: &str) {
        if let Some(tool) = self.find_mut(id) {
            tool.process = true;
        }
    }

    /// The changes that a call means to make are known now, or are others.
    pub(super) fn means(&mut self, id: &str, changes: Vec<FileChange>) {
        if let Some(tool) = self.find_mut(id).filter(|_| !changes.is_empty()) {
            tool.changes = changes;
        }
    }

    pub(super) fn begin(&mut self, begun: Begun, now: Timestamp, out: &mut Step) {
        let Begun { id, name, kind, title, arguments, server, changes, parent } = begun;
        if self.has_seen(&id) {
            return;
        }
        out.events.push(EventKind::ToolStarted(ToolStarted {
            tool_id: id.clone(),
            tool_name: name.clone(),
            tool_kind: kind,
            title: Some(title).filter(|title| !title.is_empty()),
            arguments: arguments.clone(),
            server: server.clone(),
            parent_tool_id: parent.clone(),
        }));
        let (denied, process, runs_on, told) = (false, false, false, 0);
        let started = now;
        let tool = OpenTool { id, name, arguments, server, changes, parent, started, denied, process, runs_on, told };
        self.calls.begin(tool.id.clone().as_str(), tool);
    }

    /// New output of a call.
    pub(super) fn output(&mut self, id: &str, piece: &str, out: &mut Step) {
        let Some(tool) = self.find_mut(id).filter(|_| !piece.is_empty()) else { return };
        tool.told += piece.len();
        let progress = ToolProgress { output: Some(piece.to_owned()), ..ToolProgress::of(tool.id.clone()) };
        out.events.push(EventKind::ToolProgress(progress));
    }

    /// All output of a call so far; what was told already is not told again.
    pub(super) fn output_so_far(&mut self, id: &str, whole: &str, out: &mut Step) {
        let Some(tool) = self.find(id) else { return };
        let Some(new) = whole.get(tool.told..).map(str::to_owned) else { return };
        self.output(id, &new, out);
    }

    pub(super) fn progress(&self, id: &str, message: &str, out: &mut Step) {
        let Some(tool) = self.find(id) else { return };
        let progress = ToolProgress { message: Some(message.to_owned()), ..ToolProgress::of(tool.id.clone()) };
        out.events.push(EventKind::ToolProgress(progress));
    }

    /// A call ended. `clock` is the time if it means something.
    pub(super) fn end(&mut self, id: &ToolId, ended: Ended, clock: Option<Timestamp>, out: &mut Step) {
        let Some(tool) = self.calls.take(id.as_str()) else {
            // The call was already closed: its end came after the end of its turn.
            let mut data = Map::from_iter([("toolId".to_owned(), Value::from(id.as_str()))]);
            data.extend(ended.result.map(|result| ("result".to_owned(), result)));
            data.extend(ended.exit_code.map(|code| ("exitCode".to_owned(), code.into())));
            out.events.push(note("lateToolResult", None, data));
            return;
        };
        let outcome = outcome(&tool, &ended);
        let success = outcome == ToolOutcome::Completed;
        if success {
            out.events.extend(tool.changes.iter().cloned().map(EventKind::FileChanged));
        }
        if outcome == ToolOutcome::Denied {
            let (tool_name, tool_id) = (tool.name.clone(), Some(tool.id.clone()));
            self.denials.push(Denial { tool_name, tool_id, arguments: tool.arguments.clone() });
        }
        let Ended { result, error, exit_code, duration_ms, .. } = ended;
        let said = match &result {
            Some(Value::String(text)) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        };
        out.events.push(EventKind::ToolCompleted(ToolCompleted {
            tool_id: tool.id,
            success,
            outcome,
            error: (!success).then(|| error.or(said).unwrap_or_else(|| why(outcome, exit_code))),
            result: result.filter(|_| success),
            exit_code,
            duration_ms: duration_ms.or_else(|| clock.map(|now| now.millis_since(tool.started))),
        }));
    }

    /// Ends the calls that Codex forgot.
    pub(super) fn close_forgotten(&mut self, which: Forgotten<'_>, clock: Option<Timestamp>, out: &mut Step) {
        for tool in self.calls.take_if(|tool| which.is(tool)) {
            let outcome = if tool.denied { ToolOutcome::Denied } else { ToolOutcome::Cancelled };
            let error = match which {
                Forgotten::Cancelled => "cancelled",
                Forgotten::All | Forgotten::OfTurn | Forgotten::OfAgent(_) => {
                    "the agent did not tell how this call ended"
                }
            };
            out.events.push(EventKind::ToolCompleted(ToolCompleted {
                duration_ms: clock.map(|now| now.millis_since(tool.started)),
                tool_id: tool.id,
                success: false,
                outcome,
                result: None,
                error: Some(error.to_owned()),
                exit_code: None,
            }));
        }
        let left = self.calls.iter_mut().filter(|tool| which == Forgotten::OfTurn && tool.parent.is_none());
        for tool in left.filter(|tool| !tool.runs_on) {
            tool.runs_on = true;
            let message = Some("runs on in the background".to_owned());
            out.events.push(EventKind::ToolProgress(ToolProgress { message, ..ToolProgress::of(tool.id.clone()) }));
        }
    }

    /// The calls that were refused since this was last asked.
    pub(super) fn take_denials(&mut self) -> Vec<Denial> {
        std::mem::take(&mut self.denials)
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
