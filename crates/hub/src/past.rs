//! Sources of events that are no longer in memory.

use std::sync::Arc;

use multitap_event::SessionId;

use crate::far::Elsewhere;
use crate::journal::{Journal, JournalError, Page, Part};

#[derive(Debug, Clone)]
pub(crate) enum Past {
    /// In this process's journal.
    Journal(Arc<dyn Journal>),
    /// From the process that owns the session.
    Elsewhere(Arc<dyn Elsewhere>),
}

impl Past {
    pub(crate) async fn page(&self, session: &SessionId, part: Part) -> Result<Page, JournalError> {
        match self {
            Self::Journal(journal) => journal.page(session.clone(), part).await,
            Self::Elsewhere(elsewhere) => match elsewhere.page(part.into()).await {
                Ok(page) => Ok(Page { entries: page.entries, last_seq: page.last }),
                Err(refusal) => Err(JournalError::Other(refusal.to_string())),
            },
        }
    }
}
