//! A2A on a WebSocket: many requests at a time, their streams, and every frame of the session that is listened to; each
//! frame exactly once, in one order.
//!
//! One task a connection. It waits for nobody but its own client: what a request needs is waited for beside the frames.

mod switch;
mod track;

use std::sync::Arc;

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, Error, ErrorKind, Request, RequestId};
use multitap_event::ClientId;
use multitap_hub::{Feed, FeedEnd, Join, JoinFrom, Session};
use serde_json::Value;

use self::switch::Route;
use self::track::{Came, Over, Tracks};
use super::cursor::Cursor;
use super::frame::Form;
use super::name;
use super::rpc::{Envelope, envelope, error_envelope};
use super::service::{Begun, Call, Opening, Prepared, shows_coder};
use super::stage::Stage;
use crate::error;
use crate::guard::Caller;
use crate::http::Shared;
use crate::ws::{Close, Gone, Heard, IN_FLIGHT, Incoming, Requests, Socket, is_acp, no_binary, too_large};

/// Who comes, and what they said in the address.
#[derive(Debug)]
pub(crate) struct Hello {
    pub(crate) caller: Caller,
    /// Of frames that answer no request.
    pub(crate) form: Form,
    /// The `development-tool` extension was activated.
    pub(crate) extension: bool,
    /// The last frame the client has, and of which epoch.
    pub(crate) after: Option<Cursor>,
    pub(crate) epoch: Option<u64>,
}

/// One client.
pub(crate) struct Connection {
    door: Shared,
    caller: Caller,
    form: Form,
    extension: bool,
    client_id: Option<ClientId>,
    /// Shows the others that it is there, and ends when it is sent away.
    presence: Option<Feed>,
    /// What it is told before anything else.
    first: Option<String>,
    tracks: Tracks,
    requests: Requests<Done>,
    pending: Vec<Pending>,
    /// The session that is listened to is over, and everything of it was told.
    is_over: bool,
}

/// A request that is under way.
#[derive(Debug)]
struct Pending {
    id: RequestId,
    /// The client wants no frames any more.
    is_unwanted: bool,
}

/// What came of a request.
struct Done {
    id: RequestId,
    dialect: Dialect,
    what: What,
}

enum What {
    Prepared(Result<Prepared, Error>),
    Begun(Arc<Stage>, Result<Begun, Error>),
}

impl Connection {
    /// Gets ready to listen to that session, if there is one: what happens from now on is heard.
    pub(crate) async fn new(door: Shared, hello: Hello, session: Option<Session>) -> Result<Self, Error> {
        let Hello { caller, form, extension, after, epoch } = hello;
        let mut new = Self {
            door,
            caller,
            form,
            extension,
            client_id: None,
            presence: None,
            first: None,
            tracks: Tracks::default(),
            requests: Requests::new(),
            pending: Vec::new(),
            is_over: false,
        };
        if let Some(session) = session {
            new.listen(&session, after, epoch).await?;
        }
        Ok(new)
    }

    async fn listen(&mut self, session: &Session, after: Option<Cursor>, epoch: Option<u64>) -> Result<(), Error> {
        let stage = self.door.a2a().stage(&self.door, session).await?;
        let client = self.call(self.form.dialect).client();
        let join = Join { client, from: JoinFrom::Now, patience: None, announce: true };
        let joined = session.join(join).await.map_err(|error| error::from_join(&error))?;
        self.client_id = joined.client.client_id;
        self.presence = Some(joined.feed);
        let mut from = stage.now().cursor;
        if after.is_some() {
            let task = name::lasting(session.id().as_str()).into();
            let (gap, cursor) = self.door.a2a().catch_up(&self.door, &stage, &task, self.form, after, epoch).await?;
            self.first = gap.map(|task| broadcast(cursor, &task));
            from = cursor;
        }
        self.tracks.add(stage, from).is_listened_to = true;
        Ok(())
    }

