//! Conversations that the agents stored, as events.

use multitap_adapter::{HistoryError, StoredSession};
use multitap_event::{Event, SessionId};

/// Reads a stored conversation as the events that it would have emitted live, with their original times and the agent's
/// own id of the session. With `keep_raw` every line of its files is in the `raw` field of exactly one event.
///
/// Reads the file lazily, and blocks while it does.
pub fn read_stored(
    session: &StoredSession,
    keep_raw: bool,
) -> Result<impl Iterator<Item = Event> + use<>, HistoryError> {
    let session_id = SessionId::from(session.id.as_str());
    let drafts = (1..).zip(multitap_adapter::read(session, keep_raw)?);
    Ok(drafts.map(move |(seq, draft)| draft.stamp(session_id.clone(), seq)))
}
