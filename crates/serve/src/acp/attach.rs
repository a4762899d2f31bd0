//! Many clients on one session, for those that know of each other: the words of ACP's proposal for multi-client attach, as
//! extension methods. Stock clients need none of it.

use multitap_event::{ClientRef, ClientRole, QuestionId, Ruling, SessionId};
use multitap_hub::State;
use serde::Deserialize;
use serde_json::{Value, json};

use super::attachment::Start;
use super::config::{self, Choices};

pub(super) const ATTACH: &str = "_multitap/session/attach";
pub(super) const DETACH: &str = "_multitap/session/detach";
/// Tells who answered a question.
pub(super) const RESOLVED: &str = "_multitap/permission_resolved";

/// What `initialize` says about it.
pub(super) fn capability() -> Value {
    json!({ "roles": ["controller", "observer"], "historyPolicies": ["full", "pending_only", "none"] })
}

/// The parameters of [`ATTACH`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attach {
    pub(super) session_id: SessionId,
    role: Option<Role>,
    #[serde(default)]
    pub(super) history_policy: HistoryPolicy,
}

/// The parameters of [`DETACH`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detach {
    pub(super) session_id: SessionId,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Role {
    Controller,
    Observer,
}

/// What a client is shown of the time before it attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HistoryPolicy {
    #[default]
    Full,
    /// Running calls, the plan and open questions.
    PendingOnly,
    None,
}

impl HistoryPolicy {
    pub(super) fn start(self) -> Start {
        match self {
            Self::Full => Start::Replay,
            Self::PendingOnly => Start::Now,
            Self::None => Start::Unseen,
        }
    }
}

impl Attach {
    /// The role of the client here: what it asks for never raises its rights.
    pub(super) fn lowered(&self, role: Option<ClientRole>) -> Option<ClientRole> {
        match (role, self.role) {
            (Some(ClientRole::Observer), _) | (_, Some(Role::Observer)) => Some(ClientRole::Observer),
            (_, Some(Role::Controller)) => Some(ClientRole::Controller),
            (role, None) => role,
        }
    }

    /// The `result` of the request.
    pub(super) fn result(&self, client: &ClientRef, state: &State, choices: &Choices) -> String {
        let result = json!({
            "sessionId": self.session_id,
            "clientId": client.client_id,
            "role": client.role.unwrap_or(ClientRole::Owner),
            "clients": state.clients,
            "modes": config::modes(state, choices.modes),
            "configOptions": config::options(state, choices),
        });
        result.to_string()
    }
}

/// The parameters of [`RESOLVED`]; without a ruling nobody needs to answer any more.
pub(super) fn resolved(session: &SessionId, question: &QuestionId, ruling: Option<&Ruling>) -> Value {
    let outcome = match ruling {
        Some(ruling) => json!({ "outcome": "selected", "optionId": ruling.selected_option_id }),
        None => json!({ "outcome": "cancelled" }),
    };
    let mut params = json!({ "sessionId": session, "questionId": question, "outcome": outcome });
    if let (Value::Object(params), Some(ruling)) = (&mut params, ruling) {
        params.insert("resolvedBy".to_owned(), json!(ruling.settled_by));
        params.insert("at".to_owned(), json!(ruling.at));
    }
    params
}