    /// Serves its client until one of the two leaves.
    pub(crate) async fn run(mut self, mut socket: Socket) {
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
        loop {
            socket.flush().await?;
            if self.is_over && self.requests.is_empty() {
                return Ok(Close::SESSION_OVER);
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(Close::SHUT_DOWN),
                end = cut(&mut self.presence) => match end {
                    FeedEnd::CutOff { .. } => return Ok(Close::KICKED),
                    // The frames tell when everything was told.
                    FeedEnd::SessionOver => self.presence = None,
                },
                heard = socket.hear() => {
                    if let Some(why) = self.heard(socket, heard).await? {
                        return Ok(why);
                    }
                }
                done = self.requests.next() => self.done(socket, done).await?,
                came = self.tracks.next() => match came {
                    Came::Frame(at) => self.carry(socket, at).await?,
                    Came::Over(over) => {
                        if let Some(why) = self.over(socket, over).await? {
                            return Ok(why);
                        }
                    }
                },
            }
        }
    }

    /// Ends the streams of a session: with an error if frames are missing. Why the connection cannot go on, if it
    /// cannot: whoever listens to all of a session would miss frames without knowing.
    async fn over(&mut self, socket: &mut Socket, over: Over) -> Result<Option<Close>, Gone> {
        let Over { streams, missing, is_listened_to } = over;
        let error = missing.as_ref().map(Error::from);
        for (id, dialect) in &streams {
            if let Some(error) = &error {
                socket.say(error_envelope(*dialect, id, error)).await?;
            }
            socket.say(stream_end(id)).await?;
        }
        match error {
            None => self.is_over |= is_listened_to,
            Some(error) if is_listened_to => {
                socket.say(error_envelope(self.form.dialect, &RequestId::Null, &error)).await?;
                return Ok(Some(Close::LOG_UNREADABLE));
            }
            Some(_) => {}
        }
        Ok(None)
    }

