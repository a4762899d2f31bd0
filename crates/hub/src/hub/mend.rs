//! Taking up a log that an earlier process left: the state at its end, and what was cut off marked as such.

use std::sync::Arc;

use multitap_event::{Draft, SessionId, Timestamp};

use crate::entry::Entry;
use crate::journal::{Batch, Claim, Edge, Flush, Journal, JournalError, Part};
use crate::session::outbox::about;
use crate::state::State;

/// How much of a log is read at a time.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

const CUT_OFF: &str = "multitap ended before the session did";

/// The state at the end of a log, from the latest that was kept and what came after it.
pub async fn rebuild(journal: &Arc<dyn Journal>, claim: &Claim) -> Result<State, JournalError> {
    let kept = claim.checkpoint.as_ref().and_then(|kept| serde_json::from_str::<State>(&kept.state).ok());
    let mut state = kept.unwrap_or_default();
    loop {
        let part = Part { edge: Edge::After(state.seq), limit: PAGE, bytes: PAGE_BYTES };
        let page = journal.page(claim.record.id.clone(), part).await?;
        if page.entries.is_empty() {
            return Ok(state);
        }
        for entry in &page.entries {
            match entry.event() {
                Some(event) => state.apply(event),
                // Of a version that knows more: it counts, whatever it is.
                None => state.seq = entry.seq(),
            }
        }
    }
}

/// Takes up a log: what was cut off is marked as such. If it cannot be, the log is given back.
pub(super) async fn mend(journal: &Arc<dyn Journal>, claim: Claim) -> Result<State, JournalError> {
    let (id, owner) = (claim.record.id.clone(), claim.owner.clone());
    let mended = Box::pin(mark_cut_off(journal, claim)).await;
    if mended.is_err()
        && let Err(error) = journal.release(id.clone(), owner, 0).await
    {
        tracing::warn!(session = %id, %error, "cannot let go of the log");
    }
    mended
}

/// Claims a log, mends it and gives it back.
pub(super) async fn mend_and_release(journal: Arc<dyn Journal>, id: SessionId) -> Result<(), JournalError> {
    let claim = journal.claim(id.clone()).await?;
    let owner = claim.owner.clone();
    let state = mend(&journal, claim).await?;
    journal.release(id, owner, state.seq).await
}

async fn mark_cut_off(journal: &Arc<dyn Journal>, claim: Claim) -> Result<State, JournalError> {
    let mut state = rebuild(journal, &claim).await?;
    let mut entries = Vec::new();
    for kind in state.cut_off(CUT_OFF) {
        let event = Draft::new(Timestamp::now(), kind).stamp(claim.record.id.clone(), state.seq + 1);
        state.apply(&event);
        entries.push(Entry::new(event));
    }
    let about = about(&state);
    // The end of a log may have been kept, and not that it is the end.
    if !entries.is_empty() || claim.record.about.open != about.open {
        let (session, owner, about) = (claim.record.id, claim.owner, Some(about));
        journal.append(Batch { session, owner, entries, flush: Flush::Now, checkpoint: None, about }).await?;
    }
    Ok(state)
}
