//! Recovers the log of a process that died: rebuilds the state at its end, and marks interrupted turns.

use std::sync::Arc;

use multitap_event::{Draft, SessionId, Timestamp};

use crate::entry::Entry;
use crate::journal::{Batch, Claim, Edge, Flush, Journal, JournalError, Part};
use crate::session::outbox::about;
use crate::state::State;

/// How much of a log is read at a time.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

const INTERRUPTED: &str = "multitap ended before the session did";

/// The state at the end of a log: the latest that was stored, and the events after it.
pub async fn rebuild(journal: &Arc<dyn Journal>, claim: &Claim) -> Result<State, JournalError> {
    let kept = claim.checkpoint.as_ref().and_then(|kept| serde_json::from_str::<State>(&kept.state).ok());
    let mut state = kept.unwrap_or_default();
    loop {
        let part = Part { edge: Edge::After(state.seq), limit: PAGE, bytes: PAGE_BYTES };
        let page = journal.page(claim.record.id.clone(), part).await?;
        if page.entries.is_empty() {
            return Ok(state);
        }
        page.entries.iter().for_each(|entry| state.apply_entry(entry));
    }
}

/// Marks interrupted turns in a claimed log. Releases the log if that fails.
pub(super) async fn recover(journal: &Arc<dyn Journal>, claim: Claim) -> Result<State, JournalError> {
    let (id, owner) = (claim.record.id.clone(), claim.owner.clone());
    let recovered = Box::pin(mark_interrupted(journal, claim)).await;
    if recovered.is_err()
        && let Err(error) = journal.release(id.clone(), owner, 0).await
    {
        tracing::warn!(session = %id, %error, "cannot release the log");
    }
    recovered
}

pub(super) async fn recover_and_release(journal: Arc<dyn Journal>, id: SessionId) -> Result<(), JournalError> {
    let claim = journal.claim(id.clone()).await?;
    let owner = claim.owner.clone();
    let state = recover(&journal, claim).await?;
    journal.release(id, owner, state.seq).await
}

async fn mark_interrupted(journal: &Arc<dyn Journal>, claim: Claim) -> Result<State, JournalError> {
    let mut state = rebuild(journal, &claim).await?;
    let mut entries = Vec::new();
    for kind in state.interrupted(INTERRUPTED) {
        let event = Draft::new(Timestamp::now(), kind).stamp(claim.record.id.clone(), state.seq + 1);
        state.apply(&event);
        entries.push(Entry::new(event));
    }
    let about = about(&state);
    // The last event may have been stored, but not that the session ended.
    if !entries.is_empty() || claim.record.about.open != about.open {
        let (session, owner, about) = (claim.record.id, claim.owner, Some(about));
        journal.append(Batch { session, owner, entries, flush: Flush::Now, checkpoint: None, about }).await?;
    }
    Ok(state)
}
