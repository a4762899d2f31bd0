//! Refusals: why a call failed.

use std::borrow::Cow;

use multitap_event::{ApprovalMode, ClientId, LaunchError, PromptId, Refused, SessionId, Unsupported};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::hub::OpenError;
use crate::journal::JournalError;

/// Why a session or its host refused a call.
///
/// Its JSON is tagged by `code`, which is stable; the message is for people and may be reworded. A code of another
/// version is [`Refusal::Unknown`] and keeps its message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Refusal {
    #[error("the session has ended")]
    SessionEnded,
    #[error("observers can only watch this session")]
    Observer,
    /// By an owner; the client has not joined again since.
    #[error("you were kicked from this session: join it again first")]
    Kicked,
    #[error("the agent is not running")]
    NoAgent,
    #[error("the agent is running")]
    AgentRunning,
    #[error("the session is busy: too much is waiting for the agent or for a client that reads its events")]
    Busy,
    /// Only an owner may exceed the limit that owners chose.
    #[error("mode {mode} may run more without asking than {ceiling}, the limit set by the owner of this session")]
    BeyondCeiling { mode: String, ceiling: ApprovalMode },
    #[error("the session accepts no more prompts: it ends after the running turn")]
    Draining,
    #[error("the prompt queue is full (at most 64 prompts, 32 MiB together): send it again once the agent is idle")]
    QueueFull,
    #[error("a prompt with id {prompt_id} is queued or running already: give this one another id")]
    PromptIdTaken { prompt_id: PromptId },
    #[error("the agent cannot be steered during a turn: queue the prompt, or interrupt")]
    CannotSteer,
    #[error("no turn is running")]
    NoTurn,
    #[error("prompt {prompt_id} is not in the queue")]
    PromptNotQueued { prompt_id: PromptId },
    #[error("there is no rule {rule_id}")]
    UnknownRule { rule_id: String },
    #[error("this rule comes from another client's answer: only that client or an owner of this session may revoke it")]
    RuleOfOther,
    #[error("rule {rule_id} is saved in the agent's own settings: remove it there")]
    SavedRule { rule_id: String },
    #[error("only an owner of this session may kick other clients")]
    NotOwner,
    /// The client of the process that owns the session.
    #[error("this client is the host of the session and cannot be kicked")]
    HostClient,
    #[error("there is no client {client_id}")]
    UnknownClient { client_id: ClientId },
    #[error("too many clients have joined")]
    TooManyClients,
    /// Only the process that owns the session can do it.
    #[error("this session runs in another process: that can only be done there")]
    NotHere,
    /// The request did not reach the other process, or its reply was lost.
    #[error("{message}")]
    Connection { message: String },
    #[error("{message}")]
    LogUnavailable { message: String },
    #[error("there is no session {session_id}")]
    UnknownSession { session_id: SessionId },
    /// The host has many sessions, and the client named none.
    #[error("this host has many sessions: name one with session/join {{\"sessionId\": ...}} or ?session=ID")]
    NoSession,
    #[error("session {session_id} is live in process {pid}")]
    LiveElsewhere { session_id: SessionId, pid: u32 },
    #[error("session {session_id} is live in this process already")]
    LiveHere { session_id: SessionId },
    /// A setting of a new session is wrong or not allowed.
    #[error("{setting}: {why}")]
    InvalidSetting { setting: Cow<'static, str>, why: String },
    #[error("too many sessions are active on this host: try again when one of them is idle")]
    TooManySessions,
    #[error("the session at this address has not started yet: try again in a moment")]
    NotReady,
    #[error("multitap is shutting down")]
    ShuttingDown,
    /// The agent could not be started.
    #[error("{message}")]
    AgentFailed { message: String },
    #[error("{message}")]
    InvalidParams { message: String },
    #[error("{message}")]
    UnknownMethod { message: String },
    /// A refusal of another version of Multitap.
    #[error("{message}")]
    #[serde(skip)]
    Unknown { code: Option<String>, message: String },
    /// The answer to a question does not count. `Refused::Observer` is [`Refusal::Observer`] here.
    #[error(transparent)]
    #[serde(untagged)]
    Answer(Refused),
}

