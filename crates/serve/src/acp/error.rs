//! Refusals as ACP errors: one place, every case.

use multitap_event::Refused;
use multitap_hub::Refusal;
use serde_json::{Map, Value, json};

/// Codes of JSON-RPC and ACP, and our own for answers.
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const AUTH_REQUIRED: i64 = -32000;
const NOT_FOUND: i64 = -32002;
const SETTLED: i64 = -32011;
const NOT_CONTROLLER: i64 = -32012;
const CANCELLED: i64 = -32800;

/// The `error` of a response as JSON. Its data has the stable `code` of the refusal.
pub(super) fn of(refusal: &Refusal) -> String {
    written(code(refusal), &refusal.to_string(), refusal.data())
}

pub(super) fn written(code: i64, message: &str, data: Map<String, Value>) -> String {
    let mut error = json!({ "code": code, "message": message });
    if let Value::Object(error) = &mut error
        && !data.is_empty()
    {
        error.insert("data".to_owned(), data.into());
    }
    error.to_string()
}

/// For a request that was cancelled, or that nothing answers any more.
pub(super) fn cancelled(message: &str) -> String {
    written(CANCELLED, message, Map::new())
}

/// An agent failed, and its user is not signed in.
pub(super) fn not_signed_in(message: &str, agent: &str, fix: &str) -> String {
    let data = [("code", "notSignedIn"), ("agent", agent), ("fix", fix)];
    let data = data.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    written(AUTH_REQUIRED, &format!("{message}; {agent} is not signed in: {fix}"), data)
}

pub(super) fn invalid_params(message: impl Into<String>) -> Refusal {
    Refusal::InvalidParams { message: message.into() }
}

fn code(refusal: &Refusal) -> i64 {
    match refusal {
        Refusal::UnknownMethod { .. } => METHOD_NOT_FOUND,
        Refusal::UnknownSession { .. } => NOT_FOUND,
        Refusal::Answer(Refused::AlreadySettled(_)) => SETTLED,
        Refusal::Observer
        | Refusal::Kicked
        | Refusal::BeyondCeiling { .. }
        | Refusal::RuleOfOther
        | Refusal::NotOwner
        | Refusal::HostClient
        | Refusal::Answer(Refused::Observer | Refused::OwnerOnly { .. }) => NOT_CONTROLLER,
        Refusal::Answer(
            Refused::UnknownQuestion { .. }
            | Refused::NotOffered { .. }
            | Refused::DoesNotFit { .. }
            | Refused::EditRefused { .. }
            | Refused::Withdrawn { .. },
        )
        | Refusal::PromptIdTaken { .. }
        | Refusal::PromptNotQueued { .. }
        | Refusal::UnknownRule { .. }
        | Refusal::UnknownClient { .. }
        | Refusal::NoSession
        | Refusal::InvalidSetting { .. }
        | Refusal::InvalidParams { .. } => INVALID_PARAMS,
        Refusal::SessionEnded
        | Refusal::NoAgent
        | Refusal::AgentRunning
        | Refusal::Busy
        | Refusal::Draining
        | Refusal::QueueFull
        | Refusal::CannotSteer
        | Refusal::NoTurn
        | Refusal::SavedRule { .. }
        | Refusal::TooManyClients
        | Refusal::NotHere
        | Refusal::Connection { .. }
        | Refusal::LogUnavailable { .. }
        | Refusal::LiveElsewhere { .. }
        | Refusal::LiveHere { .. }
        | Refusal::TooManySessions
        | Refusal::NotReady
        | Refusal::ShuttingDown
        | Refusal::AgentFailed { .. }
        | Refusal::Unknown { .. } => INTERNAL,
    }
}
