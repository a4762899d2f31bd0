//! What a remote task has said and made so far. Pure; bounded in memory, whatever the agent sends.

use multitap_a2a::devtool::{self, ConfirmationDetails, ConfirmationOption, EventKind, ToolCall};
use multitap_a2a::{Artifact, Content, Map, Message, Part, Role, Task, TaskState, TaskStatus, Update};
use serde_json::Value;

/// The most bytes of text and files that are kept of one task.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// The most artifacts, and the most parts of one.
const MOST_ARTIFACTS: usize = 256;
const MOST_PARTS: usize = 1024;

/// A remote task as its updates made it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collected {
    pub(crate) task_id: Option<String>,
    pub(crate) context_id: Option<String>,
    pub(crate) state: TaskState,
    /// What the agent said piece by piece.
    answer: String,
    /// What came with the last state.
    status_text: String,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) question: Option<Question>,
    /// The tool call that waits for a decision.
    confirmation: Option<Question>,
    /// The last thing worth telling while it works.
    pub(crate) note: Option<String>,
    bytes: usize,
    /// Something was left out because it was too much.
    pub(crate) is_truncated: bool,
}

/// What the agent waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Question {
    /// Words.
    Text(String),
    /// A decision on one of its tool calls.
    Confirmation {
        tool_call_id: String,
        correlation_id: Option<String>,
        about: String,
        options: Vec<ConfirmationOption>,
    },
}

impl Collected {
    /// A task that is answered or resumed: updates of other tasks do not count.
    pub(crate) fn of(task_id: Option<String>, context_id: Option<String>) -> Self {
        Self { task_id, context_id, ..Self::default() }
    }

    /// Everything that the agent said.
    pub(crate) fn text(&self) -> String {
        match (self.answer.is_empty(), self.status_text.is_empty()) {
            (true, _) => self.status_text.clone(),
            (false, true) => self.answer.clone(),
            (false, false) if self.answer.contains(&self.status_text) => self.answer.clone(),
            (false, false) => format!("{}\n\n{}", self.answer, self.status_text),
        }
    }

    pub(crate) fn apply(&mut self, update: Update) {
        match update {
            Update::Task(task) => self.task(task),
            Update::Message(message) => self.message(&message),
            Update::Status(update) if self.is_ours(&update.task_id) => {
                self.context_id = Some(update.context_id);
                self.status(update.status, &update.metadata);
            }
            Update::Artifact(update) if self.is_ours(&update.task_id) => {
                self.context_id = Some(update.context_id);
                self.artifact(update.artifact, update.append);
            }
            // An agent that confuses its tasks does not confuse ours.
            Update::Status(_) | Update::Artifact(_) => {}
        }
    }

    /// Whether an update is about this task. The first one says which task it is.
    fn is_ours(&mut self, task: &str) -> bool {
        self.task_id.get_or_insert_with(|| task.to_owned()) == task
    }

    fn task(&mut self, task: Task) {
        if !self.is_ours(&task.id) {
            return;
        }
        self.context_id = Some(task.context_id);
        self.artifacts.clear();
        self.bytes = self.answer.len() + self.status_text.len();
        for artifact in task.artifacts {
            self.artifact(artifact, false);
        }
        self.status(task.status, &Map::new());
        if self.text().is_empty() && self.state.is_terminal() {
            let said = task.history.iter().rev().find(|message| message.role == Role::Agent);
            self.status_text = self.bounded(said.map(Message::text).unwrap_or_default());
        }
    }

    /// An answer without a task is all there is.
    fn message(&mut self, message: &Message) {
        self.context_id = message.context_id.clone().or_else(|| self.context_id.take());
        self.state = TaskState::Completed;
        self.status_text = self.bounded(message.text());
        let files: Vec<Part> =
            message.parts.iter().filter(|part| !matches!(part.content, Content::Text(_))).cloned().collect();
        if !files.is_empty() {
            let artifact_id = message.message_id.clone();
            self.artifact(Artifact { artifact_id, parts: files, ..Artifact::default() }, false);
        }
    }

