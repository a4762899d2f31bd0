//! The end of a log in memory, shared by all its readers: written by the session task, read by feeds.
//!
//! A reader costs only its place. One that falls behind reads from the journal; without a journal, unread events stay
//! in memory, and the agent waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use multitap_event::ClientId;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::entry::Entry;

/// Most bytes of the log's end in memory.
const RING_BYTES: usize = 1024 * 1024;
/// Most bytes for the slowest reader where there is no journal.
const UNREAD_BYTES: usize = 4 * 1024 * 1024;
/// Most bytes of a log that cannot be stored.
const VOLATILE_BYTES: usize = 64 * 1024 * 1024;

/// Which events stay in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retain {
    /// The latest; the rest is in the journal.
    Ring,
    /// Unread ones; there is no journal.
    UntilRead,
    /// As many as possible; the journal does not work.
    Volatile,
}

/// The number of the last event, and whether the session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) last: u64,
    pub(crate) over: bool,
}

#[derive(Debug)]
pub(crate) struct Tail {
    inner: Mutex<Inner>,
    head: watch::Sender<Head>,
    /// Notified when a reader leaves, or advances where the agent may wait for it.
    pub(crate) moved: Notify,
    /// There is no journal: readers set the pace.
    paced: bool,
}

#[derive(Debug)]
struct Inner {
    entries: VecDeque<Entry>,
    bytes: usize,
    retain: Retain,
    readers: Vec<Arc<Reader>>,
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) client: ClientId,
    /// The number of the last event it took.
    cursor: AtomicU64,
    /// When it last read, or had nothing to read, in milliseconds since `born`.
    came: AtomicU64,
    born: Instant,
    /// How long it may leave events unread.
    patience: Option<Duration>,
    /// The client takes part, but wants no events until it asks for them.
    aside: AtomicBool,
    /// The client was disconnected.
    pub(crate) cut: AtomicBool,
    /// The client left.
    pub(crate) gone: AtomicBool,
}

pub(crate) enum Found {
    Entries(Vec<Entry>),
    Nothing,
    /// The client is behind the events in memory, which begin with this number.
    Behind {
        first: u64,
    },
}

impl Reader {
    pub(crate) fn new(client: ClientId, after: u64, patience: Option<Duration>) -> Self {
        let (cursor, came) = (AtomicU64::new(after), AtomicU64::new(0));
        let (aside, cut, gone) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        Self { client, cursor, came, born: Instant::now(), patience, aside, cut, gone }
    }

    pub(crate) fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Acquire)
    }

    fn took(&self, seq: u64) {
        self.cursor.store(seq, Ordering::Release);
    }

    /// The client reads.
    pub(crate) fn came(&self) {
        self.starts_anew();
        // In this order: a reader that stood aside was not late.
        self.aside.store(false, Ordering::Release);
    }

    /// The event after which the reader wants events; `None` if it wants none now.
    fn wants_after(&self) -> u64 {
        if self.aside.load(Ordering::Acquire) { u64::MAX } else { self.cursor() }
    }

    /// Restarts its time limit.
    fn starts_anew(&self) {
        if self.patience.is_none() {
            return;
        }
        let since = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.came.store(since, Ordering::Release);
    }

    /// Whether it left events unread for too long.
    fn is_stuck(&self) -> bool {
        let away = self.born.elapsed().saturating_sub(Duration::from_millis(self.came.load(Ordering::Acquire)));
        self.patience.is_some_and(|patience| away > patience)
    }
}

impl Tail {
    pub(crate) fn new(last: u64, retain: Retain) -> Self {
        let inner = Inner { entries: VecDeque::new(), bytes: 0, retain, readers: Vec::new() };
        let (head, _) = watch::channel(Head { last, over: false });
        Self { inner: Mutex::new(inner), head, moved: Notify::new(), paced: retain == Retain::UntilRead }
    }

