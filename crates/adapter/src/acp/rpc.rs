//! JSON-RPC 2.0 lines: what we ask and wait for, and how we answer.

use serde_json::{Value, json};

/// The method is not known here.
pub(super) const NO_METHOD: i64 = -32601;
/// The request was taken back before it was answered.
pub(super) const CANCELLED: i64 = -32800;
/// The agent wants somebody to sign in first.
pub(super) const AUTH_REQUIRED: i64 = -32000;

/// One thing we ask.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentRequest {
    Initialize,
    /// The stored conversations, to resume the newest.
    List,
    New,
    /// Also reports the whole conversation again.
    Load(String),
    Resume(String),
    Fork(String),
    /// Nothing at all: its answer shows what was said before it. `seen` is how much of the history was there already.
    Fence {
        seen: u64,
    },
    Mode(String),
    Model(String),
    Prompt,
}

impl AgentRequest {
    /// For people, after "refused".
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
            Self::Prompt => "the prompt".to_owned(),
        }
    }
}

/// The line that asks something of the agent.
pub(super) fn request(id: u64, method: &str, params: Value) -> String {
    line([("id", id.into()), ("method", method.into()), ("params", params)])
}

/// The number of the request that a reply with that id answers. Some agents send numbers back as text.
pub(super) fn number(id: &Value) -> Option<u64> {
    id.as_u64().or_else(|| id.as_str()?.parse().ok())
}

/// A line that wants no answer.
pub(super) fn notification(method: &str, params: Value) -> String {
    line([("method", method.into()), ("params", params)])
}

/// The line that answers a request of the agent's.
pub(super) fn result(id: &Value, result: Value) -> String {
    line([("id", id.clone()), ("result", result)])
}

/// The line that refuses one.
pub(super) fn refusal(id: &Value, code: i64, message: &str) -> String {
    line([("id", id.clone()), ("error", json!({ "code": code, "message": message }))])
}

fn line<const N: usize>(members: [(&str, Value); N]) -> String {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::from_iter([("jsonrpc".to_owned(), "2.0".into())].into_iter().chain(members)).to_string()
}
