//! Frames regenerated from a log, a page at a time: for lagging clients of a live session, and for stored sessions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::Error;
use multitap_event::{Event, SessionId};
use multitap_hub::{Checkpoint, Edge, Entry, Journal, JournalError, Part};

use super::cursor::Cursor;
use super::frame::Frame;
use super::history::Log;
use super::project::{Projector, SPACING};

/// Size of a page.
const AT_A_TIME: Part = Part { edge: Edge::After(0), limit: 256, bytes: 512 * 1024 };

/// Attempts to read a log before a stream gives up on it.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// Frames that a client must get cannot be made. The stream ends with this error and never skips them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(crate) struct MissingFrames {
    /// The last frame before them: its client can resume there.
    pub(super) after: Cursor,
    pub(super) why: WhyMissing,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WhyMissing {
    #[error("the session's log cannot be read after event {last}: {error}")]
    Unreadable { last: u64, error: JournalError },
    #[error("the session's log ends at event {last}, and the events after it are no longer in memory")]
    NotStored { last: u64 },
    #[error("event {seq} of the session's log is damaged")]
    Damaged { seq: u64 },
}

impl From<&MissingFrames> for Error {
    fn from(missing: &MissingFrames) -> Self {
        let message = format!(
            "{missing}. Frames are missing from this stream: resume after the cursor in the error's data, or subscribe \
             without Last-Event-ID for the task as it is now"
        );
        Self::internal(message).with("cursor", missing.after.to_string())
    }
}

#[derive(Debug)]
pub(crate) struct Past {
    log: Log,
    projector: Projector,
    /// The last event that was read, known to this version or not.
    read: u64,
    ready: VecDeque<Frame>,
    /// Where checkpoints are stored: the next reader need not read what this one did.
    journal: Arc<dyn Journal>,
    /// The event of the last checkpoint, stored or not.
    last_checkpoint: u64,
    /// A checkpoint to store.
    unsaved: Option<Checkpoint>,
}

impl Past {
    /// The frames after that one: from the nearest stored place before it, unless `known` is about as near.
    pub(super) async fn open(log: Log, journal: Arc<dyn Journal>, known: Projector, after: Cursor) -> Self {
        let mut projector = known;
        if after.seq >= projector.seq() + 2 * SPACING {
            let session = log.session();
            let stored = journal.door_checkpoint(session.clone(), after.seq).await.unwrap_or_else(|error| {
                tracing::debug!(%session, %error, "cannot look for a place in the log");
                None
            });
            let stored = stored.and_then(|checkpoint| Projector::resume(session.as_str(), &checkpoint));
            projector = stored.filter(|stored| stored.seq() > projector.seq()).unwrap_or(projector);
        }
        let read = projector.seq();
        Self { log, projector, read, ready: VecDeque::new(), journal, last_checkpoint: read, unsaved: None }
    }

    /// The next frame after that one; `None` at the end of the log. Cancel safe, and no page is read twice.
    pub(super) async fn next(&mut self, after: Cursor) -> Result<Option<Frame>, MissingFrames> {
        self.look(after).await?;
        Ok(self.ready.pop_front())
    }

    /// The last event that was read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Like `next`, if the frame is in memory.
    pub(super) fn try_next(&mut self, after: Cursor) -> Option<Frame> {
        self.skip(after);
        self.ready.pop_front()
    }

    /// Whether there is a next frame.
    pub(super) async fn look(&mut self, after: Cursor) -> Result<bool, MissingFrames> {
        loop {
            self.skip(after);
            if !self.ready.is_empty() {
                return Ok(true);
            }
            if !self.read_on().await.map_err(|why| MissingFrames { after, why })? {
                return Ok(false);
            }
        }
    }

    fn skip(&mut self, after: Cursor) {
        while self.ready.front().is_some_and(|frame| frame.cursor <= after) {
            self.ready.pop_front();
        }
    }

    /// Whether the log had more.
    async fn read_on(&mut self) -> Result<bool, WhyMissing> {
        if let Some(checkpoint) = &self.unsaved {
            keep(&self.journal, self.log.session(), checkpoint.clone()).await;
            self.unsaved = None;
        }
        let entries = self.page().await?;
        let Some(last) = entries.last() else { return Ok(false) };
        if entries.first().is_some_and(|first| first.seq() != self.read + 1) {
            return Err(WhyMissing::NotStored { last: self.read });
        }
        if let Some(damaged) = entries.iter().find(|entry| entry.is_damaged()) {
            return Err(WhyMissing::Damaged { seq: damaged.seq() });
        }
        self.read = last.seq();
        let events: Vec<&Event> = entries.iter().filter_map(Entry::event).collect();
        let mut made = Vec::new();
        for event in &events {
            self.projector.apply(event, &mut made);
            if event.seq >= self.last_checkpoint + SPACING
                && let Some(checkpoint) = self.projector.checkpoint()
            {
                self.last_checkpoint = event.seq;
                self.unsaved = Some(checkpoint);
            }
        }
        self.ready.extend(made);
        Ok(true)
    }

