//! A session that another process owns, behind the same [`Session`] handle as a local one.
//!
//! Its events arrive through a [`FarEnd`], with their numbers and JSON unchanged. Calls go out through the trait
//! [`Elsewhere`]. Must not come in: connections, wire formats.

mod task;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use multitap_event::{ClientRef, SessionId};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

pub use self::task::FarTask;
use self::task::Heard;
use crate::entry::Entry;
use crate::past::Past;
use crate::protocol::{PageCall, PageReply, Refusal, SessionCall, SessionReply};
use crate::reach::{Reach, Reached, Standing};
use crate::session::Session;
use crate::session::task::INBOX;
use crate::state::State;
use crate::tail::{Retain, Tail};

/// Maximum number of events that wait for the task.
const HEARD: usize = 256;

/// The pending answer of the other process.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send>>;

/// Sends calls to the process that owns a session. That process knows the client by its connection.
pub trait Elsewhere: fmt::Debug + Send + Sync + 'static {
    fn call(&self, call: SessionCall) -> Answer<SessionReply>;

    /// Reads part of the log. Waits while the connection is broken, because a failure would look like lost events.
    fn page(&self, page: PageCall) -> Answer<PageReply>;
}

/// What is known of a far session when it is joined.
#[derive(Debug, Clone)]
pub struct FarStart {
    pub id: SessionId,
    pub epoch: u64,
    /// The client that we are in the other process.
    pub client: ClientRef,
    /// The current state. Later events arrive by themselves, earlier ones are fetched.
    pub state: Box<State>,
}

/// Feeds events into a far session. Dropping it ends the session in this process.
#[derive(Debug)]
pub struct FarEnd {
    heard: mpsc::Sender<Heard>,
    end: CancellationToken,
}

/// Nobody in this process follows the session any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody follows the session any more")]
pub struct Left;

impl Session {
    /// Creates a far session, the end that feeds its events, and the task that the caller must run.
    pub fn far(start: FarStart, elsewhere: Arc<dyn Elsewhere>) -> (Self, FarEnd, FarTask) {
        let (inbox_tx, inbox) = mpsc::channel(INBOX);
        let (heard_tx, heard) = mpsc::channel(HEARD);
        let (native_tx, native) = watch::channel(start.state.native_id.clone());
        let (reach_tx, reach) = watch::channel(Standing { reach: Reach::Here, client: start.client.clone() });
        let tail = Arc::new(Tail::new(start.state.seq, Retain::Ring));
        let end = CancellationToken::new();
        let past = Some(Past::Elsewhere(elsewhere.clone()));
        let session = Self::new(start.id.clone(), start.epoch, native, inbox_tx, tail.clone(), past, end.clone());
        let task = FarTask::new(start, elsewhere, inbox, heard, native_tx, reach_tx, tail, end.clone());
        (session.reached(Reached::of(reach)), FarEnd { heard: heard_tx, end }, task)
    }
}

impl FarEnd {
    /// Adds an event. Waits while the queue is full. Known events are ignored.
    pub async fn told(&self, entry: Entry) -> Result<(), Left> {
        self.hear(Heard::Told(entry)).await
    }

    /// Reports that missing events before `next` are lost. `state` is the session at that point or later.
    pub async fn skipped(&self, next: u64, state: Box<State>) -> Result<(), Left> {
        self.hear(Heard::Skipped { next, state }).await
    }

    /// Reports that the connection is lost.
    pub async fn lost(&self, why: impl Into<Arc<str>>) -> Result<(), Left> {
        self.hear(Heard::Lost(why.into())).await
    }

    /// Reports a new connection, on which we are another client.
    pub async fn found(&self, client: ClientRef) -> Result<(), Left> {
        self.hear(Heard::Found(client)).await
    }

    /// Reports that the session is over.
    pub async fn over(self, why: impl Into<Arc<str>>) {
        self.hear(Heard::Over(why.into())).await.ok(); // then nobody wants to know
    }

    /// Reports that this client was kicked.
    pub async fn cut_off(self, why: impl Into<Arc<str>>) {
        self.hear(Heard::CutOff(why.into())).await.ok(); // then nobody wants to know
    }

    /// Completes when this process has left the session.
    pub async fn left(&self) {
        tokio::select! {
            () = self.end.cancelled() => {}
            () = self.heard.closed() => {}
        }
    }

    async fn hear(&self, heard: Heard) -> Result<(), Left> {
        self.heard.send(heard).await.map_err(|_| Left)
    }
}
