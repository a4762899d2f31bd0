//! Replies to calls.

use multitap_event::{ClientRef, PromptId, Rule, Ruling, SessionId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use super::{Refusal, SessionCall};
use crate::entry::Entry;
use crate::journal::Page;

use crate::session::ReplayGap;
use crate::state::State;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum SessionReply {
    Prompt(PromptReply),
    Decide(Box<Ruling>),
    Clients(ClientsReply),
    Rules(RulesReply),
    Snapshot(SnapshotReply),
    /// The reply to every other call: done.
    Done {},
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptReply {
    pub prompt_id: PromptId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientsReply {
    pub clients: Vec<ClientRef>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulesReply {
    pub rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotReply {
    pub session_id: SessionId,
    pub epoch: u64,
    pub snapshot: Box<State>,
}

/// The reply to `session/join`, and the notification `joined`.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinReply {
    pub session_id: SessionId,
    pub epoch: u64,
    /// The last event of the log.
    pub last: u64,
    /// The client, with its assigned id.
    pub client: ClientRef,
    pub snapshot: Option<Box<State>>,
    pub gap: Option<ReplayGap>,
}

/// The reply to `session/page`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageReply {
    #[serde(rename = "events", serialize_with = "write_events", deserialize_with = "read_events")]
    pub entries: Vec<Entry>,
    /// The last event of the whole log.
    pub last: u64,
}

/// The notification `replayGap`: every event after `after` and before `next` is lost.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GapNotice {
    #[serde(default)]
    pub after: u64,
    pub next: u64,
    /// The session's state after them; absent if it is over.
    pub snapshot: Option<Box<State>>,
}

impl SessionReply {
    pub fn read(call: &SessionCall, json: &str) -> serde_json::Result<Self> {
        Ok(match call {
            SessionCall::Prompt { .. } => Self::Prompt(serde_json::from_str(json)?),
            SessionCall::Decide(_) => Self::Decide(serde_json::from_str(json)?),
            SessionCall::Clients => Self::Clients(serde_json::from_str(json)?),
            SessionCall::Rules => Self::Rules(serde_json::from_str(json)?),
            SessionCall::Snapshot => Self::Snapshot(serde_json::from_str(json)?),
            SessionCall::Cancel
            | SessionCall::Withdraw { .. }
            | SessionCall::SetMode { .. }
            | SessionCall::SetModel { .. }
            | SessionCall::SetThinking { .. }
            | SessionCall::SetThinkingLevel { .. }
            | SessionCall::Query { .. }
            | SessionCall::Kick { .. }
            | SessionCall::Revoke { .. } => Self::Done {},
        })
    }

    /// For a reply that belongs to another call. Only a broken process sends one.
    pub(crate) fn unexpected(&self) -> Refusal {
        tracing::warn!("a session gave the reply to another call");
        Refusal::Connection { message: "the reply does not fit the request".to_owned() }
    }
}

impl From<Page> for PageReply {
    fn from(page: Page) -> Self {
        Self { entries: page.entries, last: page.last_seq }
    }
}

/// The events as stored. A damaged entry is not JSON and is left out.
fn write_events<S: Serializer>(entries: &[Entry], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(entries.iter().filter_map(|entry| serde_json::from_str::<&RawValue>(entry.json()).ok()))
}

fn read_events<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Entry>, D::Error> {
    let events = Vec::<Box<RawValue>>::deserialize(deserializer)?;
    Ok(events.iter().filter_map(|json| Entry::read(json.get())).collect())
}
