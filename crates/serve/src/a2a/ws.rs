//! A2A on a WebSocket: many requests at a time, their streams, and every frame of the followed session; each frame
//! exactly once, in one order.
//!
//! One task for each connection. It waits only for its own client: it awaits the results of requests beside the frames.

mod switch;
mod track;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, Error, ErrorKind, Request};
use multitap_event::ClientId;
use multitap_hub::{Feed, FeedEnd, Join, JoinFrom, Session};
use tokio::time::sleep;

use self::switch::Route;
use self::track::{Over, TrackEvent, Tracks};
use super::cursor::Cursor;
use super::frame::Form;
use super::history::TaskView;
use super::name;
use super::service::{Begun, Call, Opening, Prepared, shows_coder};
use super::stage::Stage;
use crate::error;
use crate::guard::Caller;
use crate::http::Shared;
use crate::rpc::{self, CloseReason, Disconnected, Incoming, Invalid, Peer, RequestId};

/// The method of a frame that answers no request.
const EVENT: &str = "tasks/event";
const STREAM_END: &str = "streamEnd";
/// A client's request to end a stream.
const CANCEL_STREAM: &str = "cancelStream";
/// The first request of an ACP client.
const INITIALIZE: &str = "initialize";
const ACP_TOO_LATE: &str = "initialize: an ACP client sends it first; this connection speaks A2A already";
/// How long a client has for its first message before it counts as one that listens to A2A frames.
const FIRST_MESSAGE: Duration = Duration::from_millis(300);

/// The client, and the parameters of its address.
#[derive(Debug)]
pub(crate) struct Hello {
    pub(crate) caller: Caller,
    /// For frames that answer no request.
    pub(crate) form: Form,
    /// The `development-tool` extension was activated.
    pub(crate) extension: bool,
    /// The address says nothing of the client, so its first message shows whether it speaks A2A or ACP. Until then, other
    /// clients do not see it.
    pub(crate) is_bare: bool,
    /// The last frame the client has, and its epoch.
    pub(crate) after: Option<Cursor>,
    pub(crate) epoch: Option<u64>,
}

/// The connection of one client.
pub(crate) struct Connection {
    door: Shared,
    caller: Caller,
    form: Form,
    extension: bool,
    client_id: Option<ClientId>,
    /// The session to join once it is known that the client does not speak ACP.
    unjoined: Option<Session>,
    /// Nothing came from the client yet.
    is_new: bool,
    /// Makes the client visible to others, and ends when it is kicked.
    presence: Option<Feed>,
    /// The first message to the client.
    first: Option<String>,
    tracks: Tracks,
    /// Running requests whose frames the client does not want any more.
    unwanted: HashSet<RequestId>,
    /// The followed session is over, and every frame of it was sent.
    is_over: bool,
}

/// The outcome of a request, and the dialect of the answer.
pub(crate) struct Done {
    dialect: Dialect,
    what: What,
}

/// Why a connection is served no more.
enum Served {
    Over(CloseReason),
    /// The client begins to speak ACP.
    Acp(rpc::Request),
}

enum What {
    Prepared(Result<Prepared, Error>),
    Begun(Arc<Stage>, Result<Begun, Error>),
}

impl Connection {
    /// Prepares to follow that session, if there is one: every event from now on counts.
    pub(crate) async fn new(door: Shared, hello: Hello, session: Option<Session>) -> Result<Self, Error> {
        let Hello { caller, form, extension, is_bare, after, epoch } = hello;
        let mut new = Self {
            door,
            caller,
            form,
            extension,
            client_id: None,
            unjoined: None,
            is_new: true,
            presence: None,
            first: None,
            tracks: Tracks::default(),
            unwanted: HashSet::new(),
            is_over: false,
        };
        if let Some(session) = session {
            new.listen(&session, is_bare, after, epoch).await?;
        }
        Ok(new)
    }

