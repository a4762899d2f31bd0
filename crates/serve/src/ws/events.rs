//! `dialect=events`: a session's events as they are in its log, for clients of our own event model.
//!
//! Directly from a [`Feed`]: contiguous, in order, each once. Must not come in: A2A frames and tasks.

use multitap_event::ClientRef;
use multitap_hub::{
    Feed, FeedEnd, GapNotice, Join, JoinCall, JoinReply, Joined, Refusal, STUCK, Session, SessionRequest, Told,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::http::Shared;
use crate::rpc::{CloseReason, Disconnected, Incoming, Invalid, Peer, Request, RequestId};
use crate::{error, host};

/// One client.
#[derive(Debug)]
pub(super) struct Connection {
    door: Shared,
    client: ClientRef,
    /// Default session for calls that name none: the joined one, after a join.
    session: Option<Session>,
    feed: Option<Feed>,
    /// First message for a client that joined by its address.
    joined: Option<String>,
    /// The session that was joined is over, and everything of it was sent.
    is_over: bool,
}

/// Outcome of a request: the `result` as JSON, or why it was refused.
type Answer = Result<String, Refusal>;

impl Connection {
    /// Joins at once if `after` is given.
    pub(super) async fn new(
        door: Shared,
        client: ClientRef,
        session: Option<Session>,
        after: Option<u64>,
        epoch: Option<u64>,
    ) -> Result<Self, Refusal> {
        let mut new = Self { door, client, session, feed: None, joined: None, is_over: false };
        if let Some(seq) = after {
            new.joined = Some(new.join(&JoinCall::after(seq, epoch)).await?);
        }
        Ok(new)
    }

    /// Serves its client until one of the two leaves.
    pub(super) async fn run(mut self, mut peer: Peer<Answer>) {
        // Nothing can be sent to a client that is gone.
        if let Ok(why) = self.serve(&mut peer).await {
            peer.close(why).await;
        }
    }

    async fn serve(&mut self, peer: &mut Peer<Answer>) -> Result<CloseReason, Disconnected> {
        let stop = self.door.stop.clone();
        if let Some(joined) = self.joined.take() {
            peer.notify("joined", joined).await?;
        }
        let (mut came, mut ending) = (Instant::now(), false);
        loop {
            peer.flush().await?;
            if self.is_over && !peer.is_working() {
                return Ok(CloseReason::SESSION_OVER);
            }
            let away = std::mem::replace(&mut came, Instant::now()).elapsed();
            tokio::select! {
                () = stop.cancelled(), if !ending => {
                    // A client that follows a session which is over gets its last events, and then the end.
                    ending = self.feed.is_some() && self.session.as_ref().is_some_and(Session::is_over);
                    if !ending {
                        return Ok(CloseReason::SHUT_DOWN);
                    }
                }
                told = next(&mut self.feed) => match told {
                    Ok(told) => self.tell(peer, told).await?,
                    Err(FeedEnd::SessionOver) => (self.feed, self.is_over) = (None, true),
                    // A client that took its events in time was kicked.
                    Err(FeedEnd::CutOff { .. }) if away < STUCK => return Ok(CloseReason::KICKED),
                    Err(FeedEnd::CutOff { .. }) => return Ok(CloseReason::TOO_SLOW),
                },
                incoming = peer.next() => if let Some(why) = self.act(peer, incoming?).await? {
                    return Ok(why);
                },
            }
        }
    }

    /// Sends an event, and all others that are in memory.
    async fn tell(&mut self, peer: &mut Peer<Answer>, told: Told) -> Result<(), Disconnected> {
        let mut told = Some(told);
        while let Some(one) = told.take() {
            match one {
                Told::Event(entry) if entry.is_damaged() => {
                    let gap = gap(self.session.clone(), entry.seq().saturating_sub(1), entry.seq() + 1).await;
                    peer.notify("replayGap", gap).await?;
                }
                Told::Event(entry) => peer.notify("event", entry.json()).await?,
                Told::Gap { after, next } => {
                    peer.notify("replayGap", gap(self.session.clone(), after, next).await).await?;
                }
            }
            if !peer.is_full() {
                told = self.feed.as_mut().and_then(Feed::try_next);
            }
        }
        Ok(())
    }

    /// Handles a message. Returns the reason if the connection must be closed.
    async fn act(
        &mut self,
        peer: &mut Peer<Answer>,
        incoming: Incoming<Answer>,
    ) -> Result<Option<CloseReason>, Disconnected> {
        match incoming {
            Incoming::Request(request) => self.request(peer, request).await?,
            // No notification is defined yet; a later version may define some.
            Incoming::Notification { .. } => {}
            Incoming::Done(id, answer) => respond(peer, &id, answer).await?,
            Incoming::Invalid(Invalid { id, fault }) => {
                peer.refuse_message(&id, &error_object(fault.code, &fault.message, Map::new())).await?
            }
            Incoming::Broken { fault, close } => {
                if let Some(fault) = fault {
                    peer.refuse_message(&RequestId::Null, &error_object(fault.code, &fault.message, Map::new()))
                        .await?;
                }
                return Ok(Some(close));
            }
        }
        Ok(None)
    }

    /// Begins to answer a request. A join is answered at once, so that its answer comes before the events.
    async fn request(&mut self, peer: &mut Peer<Answer>, request: Request) -> Result<(), Disconnected> {
        let Request { id, method, params } = request;
        let session = self.session.clone().ok_or(Refusal::NoSession);
        match SessionRequest::read(&method, params) {
            Ok(SessionRequest::Join(join)) => {
                let joined = self.join(&join).await;
                respond(peer, &id, joined).await?;
            }
            Ok(SessionRequest::Page(page)) => {
                peer.spawn(id, async move { Ok(written(&session?.page_for(&page).await?)) });
            }
            Ok(SessionRequest::Call(call)) => {
                let by = self.client.clone();
                peer.spawn(id, async move { Ok(written(&session?.call(call, by).await?)) });
            }
            Ok(SessionRequest::Host(call)) => {
                let (door, by, joined) = (self.door.clone(), self.client.clone(), self.session.clone());
                peer.spawn(id, async move { Ok(written(&host::answer(&door, call, by, joined).await?)) });
            }
            Err(refusal) => respond(peer, &id, Err(refusal)).await?,
        }
        Ok(())
    }

    /// Joins a session, and leaves the one it had joined before.
    async fn join(&mut self, call: &JoinCall) -> Answer {
        let session = match &call.session_id {
            None => self.session.clone().ok_or(Refusal::NoSession)?,
            Some(id) => self.door.host.find(id).ok_or_else(|| Refusal::UnknownSession { session_id: id.clone() })?,
        };
        let from = call.from()?;
        self.feed = None;
        // The id of a client that has left is not used again.
        let client = ClientRef { client_id: None, ..self.client.clone() };
        let join = Join { client, from, patience: Some(STUCK), announce: true };
        let Joined { client, feed, snapshot, gap, epoch } = session.join(join).await?;
        let (session_id, last) = (session.id().clone(), session.last());
        let reply = written(&JoinReply { session_id, epoch, last, client: client.clone(), snapshot, gap });
        (self.client, self.feed, self.session, self.is_over) = (client, Some(feed), Some(session), false);
        Ok(reply)
    }
}

/// The next event, or why there is none; never returns if no session was joined.
async fn next(feed: &mut Option<Feed>) -> Result<Told, FeedEnd> {
    let Some(feed) = feed else { return std::future::pending().await };
    feed.next().await.ok_or_else(|| feed.end())
}

/// The notification about lost events. Questions and changes of that time are only in its snapshot.
async fn gap(session: Option<Session>, after: u64, next: u64) -> String {
    let snapshot = match session {
        Some(session) => session.snapshot().await,
        None => None,
    };
    written(&GapNotice { after, next, snapshot })
}

async fn respond(peer: &mut Peer<Answer>, id: &RequestId, answer: Answer) -> Result<(), Disconnected> {
    match answer {
        Ok(result) => peer.respond(id, &result).await,
        Err(refusal) => {
            let error = error_object(error::code(&refusal), &refusal.to_string(), refusal.data());
            peer.refuse(id, &error).await
        }
    }
}

/// The `error` of a response.
fn error_object(code: i64, message: &str, data: Map<String, Value>) -> String {
    let error = json!({ "code": code, "message": message });
    match error {
        Value::Object(mut error) if !data.is_empty() => {
            error.insert("data".to_owned(), data.into());
            Value::Object(error).to_string()
        }
        error => error.to_string(),
    }
}

fn written(reply: &impl Serialize) -> String {
    serde_json::to_string(reply).unwrap_or_else(|error| {
        tracing::error!(%error, "a reply cannot be written as JSON");
        "null".to_owned()
    })
}
