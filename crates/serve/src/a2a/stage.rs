//! The frames of one session, made once for all its clients: one task reads the log and makes them, the latest stay in
//! memory, and any number of readers read them, each at its own pace.
//!
//! A reader that lags behind the frames in memory regenerates its frames from the log until it has caught up: so no
//! reader delays another, and none makes memory grow.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use multitap_a2a::TaskState;
use multitap_event::{ClientRef, Door, Event, Timestamp};
use multitap_hub::{Checkpoint, Entry, Feed, Join, JoinFrom, Journal, Refusal, Session, State, Told};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::cursor::Cursor;
use super::frame::{Body, Frame};
use super::history::Log;
use super::past::{MissingFrames, Past, WhyMissing};
use super::project::{Projector, SPACING};

/// Most bytes of the latest frames in memory.
const RING_BYTES: usize = 2 * 1024 * 1024;
/// Most places that are remembered for regenerating frames: between turns, and some within them.
const STARTS: usize = 256;
/// Maximum number of events of a turn between two such places. A reader that has just fallen behind reads at most this
/// many events in vain.
const STRIDE: u64 = 512;
/// Most events that are applied before the readers are woken.
const TOGETHER: usize = 64;
/// Most frames that a reader takes at a time.
const AT_A_TIME: usize = 64;
/// Maximum size of the frames that a reader takes at a time, which a stalled reader may hold.
const BYTES_AT_A_TIME: usize = 256 * 1024;
/// Most events that are read when a session is first asked for.
const AT_FIRST: u64 = 20_000;
/// Most checkpoints that wait to be stored.
const UNSAVED: usize = 64;

/// The frames of one session.
#[derive(Debug)]
pub(crate) struct Stage {
    session: Session,
    journal: Arc<dyn Journal>,
    ring: Mutex<Ring>,
    head: watch::Sender<Head>,
    /// Cancelled when no more frames are made. Unlike `head`, it wakes nobody before.
    ended: CancellationToken,
    /// The frame before its first.
    start: Cursor,
}

#[derive(Debug)]
struct Ring {
    projector: Projector,
    frames: VecDeque<Arc<Frame>>,
    bytes: usize,
    /// Every frame after this one is in memory, except replaced live output.
    before: Cursor,
    /// Places from which frames can be made, oldest first.
    starts: VecDeque<Projector>,
    /// Those that are to be stored.
    unsaved: VecDeque<Checkpoint>,
    /// The event of the last of those.
    last_checkpoint: u64,
}

/// The last frame, and whether the session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    last: Cursor,
    over: bool,
}

/// The current state of the session for A2A clients.
#[derive(Debug, Clone)]
pub(crate) struct Now {
    /// The last event that was applied.
    pub(crate) seq: u64,
    /// The last frame.
    pub(crate) cursor: Cursor,
    /// The task of the running turn, or of the last.
    pub(crate) task: Arc<str>,
    /// Whether the last prompt was a task of its own.
    pub(crate) has_own_tasks: bool,
    pub(crate) turn: Option<Arc<str>>,
    pub(crate) state: TaskState,
}

impl Stage {
    /// Opens the stage of a session. The caller must call `run`.
    pub(crate) async fn open(session: Session, journal: Arc<dyn Journal>) -> Result<(Arc<Self>, Feed), Refusal> {
        let me = ClientRef::new("a2a", Door::Host);
        let id = session.id().as_str();
        let first = Projector::new(id);
        let near = nearest(&session, &journal, first.clone()).await;
        let from = match &near {
            Some(near) if near.seq() > 0 => JoinFrom::After { seq: near.seq(), epoch: None },
            Some(_) => JoinFrom::Start,
            None => JoinFrom::Now,
        };
        let join = Join { client: me, from, patience: None, announce: false };
        let joined = session.join(join).await?;
        let projector = match &joined.snapshot {
            Some(state) => Projector::amid(id, state),
            None => near.unwrap_or_else(|| first.clone()),
        };
        let before = projector.last();
        let head = Head { last: before, over: false };
        let ring = Ring {
            last_checkpoint: projector.seq(),
            projector,
            frames: VecDeque::new(),
            bytes: 0,
            before,
            starts: VecDeque::from([first]),
            unsaved: VecDeque::new(),
        };
        let (head, _) = watch::channel(head);
        let (ring, ended) = (Mutex::new(ring), CancellationToken::new());
        Ok((Arc::new(Self { session, journal, ring, head, ended, start: before }), joined.feed))
    }

