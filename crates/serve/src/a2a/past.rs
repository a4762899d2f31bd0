//! Frames regenerated from a log, a page at a time: for lagging clients of a live session, and for stored sessions.

use std::collections::VecDeque;
use std::time::Duration;

use multitap_a2a::Error;
use multitap_event::Event;
use multitap_hub::{Edge, Entry, JournalError, Part};

use super::cursor::Cursor;
use super::frame::Frame;
use super::history::Log;
use super::project::Projector;

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
}

impl Past {
    /// From the state of the projector on.
    pub(super) fn new(log: Log, projector: Projector) -> Self {
        Self { log, read: projector.seq(), projector, ready: VecDeque::new() }
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
