//! Calls: what a client asks for.
//!
//! A new `SessionCall` also needs:
//!
//! - its name in `SessionCall::TYPES`;
//! - an arm in `session/task/asked.rs`, which carries it out, in `reply.rs`, which reads its reply, and in
//!   `far/task.rs`, which answers it from the state or forwards it;
//! - if its reply has content: `SessionCall::has_answer`, and the list of line types in `cli/src/cmd/run/request.rs`;
//! - if the agent must act: a `Command` of the crate `event`, which every codec encodes and `agent/src/run/command.rs`
//!   carries out.

use multitap_event::{ClientId, Decide, Prompt, PromptId, Query, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use super::{HostCall, Refusal};
use crate::journal::{Edge, Part};
use crate::session::{JoinFrom, WhenBusy};

/// Default and maximum number of events on a page.
const PAGE_EVENTS: usize = 100;
const MAX_PAGE_EVENTS: usize = 1000;
/// Most bytes on a page. A page has at least one event, however large.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Most characters of an unknown method that an error repeats.
const QUOTED_METHOD: usize = 100;

/// Something a client asks of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum SessionCall {
    /// Begins a turn. While one runs, `when_busy` decides.
    Prompt {
        #[serde(flatten)]
        prompt: Prompt,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when_busy: Option<WhenBusy>,
    },
    /// Answers a question.
    Decide(Decide),
    /// Cancels the running turn.
    Cancel,
    /// Removes a prompt from the queue.
    Withdraw {
        prompt_id: PromptId,
    },
    SetMode {
        mode: String,
    },
    SetModel {
        model: String,
    },
    SetThinking {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u32>,
    },
    SetThinkingLevel {
        level: String,
    },
    /// Asks the agent about itself. The answer is a `system` event.
    Query {
        what: Query,
    },
    Clients,
    Kick {
        client_id: ClientId,
    },
    /// The answers that hold for the rest of the session.
    Rules,
    Revoke {
        rule_id: String,
    },
    Snapshot,
}

/// Every request of a connection. Joining, reading pages and asking the host do not involve the session task.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionRequest {
    /// `session/join`
    Join(JoinCall),
    /// `session/page`
    Page(PageCall),
    Call(SessionCall),
    Host(HostCall),
}

/// Where a client begins to read: after an event, at the last `tail` events, or at the end.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JoinCall {
    pub after: Option<u64>,
    pub tail: Option<u64>,
    /// The epoch that `after` belongs to.
    pub epoch: Option<u64>,
    pub session_id: Option<SessionId>,
}

/// A page of the log: the events before or after one. With neither, the last events.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageCall {
    pub before: Option<u64>,
    pub after: Option<u64>,
    pub limit: Option<usize>,
}

impl SessionCall {
    /// The `type` of every call, which is also its method.
    pub const TYPES: [&str; 14] = [
        "prompt",
        "decide",
        "cancel",
        "withdraw",
        "setMode",
        "setModel",
        "setThinking",
        "setThinkingLevel",
        "query",
        "clients",
        "kick",
        "rules",
        "revoke",
        "snapshot",
    ];

    /// Reads a call from an object with a `type`.
    pub fn read(fields: Map<String, Value>) -> Result<Self, Refusal> {
        let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !Self::TYPES.contains(&kind.as_str()) {
            return Err(unknown(&kind, &Self::TYPES));
        }
        match parse(&kind, fields)? {
            Self::Prompt { prompt, .. } if prompt.text.trim().is_empty() && prompt.images.is_empty() => {
                Err(Refusal::InvalidParams { message: "prompt: text is empty".to_owned() })
            }
            // The session assigns the id.
            Self::Prompt { prompt, when_busy } => {
                Ok(Self::Prompt { prompt: Prompt { prompt_id: None, ..prompt }, when_busy })
            }
            call => Ok(call),
        }
    }

    /// The method and params of a JSON-RPC request.
    pub fn to_request(&self) -> (String, Value) {
        to_request(self)
    }

    /// Whether its reply has content.
    pub fn has_answer(&self) -> bool {
        matches!(self, Self::Clients | Self::Rules | Self::Snapshot)
    }
}

