//! The output and the questions of a remote task so far. Pure; bounded in memory, whatever the agent sends.

use multitap_a2a::devtool::{self, ConfirmationDetails, ConfirmationOption, DevtoolEventKind, ToolCall};
use multitap_a2a::{Artifact, Content, Map, Message, Part, Role, Task, TaskState, TaskStatus, Update};
use serde_json::Value;

/// Maximum size of text and files that are stored of one task.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// The most artifacts, and the most parts of one.
const MOST_ARTIFACTS: usize = 256;
const MOST_PARTS: usize = 1024;
/// The most bytes of an id, a name, a media type.
const LONGEST_NAME: usize = 512;
/// The most bytes of a note.
const LONGEST_NOTE: usize = 2048;
/// Maximum size of the subject of a decision. It is shown whole or not at all.
const LONGEST_DECISION: usize = 16 * 1024;
/// The most choices of one question.
const MOST_OPTIONS: usize = 32;

/// State of a remote task, collected from its updates.
#[derive(Debug, Clone, Default)]
pub(crate) struct Collected {
    pub(crate) task_id: Option<String>,
    pub(crate) context_id: Option<String>,
    pub(crate) state: TaskState,
    /// Text that the agent streamed in pieces.
    answer: String,
    /// Index at which the last line of `answer` begins.
    last_line: usize,
    /// Message of the latest status.
    status_text: String,
    pub(crate) artifacts: Vec<Artifact>,
    /// The question of a waiting task; `None` if it is just the text of the status.
    question: Option<Question>,
    /// Latest progress note, to report while the task works.
    pub(crate) note: Option<String>,
    bytes: usize,
    /// Something was left out because it exceeded a limit.
    pub(crate) is_truncated: bool,
    /// Whether the updates so far were about this task.
    origin: Origin,
}

/// The task that the updates so far were about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Origin {
    #[default]
    None,
    /// At least one was about this task.
    Ours,
    /// All were about another task.
    Foreign,
}

/// The request that the agent waits for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Question {
    /// A question that is answered with text.
    Text(String),
    /// A decision on one of its tool calls.
    Confirmation {
        tool_call_id: String,
        correlation_id: Option<String>,
        about: String,
        options: Vec<ConfirmationOption>,
    },
    /// A decision on a tool call that is too long to be shown whole, so nobody can decide.
    Oversized { tool_call_id: String, bytes: usize },
}

impl Question {
    /// How much memory its text takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Confirmation { about, .. } => about.len(),
            Self::Oversized { tool_call_id, .. } => tool_call_id.len(),
        }
    }
}

impl Collected {
    /// The state of a task that is answered or resumed: updates of other tasks do not count.
    pub(crate) fn of(task_id: Option<String>, context_id: Option<String>) -> Self {
        Self { task_id, context_id, ..Self::default() }
    }

    /// The state of a task that waits for an answer.
    pub(crate) fn waiting(task_id: Option<String>, context_id: Option<String>, question: Question) -> Self {
        Self { state: TaskState::InputRequired, question: Some(question), ..Self::of(task_id, context_id) }
    }

