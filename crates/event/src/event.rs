//! One entry of a session's log, and the closed set of what an entry can be.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::legacy;
use crate::{
    AgentCapabilities, AgentError, ApprovalMode, AuthStatus, ClientRef, EventId, FileChange, McpServerStatus, Prompt,
    PromptId, Question, Reasoning, Retry, Rule, Ruling, SessionEnd, SessionId, SessionStart, SystemNote, TextChunk,
    TextRetraction, Timestamp, TodoList, ToolCompleted, ToolProgress, ToolStarted, TurnEnd, TurnId, UserMessage,
    Withdrawal,
};

/// An entry of the log. As JSON one object: the envelope's fields, `type`, then the fields of that type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub id: EventId,
    pub session_id: SessionId,
    pub timestamp: Timestamp,
    /// Stamped by whoever owns the log; gap-free within a session, from 1.
    pub seq: u64,
    #[serde(flatten, deserialize_with = "legacy::kind")]
    pub kind: EventKind,
    /// The native lines it came from, if the session includes them. Each line is in exactly one event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub raw: Vec<Arc<str>>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// The agent has started. Once, as its first event.
    SessionStarted(SessionStart),
    /// Work began. Exactly one `turnCompleted` follows.
    TurnStarted {
        turn_id: TurnId,
    },
    TextChunk(TextChunk),
    /// Streamed text does not count: clients remove it.
    TextRetracted(TextRetraction),
    Reasoning(Reasoning),
    ToolStarted(ToolStarted),
    ToolProgress(ToolProgress),
    ToolCompleted(ToolCompleted),
    FileChanged(FileChange),
    TodoList(TodoList),
    TurnCompleted(TurnEnd),
    /// The agent has ended. Once, as its last event.
    SessionEnded(SessionEnd),
    /// The agent's own id of the conversation changed.
    NativeSessionChanged {
        native_session_id: String,
    },
    Capabilities(AgentCapabilities),
    McpServerStatus(McpServerStatus),
    /// An "always" answer became a rule.
    RuleAdded(Rule),
    /// A rule no longer holds.
    RuleRevoked(Rule),
    /// A notice for people.
    System(SystemNote),
    /// A native line without an event of its own; only if native lines are included.
    RawDelta {
        /// The line's type, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native_type: Option<String>,
    },
    Error(AgentError),
    Retry(Retry),
    AuthStatus(AuthStatus),
    /// A prompt was sent to the agent.
    UserMessage(UserMessage),
    /// A prompt waits for the running turn to end.
    PromptQueued {
        prompt: Prompt,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<ClientRef>,
        /// Whether it comes before the other queued prompts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        first: bool,
    },
    /// A queued prompt was withdrawn.
    PromptWithdrawn {
        prompt_id: PromptId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ClientRef>,
    },
    /// The agent waits until somebody answers.
    PermissionAsked(Question),
    /// An answer won; clients close the dialog.
    PermissionSettled(Ruling),
    /// The question needs no answer any more; clients close the dialog.
    PermissionWithdrawn(Withdrawal),
    ModeChanged {
        /// Absent if the agent's mode has no unified name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<ApprovalMode>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native_mode: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ClientRef>,
    },
    ModelChanged {
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ClientRef>,
    },
    ClientJoined {
        client: ClientRef,
    },
    ClientLeft {
        client: ClientRef,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A native line that no decoder understands, so that nothing is lost.
    Unrecognized {
        /// The line. A very long line is cut, and `bytes` is its full length.
        line: String,
        /// Why it was not understood.
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
}

/// Subtypes of `system` events that all agents share; agents add their own.
#[derive(Debug)]
pub struct SystemSubtype;

impl SystemSubtype {
    /// The agent summarized the conversation.
    pub const COMPACTED: &'static str = "compacted";
    /// The answer to a [`crate::Query`] of that name.
    pub const COMMANDS: &'static str = "commands";
    pub const MODELS: &'static str = "models";
    pub const MCP_STATUS: &'static str = "mcpStatus";
    pub const ACCOUNT: &'static str = "account";
    pub const CONTEXT: &'static str = "context";
    /// Whether events are stored from here on changed.
    pub const LOG: &'static str = "log";
}

/// An event before the owner of the log stamps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub at: Timestamp,
    pub kind: EventKind,
    pub raw: Vec<Arc<str>>,
}

impl Draft {
    pub fn new(at: Timestamp, kind: EventKind) -> Self {
        Self { at, kind, raw: Vec::new() }
    }

    /// Makes it an entry of that session's log.
    pub fn stamp(mut self, session_id: SessionId, seq: u64) -> Event {
        // Otherwise an agent's own notice could be read from the log as a rule, for example.
        if let EventKind::System(note) = &mut self.kind
            && legacy::is_reserved(&note.subtype)
        {
            note.subtype.insert_str(0, "agent:");
        }
        Event { id: EventId::fresh(self.at), session_id, timestamp: self.at, seq, kind: self.kind, raw: self.raw }
    }
}
