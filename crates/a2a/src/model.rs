//! Messages, tasks and updates: one model for all dialects.

use serde_json::Value;

/// Fields of a client or an extension; kept as received, in order.
pub type Map = serde_json::Map<String, Value>;

/// A message of the user or of the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    pub message_id: String,
    pub role: Role,
    pub parts: Vec<Part>,
    pub context_id: Option<String>,
    pub task_id: Option<String>,
    /// Other tasks that it refers to.
    pub reference_task_ids: Vec<String>,
    /// The URIs of the extensions that it uses.
    pub extensions: Vec<String>,
    pub metadata: Map,
}

impl Message {
    /// Its text parts, joined by line breaks.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_str()),
            Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Role {
    #[default]
    User,
    Agent,
}

/// A part of a message or of an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub content: Content,
    pub filename: Option<String>,
    pub media_type: Option<String>,
    pub metadata: Map,
}

impl Part {
    pub fn of(content: Content) -> Self {
        Self { content, filename: None, media_type: None, metadata: Map::new() }
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Content::Text(text.into()))
    }

    pub fn data(data: impl Into<Value>) -> Self {
        Self::of(Content::Data(data.into()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    /// A file's bytes, in base64.
    Raw(String),
    /// The address of a file.
    Url(String),
    Data(Value),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Task {
    pub id: String,
    pub context_id: String,
    pub status: TaskStatus,
    pub history: Vec<Message>,
    pub artifacts: Vec<Artifact>,
    pub metadata: Map,
}

/// The state of a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskStatus {
    pub state: TaskState,
    pub message: Option<Message>,
    /// RFC 3339, UTC.
    pub timestamp: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Unknown to this version.
    #[default]
    Unknown,
    Submitted,
    Working,
    InputRequired,
    AuthRequired,
    Completed,
    Canceled,
    Failed,
    Rejected,
}

impl TaskState {
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Canceled,
        Self::Failed,
        Self::Rejected,
    ];

    /// Its name in 0.3.
    pub fn word(self) -> &'static str {
        self.words().0
    }

    /// Its names in 0.3 and in 1.0.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Unknown => ("unknown", "TASK_STATE_UNSPECIFIED"),
            Self::Submitted => ("submitted", "TASK_STATE_SUBMITTED"),
            Self::Working => ("working", "TASK_STATE_WORKING"),
            Self::InputRequired => ("input-required", "TASK_STATE_INPUT_REQUIRED"),
            Self::AuthRequired => ("auth-required", "TASK_STATE_AUTH_REQUIRED"),
            Self::Completed => ("completed", "TASK_STATE_COMPLETED"),
            Self::Canceled => ("canceled", "TASK_STATE_CANCELED"),
            Self::Failed => ("failed", "TASK_STATE_FAILED"),
            Self::Rejected => ("rejected", "TASK_STATE_REJECTED"),
        }
    }

    /// The state with that name in 0.3.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Failed | Self::Rejected)
    }

    /// Whether the task waits for its client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// A result of a task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Artifact {
    pub artifact_id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    pub extensions: Vec<String>,
    pub metadata: Map,
}

/// An item of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    Task(Task),
    Message(Message),
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
}

/// A change of a task's status, or a message of the agent about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusUpdate {
    pub task_id: String,
    pub context_id: String,
    pub status: TaskStatus,
    /// The stream ends after it. 1.0 has no field for it: there the stream just ends.
    pub is_final: bool,
    pub metadata: Map,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArtifactUpdate {
    pub task_id: String,
    pub context_id: String,
    pub artifact: Artifact,
    /// Its parts are appended to the earlier ones instead of replacing them.
    pub append: bool,
    pub last_chunk: bool,
    pub metadata: Map,
}

/// The answer to a message without a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    Task(Task),
    Message(Message),
}

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// Empty on the last page.
    pub next_page_token: String,
    pub page_size: u32,
    pub total_size: u64,
}
