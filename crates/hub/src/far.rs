//! A session that another process owns, as a [`Session`] here: the same handle, so that a screen cannot tell.
//!
//! Its events come in through a [`FarEnd`] and keep their numbers and their words; what is asked of it goes out through
//! the port [`Elsewhere`]. Must not come in: connections, a wire's form.

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

/// How many events may wait to be taken in.
const HEARD: usize = 256;

/// What the other process answers, in its own time.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send>>;

/// The way to the process that owns a session. Who asks is known there: it is whoever this way belongs to.
pub trait Elsewhere: fmt::Debug + Send + Sync + 'static {
    fn call(&self, call: SessionCall) -> Answer<SessionReply>;

    /// Part of the log. Waits while the connection is broken: what is in the log must not look lost.
    fn page(&self, page: PageCall) -> Answer<PageReply>;
}

/// What is known of such a session at first.
#[derive(Debug, Clone)]
pub struct FarStart {
    pub id: SessionId,
    pub epoch: u64,
    /// Who we are to it.
    pub client: ClientRef,
    /// What it is now; its events from here on come in, the earlier ones are asked for.
    pub state: Box<State>,
}

/// Where the events come in. Dropping it ends the session here.
#[derive(Debug)]
pub struct FarEnd {
    heard: mpsc::Sender<Heard>,
    end: CancellationToken,
}

/// Nobody here wants to hear of the session any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody follows the session any more")]
pub struct Left;

impl Session {
    /// A session that runs elsewhere, the end that is to be told of it, and the task that is to be run for it.
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
    /// This happened. Waits while too much is to be taken in. One that is known already is left out.
    pub async fn told(&self, entry: Entry) -> Result<(), Left> {
        self.hear(Heard::Told(entry)).await
    }

    /// Everything up to `next` that was not told is lost; `state` is what the session is by then, or later.
    pub async fn skipped(&self, next: u64, state: Box<State>) -> Result<(), Left> {
        self.hear(Heard::Skipped { next, state }).await
    }

    /// The way is broken.
    pub async fn lost(&self, why: impl Into<Arc<str>>) -> Result<(), Left> {
        self.hear(Heard::Lost(why.into())).await
    }

    /// There is a way again; we are somebody else now.
    pub async fn found(&self, client: ClientRef) -> Result<(), Left> {
        self.hear(Heard::Found(client)).await
    }

    /// Everything was told, and no more comes.
    pub async fn over(self, why: impl Into<Arc<str>>) {
        self.hear(Heard::Over(why.into())).await.ok(); // then nobody wants to know
    }

    /// We were sent away.
    pub async fn cut_off(self, why: impl Into<Arc<str>>) {
        self.hear(Heard::CutOff(why.into())).await.ok(); // then nobody wants to know
    }

    /// Comes back when somebody here ended the session for us.
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