    pub(crate) fn head(&self) -> Head {
        *self.head.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Adds stored events in order, and wakes the readers once.
    pub(crate) fn add(&self, entries: impl IntoIterator<Item = Entry>) {
        let mut last = None;
        {
            let mut inner = self.lock();
            for entry in entries {
                last = Some(entry.seq());
                inner.bytes += entry.bytes();
                inner.entries.push_back(entry);
            }
            inner.trim();
        }
        if let Some(last) = last {
            self.head.send_modify(|head| head.last = last);
        }
    }

    /// The next event has this number: earlier ones are read elsewhere, or are lost.
    pub(crate) fn skip_to(&self, next: u64) {
        {
            let mut inner = self.lock();
            inner.entries.clear();
            inner.bytes = 0;
        }
        self.head.send_modify(|head| head.last = head.last.max(next.saturating_sub(1)));
    }

    /// No event follows.
    pub(crate) fn close(&self) {
        self.head.send_modify(|head| head.over = true);
    }

    pub(crate) fn retain(&self, retain: Retain) {
        let mut inner = self.lock();
        inner.retain = retain;
        inner.trim();
    }

    /// A reader has read every event up to here.
    pub(crate) fn took(&self, reader: &Reader, seq: u64) {
        reader.took(seq);
        if self.paced {
            self.moved.notify_one();
        }
    }

    /// A reader stops receiving events until it asks for them.
    pub(crate) fn stand_aside(&self, reader: &Reader) {
        reader.aside.store(true, Ordering::Release);
        if self.paced {
            self.moved.notify_one();
        }
    }

    /// Whether the agent has to wait for a reader.
    pub(crate) fn is_full(&self) -> bool {
        let mut inner = self.lock();
        if inner.retain != Retain::UntilRead || inner.bytes <= UNREAD_BYTES {
            return false;
        }
        inner.trim();
        inner.bytes > UNREAD_BYTES
    }

    /// The number of readers, announced or not; including those who left a moment ago.
    pub(crate) fn readers(&self) -> usize {
        self.lock().readers.len()
    }

    pub(crate) fn seat(&self, reader: Arc<Reader>) {
        self.lock().readers.push(reader);
    }

    /// Removes readers that left, disconnects those that do not read, and returns both.
    pub(crate) fn sweep(&self) -> Vec<Arc<Reader>> {
        let last = self.head().last;
        let mut inner = self.lock();
        let out = |reader: &mut Arc<Reader>| {
            if reader.wants_after() >= last {
                // There was nothing to read: its time limit starts with the next event.
                reader.starts_anew();
            } else if reader.is_stuck() {
                reader.cut.store(true, Ordering::Release);
            }
            reader.gone.load(Ordering::Acquire) || reader.cut.load(Ordering::Acquire)
        };
        let out: Vec<Arc<Reader>> = inner.readers.extract_if(.., out).collect();
        inner.trim();
        drop(inner);
        if out.iter().any(|reader| reader.cut.load(Ordering::Acquire)) {
            // Wakes readers that wait, so that they find out.
            self.head.send_modify(|_| {});
        }
        out
    }

    /// Disconnects a kicked reader.
    pub(crate) fn cut(&self, client: &ClientId) {
        for reader in self.lock().readers.iter().filter(|reader| reader.client == *client) {
            reader.cut.store(true, Ordering::Release);
        }
        self.moved.notify_one();
    }

    /// Disconnects every reader.
    pub(crate) fn cut_all(&self) {
        for reader in &self.lock().readers {
            reader.cut.store(true, Ordering::Release);
        }
        self.head.send_modify(|_| {});
    }

    /// The events after `after`, up to these limits.
    pub(crate) fn after(&self, after: u64, limit: usize, bytes: usize) -> Found {
        let inner = self.lock();
        let Some(first) = inner.entries.front().map(Entry::seq) else {
            let last = self.head().last;
            return if last > after { Found::Behind { first: last + 1 } } else { Found::Nothing };
        };
        if after + 1 < first {
            return Found::Behind { first };
        }
        let Ok(skip) = usize::try_from(after + 1 - first) else { return Found::Nothing };
        let found = inner.entries.iter().skip(skip).take(limit).take_while(within(bytes));
        let found: Vec<Entry> = found.cloned().collect();
        if found.is_empty() { Found::Nothing } else { Found::Entries(found) }
    }

    /// The events in memory after a place, without a reader.
    pub(crate) fn at_hand(&self, after: u64, limit: usize, bytes: usize) -> Vec<Entry> {
        let first = self.lock().entries.front().map_or(0, Entry::seq);
        match self.after(after.max(first.saturating_sub(1)), limit, bytes) {
            Found::Entries(entries) => entries,
            Found::Nothing | Found::Behind { .. } => Vec::new(),
        }
    }

    /// The last events in memory before a place, in order.
    pub(crate) fn at_hand_before(&self, seq: u64, limit: usize, bytes: usize) -> Vec<Entry> {
        let inner = self.lock();
        let before = inner.entries.iter().rev().skip_while(|entry| entry.seq() >= seq);
        let mut found: Vec<Entry> = before.take(limit).take_while(within(bytes)).cloned().collect();
        found.reverse();
        found
    }

    /// Whether an earlier event is in memory.
    pub(crate) fn has_before(&self, seq: u64) -> bool {
        self.lock().entries.front().is_some_and(|first| first.seq() < seq)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No panic leaves the entries inconsistent.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes entries up to about this size, but at least one.
fn within(bytes: usize) -> impl FnMut(&&Entry) -> bool {
    let mut size = 0;
    move |entry| {
        let first = size == 0;
        size += entry.bytes();
        first || size <= bytes
    }
}

impl Inner {
    fn trim(&mut self) {
        match self.retain {
            // The journal has all events, so not even the last entry must stay: a large one would stay for as long as
            // the session is idle.
            Retain::Ring => self.shrink(RING_BYTES, 0),
            Retain::Volatile => self.shrink(VOLATILE_BYTES, 1),
            Retain::UntilRead => match self.readers.iter().map(|reader| reader.wants_after()).min() {
                Some(read) => {
                    while self.entries.front().is_some_and(|entry| entry.seq() <= read) {
                        self.bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
                    }
                }
                // No client has joined yet.
                None => self.shrink(VOLATILE_BYTES, 1),
            },
        }
    }

    /// Drops the oldest entries beyond `most` bytes, but leaves at least `least` entries.
    fn shrink(&mut self, most: usize, least: usize) {
        while self.bytes > most && self.entries.len() > least {
            if let Some(entry) = self.entries.pop_front() {
                self.bytes -= entry.bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{Draft, EventKind, TextChunk, Timestamp};

    use super::*;

    fn entry(seq: u64, bytes: usize) -> Entry {
        let kind = EventKind::TextChunk(TextChunk::piece("x".repeat(bytes)));
        Entry::new(Draft::new(Timestamp::from_millis(0), kind).stamp("session".into(), seq))
    }

    /// Bytes that stay in memory, counted: an idle session must not hold its last prompt, however large.
    #[test]
    fn a_large_entry_does_not_stay_where_the_journal_has_it() {
        let tail = Tail::new(0, Retain::Ring);
        tail.add([entry(1, 100), entry(2, 15 * 1024 * 1024)]);
        assert_eq!(tail.lock().bytes, 0);
        assert!(tail.lock().entries.is_empty());
        assert!(matches!(tail.after(0, 10, usize::MAX), Found::Behind { first: 3 }));
        assert!(matches!(tail.after(2, 10, usize::MAX), Found::Nothing));
        tail.add([entry(3, 100)]);
        assert!(matches!(tail.after(2, 10, usize::MAX), Found::Entries(entries) if entries.len() == 1));
        assert!(matches!(tail.after(1, 10, usize::MAX), Found::Behind { first: 3 }));
    }

    #[test]
    fn the_last_entry_stays_where_there_is_nothing_else() {
        let tail = Tail::new(0, Retain::Volatile);
        tail.add([entry(1, 100), entry(2, 40 * 1024 * 1024)]);
        assert_eq!(tail.lock().entries.len(), 1);
    }
}
