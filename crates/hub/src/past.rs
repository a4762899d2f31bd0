//! Where the part of a log is read that is no longer at hand.

use std::sync::Arc;

use multitap_event::SessionId;

use crate::far::Elsewhere;
use crate::journal::{Journal, JournalError, Page, Part};

#[derive(Debug, Clone)]
pub(crate) enum Past {
    /// It is kept here.
    Journal(Arc<dyn Journal>),
    /// It is asked for, where the session runs.
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
