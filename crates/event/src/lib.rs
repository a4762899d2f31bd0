//! The vocabulary of Multitap: the events of a session with a coding agent, the commands to it, and the JSON form of
//! both.
//!
//! Everything else in the workspace speaks in these words. Adapters turn a CLI's own lines into
//! [`EventKind`]s and [`Command`]s into its lines; the owner of a session's log stamps each [`Draft`] into an
//! [`Event`]; doors and screens only ever see events.
//!
//! Must not come in: I/O, spawning, a protocol's wire shapes, a CLI's own words (other than the mode table).

mod a2a_server;
mod agent;
mod capabilities;
mod command;
mod config;
mod error;
mod event;
mod form;
mod id;
mod item;
mod legacy;
mod link;
mod mcp;
mod mode;
mod permission;
mod rule;
mod schema;
mod time;
mod usage;
mod values;
mod visible;
mod words;

pub use a2a_server::{A2aServer, A2aServerError};
pub use agent::{AgentKind, AgentType, UnknownAgent};
pub use capabilities::{AgentCapabilities, AgentCommand, AgentModel, CommandArgument, McpServerStatus};
pub use command::{Command, Image, ImageError, Prompt, Query, shell_line};
pub use config::{
    AgentProgram, PermissionPath, Resume, SandboxMode, SessionConfig, StatedConfig, Transport, Unsupported,
};
pub use error::{AgentError, AgentErrorKind, LaunchError, Setting, Severity};
pub use event::{Draft, Event, EventKind, SystemSubtype};
pub use form::{Elicitation, ElicitationAnswer, ElicitationWants, FieldType, FormField, TextFormat, answer_option};
pub use id::{ClientId, EventId, MessageId, OptionId, PromptId, QuestionId, SessionId, ToolId, TurnId};
pub use item::{
    AuthStatus, Denial, FileChange, FileChangeType, Reasoning, Retry, Role, SessionEnd, SessionEndReason, SessionStart,
    SystemNote, TextChunk, TextRetraction, TodoItem, TodoList, TodoStatus, ToolCompleted, ToolKind, ToolOutcome,
    ToolProgress, ToolStarted, TurnEnd, TurnStatus, UserMessage,
};
pub use legacy::upgraded;
pub use link::{AgentEnd, AgentLink, COMMAND_QUEUE, EVENT_QUEUE, EditReview, REVIEW_QUEUE, link};
pub use mcp::{McpReach, McpServer};
pub use mode::{ApprovalMode, Mode, NativeMode, UnknownMode};
pub use permission::{
    AskedQuestion, Choice, ChoiceKind, ClientRef, ClientRole, Decide, Details, Door, Edit, EditedCall, Question,
    Refused, Ruling, Withdrawal, option,
};
pub use rule::Rule;
pub use schema::schema;
pub use time::Timestamp;
pub use usage::{ModelUsage, TokenUsage};
pub use values::{MAX_JSON_VALUES, has_more_values};
pub use visible::{OutputPiece, is_hidden, output_pieces, push_mark, visible, visible_line, visible_output};
pub use words::{one_line, shortened};
