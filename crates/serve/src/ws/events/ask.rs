//! What a client of events can ask of a session, and the answer as JSON.

use multitap_a2a::{Error, ErrorKind};
use multitap_event::{ClientId, ClientRef, Decide, Prompt, PromptId, Query, SessionId};
use multitap_hub::{Edge, JoinFrom, Part, Session, WhenBusy};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error;

/// How many events a page has if the client does not say, and at most.
const PAGE: usize = 100;
const LARGEST_PAGE: usize = 1000;
/// And how large it is.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// The methods there are, for who asks for another.
const METHODS: &str = "session/join, session/page, prompt, decide, cancel, setMode, setModel, setThinking, query, \
                       withdraw, clients, kick, rules, revoke, snapshot";

/// One request, but for `session/join`.
#[derive(Debug)]
pub(super) enum Ask {
    Page(Paging),
    Prompt { prompt: Prompt, when_busy: WhenBusy },
    Decide(Decide),
    Cancel,
    SetMode(String),
    SetModel(String),
    SetThinking(Option<u32>),
    Query(Query),
    Withdraw(PromptId),
    Clients,
    Kick(ClientId),
    Rules,
    Revoke(String),
    Snapshot,
}

/// Where a client wants to begin.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Joining {
    after: Option<u64>,
    tail: Option<u64>,
    epoch: Option<u64>,
    pub(super) session_id: Option<SessionId>,
}

impl Joining {
    pub(super) fn read(params: Option<Value>) -> Result<Self, Error> {
        let joining: Self = fields(params)?;
        if joining.after.is_some() && joining.tail.is_some() {
            return Err(Error::invalid_params("params: after or tail, not both"));
        }
        Ok(joining)
    }

    pub(super) fn after(seq: u64, epoch: Option<u64>) -> Self {
        Self { after: Some(seq), epoch, ..Self::default() }
    }

