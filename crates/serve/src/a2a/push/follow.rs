//! Follows a live session for its configs: a reader of its own, so that a slow disk or a slow webhook delays no client.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::Timestamp;
use multitap_hub::Session;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::super::frame::{Body, Frame, FrameScope, StateChange};
use super::super::history::Log;
use super::super::stage::{Now, Stage};
use super::notice::Notice;
use super::watchers::Watchers;
use super::{Push, lock};

/// Most frames that are read at a time.
const BATCH: usize = 4096;
/// Time between two reads. While an agent says much, it saves waking up for each piece; the frames of that time are still
/// in memory.
const BETWEEN_READS: Duration = Duration::from_millis(10);
/// How long to wait before a journal that failed is used again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long a closing door waits for the journal.
const LEAVE_PATIENCE: Duration = Duration::from_secs(1);

/// Runs until the session is over or the door closes. Without configs it only waits for one.
pub(in crate::a2a) async fn follow(push: Arc<Push>, stage: Arc<Stage>, stop: CancellationToken) {
    if push.queue().is_none() {
        return;
    }
    let session = stage.session().clone();
    let changed = Arc::new(Notify::new());
    lock(&push.changed).insert(session.id().clone(), changed.clone());
    let mut follower = Follower::new(push.clone(), stage, changed.clone());
    tokio::select! {
        () = stop.cancelled() => follower.leave(None).await,
        () = follower.run() => follower.leave(Some(session.last())).await,
    }
    let mut registered = lock(&push.changed);
    // A session that was opened again has another follower.
    if registered.get(session.id()).is_some_and(|other| Arc::ptr_eq(other, &changed)) {
        registered.remove(session.id());
    }
}

struct Follower {
    stage: Arc<Stage>,
    changed: Arc<Notify>,
    watchers: Watchers,
}

/// Why a follower stops reading.
enum Pause {
    /// Configs were stored or deleted.
    Changed,
    /// The session is over, and all of it was read.
    Over,
}

impl Follower {
    fn new(push: Arc<Push>, stage: Arc<Stage>, changed: Arc<Notify>) -> Self {
        let session: &Session = stage.session();
        let (epoch, opened_after) = (session.epoch(), session.opened_after());
        let watchers = Watchers::new(push, Log::Live(session.clone()), epoch, opened_after);
        Self { stage, changed, watchers }
    }

    /// Until the session is over and all of it was read.
    async fn run(&mut self) {
        loop {
            self.load().await;
            if self.watchers.is_empty() {
                tokio::select! {
                    () = self.stage.ended() => return,
                    () = self.changed.notified() => continue,
                }
            }
            match self.read().await {
                Pause::Changed => {}
                Pause::Over => {
                    self.watchers.close_messages();
                    return self.store().await;
                }
            }
        }
    }

    /// Saves the next process from reading the log again: nothing is to be told of what was read, or of the whole log.
    async fn leave(&self, end: Option<u64>) {
        let left = tokio::time::timeout(LEAVE_PATIENCE, self.watchers.advance(end)).await;
        if !matches!(left, Ok(Ok(()))) {
            tracing::debug!(session = %self.stage.session().id(), "the log will be read again");
        }
    }

    /// Reads the configs, as soon as the journal can.
    async fn load(&mut self) {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.watchers.load().await {
            tracing::warn!(session = %self.stage.session().id(), %error, "cannot read the push configs");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Stores what is to be told, as soon as the journal can. Meanwhile nothing is read.
    async fn store(&mut self) {
        let mut pause = FIRST_PAUSE;
        while let Err(error) = self.watchers.store().await {
            tracing::warn!(session = %self.stage.session().id(), %error, "cannot store push notifications");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn read(&mut self) -> Pause {
        let changed = self.changed.clone();
        let mut reader = self.stage.read(self.watchers.position());
        while !self.watchers.is_empty() {
            let due = self.watchers.due();
            let next = tokio::select! {
                () = changed.notified() => return Pause::Changed,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.watchers.release(Some(Instant::now()));
                    self.store().await;
                    continue;
                }
                next = reader.next() => next,
            };
            match next {
                Ok(Some(frame)) => {
                    self.watchers.take(&frame);
                    for _ in 1..BATCH {
                        if self.watchers.is_full() {
                            break;
                        }
                        let Some(frame) = reader.try_next() else { break };
                        self.watchers.take(&frame);
                    }
                }
                Ok(None) => return Pause::Over,
                Err(missing) => {
                    tracing::warn!(session = %self.stage.session().id(), %missing, "push notifications skip frames");
                    let now = self.stage.now();
                    self.tell_state(&now);
                    reader = self.stage.read(now.cursor);
                }
            }
            self.store().await;
            sleep(BETWEEN_READS).await;
        }
        Pause::Changed
    }

    /// Tells the state of the task that runs, after frames that cannot be read.
    fn tell_state(&mut self, now: &Now) {
        let mut scope = Arc::new(FrameScope::first(self.stage.session().id().as_str()));
        let changed = FrameScope::make_mut(&mut scope);
        (changed.task, changed.turn, changed.state) = (now.task.clone(), now.turn.clone(), now.state);
        let body = Body::State(StateChange::default());
        let frame = Arc::new(Frame::new(now.cursor, Timestamp::now(), scope, body));
        let behind: Vec<_> = self
            .watchers
            .list()
            .iter()
            .filter(|watcher| *watcher.task == *now.task)
            .map(|watcher| watcher.key)
            .collect();
        for key in behind {
            let notice = Notice { frame: frame.clone(), is_same_state: false, is_cut: false, last: false };
            self.watchers.tell(key, notice);
        }
    }
}
