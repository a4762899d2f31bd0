//! A client's way through a log: from its place to the end, then live. No gap, no repetition.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use multitap_event::{ClientId, ClientRef, SessionId};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::entry::Entry;
use crate::journal::{Edge, Part};
use crate::past::Past;
use crate::tail::{Found, Head, Reader, Tail};

/// Most entries taken at a time.
const AT_A_TIME: usize = 64;
const BYTES_AT_A_TIME: usize = 256 * 1024;

/// How often a failing journal is read before an event counts as lost.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Event(Entry),
    /// Every event after `after` and before `next` is lost: never stored, and no longer in memory. Their effect, such
    /// as an open question, is in [`Session::snapshot`](crate::Session::snapshot), which includes all lost events and
    /// later ones up to its own `seq`.
    Gap {
        after: u64,
        next: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedEnd {
    /// The session is over, and every event was read.
    SessionOver,
    /// The client left its events unread for too long, or was kicked. It may join again after `last`.
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
    /// The number of the last event returned.
    last: u64,
}

impl Feed {
    pub(crate) fn new(
        session: SessionId,
        client: ClientRef,
        after: u64,
        patience: Option<Duration>,
        tail: Arc<Tail>,
        past: Option<Past>,
    ) -> Self {
        let id = client.client_id.clone().unwrap_or_else(ClientId::fresh);
        let reader = Arc::new(Reader::new(id, after, patience));
        tail.seat(reader.clone());
        let head = tail.watch();
        Self { session, client, reader, tail, head, past, ready: VecDeque::new(), last: after }
    }

    pub fn client(&self) -> &ClientRef {
        &self.client
    }

    /// The number of the last event read: to continue, join again after it.
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
            // Read first: any later change wakes us.
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
                // The session task ended without closing the log.
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

    /// Returns when the client is disconnected or the session is over. For a client that receives events in another
    /// way: until it reads again, no events are held for it and no agent waits for it. Then it continues from its
    /// position, with a gap where nothing is stored. Cancel safe.
    pub async fn until_cut(&mut self) -> FeedEnd {
        self.tail.stand_aside(&self.reader);
        loop {
            // Read first, as in `next`.
            let over = self.head.borrow_and_update().over;
            if over || self.is_cut() || self.head.changed().await.is_err() {
                return self.end();
            }
        }
    }

    pub fn end(&self) -> FeedEnd {
        if self.is_cut() { FeedEnd::CutOff { last: self.last } } else { FeedEnd::SessionOver }
    }

    fn is_cut(&self) -> bool {
        self.reader.cut.load(Ordering::Acquire)
    }

    fn take(&mut self, entry: Entry) -> Told {
        self.last = entry.seq();
        // A slow client still reads: it is not disconnected while it takes events from memory.
        self.reader.came();
        if self.ready.is_empty() {
            self.tail.took(&self.reader, self.last);
        }
        Told::Event(entry)
    }

    /// Continues from the journal. Events that the journal lacks are lost.
    async fn catch_up(&mut self, first: u64) -> Option<Told> {
        let entries = self.page().await;
        if entries.first().is_some_and(|entry| entry.seq() == self.last + 1) {
            self.ready.extend(entries);
            return None;
        }
        // Events after the gap are not lost.
        let next = entries.first().map_or(first, |entry| entry.seq().min(first));
        let gap = Told::Gap { after: self.last, next };
        self.last = next - 1;
        self.tail.took(&self.reader, self.last);
        Some(gap)
    }

    /// The journal's events after this position. A failing journal is tried again.
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