impl Refusal {
    /// The part for programs: the `code` and the fields of that refusal, without the message.
    pub fn data(&self) -> Map<String, Value> {
        let mut data = match (self, serde_json::to_value(self)) {
            (Self::Unknown { code: Some(code), .. }, _) => Map::from_iter([("code".to_owned(), code.as_str().into())]),
            (_, Ok(Value::Object(data))) => data,
            (_, Ok(_) | Err(_)) => Map::new(),
        };
        data.remove("message");
        data
    }

    /// Reads a refusal from its message and from [`data`](Self::data). Never fails.
    pub fn read(message: String, data: Map<String, Value>) -> Self {
        let code = data.get("code").and_then(Value::as_str).map(str::to_owned);
        let mut fields = data;
        fields.insert("message".to_owned(), message.as_str().into());
        let known = code.is_some().then(|| serde_json::from_value(Value::Object(fields)).ok()).flatten();
        known.unwrap_or(Self::Unknown { code, message })
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Observer => Self::Observer,
            other => Self::Answer(other),
        }
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NoSuchSession(session_id) => Self::UnknownSession { session_id },
            JournalError::LiveElsewhere { session, holder } => {
                Self::LiveElsewhere { session_id: session, pid: holder.pid }
            }
            JournalError::LiveHere(session_id) => Self::LiveHere { session_id },
            JournalError::Full
            | JournalError::Locked
            | JournalError::Damaged(_)
            | JournalError::Newer { .. }
            | JournalError::Lost(_)
            | JournalError::Other(_) => Self::LogUnavailable { message: error.to_string() },
        }
    }
}

impl From<LaunchError> for Refusal {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Unsupported(Unsupported { setting, why, agent }) => {
                // A request has no dashes before its settings.
                let setting = setting.trim_start_matches('-').to_owned().into();
                Self::InvalidSetting { setting, why: format!("{agent} cannot honour it: {why}") }
            }
            LaunchError::Agent(error) => Self::AgentFailed { message: error.message },
        }
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Launch(error) => (*error).into(),
            OpenError::Journal(error) => error.into(),
            OpenError::Live(session_id) => Self::LiveHere { session_id },
            OpenError::ShutDown => Self::ShuttingDown,
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::AgentType;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_setting_that_an_agent_does_not_support_is_the_clients_mistake() {
        let unsupported = Unsupported::new(AgentType::Builtin, "--model", "unknown provider 'nope'");
        let refusal = Refusal::from(LaunchError::from(unsupported));
        assert_eq!(refusal.data()["code"], "invalidSetting");
        assert_eq!(refusal.to_string(), "model: builtin cannot honour it: unknown provider 'nope'");
    }

    #[test]
    fn a_code_of_another_version_keeps_its_message() {
        let read = |data: Value| match data {
            Value::Object(data) => Refusal::read("not today".to_owned(), data),
            other => panic!("{other}"),
        };
        for (data, code) in [
            (json!({}), None),
            (json!({ "offered": ["a"] }), None),
            (json!({ "code": 7 }), None),
            (json!({ "code": "ofTomorrow", "more": 1 }), Some("ofTomorrow".to_owned())),
            // A known code without its fields.
            (json!({ "code": "unknownClient" }), Some("unknownClient".to_owned())),
        ] {
            let refusal = read(data.clone());
            assert_eq!(refusal, Refusal::Unknown { code: code.clone(), message: "not today".to_owned() }, "{data}");
            assert_eq!(refusal.data().get("code"), code.map(Value::from).as_ref());
        }
        assert_eq!(read(json!({ "code": "noTurn", "more": 1 })), Refusal::NoTurn);
    }
}