impl SessionRequest {
    const JOIN: &str = "session/join";
    const PAGE: &str = "session/page";

    /// Reads a JSON-RPC request.
    pub fn read(method: &str, params: Option<Value>) -> Result<Self, Refusal> {
        let mut fields = match params {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(fields)) => fields,
            Some(_) => return Err(Refusal::InvalidParams { message: "params must be an object".to_owned() }),
        };
        match method {
            Self::JOIN => Ok(Self::Join(parse(method, fields)?)),
            Self::PAGE => Ok(Self::Page(parse(method, fields)?)),
            method if SessionCall::TYPES.contains(&method) => {
                fields.insert("type".to_owned(), method.into());
                SessionCall::read(fields).map(Self::Call)
            }
            method if HostCall::TYPES.contains(&method) => {
                fields.insert("type".to_owned(), method.into());
                parse(method, fields).map(Self::Host)
            }
            method => {
                let known = [&SessionCall::TYPES[..], &[Self::JOIN, Self::PAGE], &HostCall::TYPES].concat();
                Err(unknown(method, &known))
            }
        }
    }

    /// The method and params of a JSON-RPC request.
    pub fn to_request(&self) -> (String, Value) {
        match self {
            Self::Join(join) => (Self::JOIN.to_owned(), serde_json::to_value(join).unwrap_or_default()),
            Self::Page(page) => (Self::PAGE.to_owned(), serde_json::to_value(page).unwrap_or_default()),
            Self::Call(call) => call.to_request(),
            Self::Host(call) => to_request(call),
        }
    }
}

impl JoinCall {
    pub fn after(seq: u64, epoch: Option<u64>) -> Self {
        Self { after: Some(seq), epoch, ..Self::default() }
    }

    pub fn from(&self) -> Result<JoinFrom, Refusal> {
        match (self.after, self.tail) {
            (Some(_), Some(_)) => {
                Err(Refusal::InvalidParams { message: "session/join: after or tail, not both".to_owned() })
            }
            (Some(seq), None) => Ok(JoinFrom::After { seq, epoch: self.epoch }),
            (None, Some(count)) => Ok(JoinFrom::Tail(count)),
            (None, None) => Ok(JoinFrom::Now),
        }
    }
}

impl PageCall {
    /// The range of a log whose last event is `last`.
    pub(crate) fn part(&self, last: u64) -> Result<Part, Refusal> {
        let limit = self.limit.unwrap_or(PAGE_EVENTS).clamp(1, MAX_PAGE_EVENTS);
        let edge = match (self.before, self.after) {
            (Some(_), Some(_)) => {
                let message = "session/page: before or after, not both".to_owned();
                return Err(Refusal::InvalidParams { message });
            }
            (None, Some(after)) => Edge::After(after),
            (before, None) => Edge::Before(before.unwrap_or(last + 1)),
        };
        Ok(Part { edge, limit, bytes: PAGE_BYTES })
    }
}

impl From<Part> for PageCall {
    fn from(part: Part) -> Self {
        let limit = Some(part.limit);
        match part.edge {
            Edge::After(seq) => Self { after: Some(seq), before: None, limit },
            Edge::Before(seq) => Self { after: None, before: Some(seq), limit },
        }
    }
}

fn parse<T: DeserializeOwned>(kind: &str, fields: Map<String, Value>) -> Result<T, Refusal> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| Refusal::InvalidParams { message: format!("{kind}: {error}") })
}

/// The method and params of a call that serializes to an object with a `type`. An empty method would be refused as
/// unknown.
fn to_request(call: &impl Serialize) -> (String, Value) {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(call) else { return (String::new(), Value::Null) };
    let method = fields.remove("type");
    (method.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(), Value::Object(fields))
}

