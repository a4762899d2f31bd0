//! Messages, tasks, and what a stream tells of them: one model, whatever dialect they are written in.

use serde_json::Value;

/// What a client or an extension adds; kept as it came, in its order.
pub type Map = serde_json::Map<String, Value>;

/// Something said by the user or by the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    pub message_id: String,
    pub role: Role,
    pub parts: Vec<Part>,
    pub context_id: Option<String>,
    pub task_id: Option<String>,
    /// Other tasks it speaks of.
    pub reference_task_ids: Vec<String>,
    /// The URIs of the extensions it makes use of.
    pub extensions: Vec<String>,
    pub metadata: Map,
}

impl Message {
    /// All its text, part after part on lines of their own.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_str()),
            Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Role {
    #[default]
    User,
    Agent,
}

/// A piece of a message or of an artifact.
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

/// What a part holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(String),
    /// A file's bytes, in base64 as they came.
    Raw(String),
    /// Where a file is.
    Url(String),
    Data(Value),
}

/// A piece of work with a life of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Task {
    pub id: String,
    pub context_id: String,
    pub status: TaskStatus,
    pub history: Vec<Message>,
    pub artifacts: Vec<Artifact>,
    pub metadata: Map,
}

/// Where a task stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskStatus {
    pub state: TaskState,
    pub message: Option<Message>,
    /// RFC 3339, UTC.
    pub timestamp: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// None that this version knows.
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

    /// Its name, as 0.3 writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
        }
    }

    /// The state of that name.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether the task is over.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Failed | Self::Rejected)
    }

    /// Whether the task waits for its client.
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// Something a task brought forth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Artifact {
    pub artifact_id: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub parts: Vec<Part>,
    pub extensions: Vec<String>,
    pub metadata: Map,
}

/// One thing that a stream tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    Task(Task),
    Message(Message),
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
}

/// A task's status changed, or the agent said something about it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatusUpdate {
    pub task_id: String,
    pub context_id: String,
    pub status: TaskStatus,
    /// Nothing more comes in this stream. 1.0 has no word for it: there the stream just ends.
    pub is_final: bool,
    pub metadata: Map,
}

/// A piece of an artifact.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArtifactUpdate {
    pub task_id: String,
    pub context_id: String,
    pub artifact: Artifact,
    /// Its parts come after those that were sent before, instead of replacing them.
    pub append: bool,
    pub last_chunk: bool,
    pub metadata: Map,
}

/// The answer to a message that was sent without a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    Task(Task),
    Message(Message),
}

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// Empty: there are no more.
    pub next_page_token: String,
    pub page_size: u32,
    pub total_size: u64,
}