    /// Makes frames until the session is over.
    pub(crate) async fn run(self: Arc<Self>, mut feed: Feed, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                told = feed.next() => {
                    let is_whole = match told {
                        None => break,
                        Some(Told::Event(entry)) => self.take(entry, &mut feed),
                        Some(Told::Gap { .. }) => false,
                    };
                    if !is_whole {
                        // Without a snapshot the session is over.
                        let Some(state) = self.session.snapshot().await else { break };
                        self.resume_from(&state);
                    }
                }
                () = until(self.due()) => self.tick(),
            }
        }
        self.head.send_modify(|head| head.over = true);
        self.ended.cancel();
    }

    /// Returns when no more frames are made.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn now(&self) -> Now {
        let ring = self.lock();
        let projector = &ring.projector;
        Now {
            seq: projector.seq(),
            cursor: ring.last(),
            task: projector.task().clone(),
            has_own_tasks: projector.has_own_tasks(),
            turn: projector.turn().cloned(),
            state: projector.state(),
        }
    }

    /// Returns when every event up to that one was applied.
    pub(crate) async fn reached(&self, seq: u64) {
        let mut head = self.head.subscribe();
        while self.lock().projector.seq() < seq && !head.borrow_and_update().over {
            if head.changed().await.is_err() {
                return;
            }
        }
    }

    /// Reads all frames.
    pub(crate) fn read_all(self: &Arc<Self>) -> Reader {
        self.read(self.start)
    }

    /// Reads the frames after that one.
    pub(crate) fn read(self: &Arc<Self>, after: Cursor) -> Reader {
        Reader { stage: self.clone(), head: self.head.subscribe(), after, ready: VecDeque::new(), past: None }
    }

    /// The checkpoints that are to be stored.
    pub(crate) fn take_unsaved(&self) -> VecDeque<Checkpoint> {
        std::mem::take(&mut self.lock().unsaved)
    }

    fn due(&self) -> Option<Timestamp> {
        self.lock().projector.due()
    }

    /// Applies an event and all others in memory, and then wakes the readers once. Returns whether all of them could be
    /// read.
    fn take(&self, first: Entry, feed: &mut Feed) -> bool {
        let more = std::iter::from_fn(|| match feed.try_next()? {
            Told::Event(entry) => Some(entry),
            // Only `Feed::next` returns it.
            Told::Gap { .. } => None,
        });
        let came: Vec<Entry> = std::iter::once(first).chain(more).take(TOGETHER).collect();
        // An event of a newer version has no frames. Parsed before taking the lock.
        let events: Vec<&Event> =
            came.iter().take_while(|entry| !entry.is_damaged()).filter_map(Entry::event).collect();
        let mut ring = self.lock();
        for event in events {
            // A snapshot after a gap may include the next events.
            if event.seq > ring.projector.seq() {
                ring.make(|projector, out| projector.apply(event, out));
            }
        }
        self.tell(ring);
        !came.iter().any(Entry::is_damaged)
    }

    /// Continues from the session's current state: the events before it cannot be read.
    fn resume_from(&self, state: &State) {
        let mut ring = self.lock();
        ring.skip_to(Projector::amid(self.session.id().as_str(), state));
        ring.make(|projector, out| projector.tell_state(Timestamp::now(), out));
        self.tell(ring);
    }

    /// Makes the frames that are due.
    fn tick(&self) {
        let mut ring = self.lock();
        ring.make(|projector, out| projector.tick(Timestamp::now(), out));
        self.tell(ring);
    }

    /// Wakes the readers.
    fn tell(&self, ring: MutexGuard<'_, Ring>) {
        let last = ring.last();
        drop(ring);
        self.head.send_modify(|head| head.last = last);
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        // No panic leaves the ring inconsistent.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn make(&mut self, project: impl FnOnce(&mut Projector, &mut Vec<Frame>)) {
        let mut made = Vec::new();
        let was_idle = self.projector.is_idle();
        project(&mut self.projector, &mut made);
        if !was_idle && self.projector.is_idle() {
            self.projector.forget();
            self.remember();
        } else if self.projector.seq() >= self.last_start() + STRIDE && self.projector.is_clear() {
            self.remember();
        }
        for frame in made {
            self.add(Arc::new(frame));
        }
    }

    /// The events before that place are lost, and so are their frames: readers that still need them find that out in
    /// the log, and their streams end.
    fn skip_to(&mut self, projector: Projector) {
        self.frames.clear();
        self.bytes = 0;
        self.before = self.before.max(projector.last());
        self.projector = projector;
    }

    /// The last frame.
    fn last(&self) -> Cursor {
        self.frames.back().map_or(self.before, |frame| frame.cursor)
    }

    fn last_start(&self) -> u64 {
        self.starts.back().map_or(0, Projector::seq)
    }

    fn add(&mut self, frame: Arc<Frame>) {
        self.supersede(&frame);
        self.bytes += frame.bytes();
        self.frames.push_back(frame);
        while self.bytes > RING_BYTES
            && let Some(oldest) = self.frames.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.before = oldest.cursor;
        }
    }

    /// Drops live output that a later frame replaces, or whose call moves on.
    fn supersede(&mut self, by: &Frame) {
        let Body::Tool(tool) = &by.body else { return };
        let is_older = |frame: &Arc<Frame>| {
            frame.is_live() && matches!(&frame.body, Body::Tool(old) if old.call.tool_id == tool.call.tool_id)
        };
        if let Some(at) = self.frames.iter().rposition(is_older)
            && let Some(old) = self.frames.remove(at)
        {
            self.bytes -= old.bytes();
        }
    }

    fn remember(&mut self) {
        if self.starts.len() == STARTS {
            // Drops every other place, so that they are spread over the whole log. The first one stays.
            let mut at = 0;
            self.starts.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        let mut start = self.projector.clone();
        start.forget();
        if start.seq() >= self.last_checkpoint + SPACING
            && let Some(checkpoint) = start.checkpoint()
        {
            self.last_checkpoint = start.seq();
            self.unsaved.push_back(checkpoint);
            if self.unsaved.len() > UNSAVED {
                self.unsaved.pop_front();
            }
        }
        self.starts.push_back(start);
    }
}