    /// The next page of the log. Reading is retried before it fails.
    async fn page(&self) -> Result<Vec<Entry>, WhyMissing> {
        let part = Part { edge: Edge::After(self.read), ..AT_A_TIME };
        let mut attempt = 1;
        loop {
            match self.log.page(part).await {
                Ok(entries) => return Ok(entries),
                Err(error) if attempt == ATTEMPTS => {
                    return Err(WhyMissing::Unreadable { last: self.read, error });
                }
                Err(error) => {
                    tracing::warn!(session = %self.log.session(), %error, attempt, "cannot read the log");
                }
            }
            attempt += 1;
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
    }
}

/// Stores a checkpoint. Without it the log is only slower to read.
pub(super) async fn keep(journal: &Arc<dyn Journal>, session: &SessionId, checkpoint: Checkpoint) {
    if let Err(error) = journal.keep_door_checkpoint(session.clone(), checkpoint).await {
        tracing::debug!(%session, %error, "cannot store a place in the log");
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{AgentKind, Event, Timestamp};
    use multitap_hub::{Batch, Flush, NewSession};
    use multitap_store::Store;
    use multitap_testkit::script;

    use super::*;

    const SESSION: &str = "s";
    const PER_BATCH: usize = 500;

    /// A log of many turns.
    async fn long_log(journal: &Arc<dyn Journal>) -> u64 {
        let new = NewSession {
            id: SESSION.into(),
            agent: AgentKind::Builtin,
            folder: None,
            created: Timestamp::from_millis(1),
            forked_from: None,
            config: serde_json::Map::new(),
        };
        let claim = journal.create(new).await.unwrap();
        let turn: Vec<Event> = script::events("edit_allowed").unwrap();
        let events = turn.iter().cycle().zip(1..=6 * SPACING).map(|(event, seq)| {
            let timestamp = Timestamp::from_millis(event.timestamp.as_millis() + seq.cast_signed() * 10);
            Entry::new(Event { seq, timestamp, session_id: SESSION.into(), ..event.clone() })
        });
        let events: Vec<Entry> = events.collect();
        for entries in events.chunks(PER_BATCH) {
            let (session, owner) = (SESSION.into(), claim.owner.clone());
            let entries = entries.to_vec();
            let batch = Batch { session, owner, entries, flush: Flush::Soon, checkpoint: None, about: None };
            journal.append(batch).await.unwrap();
        }
        events.len() as u64
    }

    async fn frames(journal: &Arc<dyn Journal>, after: Cursor) -> (u64, Vec<(Cursor, String)>) {
        let log = Log::Kept { journal: journal.clone(), session: SESSION.into() };
        let mut past = Past::open(log, journal.clone(), Projector::new(SESSION), after).await;
        let (began, mut made, mut after) = (past.read(), Vec::new(), after);
        while let Some(frame) = past.next(after).await.unwrap() {
            after = frame.cursor;
            made.push((frame.cursor, format!("{:?} {:?}", frame.scope, frame.body)));
        }
        (began, made)
    }

    /// A client that comes back to a long log after a restart does not wait until the log was read from its start.
    #[tokio::test]
    async fn the_second_reader_of_a_long_log_begins_near_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let journal: Arc<dyn Journal> = Arc::new(Store::open(folder.path().join("sessions.db")).unwrap());
        let last = long_log(&journal).await;
        let (began, all) = frames(&journal, Cursor::default()).await;
        assert_eq!(began, 0, "nobody has read it yet");
        for after in [1, SPACING, 3 * SPACING + 7, last - 10] {
            let after = Cursor::new(after, 0);
            let (began, rest) = frames(&journal, after).await;
            assert!(began <= after.seq && after.seq < began + 2 * SPACING, "{after} from {began}");
            let expected: Vec<_> = all.iter().filter(|(cursor, _)| *cursor > after).cloned().collect();
            assert_eq!(rest, expected, "after {after}");
        }
    }
}
