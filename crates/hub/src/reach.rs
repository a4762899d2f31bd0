//! Whether the process can be reached in which a session runs. A session of this process always can.

use std::future::pending;
use std::sync::Arc;

use multitap_event::ClientRef;
use tokio::sync::watch;

/// How a session stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    Here,
    /// The way to it broke, for this reason; another is sought. Nothing of the log is lost by it.
    Lost(Arc<str>),
    /// No more comes, for this reason.
    Gone(Arc<str>),
}

/// How a session elsewhere stands, and who we are to it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) reach: Reach,
    pub(crate) client: ClientRef,
}

/// Tells when that changes.
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

    /// How it is now.
    pub fn now(&self) -> Reach {
        self.changes.as_ref().map(|changes| changes.borrow().reach.clone()).unwrap_or_default()
    }

    /// Who we are to a session elsewhere: somebody else after the way broke. Nothing for a session of this process.
    pub fn client(&self) -> Option<ClientRef> {
        self.changes.as_ref().map(|changes| changes.borrow().client.clone())
    }

    /// Comes back when it has changed since this was last asked; never for a session of this process. Cancel safe.
    pub async fn changed(&mut self) -> Reach {
        let Some(changes) = &mut self.changes else { return pending().await };
        if changes.changed().await.is_err() {
            // It stays as it was.
            return pending().await;
        }
        changes.borrow_and_update().reach.clone()
    }
}