    async fn listen(
        &mut self,
        session: &Session,
        is_bare: bool,
        after: Option<Cursor>,
        epoch: Option<u64>,
    ) -> Result<(), Error> {
        let stage = self.door.a2a.stage(&self.door, session).await?;
        let mut from = stage.now().cursor;
        if is_bare {
            self.unjoined = Some(session.clone());
            self.tracks.add(stage, from).is_listened_to = true;
            return Ok(());
        }
        self.join(session).await?;
        if after.is_some() {
            let task = name::lasting(session.id().as_str()).into();
            let view = TaskView { spelling: self.form.spelling, history: None, artifacts: false };
            let form = (self.form, view);
            let (gap, cursor) = self.door.a2a.catch_up(&self.door, &stage, &task, form, after, epoch).await?;
            self.first = gap.map(|task| Broadcast { cursor, json: &task }.to_string());
            from = cursor;
        }
        self.tracks.add(stage, from).is_listened_to = true;
        Ok(())
    }

    /// Shows the session's clients that this one is there.
    async fn join(&mut self, session: &Session) -> Result<(), Error> {
        let client = self.call(self.form.dialect()).client();
        let join = Join { client, from: JoinFrom::Now, patience: None, announce: true };
        let joined = session.join(join).await.map_err(|error| error::from_refusal(&error))?;
        self.client_id = joined.client.client_id;
        self.presence = Some(joined.feed);
        Ok(())
    }

    /// Serves its client until one of the two leaves. Returns the connection of a client that speaks ACP, with its first
    /// request.
    pub(crate) async fn run(mut self, mut peer: Peer<Done>) -> Option<(Peer<Done>, rpc::Request)> {
        match self.serve(&mut peer).await {
            Ok(Served::Over(why)) => peer.close(why).await,
            Ok(Served::Acp(request)) => return Some((peer, request)),
            // Nothing can be sent to a client that is gone.
            Err(Disconnected) => {}
        }
        None
    }

    async fn serve(&mut self, peer: &mut Peer<Done>) -> Result<Served, Disconnected> {
        let stop = self.door.stop.clone();
        let first_message = sleep(FIRST_MESSAGE);
        tokio::pin!(first_message);
        if let Some(first) = self.first.take() {
            peer.notify(EVENT, first).await?;
        }
        loop {
            peer.flush().await?;
            if self.is_over && !peer.is_working() {
                return Ok(Served::Over(CloseReason::SESSION_OVER));
            }
            let why = tokio::select! {
                () = stop.cancelled() => Some(CloseReason::SHUT_DOWN),
                end = cut(&mut self.presence) => match end {
                    FeedEnd::CutOff { .. } => Some(CloseReason::KICKED),
                    // The frames report when everything was sent.
                    FeedEnd::SessionOver => {
                        self.presence = None;
                        None
                    }
                },
                () = &mut first_message, if self.unjoined.is_some() => self.join_late(peer).await?,
                incoming = peer.next() => match incoming? {
                    Incoming::Request(request) if self.is_new && request.method == INITIALIZE => {
                        return Ok(Served::Acp(request));
                    }
                    incoming => {
                        self.is_new = false;
                        match self.join_late(peer).await? {
                            None => self.act(peer, incoming).await?,
                            refused => refused,
                        }
                    }
                },
                event = self.tracks.next(), if self.unjoined.is_none() => match event {
                    TrackEvent::Frame(at) => {
                        self.carry(peer, at).await?;
                        None
                    }
                    TrackEvent::Over(over) => self.over(peer, over).await?,
                },
            };
            if let Some(why) = why {
                return Ok(Served::Over(why));
            }
        }
    }

    /// Joins the session that was found when the client came. Returns why the connection cannot go on, if so.
    async fn join_late(&mut self, peer: &mut Peer<Done>) -> Result<Option<CloseReason>, Disconnected> {
        let Some(session) = self.unjoined.take() else { return Ok(None) };
        let Err(error) = self.join(&session).await else { return Ok(None) };
        peer.refuse_message(&RequestId::Null, &written(self.form.dialect(), &error)).await?;
        Ok(Some(CloseReason::REFUSED))
    }

