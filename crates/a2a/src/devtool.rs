//! The `development-tool` extension: its objects, named as in its specification.
//!
//! Written in `snake_case` as the specification has it; read in that and in `camelCase`. What Google's own server ships
//! in its place is [`coder`].

pub mod coder;
mod confirmation;
mod settings;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Map;

/// The URI of the extension; also the key of its objects in any `metadata`.
pub const URI: &str = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md";

/// Field names of the extension. An answer uses the spelling of the client's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// As in the specification.
    Specified,
    /// As in Google's server: see [`coder`].
    Coder,
}

/// Settings for the agent, in the first message of a session. Unknown settings are preserved.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct AgentSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_path: Option<String>,
    /// Run tools without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_execute: Option<bool>,
    #[serde(flatten)]
    pub more: Map,
}

/// The kind of an event, in its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DevtoolEventKind {
    ToolCallConfirmation,
    ToolCallUpdate,
    TextContent,
    StateChange,
    Thought,
}

/// The metadata of an event, under [`URI`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventMetadata {
    pub kind: DevtoolEventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, alias = "userTier", skip_serializing_if = "Option::is_none")]
    pub user_tier: Option<String>,
    /// Why the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The question this event is about; an answer may quote it.
    #[serde(default, rename = "correlationId", skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// A whole tool call: each update replaces the previous one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    #[serde(alias = "toolCallId")]
    pub tool_call_id: String,
    pub status: ToolCallStatus,
    #[serde(alias = "toolName")]
    pub tool_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, alias = "inputParameters")]
    pub input_parameters: Map,
    /// All output so far, while it runs.
    #[serde(default, alias = "liveContent", skip_serializing_if = "Option::is_none")]
    pub live_content: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ToolOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorDetails>,
    /// Present while the call waits for a decision.
    #[serde(default, alias = "confirmationRequest", skip_serializing_if = "Option::is_none")]
    pub confirmation_request: Option<ConfirmationRequest>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ToolCallStatus {
    #[default]
    StatusUnspecified,
    Pending,
    Executing,
    Succeeded,
    Failed,
    Cancelled,
}

impl ToolCallStatus {
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// The output of a tool: exactly one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutput {
    Text(String),
    Diff(FileDiff),
    #[serde(alias = "structuredData")]
    StructuredData(Map),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetails {
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    #[serde(default, alias = "statusCode", skip_serializing_if = "Option::is_none")]
    pub status_code: Option<i32>,
}

/// The agent waits for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationRequest {
    pub options: Vec<ConfirmationOption>,
    #[serde(flatten)]
    pub details: ConfirmationDetails,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmationOption {
    pub id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The subject of a confirmation: exactly one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfirmationDetails {
    #[serde(alias = "executeDetails")]
    ExecuteDetails(ExecuteDetails),
    #[serde(alias = "fileEditDetails")]
    FileEditDetails(FileDiff),
    #[serde(alias = "mcpDetails")]
    McpDetails(McpDetails),
    #[serde(alias = "genericDetails")]
    GenericDetails(GenericDetails),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecuteDetails {
    pub command: String,
    #[serde(default, alias = "workingDirectory", skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    #[serde(alias = "fileName")]
    pub file_name: String,
    #[serde(alias = "filePath")]
    pub file_path: String,
    /// Absent if the file did not exist.
    #[serde(default, alias = "oldContent", skip_serializing_if = "Option::is_none")]
    pub old_content: Option<String>,
    #[serde(alias = "newContent")]
    pub new_content: String,
    #[serde(default, alias = "formattedDiff", skip_serializing_if = "Option::is_none")]
    pub formatted_diff: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpDetails {
    #[serde(alias = "serverName")]
    pub server_name: String,
    #[serde(alias = "toolName")]
    pub tool_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenericDetails {
    pub description: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentThought {
    pub subject: String,
    pub description: String,
}

/// The kind of change that an edited answer declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditKind {
    /// `file_details`: the text of a file.
    File,
    /// `execute_details`: a command.
    Command,
}

/// A decision, from either dialect of the extension.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCallConfirmation {
    pub tool_call_id: String,
    pub selected_option_id: String,
    /// The user's version of the file's content, or of the command.
    pub new_content: Option<String>,
    /// The kind of details that contained the new content; `None` if the content came without details.
    pub edit_kind: Option<EditKind>,
    /// The file, or the folder of the command, that the edit names. It must be the one in the question.
    pub edit_target: Option<String>,
    /// A comment for the agent (our addition).
    pub feedback: Option<String>,
    /// Answers by question, if the agent asked for information (our addition).
    pub answers: Option<Map>,
    pub correlation_id: Option<String>,
    /// The answer came as `{callId, outcome}`: its sender speaks the shipped dialect.
    pub is_coder: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashCommand {
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub arguments: Vec<SlashArgument>,
    #[serde(default, alias = "subCommands")]
    pub sub_commands: Vec<SlashCommand>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashArgument {
    pub name: String,
    pub description: String,
    #[serde(alias = "isRequired")]
    pub is_required: bool,
}

/// The state of a command when the request returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandExecution {
    #[serde(alias = "executionId")]
    pub execution_id: String,
    pub status: CommandStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CommandStatus {
    Started,
    FailedToStart,
    AwaitingShellConfirmation,
    AwaitingActionConfirmation,
}

/// Whether a data part is a decision. Such a part is never read as anything else.
pub fn is_confirmation(data: &Value) -> bool {
    ["tool_call_id", "toolCallId", "callId"].iter().any(|key| data.get(key).is_some())
}
