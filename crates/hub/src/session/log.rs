//! The log that a session writes: one it has, or one that could not be begun yet.

use std::pin::Pin;
use std::sync::Arc;

use multitap_event::SessionId;

use crate::journal::{Batch, Journal, JournalError, NewSession, Owner};

/// Something on its way into the journal. Who may write the log from now on, if that is what was asked for.
pub(super) type Write = Pin<Box<dyn Future<Output = Result<Option<Owner>, JournalError>> + Send>>;

#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) right: Right,
}

/// By what it may be written.
#[derive(Debug, Clone)]
pub(crate) enum Right {
    Held(Owner),
    /// It could not be begun: this is what it is to begin with.
    Wanted(Box<NewSession>),
}

impl Log {
    /// Begins it. Nothing, if it is begun.
    pub(super) fn begin(&self) -> Option<Write> {
        let Right::Wanted(new) = &self.right else { return None };
        let (journal, new) = (self.journal.clone(), new.clone());
        Some(Box::pin(async move { journal.create(*new).await.map(|claim| Some(claim.owner)) }))
    }

    /// Adds what `batch` makes to it. Nothing, if it is not begun.
    pub(super) fn append(&self, batch: impl FnOnce(Owner) -> Batch) -> Option<Write> {
        let Right::Held(owner) = &self.right else { return None };
        let (journal, batch) = (self.journal.clone(), batch(owner.clone()));
        Some(Box::pin(async move { journal.append(batch).await.map(|()| None) }))
    }

    /// Nobody writes it any more.
    pub(super) async fn release(&self, session: SessionId, told: u64) -> Result<(), JournalError> {
        match &self.right {
            Right::Held(owner) => self.journal.release(session, owner.clone(), told).await,
            Right::Wanted(_) => Ok(()),
        }
    }
}
