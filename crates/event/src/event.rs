//! One entry of a session's log, and the closed set of kinds of entries.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

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
    /// Assigned by the owner of the log; gap-free within a session, from 1.
    pub seq: u64,
    #[serde(flatten, deserialize_with = "legacy::kind")]
    pub kind: EventKind,
    /// The native lines it came from, when the session keeps them. Each line is in exactly one event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub raw: Vec<Arc<str>>,
}

/// What happened.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EventKind {
    /// The agent is ready. The first event of the agent, once.
    SessionStarted(SessionStart),
    /// Work began. Exactly one `turnCompleted` follows.
    TurnStarted {
        turn_id: TurnId,
    },
    TextChunk(TextChunk),
    /// Streamed text does not count: every client removes it.
    TextRetracted(TextRetraction),
    Reasoning(Reasoning),
    ToolStarted(ToolStarted),
    ToolProgress(ToolProgress),
    ToolCompleted(ToolCompleted),
    FileChanged(FileChange),
    TodoList(TodoList),
    TurnCompleted(TurnEnd),
    /// The agent has ended. The last event of the agent, once.
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
    /// A native line that has no event of its own; emitted only when native lines are kept.
    RawDelta {
        /// The line's own type, where it has one.
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
        from: Option<ClientRef>,
        /// The prompt comes before the others that wait.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        first: bool,
    },
    /// A queued prompt will not be sent.
    PromptWithdrawn {
        prompt_id: PromptId,
        by: Option<ClientRef>,
    },
    /// The agent waits for an answer.
    PermissionAsked(Question),
    /// An answer won; every client closes the dialog.
    PermissionSettled(Ruling),
    /// The question needs no answer any more; every client closes the dialog.
    PermissionWithdrawn(Withdrawal),
    ModeChanged {
        /// Absent where the agent's mode has no unified word.
        mode: Option<ApprovalMode>,
        native_mode: Option<String>,
        by: Option<ClientRef>,
    },
    ModelChanged {
        model: String,
        by: Option<ClientRef>,
    },
    ClientJoined {
        client: ClientRef,
    },
    ClientLeft {
        client: ClientRef,
        reason: Option<String>,
    },
    /// A native line that no decoder knows, kept so that nothing is lost silently.
    Unrecognized {
        /// The line; a very long one is cut, and `bytes` is its original length.
        line: String,
        /// Why it was not decoded.
        reason: String,
        bytes: Option<u64>,
    },
}

/// Words for `system` events that every agent shares; agents add their own.
#[derive(Debug)]
pub struct SystemSubtype;

impl SystemSubtype {
    /// The agent summed up the conversation to make room.
    pub const COMPACTED: &'static str = "compacted";
    /// The answer to a [`crate::Query`] of that name.
    pub const MCP_STATUS: &'static str = "mcpStatus";
    pub const ACCOUNT: &'static str = "account";
    pub const CONTEXT: &'static str = "context";
    /// From here on, events are stored again, or are not stored.
    pub const LOG: &'static str = "log";
    /// The events before are those of another session, which continues on its own.
    pub const FORKED: &'static str = "forked";
}

/// An event that has no number yet.
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

    /// Makes the draft an entry of that session's log.
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
