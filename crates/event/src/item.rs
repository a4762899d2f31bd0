//! The contents of events: text, reasoning, tool calls, file changes, plans, turns and sessions.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::{AgentType, ClientRef, Image, MessageId, ModelUsage, PromptId, StatedConfig, TokenUsage, ToolId, TurnId};

/// The agent is ready.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart {
    pub agent_type: AgentType,
    pub config: Option<StatedConfig>,
    /// The agent's own id of the conversation.
    pub native_session_id: Option<String>,
    /// The approval mode in the agent's own words.
    pub native_mode: Option<String>,
    pub agent_version: Option<String>,
    /// How the agent is driven, such as `stream-json`.
    pub transport: Option<String>,
}

impl SessionStart {
    pub fn of(agent_type: AgentType) -> Self {
        Self {
            agent_type,
            config: None,
            native_session_id: None,
            native_mode: None,
            agent_version: None,
            transport: None,
        }
    }
}

/// Text of a message.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextChunk {
    pub content: String,
    /// Whether this is only the new part of a message that continues. A message in partial chunks has no final chunk
    /// that repeats it.
    #[serde(default)]
    pub is_partial: bool,
    pub role: Option<Role>,
    /// The message or content block it belongs to.
    pub message_id: Option<MessageId>,
    /// Only for text of a sub-agent: the tool call that started it.
    pub parent_tool_id: Option<ToolId>,
}

impl TextChunk {
    pub fn piece(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_partial: true, role: None, message_id: None, parent_tool_id: None }
    }
}

/// Messages whose text does not count: the model starts them again under other ids.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextRetraction {
    /// The `messageId`s of the text and reasoning to remove.
    pub message_ids: Vec<MessageId>,
    /// The reason, in one line for people.
    pub message: Option<String>,
}

impl TextRetraction {
    /// The model stream broke, and the model repeats the text.
    pub fn interrupted(message_ids: Vec<MessageId>) -> Self {
        Self { message_ids, message: Some("the model was interrupted and starts this text again".to_owned()) }
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    Assistant,
    User,
}

/// A thought of the agent.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reasoning {
    pub content: String,
    #[serde(default)]
    pub is_partial: bool,
    pub message_id: Option<MessageId>,
    pub parent_tool_id: Option<ToolId>,
}

impl fmt::Debug for TextChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextChunk").field("bytes", &self.content.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Reasoning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reasoning").field("bytes", &self.content.len()).finish_non_exhaustive()
    }
}

/// The agent calls a tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStarted {
    pub tool_id: ToolId,
    /// The agent's name of the tool.
    pub tool_name: String,
    pub tool_kind: ToolKind,
    /// One line for people.
    pub title: Option<String>,
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// For `toolKind: "mcp"`: the server it belongs to.
    pub server: Option<String>,
    pub parent_tool_id: Option<ToolId>,
}

/// The kind of a tool, whatever the agent calls it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    Shell,
    Read,
    Edit,
    Search,
    Fetch,
    Mcp,
    Agent,
    Todo,
    #[default]
    Other,
}

/// A running tool reports.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress {
    pub tool_id: ToolId,
    /// New output since the last progress.
    pub output: Option<String>,
    /// Between 0 and 1.
    pub progress: Option<f64>,
    pub elapsed_ms: Option<u64>,
    /// The current activity, for people.
    pub message: Option<String>,
}

impl ToolProgress {
    pub fn of(tool_id: ToolId) -> Self {
        Self { tool_id, output: None, progress: None, elapsed_ms: None, message: None }
    }
}

/// A tool call has ended. Emitted exactly once for each started tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCompleted {
    pub tool_id: ToolId,
    pub success: bool,
    pub outcome: ToolOutcome,
    pub result: Option<Value>,
    pub error: Option<String>,
    pub exit_code: Option<i32>,
    pub duration_ms: Option<u64>,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolOutcome {
    Completed,
    Failed,
    /// A person or a rule denied it.
    Denied,
    /// The turn was cancelled, or the agent never reported how the call ended.
    Cancelled,
}

/// A file was changed.
#[skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    pub file_path: String,
    pub change_type: FileChangeType,
    /// Unified diff.
    pub diff: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub tool_id: Option<ToolId>,
    /// The file's path before it was moved.
    pub old_path: Option<String>,
}