    /// Ends the streams of a session: with an error if frames are missing. Returns why the connection cannot go on, if
    /// so: a client that follows the session would miss frames unnoticed.
    async fn over(&mut self, peer: &mut Peer<Done>, over: Over) -> Result<Option<CloseReason>, Disconnected> {
        let Over { streams, missing, is_listened_to } = over;
        let error = missing.as_ref().map(Error::from);
        for (id, dialect) in &streams {
            if let Some(error) = &error {
                peer.refuse(id, &written(*dialect, error)).await?;
            }
            end_stream(peer, id).await?;
        }
        match error {
            None => self.is_over |= is_listened_to,
            Some(error) if is_listened_to => {
                peer.refuse_message(&RequestId::Null, &written(self.form.dialect(), &error)).await?;
                return Ok(Some(CloseReason::LOG_UNREADABLE));
            }
            Some(_) => {}
        }
        Ok(None)
    }

    /// Sends the frames in memory.
    async fn carry(&mut self, peer: &mut Peer<Done>, at: usize) -> Result<(), Disconnected> {
        let track = self.tracks.at(at);
        while !peer.is_full()
            && let Some(frame) = track.take()
        {
            let (to, ended) = match track.switch.route(&frame) {
                Route::Wait => {
                    track.put_back(frame);
                    break;
                }
                Route::Go { to, ended } => (to, ended),
            };
            match to {
                Some((id, form)) => peer.respond_partly(&id, frame.json(form)).await?,
                None if track.is_listened_to => {
                    peer.notify(EVENT, Broadcast { cursor: frame.cursor, json: frame.json(self.form) }).await?;
                }
                None => {}
            }
            for id in &ended {
                end_stream(peer, id).await?;
            }
        }
        self.tracks.tidy();
        Ok(())
    }

    /// Handles an event of the connection. Returns why the connection cannot go on, if so.
    async fn act(
        &mut self,
        peer: &mut Peer<Done>,
        incoming: Incoming<Done>,
    ) -> Result<Option<CloseReason>, Disconnected> {
        match incoming {
            Incoming::Request(request) => self.request(peer, request).await?,
            Incoming::Notification { method, params } if method == CANCEL_STREAM => {
                if let Some(Ok(id)) = params.get("id").map(RequestId::read) {
                    self.cancel_stream(peer, id).await?;
                }
            }
            // Later versions may define more notifications.
            Incoming::Notification { .. } => {}
            Incoming::Done(id, done) => self.done(peer, id, done).await?,
            Incoming::Invalid(Invalid { id, fault }) => {
                peer.refuse_message(&id, &written(self.form.dialect(), &fault.into())).await?
            }
            Incoming::Broken { fault, close } => {
                if let Some(fault) = fault {
                    peer.refuse_message(&RequestId::Null, &written(self.form.dialect(), &fault.into())).await?;
                }
                return Ok(Some(close));
            }
        }
        Ok(None)
    }

    /// Begins to answer a request.
    async fn request(&mut self, peer: &mut Peer<Done>, request: rpc::Request) -> Result<(), Disconnected> {
        let rpc::Request { id, method, params } = request;
        let read = match method.as_str() {
            INITIALIZE => Err(Error::new(ErrorKind::MethodNotFound, ACP_TOO_LATE)),
            _ => Request::read(&method, params),
        };
        let request = match read {
            Ok((_, request)) => request,
            Err(error) => return peer.refuse(&id, &written(self.form.dialect(), &error)).await,
        };
        let dialect = Request::dialect_of(&method).unwrap_or(self.form.dialect());
        if shows_coder(&request) {
            self.form.spelling = Spelling::Coder;
        }
        let (door, call) = (self.door.clone(), self.call(dialect));
        peer.spawn(id, async move {
            let prepared = door.a2a.prepare(&door, call, request).await;
            Done { dialect, what: What::Prepared(prepared) }
        });
        Ok(())
    }