    /// Why this is no answer, if the agent said nothing about the task.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        match self.origin {
            Origin::None => Some("it did not answer"),
            Origin::Ours => None,
            Origin::Foreign => Some("it answered about another task"),
        }
    }

    /// Whether no more updates will come.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_terminal()
    }

    /// The request that the agent waits for.
    pub(crate) fn question(&self) -> Option<Question> {
        let is_asked = self.state == TaskState::InputRequired;
        is_asked.then(|| self.question.clone().unwrap_or_else(|| Question::Text(self.text())))
    }

    /// Copies the question of the same task from its stream: the agent's stored state may lack it.
    pub(crate) fn complete(&mut self, followed: &Self) {
        let waits = self.state == TaskState::InputRequired && followed.state == TaskState::InputRequired;
        if waits && self.question.is_none() && self.text().is_empty() {
            self.question.clone_from(&followed.question);
        }
    }

    /// How much memory its text and files take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All text of the agent.
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
                self.set_context(update.context_id);
                self.status(update.status, &update.metadata);
            }
            Update::Artifact(update) if self.is_ours(&update.task_id) => {
                self.set_context(update.context_id);
                self.artifact(update.artifact, update.append);
            }
            // Updates of another task are ignored, in case an agent mixes up its tasks.
            Update::Status(_) | Update::Artifact(_) => {}
        }
    }

    /// Whether an update is about this task. The first update determines the task.
    fn is_ours(&mut self, task: &str) -> bool {
        let is_ours = task.len() <= LONGEST_NAME && self.task_id.get_or_insert_with(|| task.to_owned()) == task;
        match (is_ours, self.origin) {
            (true, _) => self.origin = Origin::Ours,
            (false, Origin::None) => self.origin = Origin::Foreign,
            (false, _) => {}
        }
        is_ours
    }

    fn set_context(&mut self, context: String) {
        if context.len() <= LONGEST_NAME {
            self.context_id = Some(context);
        }
    }

    fn task(&mut self, task: Task) {
        if !self.is_ours(&task.id) {
            return;
        }
        self.set_context(task.context_id);
        self.artifacts.clear();
        self.bytes = self.answer.len() + self.status_text.len();
        for artifact in task.artifacts {
            self.artifact(artifact, false);
        }
        self.status(task.status, &Map::new());
        if self.answer.is_empty() && self.status_text.is_empty() && self.state.is_terminal() {
            let said = task.history.iter().rev().find(|message| message.role == Role::Agent);
            self.set_status_text(said.map(Message::text).unwrap_or_default());
        }
    }

    /// A message without a task is the whole answer.
    fn message(&mut self, message: &Message) {
        self.origin = Origin::Ours;
        if let Some(context) = message.context_id.clone() {
            self.set_context(context);
        }
        self.state = TaskState::Completed;
        self.set_status_text(message.text());
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
                Some(DevtoolEventKind::TextContent) => {
                    let text = self.bounded(text);
                    self.append(&text);
                }
                _ if !is_working => self.set_status_text(text),
                _ if !text.is_empty() => self.note = Some(cut(&text, LONGEST_NOTE).to_owned()),
                _ => {}
            }
            if let Some(call) = call {
                self.tool_call(call, correlation(&message.metadata).or_else(|| correlation(metadata)));
            }
        }
    }

    /// Adds to the answer; its last line becomes the progress note. Scans only the new text.
    fn append(&mut self, text: &str) {
        let from = self.answer.len().saturating_sub(1);
        self.answer.push_str(text);
        let end = self.answer.strip_suffix('\n').unwrap_or(&self.answer).len();
        let newline = self.answer.as_bytes()[from..end].iter().rposition(|byte| *byte == b'\n');
        if let Some(newline) = newline {
            self.last_line = from + newline + 1;
        }
        self.note = Some(cut(self.answer[self.last_line..end].trim_end(), LONGEST_NOTE).to_owned());
    }

    fn set_status_text(&mut self, text: String) {
        self.bytes = self.bytes.saturating_sub(self.status_text.len());
        self.status_text = self.bounded(text);
    }

    /// Remembers the question of a tool call, which comes before the state says that the task waits.
    fn tool_call(&mut self, mut call: ToolCall, correlation_id: Option<String>) {
        let status = format!("{:?}", call.status).to_lowercase();
        let title = cut(call.description.as_ref().unwrap_or(&call.tool_name), LONGEST_NOTE);
        self.note = Some(format!("{title}: {status}"));
        if let Some(mut request) = call.confirmation_request.take() {
            request.options.truncate(MOST_OPTIONS);
            let about = about(&call, request.details);
            let names = request.options.iter().flat_map(|option| [&option.id, &option.name]);
            let longest = names.chain(&correlation_id).chain([&call.tool_call_id]).map(String::len).max();
            let is_oversized = about.len() > LONGEST_DECISION || longest > Some(LONGEST_NAME);
            self.question = Some(if is_oversized {
                let tool_call_id = cut(&call.tool_call_id, LONGEST_NAME).to_owned();
                Question::Oversized { tool_call_id, bytes: about.len() }
            } else {
                let (tool_call_id, options) = (call.tool_call_id, request.options);
                Question::Confirmation { tool_call_id, correlation_id, about, options }
            });
        } else if let Some(Question::Confirmation { tool_call_id, .. } | Question::Oversized { tool_call_id, .. }) =
            &self.question
            && *tool_call_id == cut(&call.tool_call_id, LONGEST_NAME)
        {
            self.question = None;
        }
    }

    fn artifact(&mut self, artifact: Artifact, append: bool) {
        if artifact.artifact_id.len() > LONGEST_NAME {
            self.is_truncated = true;
            return;
        }
        let at = self.artifacts.iter().position(|known| known.artifact_id == artifact.artifact_id);
        let at = match at {
            Some(at) => at,
            None if self.artifacts.len() >= MOST_ARTIFACTS => {
                self.is_truncated = true;
                return;
            }
            None => {
                let name = artifact.name.as_deref().map(|name| cut(name, LONGEST_NAME).to_owned());
                self.artifacts.push(Artifact { artifact_id: artifact.artifact_id, name, ..Artifact::default() });
                self.artifacts.len() - 1
            }
        };
        if !append {
            let freed: usize = self.artifacts[at].parts.iter().map(size).sum();
            self.bytes = self.bytes.saturating_sub(freed);
            self.artifacts[at].parts.clear();
        }
        for part in artifact.parts {
            let short = |text: Option<String>| text.map(|text| cut(&text, LONGEST_NAME).to_owned());
            let (filename, media_type) = (short(part.filename), short(part.media_type));
            let part = Part { filename, media_type, ..Part::of(part.content) };
            let bytes = size(&part);
            if self.bytes + bytes > MOST_BYTES || self.artifacts[at].parts.len() >= MOST_PARTS {
                self.is_truncated = true;
                return;
            }
            self.bytes += bytes;
            let parts = &mut self.artifacts[at].parts;
            // Pieces of one text become one part: pieces of a stream, and pieces that a server stored separately.
            match (parts.last_mut(), part) {
                (
                    Some(Part { content: Content::Text(text), filename: None, .. }),
                    Part { content: Content::Text(more), filename: None, .. },
                ) => text.push_str(&more),
                (_, part) => parts.push(part),
            }
        }
    }

    /// Cuts a text to the space that is left.
    fn bounded(&mut self, mut text: String) -> String {
        let room = MOST_BYTES.saturating_sub(self.bytes);
        if text.len() > room {
            self.is_truncated = true;
            text.truncate(cut(&text, room).len());
        }
        self.bytes += text.len();
        text
    }
}

/// Cuts a text to a number of bytes.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    &text[..end]
}

fn size(part: &Part) -> usize {
    let names = [&part.filename, &part.media_type].into_iter().flatten().map(String::len).sum::<usize>();
    names
        + match &part.content {
            Content::Text(text) | Content::Raw(text) | Content::Url(text) => text.len(),
            Content::Data(value) => value.to_string().len(),
        }
}

/// The kind of the event in the `development-tool` extension.
fn kind(metadata: &Map) -> Option<DevtoolEventKind> {
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

/// The subject of a decision, as the end of "the agent wants to …".
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
