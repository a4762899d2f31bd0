//! A tool call, assembled from its events.

use multitap_event::{EditedCall, ToolCompleted, ToolOutcome, ToolProgress, ToolStarted};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// Most bytes of the latest output; the log has all of it.
pub(crate) const OUTPUT_TAIL: usize = 64 * 1024;

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub started: ToolStarted,
    pub status: ToolStatus,
    #[serde(default)]
    pub output: Output,
    pub progress: Option<f64>,
    pub message: Option<String>,
    pub end: Option<ToolCompleted>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolStatus {
    Running,
    /// The call waits for an answer.
    Asking,
    /// The call was denied; its end has not been reported yet.
    Refused,
    Over(ToolOutcome),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Its end.
    pub tail: String,
    /// Total number of bytes.
    pub bytes: u64,
}

impl ToolCall {
    pub(super) fn new(started: ToolStarted) -> Self {
        let output = Output::default();
        Self { started, status: ToolStatus::Running, output, progress: None, message: None, end: None }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.status, ToolStatus::Over(_))
    }

    /// Its size in memory, roughly.
    pub(super) fn bytes(&self) -> usize {
        let result = self.end.as_ref().and_then(|end| end.result.as_ref()).map_or(0, weight);
        let arguments: usize = self.started.arguments.values().map(weight).sum();
        size_of::<Self>() + arguments + self.output.tail.len() + result
    }

    pub(super) fn set(&mut self, status: ToolStatus) {
        if !self.is_over() {
            self.status = status;
        }
    }

    /// Applies the edits of an answer that allowed the call.
    pub(super) fn edited(&mut self, runs: &EditedCall) {
        self.started.title = Some(runs.title.clone());
        self.started.arguments.clone_from(&runs.arguments);
    }

    pub(super) fn progressed(&mut self, progress: &ToolProgress) {
        if let Some(output) = &progress.output {
            self.output.add(output);
        }
        self.progress = progress.progress.or(self.progress);
        if progress.message.is_some() {
            self.message.clone_from(&progress.message);
        }
    }

    pub(super) fn completed(&mut self, end: ToolCompleted) {
        self.status = ToolStatus::Over(end.outcome);
        self.end = Some(end);
    }
}

/// A value's size in memory, roughly.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

impl Output {
    pub(crate) fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.tail.push_str(text);
        // Cut seldom, so that many small pieces cost no more than a few large ones.
        if self.tail.len() > 2 * OUTPUT_TAIL {
            let cut = (self.tail.len() - OUTPUT_TAIL..).find(|at| self.tail.is_char_boundary(*at));
            self.tail.drain(..cut.unwrap_or_default());
        }
    }
}
