//! The end of a log in memory, which all its readers share: written by the session task, read by feeds.
//!
//! A reader costs nothing but its place. One that falls behind what is here goes on from the journal; where there is
//! no journal, what has not been read stays, and the agent waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use multitap_event::ClientId;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::entry::Entry;

/// How much of the log's end is at hand.
const RING_BYTES: usize = 1024 * 1024;
/// How much may wait for the slowest reader where there is no journal to fall back on.
const UNREAD_BYTES: usize = 4 * 1024 * 1024;
/// How much is kept of a log that cannot be written.
const VOLATILE_BYTES: usize = 64 * 1024 * 1024;

/// What stays in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retain {
    /// The latest; the rest is in the journal.
    Ring,
    /// What somebody has not read; there is no journal.
    UntilRead,
    /// As much as can be; the journal does not work.
    Volatile,
}

/// How far the log goes, and whether it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) last: u64,
    pub(crate) over: bool,
}

#[derive(Debug)]
pub(crate) struct Tail {
    inner: Mutex<Inner>,
    head: watch::Sender<Head>,
    /// Told when a reader left, or went on where the agent may be waiting for it.
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

/// A reader's place.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) client: ClientId,
    /// The number of the last event it took.
    cursor: AtomicU64,
    /// When it last came, or there was nothing to come for, in milliseconds since `born`.
    came: AtomicU64,
    born: Instant,
    /// How long it may stay away while there is something to read.
    patience: Option<Duration>,
    /// It is there, and wants no events until it comes for them.
    aside: AtomicBool,
    /// It was cut off.
    pub(crate) cut: AtomicBool,
    /// It left.
    pub(crate) gone: AtomicBool,
}

/// What a reader finds after its place.
pub(crate) enum Found {
    Entries(Vec<Entry>),
    /// Nothing yet.
    Nothing,
    /// It is behind what is at hand, which begins with this number.
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

    /// It came for more.
    pub(crate) fn came(&self) {
        self.starts_anew();
        // In this order: one that stood aside was not away.
        self.aside.store(false, Ordering::Release);
    }

    /// The number after which it wants events: none, if it stands aside.
    fn wants_after(&self) -> u64 {
        if self.aside.load(Ordering::Acquire) { u64::MAX } else { self.cursor() }
    }

    /// Its time runs from now on, if it is measured.
    fn starts_anew(&self) {
        if self.patience.is_none() {
            return;
        }
        let since = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.came.store(since, Ordering::Release);
    }

    /// Whether it stayed away too long, if there is something to read.
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

    /// Adds what was kept, in order, and wakes the readers once.
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

    /// What comes next has this number: whoever wants what is before it finds it elsewhere, or not at all.
    pub(crate) fn skip_to(&self, next: u64) {
        {
            let mut inner = self.lock();
            inner.entries.clear();
            inner.bytes = 0;
        }
        self.head.send_modify(|head| head.last = head.last.max(next.saturating_sub(1)));
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.head.send_modify(|head| head.over = true);
    }

    pub(crate) fn retain(&self, retain: Retain) {
        let mut inner = self.lock();
        inner.retain = retain;
        inner.trim();
    }

    /// A reader has everything up to here.
    pub(crate) fn took(&self, reader: &Reader, seq: u64) {
        reader.took(seq);
        if self.paced {
            self.moved.notify_one();
        }
    }

    /// A reader wants no events until it comes for them.
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

    /// How many read, announced or not; also those who left a moment ago.
    pub(crate) fn readers(&self) -> usize {
        self.lock().readers.len()
    }

    pub(crate) fn seat(&self, reader: Arc<Reader>) {
        self.lock().readers.push(reader);
    }

    /// Removes those who left and cuts off those who do not read, and names both.
    pub(crate) fn sweep(&self) -> Vec<Arc<Reader>> {
        let last = self.head().last;
        let mut inner = self.lock();
        let out = |reader: &mut Arc<Reader>| {
            if reader.wants_after() >= last {
                // There is nothing it could have come for: its time runs from the next event on.
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
            // Whoever waits looks again, and finds that it was cut off.
            self.head.send_modify(|_| {});
        }
        out
    }

    /// Cuts off a reader that is not welcome any more.
    pub(crate) fn cut(&self, client: &ClientId) {
        for reader in self.lock().readers.iter().filter(|reader| reader.client == *client) {
            reader.cut.store(true, Ordering::Release);
        }
        self.moved.notify_one();
    }

    /// Cuts off everybody, at once.
    pub(crate) fn cut_all(&self) {
        for reader in &self.lock().readers {
            reader.cut.store(true, Ordering::Release);
        }
        self.head.send_modify(|_| {});
    }

    /// What follows `after`, at most so many entries and about so many bytes.
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

    /// What is at hand after a place, without its being anybody's place.
    pub(crate) fn at_hand(&self, after: u64, limit: usize, bytes: usize) -> Vec<Entry> {
        let first = self.lock().entries.front().map_or(0, Entry::seq);
        match self.after(after.max(first.saturating_sub(1)), limit, bytes) {
            Found::Entries(entries) => entries,
            Found::Nothing | Found::Behind { .. } => Vec::new(),
        }
    }

    /// The last ones at hand before a place, in their order.
    pub(crate) fn at_hand_before(&self, seq: u64, limit: usize, bytes: usize) -> Vec<Entry> {
        let inner = self.lock();
        let before = inner.entries.iter().rev().skip_while(|entry| entry.seq() >= seq);
        let mut found: Vec<Entry> = before.take(limit).take_while(within(bytes)).cloned().collect();
        found.reverse();
        found
    }

    /// Whether something before that is at hand.
    pub(crate) fn has_before(&self, seq: u64) -> bool {
        self.lock().entries.front().is_some_and(|first| first.seq() < seq)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing is left half done in there.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes entries of about so many bytes, but at least one.
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
            // The journal has all of it, so not even the last entry must stay: a large one would for as long as the
            // session is idle.
            Retain::Ring => self.shrink(RING_BYTES, 0),
            Retain::Volatile => self.shrink(VOLATILE_BYTES, 1),
            Retain::UntilRead => match self.readers.iter().map(|reader| reader.wants_after()).min() {
                Some(read) => {
                    while self.entries.front().is_some_and(|entry| entry.seq() <= read) {
                        self.bytes -= self.entries.pop_front().map_or(0, |entry| entry.bytes());
                    }
                }
                // Nobody has come yet.
                None => self.shrink(VOLATILE_BYTES, 1),
            },
        }
    }

    /// Drops the oldest entries beyond so many bytes, but leaves so many entries.
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
