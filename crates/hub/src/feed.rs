//! One client's way through a log: from its place to the end, then as it happens. Without a gap, without a repetition.

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

/// How many entries are taken at a time.
const AT_A_TIME: usize = 64;
/// And how many bytes.
const BYTES_AT_A_TIME: usize = 256 * 1024;

/// How often a journal is asked that cannot be read.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);

/// What a client gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    Event(Entry),
    /// Everything after `after` and before `next` is lost: it was never on the disk and is no longer in memory. What it
    /// made of the session, such as a question that still waits, is in
    /// [`Session::snapshot`](crate::Session::snapshot): asked for now, it has all of what is lost, and of what is told next
    /// everything up to its own `seq`.
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
    /// The client stayed away too long, or was sent away. It may join again after `last`.
    CutOff { last: u64 },
}

/// The events of a session for one client. Dropping it is leaving.
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

    /// Who reads.
    pub fn client(&self) -> &ClientRef {
        &self.client
    }

    /// The number of the last event that was read: join again after it to go on.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The next event; nothing once there is no more. Cancel safe.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Some(self.take(entry));
            }
            self.reader.came();
            // Looked at first: what comes after wakes us.
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
                // The session task is gone without a word: nothing more comes.
                Found::Nothing => self.head.changed().await.ok()?,
            }
        }
    }

    /// The next event, if it is at hand.
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

    /// Comes back when the client was cut off or the session is over: for one that is there, and hears of events in
    /// another way. From now on none is held for it and nobody waits for it, until it reads again; then it goes on from
    /// its place, over a gap where nothing is kept. Cancel safe.
    pub async fn until_cut(&mut self) -> FeedEnd {
        self.tail.stand_aside(&self.reader);
        loop {
            // Looked at first, as in `next`.
            let over = self.head.borrow_and_update().over;
            if over || self.is_cut() || self.head.changed().await.is_err() {
                return self.end();
            }
        }
    }

    /// Why there is no more.
    pub fn end(&self) -> FeedEnd {
        if self.is_cut() { FeedEnd::CutOff { last: self.last } } else { FeedEnd::SessionOver }
    }

    fn is_cut(&self) -> bool {
        self.reader.cut.load(Ordering::Acquire)
    }

    fn take(&mut self, entry: Entry) -> Told {
        self.last = entry.seq();
        // However slowly: whoever takes what it has at hand reads.
        self.reader.came();
        if self.ready.is_empty() {
            self.tail.took(&self.reader, self.last);
        }
        Told::Event(entry)
    }

    /// Reads on in the journal. What is not there either is lost.
    async fn catch_up(&mut self, first: u64) -> Option<Told> {
        let entries = self.page().await;
        if entries.first().is_some_and(|entry| entry.seq() == self.last + 1) {
            self.ready.extend(entries);
            return None;
        }
        // What is there after it is not lost with it.
        let next = entries.first().map_or(first, |entry| entry.seq().min(first));
        let gap = Told::Gap { after: self.last, next };
        self.last = next - 1;
        self.tail.took(&self.reader, self.last);
        Some(gap)
    }

    /// What the journal has after our place. One that cannot be read now is asked again before it is given up.
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
