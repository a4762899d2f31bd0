//! The writer thread.
//!
//! It takes everything that was queued while it was busy, does it in one transaction, and then acknowledges all of
//! it: under load more work shares one flush, and nobody waits for a timer. Invalid work is refused before anything
//! of it is written; if SQLite fails, the whole group is rolled back and each item is retried alone, so that one
//! cannot affect another. Must not come in: waiting for anything but the queue and the disk.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{Batch, Checkpoint, Claim, Flush, JournalError, NewSession, Owner, TaskRecord};
use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use tokio::sync::{mpsc, oneshot};

use super::append::append;
use super::error::{StoreError, journal_error};
use super::gap_markers::GapMarkers;
use super::keeper::{CHECKPOINT_PAGES, MOST_PAGES, checkpoint};
use super::push::{self, PushWork, PushWritten};
use super::session::{self, Claimed};
use super::{door_checkpoint, task};
use crate::holder::Process;

/// Most queued work; senders wait then. Also the most that one commit contains.
pub(super) const QUEUE: usize = 1024;

#[derive(Debug)]
pub(super) enum Message {
    Work(Work, Reply),
    Refresh,
    /// Checkpoint the rest of the write-ahead log.
    CatchUp,
    /// Do what is queued, then end.
    Close(oneshot::Sender<()>),
}

#[derive(Debug)]
pub(super) enum Work {
    Create(Box<NewSession>),
    Claim(SessionId),
    Append(Batch),
    Release { session: SessionId, owner: Owner, last_sent: u64 },
    Remove(SessionId),
    KeepTask(Box<TaskRecord>),
    BeginTask(Box<TaskRecord>),
    KeepDoorCheckpoint(SessionId, Checkpoint),
    Push(PushWork),
}

/// The result of work.
#[derive(Debug)]
pub(super) enum Written {
    Nothing,
    Claim(Box<Claim>),
    Push(PushWritten),
}

pub(super) type Reply = oneshot::Sender<Result<Written, JournalError>>;

#[derive(Debug)]
struct OwnedLog {
    key: i64,
    owner: Owner,
    /// The log was released, but the release could not be written yet: the last event that was sent out.
    given_up: Option<u64>,
}

enum WorkResult {
    Claimed(Box<Claimed>),
    Appended,
    Released,
    /// The previous owner, if it did not release the session.
    Removed(Option<Owner>),
    Derived,
    Push(PushWritten),
}

struct Failure {
    error: JournalError,
    /// Whether the work had begun. Otherwise retrying would fail as well.
    has_begun: bool,
}

#[derive(Debug)]
pub(super) struct Writer {
    connection: Connection,
    path: PathBuf,
    this: Process,
    queue: mpsc::Receiver<Message>,
    /// Pages in the write-ahead log after the last commit.
    pages: Arc<AtomicU32>,
    /// The value of that counter when a checkpoint was last requested.
    called_at: u32,
    keeper: SyncSender<()>,
    keeper_thread: JoinHandle<()>,
    flush: Flush,
    held: HashMap<SessionId, OwnedLog>,
    gap_markers: GapMarkers,
    /// Removed sessions may have left events.
    sweeping: bool,
}