    /// Tells the frames that are at hand.
    async fn carry(&mut self, socket: &mut Socket, at: usize) -> Result<(), Gone> {
        let track = self.tracks.at(at);
        while !socket.is_full()
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
                Some((id, form)) => socket.say(envelope(&id, "result", frame.json(form))).await?,
                None if track.is_listened_to => socket.say(broadcast(frame.cursor, frame.json(self.form))).await?,
                None => {}
            }
            for id in &ended {
                socket.say(stream_end(id)).await?;
            }
        }
        self.tracks.tidy();
        Ok(())
    }

    /// Takes in what the client said. Why the connection cannot go on, if it cannot.
    async fn heard(&mut self, socket: &mut Socket, heard: Heard) -> Result<Option<Close>, Gone> {
        let refused = match heard {
            Heard::Gone => return Err(Gone),
            Heard::Text(text) => match Incoming::read(&text) {
                Ok(Incoming::Notification { method, params }) => {
                    self.notified(socket, &method, &params).await?;
                    return Ok(None);
                }
                Ok(Incoming::Request(envelope)) => match self.asked(envelope) {
                    Ok(()) => return Ok(None),
                    Err(refused) => refused,
                },
                Err(refused) => refused,
            },
            Heard::Binary => Box::new((RequestId::Null, no_binary())),
            Heard::Wrong(why) => {
                if why == Close::TOO_LARGE {
                    let error = too_large(self.door.limits().body);
                    socket.say(error_envelope(self.form.dialect, &RequestId::Null, &error)).await?;
                }
                return Ok(Some(why));
            }
        };
        let (id, error) = *refused;
        socket.say(error_envelope(self.form.dialect, &id, &error)).await?;
        Ok(None)
    }

    /// Begins to answer a request.
    fn asked(&mut self, envelope: Envelope) -> Result<(), Box<(RequestId, Error)>> {
        let Envelope { id, method, params } = envelope;
        if let Some(error) = is_acp(&method) {
            return Err(Box::new((id, error)));
        }
        let is_taken = self.pending.iter().any(|pending| pending.id == id) || self.tracks.has_stream(&id);
        if is_taken {
            let why = "id: a request with this id is still being answered";
            return Err(Box::new((id, Error::new(ErrorKind::InvalidRequest, why))));
        }
        if self.pending.len() + self.tracks.streams() >= IN_FLIGHT {
            let why = format!("{IN_FLIGHT} requests are under way on this connection: wait for one, or end a stream");
            return Err(Box::new((id, Error::internal(why))));
        }
        let dialect = Request::dialect_of(&method).unwrap_or(self.form.dialect);
        let request = match Request::read(&method, params) {
            Ok((_, request)) => request,
            Err(error) => return Err(Box::new((id, error))),
        };
        if shows_coder(&request) {
            self.form.spelling = Spelling::Coder;
        }
        let (door, call) = (self.door.clone(), self.call(dialect));
        self.pending.push(Pending { id: id.clone(), is_unwanted: false });
        self.requests.add(async move {
            let prepared = door.a2a().prepare(&door, call, request).await;
            Done { id, dialect, what: What::Prepared(prepared) }
        });
        Ok(())
    }

    async fn notified(&mut self, socket: &mut Socket, method: &str, params: &Value) -> Result<(), Gone> {
        // Others may come to mean something one day.
        if method != "cancelStream" {
            return Ok(());
        }
        let Some(Ok(id)) = params.get("id").map(RequestId::read) else { return Ok(()) };
        if self.tracks.close_stream(&id) {
            return socket.say(stream_end(&id)).await;
        }
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.id == id) {
            pending.is_unwanted = true;
        }
        Ok(())
    }

    async fn done(&mut self, socket: &mut Socket, done: Done) -> Result<(), Gone> {
        let Done { id, dialect, what } = done;
        let answer = match what {
            What::Prepared(Ok(Prepared::Frames(opening))) => {
                self.open(id, dialect, *opening);
                return Ok(());
            }
            What::Prepared(Ok(Prepared::Result(result))) => Ok(result),
            What::Prepared(Err(error)) => Err(error),
            What::Begun(stage, begun) => {
                if let Some(track) = self.tracks.find(&stage) {
                    track.go_on();
                    if let Ok(Begun::Stream { after, .. }) = &begun {
                        track.switch.open(&id, *after);
                    } else {
                        track.switch.close(&id);
                    }
                }
                match begun {
                    Ok(Begun::Stream { first, .. }) => return self.begun(socket, id, first).await,
                    Ok(Begun::Result(result)) => Ok(result),
                    Err(error) => Err(error),
                }
            }
        };
        self.settle(&id);
        self.tracks.tidy();
        match answer {
            Ok(result) => socket.say(envelope(&id, "result", &result)).await,
            Err(error) => socket.say(error_envelope(dialect, &id, &error)).await,
        }
    }

    /// Makes room for a stream, then does what brings it about.
    fn open(&mut self, id: RequestId, dialect: Dialect, opening: Opening) {
        let (stage, after) = (opening.stage.clone(), opening.after);
        let track = self.tracks.of(&stage, after);
        track.switch.hold(id.clone(), opening.follow.clone(), opening.form, after);
        let door = self.door.clone();
        self.requests.add(async move {
            let begun = opening.begin(&door).await;
            Done { id, dialect, what: What::Begun(stage, begun) }
        });
    }

    /// A stream is open: its frames come as they are at hand.
    async fn begun(&mut self, socket: &mut Socket, id: RequestId, first: Option<String>) -> Result<(), Gone> {
        if let Some(first) = first {
            socket.say(envelope(&id, "result", &first)).await?;
        }
        let is_unwanted = self.settle(&id);
        // One that ended meanwhile with its session has no frames.
        if is_unwanted || !self.tracks.has_stream(&id) {
            self.tracks.close_stream(&id);
            socket.say(stream_end(&id)).await?;
        }
        Ok(())
    }

    /// The request is not under way any more. Whether its frames are unwanted.
    fn settle(&mut self, id: &RequestId) -> bool {
        let found = self.pending.iter().position(|pending| pending.id == *id);
        found.map(|at| self.pending.swap_remove(at)).is_some_and(|pending| pending.is_unwanted)
    }

    fn call(&self, dialect: Dialect) -> Call {
        Call {
            caller: self.caller.clone(),
            form: Form { dialect, ..self.form },
            extension: self.extension,
            after: None,
            client_id: self.client_id.clone(),
        }
    }
}

/// Comes back when the client is sent away, or its session is over.
async fn cut(presence: &mut Option<Feed>) -> FeedEnd {
    match presence {
        Some(feed) => feed.until_cut().await,
        None => std::future::pending().await,
    }
}

/// A frame that answers no request of this client.
fn broadcast(cursor: Cursor, json: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"tasks/event","params":{{"cursor":"{cursor}","event":{json}}}}}"#)
}

/// No more frames answer that request.
fn stream_end(id: &RequestId) -> String {
    let id = serde_json::to_string(id).unwrap_or_else(|_| "null".to_owned());
    format!(r#"{{"jsonrpc":"2.0","method":"streamEnd","params":{{"id":{id}}}}}"#)
}