impl FileChange {
    /// A change by that tool call.
    pub fn of(file_path: impl Into<String>, change_type: FileChangeType, tool: &ToolId) -> Self {
        let (diff, before, after, old_path) = (None, None, None, None);
        Self { file_path: file_path.into(), change_type, diff, before, after, tool_id: Some(tool.clone()), old_path }
    }
}

impl fmt::Debug for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileChange")
            .field("file_path", &self.file_path)
            .field("change_type", &self.change_type)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileChangeType {
    Created,
    Modified,
    Deleted,
}

/// The agent's current plan; replaces the previous one.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TodoList {
    pub items: Vec<TodoItem>,
    pub explanation: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TodoItem {
    pub text: String,
    pub status: TodoStatus,
    pub id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

/// The turn has ended, and the agent is idle again.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    pub turn_id: Option<TurnId>,
    pub status: TurnStatus,
    /// Usage of this turn.
    pub usage: Option<TokenUsage>,
    pub duration_ms: Option<u64>,
    /// Cost of this turn.
    pub cost_usd: Option<f64>,
    /// Cost of the session so far.
    pub total_cost_usd: Option<f64>,
    /// Usage of the session so far, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub model_usage: BTreeMap<String, ModelUsage>,
    /// The agent's last message.
    pub text: Option<String>,
    /// Why the turn failed, for people.
    pub error: Option<String>,
    /// The agent's own word for this end, such as `error_max_turns`.
    pub native_status: Option<String>,
    /// How often the model was asked.
    pub num_turns: Option<u64>,
    /// The answer as JSON, if an output schema was given.
    pub structured_output: Option<Value>,
    /// Calls that were denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// The cause of the turn, if it was not a prompt.
    pub origin: Option<String>,
    /// The agent's own id of its last message, to resume at it.
    pub message_id: Option<MessageId>,
}

impl TurnEnd {
    pub fn of(status: TurnStatus) -> Self {
        Self { status, ..Self::default() }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnStatus {
    #[default]
    Completed,
    Failed,
    /// A client cancelled it.
    Cancelled,
    /// The agent or Multitap died.
    Interrupted,
}

/// A call that was denied.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    pub tool_name: String,
    pub tool_id: Option<ToolId>,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// The agent has ended. Emitted exactly once for each session.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnd {
    pub reason: SessionEndReason,
    pub error: Option<String>,
    /// Usage of the whole session.
    pub final_usage: Option<TokenUsage>,
    pub exit_code: Option<i32>,
}

impl SessionEnd {
    pub fn of(reason: SessionEndReason) -> Self {
        Self { reason, error: None, final_usage: None, exit_code: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionEndReason {
    Completed,
    Failed,
    Cancelled,
    Timeout,
}

impl From<TurnStatus> for SessionEndReason {
    fn from(status: TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Self::Completed,
            TurnStatus::Failed | TurnStatus::Interrupted => Self::Failed,
            TurnStatus::Cancelled => Self::Cancelled,
        }
    }
}

/// The agent tries again.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    pub attempt: u32,
    pub max_attempts: Option<u32>,
    pub delay_ms: Option<u64>,
    pub status_code: Option<u16>,
    pub reason: Option<String>,
}

/// The agent signs in.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthStatus {
    pub is_authenticating: bool,
    #[serde(default)]
    pub output: Vec<String>,
    pub error: Option<String>,
}

/// A notice for people: compaction, hooks, background work, or the answer to a [`crate::Query`].
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemNote {
    /// The subject of the notice; the agent's own word if it has one.
    pub subtype: String,
    /// One line for people.
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}

/// A prompt that was sent to the agent.
#[skip_serializing_none]
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    pub prompt_id: Option<PromptId>,
    /// The client that sent it, and its door.
    pub from: Option<ClientRef>,
    /// The prompt joined the running turn, and began none of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steering: bool,
    /// The agent's own id of the message, to resume at it.
    pub message_id: Option<MessageId>,
    /// The id that its sender chose.
    pub sent_as: Option<String>,
}

impl fmt::Debug for UserMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserMessage")
            .field("bytes", &self.content.len())
            .field("images", &self.images.len())
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}