impl Writer {
    /// `connection` flushes every commit, as the migrations need.
    pub(super) fn new(
        mut connection: Connection,
        path: PathBuf,
        this: Process,
        queue: mpsc::Receiver<Message>,
        (keeper, keeper_thread): (SyncSender<()>, JoinHandle<()>),
    ) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: std::ffi::c_int| {
            counted.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            connection,
            gap_markers: GapMarkers::of(path.clone()),
            path,
            this,
            queue,
            pages,
            called_at: 0,
            keeper,
            keeper_thread,
            flush: Flush::Now,
            held: HashMap::new(),
            sweeping: true,
        })
    }

    /// Writes until all senders are gone.
    pub(super) fn run(mut self) {
        let mut messages = Vec::with_capacity(QUEUE);
        let mut closing = Vec::new();
        loop {
            if self.sweeping && self.queue.is_empty() && !self.queue.is_closed() {
                self.sweep();
                continue;
            }
            if self.queue.blocking_recv_many(&mut messages, QUEUE) == 0 {
                break;
            }
            let mut group = Vec::with_capacity(messages.len());
            let (mut refresh, mut catch_up) = (false, false);
            for message in messages.drain(..) {
                match message {
                    Message::Work(work, reply) => group.push((work, reply)),
                    Message::Refresh => refresh = true,
                    Message::CatchUp => catch_up = true,
                    Message::Close(reply) => {
                        self.queue.close();
                        closing.push(reply);
                    }
                }
            }
            // Waiting callers come first.
            self.write(group);
            if refresh {
                self.refresh();
            }
            if catch_up {
                checkpoint(&self.connection, CheckpointMode::PASSIVE);
            }
            self.call_keeper();
        }
        self.end();
        for reply in closing {
            // The caller may have stopped waiting.
            reply.send(()).ok();
        }
    }

    /// Writes a group of requests and acknowledges them.
    fn write(&mut self, group: Vec<(Work, Reply)>) {
        let Some(flush) = group.iter().map(|(work, _)| work.flush()).max() else { return };
        match self.attempt(group.iter().map(|(work, _)| work), flush) {
            Ok(outcomes) => self.answer(group, outcomes),
            Err(failure) if failure.has_begun && group.len() > 1 => self.write_each(group),
            Err(failure) => self.refuse(group, &failure.error),
        }
    }

    fn write_each(&mut self, group: Vec<(Work, Reply)>) {
        let mut rest = group.into_iter();
        while let Some((work, reply)) = rest.next() {
            let one = vec![(work, reply)];
            match self.attempt(one.iter().map(|(work, _)| work), one[0].0.flush()) {
                Ok(outcomes) => self.answer(one, outcomes),
                Err(Failure { error, has_begun: true }) => self.refuse(one, &error),
                // The others would fail as well, and each would wait as long.
                Err(failure) => return self.refuse(one.into_iter().chain(rest).collect(), &failure.error),
            }
        }
    }

    /// Writes all requests in one transaction.
    fn attempt<'a>(
        &mut self,
        group: impl Iterator<Item = &'a Work>,
        flush: Flush,
    ) -> Result<Vec<Result<WorkResult, JournalError>>, Failure> {
        self.transaction(flush, |writer| {
            let now = Timestamp::now().as_millis();
            let outcome = |work| match writer.perform(work, now) {
                Ok(done) => Ok(Ok(done)),
                Err(StoreError::Refused(error)) => Ok(Err(error)),
                Err(StoreError::Sql(error)) => Err(writer.translate(&error)),
            };
            group.map(outcome).collect()
        })
    }

    /// Does all of the work in one transaction, or nothing of it.
    fn transaction<T>(
        &mut self,
        flush: Flush,
        work: impl FnOnce(&Self) -> Result<T, JournalError>,
    ) -> Result<T, Failure> {
        let begun = self.set_flush(flush).and_then(|()| self.execute("BEGIN IMMEDIATE"));
        begun.map_err(|error| Failure { error: self.translate(&error), has_begun: false })?;
        let done = work(self).and_then(|done| {
            self.execute("COMMIT").map_err(|error| self.translate(&error))?;
            Ok(done)
        });
        done.map_err(|error| {
            self.roll_back();
            Failure { error, has_begun: true }
        })
    }

    fn perform(&self, work: &Work, now: i64) -> Result<WorkResult, StoreError> {
        let connection = &self.connection;
        match work {
            Work::Create(new) => session::create(connection, &self.this, new).map(WorkResult::claimed),
            Work::Claim(id) => {
                self.give_back(id)?;
                session::claim(connection, &self.this, &self.gap_markers, id).map(WorkResult::claimed)
            }
            Work::Append(batch) => {
                let held = self.held.get(&batch.session).map(|held| held.key);
                let key = match held {
                    Some(key) => key,
                    None => session::key(connection, &batch.session)?
                        .ok_or_else(|| JournalError::NoSuchSession(batch.session.clone()))?,
                };
                append(connection, key, batch, now).map(|()| WorkResult::Appended)
            }
            Work::Release { session, owner, last_sent } => {
                session::release(connection, session, owner, *last_sent).map(|()| WorkResult::Released)
            }
            Work::Remove(id) => {
                self.give_back(id)?;
                session::remove(connection, &self.this, id).map(WorkResult::Removed)
            }
            Work::KeepTask(task) => task::keep(connection, task).map(|()| WorkResult::Derived),
            Work::BeginTask(task) => task::begin(connection, task).map(|()| WorkResult::Derived),
            Work::KeepDoorCheckpoint(session, checkpoint) => {
                door_checkpoint::keep(connection, session, checkpoint)?;
                Ok(WorkResult::Derived)
            }
            Work::Push(work) => push::perform(connection, &self.this, work, now).map(WorkResult::Push),
        }
    }

    /// Retries the release of a log that could not be written.
    fn give_back(&self, id: &SessionId) -> Result<(), StoreError> {
        let Some(OwnedLog { owner, given_up: Some(last_sent), .. }) = self.held.get(id) else { return Ok(()) };
        match session::release(&self.connection, id, owner, *last_sent) {
            // Another process owns it, or it is gone: either way it is released.
            Ok(()) | Err(StoreError::Refused(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }

    fn answer(&mut self, group: Vec<(Work, Reply)>, outcomes: Vec<Result<WorkResult, JournalError>>) {
        for ((work, reply), outcome) in group.into_iter().zip(outcomes) {
            let answer = match outcome {
                Ok(done) => Ok(self.note(&work, done)),
                Err(error) => {
                    self.note_failure(&work, &error);
                    Err(error)
                }
            };
            // The caller may have stopped waiting; the work is done all the same.
            reply.send(answer).ok();
        }
    }

    /// Records what was just committed. Returns the reply.
    fn note(&mut self, work: &Work, done: WorkResult) -> Written {
        match done {
            WorkResult::Claimed(claimed) => {
                let Claimed { key, claim, former } = *claimed;
                let held = OwnedLog { key, owner: claim.owner.clone(), given_up: None };
                let before = self.held.insert(claim.record.id.clone(), held);
                before.map(|held| held.owner).iter().chain(&former).for_each(|owner| self.gap_markers.forget(owner));
                return Written::Claim(Box::new(claim));
            }
            WorkResult::Released => {
                if let Work::Release { session, owner, .. } = work {
                    self.held.remove(session);
                    self.gap_markers.forget(owner);
                }
            }
            WorkResult::Removed(former) => {
                former.iter().for_each(|owner| self.gap_markers.forget(owner));
                self.sweeping = true;
            }
            WorkResult::Push(written) => return Written::Push(written),
            WorkResult::Appended | WorkResult::Derived => {}
        }
        Written::Nothing
    }

    /// Records a failure, before the caller learns of it and continues without the log.
    fn note_failure(&mut self, work: &Work, error: &JournalError) {
        let (session, owner) = match work {
            Work::Append(batch) => (&batch.session, &batch.owner),
            Work::Release { session, owner, .. } => (session, owner),
            Work::Create(_)
            | Work::Claim(_)
            | Work::Remove(_)
            | Work::KeepTask(_)
            | Work::BeginTask(_)
            | Work::KeepDoorCheckpoint(..)
            | Work::Push(_) => return,
        };
        let Some(held) = self.held.get_mut(session).filter(|held| held.owner == *owner) else { return };
        match work {
            _ if matches!(error, JournalError::Lost(_) | JournalError::NoSuchSession(_)) => {
                self.held.remove(session);
            }
            Work::Release { last_sent, .. } => held.given_up = Some(*last_sent),
            _ => self.gap_markers.note(owner),
        }
    }

    /// SQLite's error for the hub; must be called first.
    fn translate(&self, error: &rusqlite::Error) -> JournalError {
        journal_error(&self.path, error)
    }

    fn refuse(&mut self, group: Vec<(Work, Reply)>, error: &JournalError) {
        tracing::warn!(%error, batches = group.len(), "the log was not written");
        for (work, reply) in group {
            self.note_failure(&work, error);
            reply.send(Err(error.clone())).ok();
        }
    }

    fn refresh(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let moved = self.transaction(Flush::Soon, |writer| {
            let is_gone = |id: &SessionId, held: &OwnedLog| {
                writer.give_back(id)?;
                Ok(held.given_up.is_some() || !session::refresh(&writer.connection, held.key, &held.owner)?)
            };
            let mut gone = Vec::new();
            for (id, held) in &writer.held {
                if is_gone(id, held).map_err(|trouble: StoreError| trouble.into_journal_error(&writer.path))? {
                    gone.push(id.clone());
                }
            }
            Ok(gone)
        });
        match moved {
            Ok(gone) => {
                for held in gone.iter().filter_map(|id| self.held.remove(id)) {
                    self.gap_markers.forget(&held.owner);
                }
            }
            Err(Failure { error, .. }) => {
                tracing::warn!(%error, "the leases were not moved on");
            }
        }
    }

    fn sweep(&mut self) {
        let swept = self.transaction(Flush::Soon, |writer| {
            session::sweep(&writer.connection).map_err(|error| writer.translate(&error))
        });
        self.sweeping = swept.unwrap_or_else(|Failure { error, .. }| {
            // The rest is deleted after the next start.
            tracing::warn!(%error, "events of removed sessions were not deleted");
            false
        });
        self.call_keeper();
    }

    /// Releases our logs and leaves one file behind.
    fn end(mut self) {
        let released = std::mem::take(&mut self.held).into_iter().map(|(session, OwnedLog { owner, given_up, .. })| {
            // Nobody reported the last event sent out: a marker means that some are missing.
            let noted = || if self.gap_markers.is_noted(&owner) { u64::MAX } else { 0 };
            Work::Release { session, last_sent: given_up.unwrap_or_else(noted), owner }
        });
        let released: Vec<Work> = released.collect();
        if !released.is_empty() {
            match self.attempt(released.iter(), Flush::Now) {
                Ok(outcomes) => {
                    for (work, done) in released.iter().zip(outcomes) {
                        done.map(|done| self.note(work, done)).ok(); // another process has it by now
                    }
                }
                Err(_) => tracing::warn!("the leases were not given back"),
            }
        }
        drop(self.keeper);
        if self.keeper_thread.join().is_err() {
            tracing::warn!("the keeper of the log panicked");
        }
        checkpoint(&self.connection, CheckpointMode::TRUNCATE);
    }

    fn call_keeper(&mut self) {
        let pages = self.pages.load(Ordering::Relaxed);
        // The write-ahead log was restarted.
        self.called_at = self.called_at.min(pages);
        if pages - self.called_at < CHECKPOINT_PAGES {
            return;
        }
        if pages >= MOST_PAGES {
            // Checkpoints fall behind: delay callers rather than fill the disk.
            checkpoint(&self.connection, CheckpointMode::FULL);
            self.called_at = pages;
        } else if self.keeper.try_send(()).is_ok() {
            self.called_at = pages;
        }
    }

    /// With write-ahead logging, `NORMAL` survives a process crash and `FULL` a power failure. Earlier writes under
    /// `NORMAL` are in the same file, so a later flush includes them.
    fn set_flush(&mut self, flush: Flush) -> rusqlite::Result<()> {
        if self.flush != flush {
            let level = match flush {
                Flush::Soon => "PRAGMA synchronous = NORMAL",
                Flush::Now => "PRAGMA synchronous = FULL",
            };
            self.connection.execute_batch(level)?;
            self.flush = flush;
        }
        Ok(())
    }

    fn execute(&self, statement: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(statement)?.execute([]).map(drop)
    }

    fn roll_back(&self) {
        // SQLite may have rolled back itself.
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::warn!(%error, "a transaction was not undone");
        }
    }
}

impl WorkResult {
    fn claimed(claimed: Claimed) -> Self {
        Self::Claimed(Box::new(claimed))
    }
}

impl Work {
    /// Creating, claiming and releasing are rare, and are acknowledged as durable.
    fn flush(&self) -> Flush {
        match self {
            Self::Append(batch) => batch.flush,
            // Derived from the log: a power failure affects both consistently, since they are in one file.
            Self::KeepTask(_) | Self::BeginTask(_) | Self::KeepDoorCheckpoint(..) => Flush::Soon,
            Self::Push(work) => work.flush(),
            Self::Create(_) | Self::Claim(_) | Self::Release { .. } | Self::Remove(_) => Flush::Now,
        }
    }
}