fn unknown(method: &str, known: &[&str]) -> Refusal {
    let method: String = method.chars().take(QUOTED_METHOD).collect();
    Refusal::UnknownMethod { message: format!("unknown method '{method}'; use {}", known.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{AboutSession, FilesCall, OpenCall, SessionsCall};
    use super::*;

    #[test]
    fn every_call_reads_back_as_it_was_written() {
        let calls = [
            SessionCall::Prompt { prompt: Prompt::text("hi"), when_busy: None },
            SessionCall::Prompt { prompt: Prompt::text("hi"), when_busy: Some(WhenBusy::Interrupt) },
            SessionCall::Decide(Decide::new(&"q".into(), "cancel").with_feedback("no")),
            SessionCall::Cancel,
            SessionCall::Withdraw { prompt_id: "p".into() },
            SessionCall::SetMode { mode: "plan".into() },
            SessionCall::SetModel { model: "m".into() },
            SessionCall::SetThinking { tokens: Some(5) },
            SessionCall::SetThinking { tokens: None },
            SessionCall::SetThinkingLevel { level: "high".into() },
            SessionCall::Query { what: Query::Models },
            SessionCall::Clients,
            SessionCall::Kick { client_id: "c".into() },
            SessionCall::Rules,
            SessionCall::Revoke { rule_id: "r".into() },
            SessionCall::Snapshot,
        ];
        for call in calls {
            let (method, params) = call.to_request();
            assert!(SessionCall::TYPES.contains(&method.as_str()), "{method}");
            assert_eq!(SessionRequest::read(&method, Some(params)), Ok(SessionRequest::Call(call)), "{method}");
        }
        for request in [
            SessionRequest::Join(JoinCall { session_id: Some("s".into()), ..JoinCall::after(3, Some(2)) }),
            SessionRequest::Page(PageCall { before: Some(7), after: None, limit: Some(5) }),
            SessionRequest::Host(HostCall::Sessions(SessionsCall { limit: Some(5), ..SessionsCall::default() })),
            SessionRequest::Host(HostCall::Open(Box::new(OpenCall {
                agent: Some("builtin".into()),
                ..OpenCall::default()
            }))),
            SessionRequest::Host(HostCall::Resume { session_id: "s".into() }),
            SessionRequest::Host(HostCall::Agents),
            SessionRequest::Host(HostCall::Models(AboutSession { session_id: Some("s".into()) })),
            SessionRequest::Host(HostCall::Commands(AboutSession::default())),
            SessionRequest::Host(HostCall::Files(FilesCall { session_id: None, query: "main".into() })),
            SessionRequest::Host(HostCall::Questions),
        ] {
            let (method, params) = request.to_request();
            assert_eq!(SessionRequest::read(&method, Some(params)), Ok(request), "{method}");
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (method, params, why) in [
            ("fly", json!({}), "session/join"),
            ("prompt", json!({}), "text"),
            ("prompt", json!({ "text": " " }), "text is empty"),
            ("prompt", json!({ "text": "hi", "whenBusy": "now" }), "`queue`"),
            ("prompt", json!([]), "object"),
            ("decide", json!({ "questionId": "q" }), "optionId"),
            ("setMode", json!({ "mode": 1 }), "string"),
            ("query", json!({ "what": "weather" }), "weather"),
            ("session/join", json!({ "after": -1 }), "-1"),
        ] {
            let refusal = SessionRequest::read(method, Some(params)).unwrap_err();
            assert_eq!(matches!(refusal, Refusal::UnknownMethod { .. }), method == "fly", "{method}: {refusal:?}");
            assert!(refusal.to_string().contains(why), "{method}: {refusal}");
        }
    }

    #[test]
    fn a_join_begins_where_it_says() {
        let from = |params: Value| match SessionRequest::read("session/join", Some(params)).unwrap() {
            SessionRequest::Join(join) => join.from(),
            other => panic!("{other:?}"),
        };
        assert_eq!(from(Value::Null), Ok(JoinFrom::Now));
        assert_eq!(from(json!({ "tail": 5 })), Ok(JoinFrom::Tail(5)));
        assert_eq!(from(json!({ "after": 0, "epoch": 2 })), Ok(JoinFrom::After { seq: 0, epoch: Some(2) }));
        assert!(from(json!({ "after": 1, "tail": 1 })).is_err());
    }
}
