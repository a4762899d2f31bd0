//! `dialect=events`: a session's events as they are in its log, for clients that know our own model.
//!
//! Straight from a [`Feed`]: contiguous, in order, each once. Must not come in: A2A's frames and tasks.

mod ask;

use multitap_a2a::{Dialect, Error, ErrorKind, RequestId};
use multitap_event::ClientRef;
use multitap_hub::{Feed, FeedEnd, Join, Joined, STUCK, Session, Told};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::ask::{Ask, Joining};
use super::requests::{IN_FLIGHT, Requests};
use super::{Close, Gone, Heard, Incoming, Socket, is_acp};
use crate::a2a::{Envelope, envelope, error_envelope};
use crate::error;
use crate::http::Shared;

/// Errors are written as A2A 0.3 writes them: code, message, data.
const FORM: Dialect = Dialect::V0_3;

/// One client.
#[derive(Debug)]
pub(super) struct Connection {
    door: Shared,
    client: ClientRef,
    /// The session that is meant where none is named; the one that was joined, from then on.
    session: Option<Session>,
    feed: Option<Feed>,
    /// What it is told before anything else.
    first: Option<String>,
    requests: Requests<(RequestId, Result<String, Error>)>,
    pending: Vec<RequestId>,
    /// The session that was joined is over, and everything of it was told.
    is_over: bool,
}

impl Connection {
    /// With a place to go on from, it joins at once.
    pub(super) async fn new(
        door: Shared,
        client: ClientRef,
        session: Option<Session>,
        after: Option<u64>,
        epoch: Option<u64>,
    ) -> Result<Self, Error> {
        let mut new = Self {
            door,
            client,
            session,
            feed: None,
            first: None,
            requests: Requests::new(),
            pending: Vec::new(),
            is_over: false,
        };
        if let Some(seq) = after {
            let joined = new.join(&Joining::after(seq, epoch)).await?;
            new.first = Some(notification("joined", &joined));
        }
        Ok(new)
    }

    /// Serves its client until one of the two leaves.
    pub(super) async fn run(mut self, mut socket: Socket) {
        // A client that is gone cannot be told anything.
        if let Ok(why) = self.serve(&mut socket).await {
            socket.close(why).await;
        }
    }

    async fn serve(&mut self, socket: &mut Socket) -> Result<Close, Gone> {
        let stop = self.door.stop().clone();
        if let Some(first) = self.first.take() {
            socket.say(first).await?;
        }
        let (mut came, mut ending) = (Instant::now(), false);
        loop {
            socket.flush().await?;
            if self.is_over && self.requests.is_empty() {
                return Ok(Close::SESSION_OVER);
            }
            let away = std::mem::replace(&mut came, Instant::now()).elapsed();
            tokio::select! {
                () = stop.cancelled(), if !ending => {
                    // Whoever listens to a session that is over hears its end, and that it is the end.
                    ending = self.feed.is_some() && self.session.as_ref().is_some_and(Session::is_over);
                    if !ending {
                        return Ok(Close::SHUT_DOWN);
                    }
                }
                told = next(&mut self.feed) => match told {
                    Ok(told) => self.tell(socket, told).await?,
                    Err(FeedEnd::SessionOver) => (self.feed, self.is_over) = (None, true),
                    // Whoever took its events in time was sent away.
                    Err(FeedEnd::CutOff { .. }) if away < STUCK => return Ok(Close::KICKED),
                    Err(FeedEnd::CutOff { .. }) => return Ok(Close::TOO_SLOW),
                },
                heard = socket.hear() => {
                    if let Some(why) = self.heard(socket, heard).await? {
                        return Ok(why);
                    }
                }
                (id, answer) = self.requests.next() => {
                    self.pending.retain(|pending| *pending != id);
                    match answer {
                        Ok(result) => socket.say(envelope(&id, "result", &result)).await?,
                        Err(error) => socket.say(error_envelope(FORM, &id, &error)).await?,
                    }
                }
            }
        }
    }

    /// Tells what came, and what else is at hand.
    async fn tell(&mut self, socket: &mut Socket, told: Told) -> Result<(), Gone> {
        let mut told = Some(told);
        while let Some(one) = told.take() {
            let text = match one {
                Told::Event(entry) if entry.is_damaged() => {
                    let gap = gap(self.session.clone(), entry.seq().saturating_sub(1), entry.seq() + 1).await;
                    notification("replayGap", &gap.to_string())
                }
                Told::Event(entry) => notification("event", entry.json()),
                Told::Gap { after, next } => {
                    notification("replayGap", &gap(self.session.clone(), after, next).await.to_string())
                }
            };
            socket.say(text).await?;
            if !socket.is_full() {
                told = self.feed.as_mut().and_then(Feed::try_next);
            }
        }
        Ok(())
    }