    async fn cancel_stream(&mut self, peer: &mut Peer<Done>, id: RequestId) -> Result<(), Disconnected> {
        if self.tracks.close_stream(&id) {
            return end_stream(peer, &id).await;
        }
        if peer.is_open(&id) {
            self.unwanted.insert(id);
        }
        Ok(())
    }

    async fn done(&mut self, peer: &mut Peer<Done>, id: RequestId, done: Done) -> Result<(), Disconnected> {
        let Done { dialect, what } = done;
        let answer = match what {
            What::Prepared(Ok(Prepared::Frames(opening))) => {
                self.open(peer, id, dialect, *opening);
                return Ok(());
            }
            What::Prepared(Ok(Prepared::Result(result))) => Ok(result),
            What::Prepared(Err(error)) => Err(error),
            What::Begun(stage, begun) => {
                if let Some(track) = self.tracks.find(&stage) {
                    track.unblock();
                    if let Ok(Begun::Stream { after, .. }) = &begun {
                        track.switch.open(&id, *after);
                    } else {
                        track.switch.close(&id);
                    }
                }
                match begun {
                    Ok(Begun::Stream { first, .. }) => return self.begun(peer, id, first).await,
                    Ok(Begun::Result(result)) => Ok(result),
                    Err(error) => Err(error),
                }
            }
        };
        self.unwanted.remove(&id);
        self.tracks.tidy();
        match answer {
            Ok(result) => peer.respond(&id, &result).await,
            Err(error) => peer.refuse(&id, &written(dialect, &error)).await,
        }
    }

    /// Reserves a stream, then executes the request.
    fn open(&mut self, peer: &mut Peer<Done>, id: RequestId, dialect: Dialect, opening: Opening) {
        let (stage, after) = (opening.stage.clone(), opening.after);
        let track = self.tracks.of(&stage, after);
        track.switch.hold(id.clone(), opening.follow.clone(), opening.form, after);
        let door = self.door.clone();
        peer.spawn(id, async move {
            let begun = opening.begin(&door).await;
            Done { dialect, what: What::Begun(stage, begun) }
        });
    }

    /// A stream is open: its frames are sent as they come.
    async fn begun(&mut self, peer: &mut Peer<Done>, id: RequestId, first: Option<String>) -> Result<(), Disconnected> {
        if let Some(first) = first {
            peer.respond_partly(&id, &first).await?;
        }
        let is_unwanted = self.unwanted.remove(&id);
        // A stream that ended with its session meanwhile has no frames.
        if is_unwanted || !self.tracks.has_stream(&id) {
            self.tracks.close_stream(&id);
            end_stream(peer, &id).await?;
        }
        Ok(())
    }

    fn call(&self, dialect: Dialect) -> Call {
        Call {
            caller: self.caller.clone(),
            form: Form::of(dialect, self.form.spelling),
            extension: self.extension,
            after: None,
            client_id: self.client_id.clone(),
        }
    }
}

/// Returns when the client is kicked, or its session is over.
async fn cut(presence: &mut Option<Feed>) -> FeedEnd {
    match presence {
        Some(feed) => feed.until_cut().await,
        None => std::future::pending().await,
    }
}

/// An error as JSON.
fn written(dialect: Dialect, error: &Error) -> String {
    dialect.write_error(error).to_string()
}

/// The `params` of a frame that answers no request of the client.
struct Broadcast<'a> {
    cursor: Cursor,
    json: &'a str,
}

impl fmt::Display for Broadcast<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, r#"{{"cursor":"{}","event":{}}}"#, self.cursor, self.json)
    }
}

async fn end_stream(peer: &mut Peer<Done>, id: &RequestId) -> Result<(), Disconnected> {
    peer.end(id);
    peer.notify(STREAM_END, format!(r#"{{"id":{id}}}"#)).await
}