    /// From where in the log. With nothing said, from now on.
    pub(super) fn from(&self) -> JoinFrom {
        match (self.after, self.tail) {
            (Some(seq), _) => JoinFrom::After { seq, epoch: self.epoch },
            (None, Some(count)) => JoinFrom::Tail(count),
            (None, None) => JoinFrom::Now,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Paging {
    /// The events before this one; the last there are, if it is not given.
    before: Option<u64>,
    /// Or the events after this one.
    after: Option<u64>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompting {
    #[serde(flatten)]
    prompt: Prompt,
    when_busy: Option<String>,
}

#[derive(Deserialize)]
struct Mode {
    mode: String,
}

#[derive(Deserialize)]
struct Model {
    model: String,
}

#[derive(Deserialize)]
struct Thinking {
    tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Querying {
    what: Query,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawing {
    prompt_id: PromptId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kicking {
    client_id: ClientId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Revoking {
    rule_id: String,
}

impl Ask {
    /// What is asked for.
    pub(super) fn read(method: &str, params: Option<Value>) -> Result<Self, Error> {
        Ok(match method {
            "session/page" => Self::Page(fields(params)?),
            "prompt" => {
                let Prompting { prompt, when_busy: word } = fields(params)?;
                if prompt.text.trim().is_empty() && prompt.images.is_empty() {
                    return Err(Error::invalid_params("text: there is nothing in it to do"));
                }
                // Its id is for the session to give.
                Self::Prompt { prompt: Prompt { prompt_id: None, ..prompt }, when_busy: when_busy(word.as_deref())? }
            }
            "decide" => Self::Decide(fields(params)?),
            "cancel" => Self::Cancel,
            "setMode" => Self::SetMode(fields::<Mode>(params)?.mode),
            "setModel" => Self::SetModel(fields::<Model>(params)?.model),
            "setThinking" => Self::SetThinking(fields::<Thinking>(params)?.tokens),
            "query" => Self::Query(fields::<Querying>(params)?.what),
            "withdraw" => Self::Withdraw(fields::<Withdrawing>(params)?.prompt_id),
            "clients" => Self::Clients,
            "kick" => Self::Kick(fields::<Kicking>(params)?.client_id),
            "rules" => Self::Rules,
            "revoke" => Self::Revoke(fields::<Revoking>(params)?.rule_id),
            "snapshot" => Self::Snapshot,
            other => {
                let name: String = other.chars().take(100).collect();
                let why = format!("there is no method {name}: there are {METHODS}");
                return Err(Error::new(ErrorKind::MethodNotFound, why));
            }
        })
    }

    /// Asks it of a session.
    pub(super) async fn of(self, session: Session, by: ClientRef) -> Result<String, Error> {
        let result = match self {
            Self::Page(paging) => return page(&session, &paging).await,
            Self::Prompt { prompt, when_busy } => {
                let id = session.prompt(prompt, when_busy, by).await.map_err(|error| error::from_prompt(&error))?;
                json!({ "promptId": id })
            }
            Self::Decide(decide) => {
                let ruling = session.decide(decide, by).await.map_err(|error| error::from_decide(&error))?;
                json!(ruling)
            }
            Self::Cancel => done(session.cancel(by).await.map_err(|error| error::from_cancel(&error)))?,
            Self::SetMode(mode) => done(session.set_mode(mode, by).await.map_err(|error| error::from_command(&error)))?,
            Self::SetModel(model) => {
                done(session.set_model(model, by).await.map_err(|error| error::from_command(&error)))?
            }
            Self::SetThinking(tokens) => {
                done(session.set_thinking(tokens, by).await.map_err(|error| error::from_command(&error)))?
            }
            Self::Query(what) => done(session.query(what, by).await.map_err(|error| error::from_command(&error)))?,
            Self::Withdraw(prompt) => {
                done(session.withdraw(prompt, by).await.map_err(|error| error::from_withdraw(&error)))?
            }
            Self::Clients => json!({ "clients": state(&session).await?.clients }),
            Self::Kick(client) => done(session.kick(client, by).await.map_err(|error| error::from_kick(&error)))?,
            Self::Rules => json!({ "rules": state(&session).await?.rules }),
            Self::Revoke(rule) => done(session.revoke(rule, by).await.map_err(|error| error::from_revoke(&error)))?,
            Self::Snapshot => {
                let snapshot = state(&session).await?;
                json!({ "sessionId": session.id(), "epoch": session.epoch(), "snapshot": snapshot })
            }
        };
        Ok(result.to_string())
    }
}

/// It is done, and there is nothing to say about it.
fn done(result: Result<(), Error>) -> Result<Value, Error> {
    result.map(|()| json!({}))
}

async fn state(session: &Session) -> Result<Box<multitap_hub::State>, Error> {
    let ended = || error::from_command(&multitap_hub::CommandError::SessionEnded);
    session.snapshot().await.ok_or_else(ended)
}

async fn page(session: &Session, paging: &Paging) -> Result<String, Error> {
    let limit = paging.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let edge = match (paging.before, paging.after) {
        (Some(_), Some(_)) => return Err(Error::invalid_params("params: before or after, not both")),
        (None, Some(after)) => Edge::After(after),
        (before, None) => Edge::Before(before.unwrap_or_else(|| session.last() + 1)),
    };
    let part = Part { edge, limit, bytes: PAGE_BYTES };
    let page = session.page(part).await.map_err(|error| error::from_journal(&error))?;
    let events: Vec<&str> = page.entries.iter().map(|entry| entry.json()).collect();
    Ok(format!(r#"{{"events":[{}],"last":{}}}"#, events.join(","), page.last_seq))
}

fn fields<T: DeserializeOwned>(params: Option<Value>) -> Result<T, Error> {
    let params = params.filter(|params| !params.is_null()).unwrap_or_else(|| json!({}));
    if !params.is_object() {
        return Err(Error::invalid_params("params: must be an object"));
    }
    serde_json::from_value(params).map_err(|error| Error::invalid_params(format!("params: {error}")))
}

fn when_busy(word: Option<&str>) -> Result<WhenBusy, Error> {
    match word {
        None | Some("queue") => Ok(WhenBusy::Queue),
        Some("steer") => Ok(WhenBusy::Steer),
        Some("interrupt") => Ok(WhenBusy::Interrupt),
        Some(_) => Err(Error::invalid_params("whenBusy: queue, steer or interrupt")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (method, params, code, why) in [
            ("fly", json!({}), -32601, "session/join"),
            ("prompt", json!({}), -32602, "text"),
            ("prompt", json!({ "text": " " }), -32602, "text"),
            ("prompt", json!({ "text": "hi", "whenBusy": "now" }), -32602, "whenBusy"),
            ("prompt", json!([]), -32602, "object"),
            ("decide", json!({ "questionId": "q" }), -32602, "optionId"),
            ("setMode", json!({ "mode": 1 }), -32602, "string"),
            ("query", json!({ "what": "weather" }), -32602, "weather"),
        ] {
            let error = Ask::read(method, Some(params)).unwrap_err();
            assert_eq!(error.code(), code, "{method}: {error}");
            assert!(error.message.contains(why), "{method}: {error}");
        }
    }

    #[test]
    fn a_join_begins_where_it_says() {
        let from = |params| Joining::read(params).unwrap().from();
        assert_eq!(from(None), JoinFrom::Now);
        assert_eq!(from(Some(json!({ "tail": 5 }))), JoinFrom::Tail(5));
        let after = JoinFrom::After { seq: 0, epoch: Some(2) };
        assert_eq!(from(Some(json!({ "after": 0, "epoch": 2 }))), after);
        for wrong in [json!({ "after": 1, "tail": 1 }), json!({ "after": -1 }), json!([])] {
            assert_eq!(Joining::read(Some(wrong)).unwrap_err().code(), -32602);
        }
    }
}
