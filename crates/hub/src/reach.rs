//! Whether the process that owns a session can be reached. A local session always can.

use std::future::pending;
use std::sync::Arc;

use multitap_event::ClientRef;
use tokio::sync::watch;

/// Connectivity to a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    Here,
    /// The connection broke, with the reason; reconnecting. No events are lost.
    Lost(Arc<str>),
    /// The session is over or unreachable, with the reason.
    Gone(Arc<str>),
}

/// Connectivity to a far session, and our client there.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) reach: Reach,
    pub(crate) client: ClientRef,
}

/// Watches the connectivity.
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

    /// The current connectivity.
    pub fn now(&self) -> Reach {
        self.changes.as_ref().map(|changes| changes.borrow().reach.clone()).unwrap_or_default()
    }

    /// Our client in a far session, which changes with each connection. `None` for a local session.
    pub fn client(&self) -> Option<ClientRef> {
        self.changes.as_ref().map(|changes| changes.borrow().client.clone())
    }

    /// Completes when it has changed since the last call; never for a local session. Cancel safe.
    pub async fn changed(&mut self) -> Reach {
        let Some(changes) = &mut self.changes else { return pending().await };
        if changes.changed().await.is_err() {
            // No more changes.
            return pending().await;
        }
        changes.borrow_and_update().reach.clone()
    }
}
