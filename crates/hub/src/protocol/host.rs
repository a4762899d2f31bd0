//! Calls to a host: which sessions there are, and what a session can have.

use std::path::PathBuf;

use multitap_event::{AgentCommand, AgentModel, Question, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::journal::SessionRecord;
use crate::state::{Presence, State};

/// Something a client asks of a host, which has many sessions or one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum HostCall {
    /// Lists sessions, live and stored, those that changed last first.
    Sessions(SessionsCall),
    Open(Box<OpenCall>),
    /// Resumes a stored session. One that is live stays as it is.
    #[serde(rename_all = "camelCase")]
    Resume {
        session_id: SessionId,
    },
    Agents,
    /// The models of a session's agent; without a session, of the agent that a new one would have.
    Models(AboutSession),
    /// The slash commands of a session's agent; without a session, of the agent that a new one would have.
    Commands(AboutSession),
    /// Files in the folder of a session, the best match first.
    Files(FilesCall),
    /// The open questions of all live sessions.
    Questions,
}

/// A page of the list of sessions.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionsCall {
    /// Only sessions in this folder.
    pub cwd: Option<PathBuf>,
    /// The last session of the page before.
    pub after: Option<SessionId>,
    pub limit: Option<usize>,
}

/// The client's wishes for a new session. The host checks all of them.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenCall {
    /// The folder to work in; the host's own if absent.
    pub cwd: Option<PathBuf>,
    /// More folders that the agent may work in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<PathBuf>,
    /// An agent by the name it has on this host.
    pub agent: Option<String>,
    pub model: Option<String>,
    /// An approval mode: a unified word.
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// As in settings: name to server.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub mcp_servers: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub environment: Map<String, Value>,
}

/// A session by its id; if absent, the one that the connection has joined.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AboutSession {
    pub session_id: Option<SessionId>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesCall {
    pub session_id: Option<SessionId>,
    /// Letters of the path, in order. Empty: the files nearest to the folder.
    #[serde(default)]
    pub query: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum HostReply {
    Sessions(SessionsReply),
    Opened(OpenReply),
    Agents { agents: Vec<AgentSummary> },
    Models { models: Vec<AgentModel> },
    Commands { commands: Vec<AgentCommand> },
    Files { files: Vec<String> },
    Questions { questions: Vec<SessionQuestion> },
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionsReply {
    pub sessions: Vec<SessionSummary>,
    /// There are more: what `after` takes for the next page.
    pub next: Option<SessionId>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub session_id: SessionId,
    /// The first prompt.
    pub title: Option<String>,
    pub agent: String,
    pub cwd: Option<PathBuf>,
    pub model: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub status: SessionStatus,
    /// How many questions are open.
    pub questions: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SessionStatus {
    /// The agent works on a prompt.
    Working,
    /// A question waits for an answer.
    Asking,
    /// The agent runs and waits for a prompt.
    Idle,
    /// Live in another process.
    Elsewhere,
    /// Its process ended during a turn.
    Interrupted,
    /// Stored, and can be resumed.
    Stored,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenReply {
    pub session_id: SessionId,
    /// The client's settings that were not granted, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// The name that `open` takes.
    pub name: String,
    /// A session that names no agent has this one.
    pub is_default: bool,
    pub is_installed: bool,
    pub install: Option<String>,
    /// How to sign in; absent if the user is signed in, or if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<String>,
}

/// An open question, and the session that asks it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionQuestion {
    pub session_id: SessionId,
    pub question: Question,
}

impl HostCall {
    /// The `type` of every call, which is also its method.
    pub const TYPES: [&str; 8] = ["sessions", "open", "resume", "agents", "models", "commands", "files", "questions"];
}

impl SessionSummary {
    /// A session that is not live in this process.
    pub fn stored(record: SessionRecord) -> Self {
        let status = match (&record.live, record.about.open) {
            (Some(_), _) => SessionStatus::Elsewhere,
            (None, true) => SessionStatus::Interrupted,
            (None, false) => SessionStatus::Stored,
        };
        Self {
            session_id: record.id,
            title: record.about.title,
            agent: record.agent.to_string(),
            cwd: record.folder,
            model: record.about.model,
            created: record.created,
            updated: record.updated,
            status,
            questions: 0,
        }
    }

    /// Adds the state of a session that is live in this process.
    #[must_use]
    pub fn live(mut self, state: &State) -> Self {
        self.questions = state.questions.open().len();
        self.status = match state {
            _ if self.questions > 0 => SessionStatus::Asking,
            State { turn: Some(_), .. } => SessionStatus::Working,
            State { agent: Presence::Gone, .. } => SessionStatus::Stored,
            State { .. } => SessionStatus::Idle,
        };
        self.title = state.title.clone().or(self.title);
        self.model = state.model.clone().or(self.model);
        self
    }
}
