//! Conversations that the agents stored, as events.

use multitap_adapter::{HistoryError, Reading, StoredSession};
use multitap_event::{Event, SessionId};

/// Reads a stored conversation as the events that it would have emitted live, with their original times. With
/// `keep_raw` every line of its files is in the `raw` field of exactly one event.
///
/// Reads the file lazily, and blocks while it does.
pub fn read_stored(session: &StoredSession, keep_raw: bool) -> Result<StoredEvents, HistoryError> {
    let reading = multitap_adapter::read(session, keep_raw)?;
    Ok(StoredEvents { reading, session_id: session.id.as_str().into(), seq: 0 })
}

/// The events of a stored conversation. Their session id is the agent's own.
#[derive(Debug)]
pub struct StoredEvents {
    reading: Reading,
    session_id: SessionId,
    seq: u64,
}

impl Iterator for StoredEvents {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let draft = self.reading.next()?;
        self.seq += 1;
        Some(draft.stamp(self.session_id.clone(), self.seq))
    }
}
