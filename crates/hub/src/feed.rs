//! One client's position in a log. It reads on to the end, then live, without gaps or repetitions.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use std::time::Duration;

use multitap_event::{ClientRef, SessionId};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::entry::Entry;
use crate::journal::{Edge, Part};
use crate::past::Past;
use crate::tail::{Found, Head, Reader, Tail};

/// Maximum number of entries per read.
const AT_A_TIME: usize = 64;
/// Approximate maximum of bytes per read.
const BYTES_AT_A_TIME: usize = 256 * 1024;

/// Maximum attempts to read from a failing journal.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// What a feed yields.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Event(Entry),
    /// Events after `after` and before `next` are lost: they were never stored and are no longer in memory. Their
    /// effects, such as an open question, are in [`Session::snapshot`](crate::Session::snapshot): it includes the lost
    /// events, and later events up to its own `seq`.
    Gap {
        after: u64,
        next: u64,
    },
}

/// Why a feed has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedEnd {
    /// The session is over, and everything was read.
    SessionOver,
    /// The client did not read for too long, or was kicked. It may join again after `last`.
    CutOff { last: u64 },
}

/// The events of a session for one client. Dropping it leaves the session.
pub struct Feed {
    session: SessionId,
    client: ClientRef,
    reader: Arc<Reader>,
    tail: Arc<Tail>,
    head: watch::Receiver<Head>,
    past: Option<Past>,
    ready: VecDeque<Entry>,
    /// The number of the last event handed out.
    last: u64,
}

impl Feed {
    pub(crate) fn new(
        session: SessionId,
        client: ClientRef,
        reader: Arc<Reader>,
        tail: Arc<Tail>,
        past: Option<Past>,
    ) -> Self {
        let (head, last) = (tail.watch(), reader.cursor());
        Self { session, client, reader, tail, head, past, ready: VecDeque::new(), last }
    }

    /// The client that reads.
    pub fn client(&self) -> &ClientRef {
        &self.client
    }

    /// The number of the last event that was read. To continue, join again after it.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The next event; `None` at the end. Cancel safe.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Some(self.take(entry));
            }
            self.reader.came();
            // Checked before waiting, so that a later change wakes us.
            let head = *self.head.borrow_and_update();
            if self.is_cut() {
                return None;
            }
            match self.tail.after(self.last, AT_A_TIME, BYTES_AT_A_TIME) {
                Found::Entries(entries) => self.ready.extend(entries),
                Found::Behind { first } => {
                    if let Some(gap) = self.catch_up(first).await {
                        return Some(gap);
                    }
                }
                Found::Nothing if head.over => return None,
                // The session task is gone: no more events follow.
                Found::Nothing => self.head.changed().await.ok()?,
            }
        }
    }

    /// The next event, if it is in memory.
    pub fn try_next(&mut self) -> Option<Told> {
        if self.ready.is_empty() && !self.is_cut() {
            self.reader.came();
            if let Found::Entries(entries) = self.tail.after(self.last, AT_A_TIME, BYTES_AT_A_TIME) {
                self.ready.extend(entries);
            }
        }
        let entry = self.ready.pop_front()?;
        Some(self.take(entry))
    }

    /// Completes when the client is cut off or the session is over. For clients that get their events in another way:
    /// no events are held for them and nobody waits for them until they read again. Then they continue at their
    /// position, with a gap if nothing is stored. Cancel safe.
    pub async fn until_cut(&mut self) -> FeedEnd {
        self.tail.stand_aside(&self.reader);
        loop {
            // Checked first, as in `next`.
            let over = self.head.borrow_and_update().over;
            if over || self.is_cut() || self.head.changed().await.is_err() {
                return self.end();
            }
        }
    }

    /// Why the feed ended.
    pub fn end(&self) -> FeedEnd {
        if self.is_cut() { FeedEnd::CutOff { last: self.last } } else { FeedEnd::SessionOver }
    }

    fn is_cut(&self) -> bool {
        self.reader.cut.load(Ordering::Acquire)
    }

    fn take(&mut self, entry: Entry) -> Told {
        self.last = entry.seq();
        // A slow reader still reads.
        self.reader.came();
        if self.ready.is_empty() {
            self.tail.took(&self.reader, self.last);
        }
        Told::Event(entry)
    }

    /// Reads from the journal. Events that are not there either are lost.
    async fn catch_up(&mut self, first: u64) -> Option<Told> {
        let entries = self.page().await;
        if entries.first().is_some_and(|entry| entry.seq() == self.last + 1) {
            self.ready.extend(entries);
            return None;
        }
        // Later events are not lost.
        let next = entries.first().map_or(first, |entry| entry.seq().min(first));
        let gap = Told::Gap { after: self.last, next };
        self.last = next - 1;
        self.tail.took(&self.reader, self.last);
        Some(gap)
    }

    /// Reads entries after our position from the journal. Retries before giving up.
    async fn page(&self) -> Vec<Entry> {
        let Some(past) = &self.past else { return Vec::new() };
        let part = Part { edge: Edge::After(self.last), limit: AT_A_TIME, bytes: BYTES_AT_A_TIME };
        for attempt in 1..=ATTEMPTS {
            match past.page(&self.session, part).await {
                Ok(page) => return page.entries,
                Err(error) => tracing::warn!(session = %self.session, %error, attempt, "cannot read the log"),
            }
            sleep(BETWEEN_ATTEMPTS).await;
        }
        Vec::new()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.reader.gone.store(true, Ordering::Release);
        self.tail.moved.notify_one();
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("session", &self.session).field("client", &self.client).finish_non_exhaustive()
    }
}
