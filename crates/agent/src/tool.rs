//! The common part of all tools: their description for the model, and the outcome of a call.

use multitap_event::{
    EventKind, FileChange, Image, TodoList, ToolCompleted, ToolId, ToolKind, ToolOutcome, ToolProgress,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) description: String,
    /// JSON Schema of its arguments.
    pub(crate) parameters: Value,
    pub(crate) kind: ToolKind,
    /// The MCP server it belongs to.
    pub(crate) server: Option<String>,
    /// Read-only: several may run at once.
    pub(crate) read_only: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) outcome: ToolOutcome,
    /// For the model.
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
    /// The result for people, if it differs.
    pub(crate) result: Option<Value>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) changes: Vec<FileChange>,
    pub(crate) todos: Option<TodoList>,
}

impl Outcome {
    /// The event about its end. What people see is the text for the model, unless they have a result of their own.
    pub(crate) fn completed(&self, tool_id: ToolId, duration_ms: u64) -> EventKind {
        let success = self.outcome == ToolOutcome::Completed;
        let text = || self.text.clone();
        EventKind::ToolCompleted(ToolCompleted {
            tool_id,
            success,
            outcome: self.outcome,
            result: self.result.clone().or_else(|| success.then(|| text().into())),
            error: (!success).then(text),
            exit_code: self.exit_code,
            duration_ms: Some(duration_ms),
        })
    }

    pub(crate) fn done(text: impl Into<String>) -> Self {
        Self {
            outcome: ToolOutcome::Completed,
            text: text.into(),
            images: Vec::new(),
            result: None,
            exit_code: None,
            changes: Vec::new(),
            todos: None,
        }
    }

    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Failed, ..Self::done(why) }
    }

    pub(crate) fn denied(why: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Denied, ..Self::done(why) }
    }

    pub(crate) fn cancelled(why: impl Into<String>) -> Self {
        Self { outcome: ToolOutcome::Cancelled, ..Self::done(why) }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ToolContext {
    /// Receives progress. Sending waits when the receiver is slow.
    pub(crate) progress: mpsc::Sender<Progress>,
    /// The turn was cancelled: stop, leave nothing behind, and report what was done so far.
    pub(crate) stop: CancellationToken,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// New output since the last report.
    pub(crate) output: Option<String>,
    /// Between 0 and 1.
    pub(crate) share: Option<f64>,
    pub(crate) message: Option<String>,
}

impl Progress {
    pub(crate) fn event(self, tool_id: ToolId, elapsed_ms: u64) -> EventKind {
        let Self { output, share: progress, message } = self;
        let elapsed_ms = Some(elapsed_ms);
        EventKind::ToolProgress(ToolProgress { output, progress, message, elapsed_ms, ..ToolProgress::of(tool_id) })
    }
}

/// The last character boundary at or before `most`.
pub(crate) fn cut_before(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default()
}