    /// Takes in what the client said. Why the connection cannot go on, if it cannot.
    async fn heard(&mut self, socket: &mut Socket, heard: Heard) -> Result<Option<Close>, Gone> {
        let text = match heard {
            Heard::Gone => return Err(Gone),
            Heard::Text(text) => text,
            Heard::Binary => {
                socket.say(error_envelope(FORM, &RequestId::Null, &super::no_binary())).await?;
                return Ok(None);
            }
            Heard::Wrong(why) => {
                if why == Close::TOO_LARGE {
                    let error = super::too_large(self.door.limits().body);
                    socket.say(error_envelope(FORM, &RequestId::Null, &error)).await?;
                }
                return Ok(Some(why));
            }
        };
        let refused = match Incoming::read(&text) {
            // None is known yet; others may come to mean something one day.
            Ok(Incoming::Notification { .. }) => return Ok(None),
            Ok(Incoming::Request(Envelope { id, method, params })) => match self.asked(&id, &method, params).await {
                Ok(None) => return Ok(None),
                Ok(Some(joined)) => {
                    socket.say(envelope(&id, "result", &joined)).await?;
                    return Ok(None);
                }
                Err(error) => Box::new((id, error)),
            },
            Err(refused) => refused,
        };
        socket.say(error_envelope(FORM, &refused.0, &refused.1)).await?;
        Ok(None)
    }

    /// Begins to answer a request. To join is done at once, so that its answer comes before the events.
    async fn asked(&mut self, id: &RequestId, method: &str, params: Option<Value>) -> Result<Option<String>, Error> {
        if let Some(error) = is_acp(method) {
            return Err(error);
        }
        if self.pending.contains(id) {
            let why = "id: a request with this id is still being answered";
            return Err(Error::new(ErrorKind::InvalidRequest, why));
        }
        if self.pending.len() >= IN_FLIGHT {
            return Err(Error::internal(format!(
                "{IN_FLIGHT} requests are under way on this connection: wait for one"
            )));
        }
        if method == "session/join" {
            return self.join(&Joining::read(params)?).await.map(Some);
        }
        let ask = Ask::read(method, params)?;
        let session = self.session.clone().ok_or_else(no_session)?;
        let (id, by) = (id.clone(), self.client.clone());
        self.pending.push(id.clone());
        self.requests.add(async move { (id, ask.of(session, by).await) });
        Ok(None)
    }

    /// Joins a session, and leaves the one it had joined before.
    async fn join(&mut self, joining: &Joining) -> Result<String, Error> {
        let session = match &joining.session_id {
            None => self.session.clone().ok_or_else(no_session)?,
            Some(id) => {
                let unknown = || Error::invalid_params(format!("sessionId: there is no live session {id} here"));
                self.door.host().find(id).ok_or_else(unknown)?
            }
        };
        self.feed = None;
        // Nobody comes back under an id that has left.
        let client = ClientRef { client_id: None, ..self.client.clone() };
        let join = Join { client, from: joining.from(), patience: Some(STUCK), announce: true };
        let joined = session.join(join).await.map_err(|error| error::from_join(&error))?;
        let Joined { client, feed, snapshot, gap, epoch } = joined;
        let mut told = json!({
            "sessionId": session.id(),
            "epoch": epoch,
            "last": session.last(),
            "client": client,
        });
        if let (Some(state), Value::Object(told)) = (snapshot, &mut told) {
            told.insert("snapshot".to_owned(), json!(state));
        }
        if let (Some(gap), Value::Object(told)) = (gap, &mut told) {
            let gap = json!({ "asked": gap.asked, "last": gap.last, "epoch": gap.epoch });
            told.insert("gap".to_owned(), gap);
        }
        (self.client, self.feed, self.session, self.is_over) = (client, Some(feed), Some(session), false);
        Ok(told.to_string())
    }
}

/// What comes next, or why nothing does; never, if no session was joined.
async fn next(feed: &mut Option<Feed>) -> Result<Told, FeedEnd> {
    let Some(feed) = feed else { return std::future::pending().await };
    feed.next().await.ok_or_else(|| feed.end())
}

/// What is lost, and what the session is without it: what was asked or changed meanwhile stands only there.
async fn gap(session: Option<Session>, after: u64, next: u64) -> Value {
    let snapshot = match session {
        Some(session) => session.snapshot().await,
        None => None,
    };
    match snapshot {
        Some(snapshot) => json!({ "after": after, "next": next, "snapshot": snapshot }),
        // It is over: nothing waits for anybody any more.
        None => json!({ "after": after, "next": next }),
    }
}

fn no_session() -> Error {
    Error::invalid_params(
        "this host has many sessions: say which with session/join {\"sessionId\": ...} or ?session=ID",
    )
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}
