//! Attaches to a session: makes the first connection, whose failure the caller gets, and then starts the task that
//! keeps it.

use std::fmt;
use std::io;
use std::sync::Arc;

use multitap_event::Door;
use multitap_hub::{FarStart, JoinCall, JoinReply, Refusal, Session};
use tokio::sync::{mpsc, watch};
use tokio_util::task::TaskTracker;

use crate::address::Address;
use crate::calls::{CALLS, Calls, Link};
use crate::dial::{Cut, Line};
use crate::run::Runner;

/// The address, and the client that attaches.
#[derive(Clone)]
pub struct Attach {
    pub address: Address,
    /// The name that other clients see.
    pub client: String,
    /// The kind of client, as the other process may show it. It grants nothing.
    pub door: Door,
    /// The token, if the door requires one.
    pub token: Option<String>,
}

/// A session that runs elsewhere.
#[derive(Debug)]
pub struct Attached {
    pub session: Session,
    tasks: TaskTracker,
}

#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("cannot reach {at}")]
    Unreachable { at: String, source: io::Error },
    #[error("{at} does not answer within {seconds} s")]
    Silent { at: String, seconds: u64 },
    #[error("{message} ({status})")]
    Refused { status: u16, message: String },
    #[error("{0}")]
    NotJoined(Refusal),
    #[error("the connection was cut: {0}")]
    Cut(Cut),
    #[error("cannot read the answer to session/join: {0}")]
    Unreadable(String),
    #[error("the token has characters that are not allowed in a header")]
    Token,
}

impl AttachError {
    /// Whether the door reports that there is no such session.
    pub fn is_no_session(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. } | Self::NotJoined(_))
    }

    /// Whether another attempt is pointless.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Refused { status: 400..=403, .. } | Self::Token)
    }
}

/// Attaches to a session. From then on, broken connections are replaced.
pub async fn attach(to: Attach) -> Result<Attached, AttachError> {
    let (line, joined) = Line::open(&to, JoinCall::default()).await?;
    let JoinReply { session_id, epoch, client, snapshot, .. } = joined;
    let state = snapshot.ok_or_else(|| AttachError::Unreadable("it has no snapshot".to_owned()))?;
    let seq = state.seq;
    let (calls_tx, calls) = mpsc::channel(CALLS);
    let (link, linked) = watch::channel(Link::Up);
    let start = FarStart { id: session_id.clone(), epoch, client, state };
    let (session, far, task) = Session::far(start, Arc::new(Calls::new(calls_tx, linked)));
    let tasks = TaskTracker::new();
    tasks.spawn(task.run());
    tasks.spawn(Runner::new(to, session_id, epoch, seq, far, calls, link).run(line));
    tasks.close();
    Ok(Attached { session, tasks })
}

impl Attached {
    /// Leaves; the session goes on where it runs.
    pub async fn leave(self) {
        self.session.end();
        self.tasks.wait().await;
    }
}

impl fmt::Debug for Attach {
    /// A token is not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attach")
            .field("address", &self.address)
            .field("client", &self.client)
            .field("door", &self.door)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { reason, .. } if !reason.is_empty() => f.write_str(reason),
            Self::Closed { code, .. } => write!(f, "closed with {code}"),
            Self::Broken(why) => f.write_str(why),
        }
    }
}
