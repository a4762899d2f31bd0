//! The log that a session writes: one that exists, or one that could not be created yet.

use std::pin::Pin;
use std::sync::Arc;

use multitap_event::SessionId;

use crate::journal::{Batch, Journal, JournalError, NewSession, Owner};

/// A pending write. Creating a log returns its owner.
pub(super) type Write = Pin<Box<dyn Future<Output = Result<Option<Owner>, JournalError>> + Send>>;

#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) right: Right,
}

/// The right to write it.
#[derive(Debug, Clone)]
pub(crate) enum Right {
    Held(Owner),
    /// The log could not be created yet; this is its first data.
    Wanted(Box<NewSession>),
}

impl Log {
    /// Creates it; `None` if it exists.
    pub(super) fn begin(&self) -> Option<Write> {
        let Right::Wanted(new) = &self.right else { return None };
        let (journal, new) = (self.journal.clone(), new.clone());
        Some(Box::pin(async move { journal.create(*new).await.map(|claim| Some(claim.owner)) }))
    }

    /// Appends the batch that `batch` returns; `None` if the log does not exist.
    pub(super) fn append(&self, batch: impl FnOnce(Owner) -> Batch) -> Option<Write> {
        let Right::Held(owner) = &self.right else { return None };
        let (journal, batch) = (self.journal.clone(), batch(owner.clone()));
        Some(Box::pin(async move { journal.append(batch).await.map(|()| None) }))
    }

    /// Releases the right to write it.
    pub(super) async fn release(&self, session: SessionId, told: u64) -> Result<(), JournalError> {
        match &self.right {
            Right::Held(owner) => self.journal.release(session, owner.clone(), told).await,
            Right::Wanted(_) => Ok(()),
        }
    }
}