/// One client's way through the frames. No gap, no repetition.
#[derive(Debug)]
pub(crate) struct Reader {
    stage: Arc<Stage>,
    head: watch::Receiver<Head>,
    /// The last frame that was read.
    after: Cursor,
    /// Frames that were in memory when it last looked.
    ready: VecDeque<Arc<Frame>>,
    past: Option<Past>,
}

enum Found {
    Frame(Arc<Frame>),
    Nothing,
    Behind,
}

impl Reader {
    pub(crate) fn session(&self) -> &Session {
        self.stage.session()
    }

    /// The next frame; `None` once the session is over and all were read. Cancel safe. After an error nothing follows:
    /// frames are missing.
    pub(crate) async fn next(&mut self) -> Result<Option<Arc<Frame>>, MissingFrames> {
        loop {
            // Read first: any later change wakes us.
            let over = self.head.borrow_and_update().over;
            match self.find() {
                Found::Frame(frame) => return Ok(Some(self.took(frame))),
                Found::Nothing if over => return Ok(None),
                Found::Nothing => {
                    if self.head.changed().await.is_err() {
                        return Ok(None);
                    }
                }
                Found::Behind => {
                    if let Some(frame) = self.catch_up().await? {
                        return Ok(Some(self.took(frame)));
                    }
                }
            }
        }
    }

    /// The next frame, if it is in memory.
    pub(crate) fn try_next(&mut self) -> Option<Arc<Frame>> {
        match self.find() {
            Found::Frame(frame) => Some(self.took(frame)),
            Found::Nothing => None,
            Found::Behind => {
                let frame = self.past.as_mut()?.try_next(self.after)?;
                Some(self.took(Arc::new(frame)))
            }
        }
    }

    fn took(&mut self, frame: Arc<Frame>) -> Arc<Frame> {
        self.after = frame.cursor;
        frame
    }

    fn find(&mut self) -> Found {
        if let Some(frame) = self.ready.pop_front() {
            return Found::Frame(frame);
        }
        let ring = self.stage.lock();
        if self.after < ring.before {
            return Found::Behind;
        }
        let at = ring.frames.partition_point(|frame| frame.cursor <= self.after);
        let mut bytes = 0;
        let some = ring.frames.range(at..).take(AT_A_TIME).take_while(|frame| {
            let has_room = bytes < BYTES_AT_A_TIME;
            bytes += frame.bytes();
            has_room
        });
        self.ready.extend(some.cloned());
        match self.ready.pop_front() {
            Some(frame) => {
                self.past = None;
                Found::Frame(frame)
            }
            None => Found::Nothing,
        }
    }

    async fn catch_up(&mut self) -> Result<Option<Arc<Frame>>, MissingFrames> {
        let past = match &mut self.past {
            Some(past) => past,
            none => none.insert(self.stage.past(self.after).await),
        };
        let frame = past.next(self.after).await?;
        if frame.is_none() {
            // The log has no more: the rest is in memory, or lost.
            let before = self.stage.lock().before;
            if past.read() < before.seq {
                return Err(MissingFrames { after: self.after, why: WhyMissing::NotStored { last: past.read() } });
            }
            self.after = self.after.max(before);
        }
        Ok(frame.map(Arc::new))
    }
}

impl Stage {
    /// The nearest place before that frame from which frames can be made.
    async fn past(&self, after: Cursor) -> Past {
        let start = self.lock().starts.iter().rev().find(|start| start.seq() <= after.seq).cloned();
        let start = start.unwrap_or_else(|| Projector::new(self.session.id().as_str()));
        Past::open(Log::Live(self.session.clone()), self.journal.clone(), start, after).await
    }
}

/// The place from which the session's latest frames can be made by reading not too many events; `None` if there is none.
async fn nearest(session: &Session, journal: &Arc<dyn Journal>, first: Projector) -> Option<Projector> {
    let last = session.last();
    if last <= AT_FIRST {
        return Some(first);
    }
    // Without an answer there is still the session's own state.
    let stored = journal.door_checkpoint(session.id().clone(), last).await.ok()??;
    Projector::resume(session.id().as_str(), &stored).filter(|near| last - near.seq() <= AT_FIRST)
}

/// Returns at that time; never, if there is none.
async fn until(due: Option<Timestamp>) {
    match due {
        Some(due) => tokio::time::sleep(Duration::from_millis(due.millis_since(Timestamp::now()))).await,
        None => std::future::pending().await,
    }
}
