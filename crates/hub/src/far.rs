//! A session that another process owns, as a [`Session`] here: the same handle, so that a screen need not know.
//!
//! Its events come in through a [`FarEnd`] with their numbers and their JSON; calls go out through the port
//! [`Elsewhere`]. Must not come in: connections, wire formats.

mod task;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use multitap_event::{ApprovalMode, ClientRef, SessionId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::task::{FarNews, FarTask};
use crate::past::Past;
use crate::protocol::{PageCall, PageReply, Refusal, SessionCall, SessionReply};
use crate::reach::{Reach, Reached, Standing};
use crate::session::Session;
use crate::session::task::INBOX;
use crate::state::State;
use crate::tail::{Retain, Tail};

/// Most queued events.
const HEARD: usize = 256;

/// A pending answer of the other process.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send>>;

/// The connection to the process that owns a session. That process knows who calls: the client of the connection.
pub trait Elsewhere: fmt::Debug + Send + Sync + 'static {
    fn call(&self, call: SessionCall) -> Answer<SessionReply>;

    /// Requests part of the log. Waits while the connection is broken: existing events must not look lost.
    fn page(&self, page: PageCall) -> Answer<PageReply>;
}

/// The state of a far session when it is attached.
#[derive(Debug, Clone)]
pub struct FarStart {
    pub id: SessionId,
    pub epoch: u64,
    /// The client that represents us in the other process.
    pub client: ClientRef,
    /// Its current state; later events are pushed, earlier ones are requested.
    pub state: Box<State>,
}

/// Feeds the events of the other process in. Dropping it ends the session here.
#[derive(Debug)]
pub struct FarEnd {
    heard: mpsc::Sender<FarNews>,
    end: CancellationToken,
}

/// Every handle of the session here was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nobody uses this session any more")]
pub struct Left;

impl Session {
    /// A session that runs elsewhere, the end that its events are fed into, and the task to run for it.
    pub fn far(start: FarStart, elsewhere: Arc<dyn Elsewhere>) -> (Self, FarEnd, FarTask) {
        let (inbox_tx, inbox) = mpsc::channel(INBOX);
        let (heard_tx, heard) = mpsc::channel(HEARD);
        let (native_tx, native) = watch::channel(start.state.native_id.clone());
        let (ceiling_tx, ceiling) = watch::channel(start.state.mode.unwrap_or(ApprovalMode::Ask));
        let (reach_tx, reach) = watch::channel(Standing { reach: Reach::Here, client: start.client.clone() });
        let tail = Arc::new(Tail::new(start.state.seq, Retain::Ring));
        let end = CancellationToken::new();
        let past = Some(Past::Elsewhere(elsewhere.clone()));
        let mut session =
            Self::new(start.id.clone(), start.epoch, native, ceiling, inbox_tx, tail.clone(), past, end.clone());
        session.reached = Reached::of(reach);
        let task = FarTask {
            start,
            elsewhere,
            inbox,
            heard,
            native: native_tx,
            ceiling: ceiling_tx,
            reach: reach_tx,
            tail,
            end: end.clone(),
            under_way: JoinSet::new(),
            over: false,
        };
        (session, FarEnd { heard: heard_tx, end }, task)
    }
}

impl FarEnd {
    /// Feeds news in. Waits while too many are queued. Known events are skipped.
    pub async fn hear(&self, news: FarNews) -> Result<(), Left> {
        self.heard.send(news).await.map_err(|_| Left)
    }

    /// Returns when every handle here was dropped, or one of them ended the session.
    pub async fn left(&self) {
        tokio::select! {
            () = self.end.cancelled() => {}
            () = self.heard.closed() => {}
        }
    }
}
