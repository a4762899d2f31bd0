//! Whether the process that runs a session can be reached. A session of this process always can.

use std::future::pending;
use std::sync::Arc;

use multitap_event::ClientRef;
use tokio::sync::watch;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    Here,
    /// The connection broke, for this reason, and is being restored. No event is lost by that.
    Lost(Arc<str>),
    /// The session is over here, for this reason.
    Gone(Arc<str>),
}

/// The connection to a session elsewhere, and the client that we are there.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) reach: Reach,
    pub(crate) client: ClientRef,
}

/// Reports changes of [`Reach`].
#[derive(Debug, Clone)]
pub struct Reached {
    changes: Option<watch::Receiver<Standing>>,
}

impl Reached {
    pub(crate) fn always() -> Self {
        Self { changes: None }
    }

    pub(crate) fn of(changes: watch::Receiver<Standing>) -> Self {
        Self { changes: Some(changes) }
    }

    pub fn now(&self) -> Reach {
        self.changes.as_ref().map(|changes| changes.borrow().reach.clone()).unwrap_or_default()
    }

    /// The client that we are in a session elsewhere; it changes with every connection. `None` for a session of this
    /// process.
    pub fn client(&self) -> Option<ClientRef> {
        self.changes.as_ref().map(|changes| changes.borrow().client.clone())
    }

    /// Returns at the next change since the last call; never for a session of this process. Cancel safe.
    pub async fn changed(&mut self) -> Reach {
        let Some(changes) = &mut self.changes else { return pending().await };
        if changes.changed().await.is_err() {
            // No more changes will come.
            return pending().await;
        }
        changes.borrow_and_update().reach.clone()
    }
}
