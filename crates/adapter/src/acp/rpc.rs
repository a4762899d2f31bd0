//! JSON-RPC 2.0 lines: our requests, and our answers to the agent's.

use serde_json::{Value, json};

pub(super) const NO_METHOD: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The request was withdrawn before it was answered.
pub(super) const CANCELLED: i64 = -32800;
pub(super) const AUTH_REQUIRED: i64 = -32000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentRequest {
    Initialize,
    /// The stored conversations, to resume the newest.
    List,
    New,
    /// Also replays the whole conversation.
    Load(String),
    Resume(String),
    Fork(String),
    /// A request without effect: everything sent before its answer belongs to the opening. `seen` is how much of the
    /// history had arrived when it was sent.
    Fence {
        seen: u64,
    },
    Mode(String),
    Model(String),
    Thinking(String),
    Prompt,
}

impl AgentRequest {
    /// The request in words, after "refused".
    pub(super) fn named(&self) -> String {
        match self {
            Self::Initialize => "to begin".to_owned(),
            Self::List => "to list its conversations".to_owned(),
            Self::New => "a new conversation".to_owned(),
            Self::Load(id) | Self::Resume(id) => format!("to resume conversation {id}"),
            Self::Fork(id) => format!("to fork conversation {id}"),
            Self::Fence { .. } => "a question about nothing".to_owned(),
            Self::Mode(mode) => format!("mode '{mode}'"),
            Self::Model(model) => format!("model '{model}'"),
            Self::Thinking(level) => format!("thinking level '{level}'"),
            Self::Prompt => "the prompt".to_owned(),
        }
    }
}

pub(super) fn request(id: u64, method: &str, params: Value) -> String {
    line([("id", id.into()), ("method", method.into()), ("params", params)])
}

/// The number of the request that a reply with that id answers. Some agents send numbers back as text.
pub(super) fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

pub(super) fn notification(method: &str, params: Value) -> String {
    line([("method", method.into()), ("params", params)])
}

pub(super) fn result(id: &Value, result: Value) -> String {
    line([("id", id.clone()), ("result", result)])
}

pub(super) fn refusal(id: &Value, code: i64, message: &str) -> String {
    line([("id", id.clone()), ("error", json!({ "code": code, "message": message }))])
}

fn line<const N: usize>(members: [(&str, Value); N]) -> String {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::from_iter([("jsonrpc".to_owned(), "2.0".into())].into_iter().chain(members)).to_string()
}