    fn status(&mut self, status: TaskStatus, metadata: &Map) {
        self.state = status.state;
        let is_working = !self.state.is_terminal() && !self.state.is_interrupted();
        if let Some(message) = status.message {
            let call = message.parts.iter().find_map(tool_call);
            let text = message.text();
            match kind(&message.metadata).or_else(|| kind(metadata)) {
                Some(EventKind::TextContent) => {
                    let text = self.bounded(text);
                    self.answer.push_str(&text);
                    self.note = self.answer.lines().next_back().map(str::to_owned);
                }
                _ if !is_working => self.status_text = self.bounded(text),
                _ if !text.is_empty() => self.note = Some(text),
                _ => {}
            }
            if let Some(call) = call {
                self.tool_call(call, correlation(&message.metadata).or_else(|| correlation(metadata)));
            }
        }
        // The question of a tool call comes before the state says that the task waits.
        self.question = match (self.state, &self.confirmation) {
            (TaskState::InputRequired, Some(confirmation)) => Some(confirmation.clone()),
            (TaskState::InputRequired, None) => Some(Question::Text(self.text())),
            _ => None,
        };
    }

    fn tool_call(&mut self, mut call: ToolCall, correlation_id: Option<String>) {
        let status = format!("{:?}", call.status).to_lowercase();
        self.note = Some(format!("{}: {status}", call.description.as_ref().unwrap_or(&call.tool_name)));
        if let Some(request) = call.confirmation_request.take() {
            self.confirmation = Some(Question::Confirmation {
                about: about(&call, request.details),
                tool_call_id: call.tool_call_id,
                correlation_id,
                options: request.options,
            });
        } else if let Some(Question::Confirmation { tool_call_id, .. }) = &self.confirmation
            && *tool_call_id == call.tool_call_id
        {
            self.confirmation = None;
        }
    }

    fn artifact(&mut self, artifact: Artifact, append: bool) {
        let at = self.artifacts.iter().position(|known| known.artifact_id == artifact.artifact_id);
        let at = match at {
            Some(at) => at,
            None if self.artifacts.len() >= MOST_ARTIFACTS => {
                self.is_truncated = true;
                return;
            }
            None => {
                self.artifacts.push(Artifact { parts: Vec::new(), ..artifact.clone() });
                self.artifacts.len() - 1
            }
        };
        if !append {
            let freed: usize = self.artifacts[at].parts.iter().map(size).sum();
            self.bytes = self.bytes.saturating_sub(freed);
            self.artifacts[at].parts.clear();
        }
        for part in artifact.parts {
            let bytes = size(&part);
            if self.bytes + bytes > MOST_BYTES || self.artifacts[at].parts.len() >= MOST_PARTS {
                self.is_truncated = true;
                return;
            }
            self.bytes += bytes;
            let parts = &mut self.artifacts[at].parts;
            // Pieces of one text make one part.
            match (parts.last_mut().map(|last| &mut last.content), part.content) {
                (Some(Content::Text(text)), Content::Text(more)) if append => text.push_str(&more),
                (_, content) => parts.push(Part { content, ..part }),
            }
        }
    }

    /// As much of a text as there is room for.
    fn bounded(&mut self, mut text: String) -> String {
        let room = MOST_BYTES.saturating_sub(self.bytes);
        if text.len() > room {
            self.is_truncated = true;
            let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
            text.truncate(end);
        }
        self.bytes += text.len();
        text
    }
}

fn size(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
        Content::Data(value) => value.to_string().len(),
    }
}

/// What kind of event it is in the `development-tool` extension.
fn kind(metadata: &Map) -> Option<EventKind> {
    serde_json::from_value(metadata.get(devtool::URI)?.get("kind")?.clone()).ok()
}

fn tool_call(part: &Part) -> Option<ToolCall> {
    match &part.content {
        Content::Data(value) if value.get("tool_call_id").or_else(|| value.get("toolCallId")).is_some() => {
            serde_json::from_value(value.clone()).ok()
        }
        _ => None,
    }
}

/// What is to be decided, as the end of "the agent wants to …".
fn about(call: &ToolCall, details: ConfirmationDetails) -> String {
    match details {
        ConfirmationDetails::ExecuteDetails(details) => format!("run this command: {}", details.command),
        ConfirmationDetails::FileEditDetails(diff) => {
            format!("change {}:\n{}", diff.file_path, diff.formatted_diff.unwrap_or(diff.new_content))
        }
        ConfirmationDetails::McpDetails(details) => {
            let arguments = Value::Object(call.input_parameters.clone());
            format!("call {} of the MCP server {} with {arguments}", details.tool_name, details.server_name)
        }
        ConfirmationDetails::GenericDetails(details) => format!("do this: {}", details.description),
    }
}

fn correlation(metadata: &Map) -> Option<String> {
    Some(metadata.get(devtool::URI)?.get("correlationId")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests;
