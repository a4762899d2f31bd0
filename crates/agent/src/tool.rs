//! The common part of all tools: their description for the model, and the outcome of a call.

use multitap_event::{FileChange, Image, TodoList, ToolKind, ToolOutcome};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A tool as it is described to a model.
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

/// The context of a running tool.
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
