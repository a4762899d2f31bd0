//! The log in an SQLite file: one thread that writes, a few connections that read, one thread for housekeeping.
//!
//! This module combines them into the hub's [`Journal`]; several processes may have the same file open.

mod append;
mod door_checkpoint;
mod error;
mod gap_markers;
mod keeper;
mod push;
mod reader;
mod record;
mod schema;
mod session;
mod task;
#[cfg(test)]
mod tests;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::{io, thread};

use multitap_event::{Ruling, SessionId};
use multitap_hub::{
    Batch, Checkpoint, Claim, Filter, Journal, JournalError, Kept, NewSession, Owner, Page, Part, PushQueue,
    SessionRecord, TaskFilter, TaskPage, TaskRecord,
};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use self::error::{StoreError, journal_error};
use self::keeper::REFRESH;
use self::reader::Readers;
use self::writer::{Message, QUEUE, Work, Writer, Written};
use crate::holder::Process;

/// The logs of all sessions, in one file. Cheap to clone; dropping the last clone ends the writer after the queued
/// work.
#[derive(Debug, Clone)]
pub struct Store {
    /// Or why it cannot be used.
    open: Result<OpenStore, JournalError>,
}

#[derive(Debug, Clone)]
struct OpenStore {
    writer: mpsc::Sender<Message>,
    readers: Arc<Readers>,
}

/// Limits of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreLimits {
    /// At this size the log counts as full, as on a full disk.
    pub bytes: Option<u64>,
}

impl Store {
    /// Opens the store, and creates it if missing: a folder and a file for their user alone. Blocks on the disk, and
    /// up to two seconds on another program that has the file locked.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        Self::open_within(path, StoreLimits::default())
    }

    /// A store that cannot be used: it answers every call with the reason.
    pub fn unusable(reason: JournalError) -> Self {
        Self { open: Err(reason) }
    }

    /// The same as [`Store::open`], with limits.
    pub fn open_within(path: impl AsRef<Path>, limits: StoreLimits) -> Result<Self, JournalError> {
        let path = path.as_ref();
        let sql = |error| journal_error(path, &error);
        let threads = |error: io::Error| JournalError::Other(format!("cannot start a thread: {error}"));
        let connection = schema::create(path)?;
        if let Some(bytes) = limits.bytes {
            schema::limit(&connection, bytes).map_err(sql)?;
        }
        let this = Process::this();
        let (tx, queue) = mpsc::channel(QUEUE);
        let (call, called) = std::sync::mpsc::sync_channel(1);
        let (place, weak) = (path.to_owned(), tx.downgrade());
        let keeper = thread::Builder::new().name("log-keeper".into());
        let keeper = keeper.spawn(move || keeper::run(&place, &called, &weak, REFRESH)).map_err(threads)?;
        let writer = Writer::new(connection, path.to_owned(), this.clone(), queue, (call, keeper)).map_err(sql)?;
        thread::Builder::new().name("log-writer".into()).spawn(move || writer.run()).map_err(threads)?;
        Ok(Self { open: Ok(OpenStore { writer: tx, readers: Arc::new(Readers::new(path.to_owned(), this)) }) })
    }

    /// Returns when everything queued is written, the leases are released, and the writer has ended.
    pub async fn close(&self) {
        let Ok(open) = &self.open else { return };
        let (reply, closed) = oneshot::channel();
        if open.writer.send(Message::Close(reply)).await.is_ok() {
            // No answer: the writer had already ended.
            closed.await.ok();
        }
    }

    async fn write(&self, work: Work) -> Result<Written, JournalError> {
        let closed = || JournalError::Other("the log was closed".to_owned());
        let open = self.open.as_ref().map_err(Clone::clone)?;
        let (reply, written) = oneshot::channel();
        open.writer.send(Message::Work(work, reply)).await.map_err(|_| closed())?;
        written.await.map_err(|_| closed())?
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection, &Process) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, JournalError> {
        self.open.as_ref().map_err(Clone::clone)?.readers.read(read).await
    }

    async fn take(&self, work: Work) -> Result<Claim, JournalError> {
        match self.write(work).await? {
            Written::Claim(claim) => Ok(*claim),
            Written::Nothing | Written::Push(_) => Err(JournalError::Other("the log gave no claim".to_owned())),
        }
    }
}

impl Journal for Store {
    fn create(&self, session: NewSession) -> Kept<'_, Claim> {
        Box::pin(self.take(Work::Create(Box::new(session))))
    }

    fn claim(&self, session: SessionId) -> Kept<'_, Claim> {
        Box::pin(self.take(Work::Claim(session)))
    }

    fn append(&self, batch: Batch) -> Kept<'_, ()> {
        Box::pin(async { self.write(Work::Append(batch)).await.map(drop) })
    }

    fn page(&self, session: SessionId, part: Part) -> Kept<'_, Page> {
        Box::pin(self.read(move |connection, _| reader::page(connection, &session, part)))
    }

    fn release(&self, session: SessionId, owner: Owner, last_sent: u64) -> Kept<'_, ()> {
        Box::pin(async move { self.write(Work::Release { session, owner, last_sent }).await.map(drop) })
    }

    fn list(&self, filter: Filter) -> Kept<'_, Vec<SessionRecord>> {
        Box::pin(self.read(move |connection, this| reader::list(connection, this, &filter)))
    }

    fn find(&self, name: String) -> Kept<'_, Vec<SessionRecord>> {
        Box::pin(self.read(move |connection, this| reader::find(connection, this, &name)))
    }

    fn remove(&self, session: SessionId) -> Kept<'_, ()> {
        Box::pin(async { self.write(Work::Remove(session)).await.map(drop) })
    }

    fn rulings(&self, session: SessionId) -> Kept<'_, Vec<Ruling>> {
        Box::pin(self.read(move |connection, _| reader::rulings(connection, &session)))
    }

    fn keep_task(&self, task: TaskRecord) -> Kept<'_, ()> {
        Box::pin(async { self.write(Work::KeepTask(Box::new(task))).await.map(drop) })
    }

    fn begin_task(&self, task: TaskRecord) -> Kept<'_, ()> {
        Box::pin(async { self.write(Work::BeginTask(Box::new(task))).await.map(drop) })
    }

    fn task(&self, id: String) -> Kept<'_, Option<TaskRecord>> {
        Box::pin(self.read(move |connection, _| task::find(connection, &id)))
    }

    fn tasks(&self, filter: TaskFilter) -> Kept<'_, TaskPage> {
        Box::pin(self.read(move |connection, _| task::list(connection, &filter)))
    }

    fn keep_door_checkpoint(&self, session: SessionId, checkpoint: Checkpoint) -> Kept<'_, ()> {
        Box::pin(async { self.write(Work::KeepDoorCheckpoint(session, checkpoint)).await.map(drop) })
    }

    fn door_checkpoint(&self, session: SessionId, up_to: u64) -> Kept<'_, Option<Checkpoint>> {
        Box::pin(self.read(move |connection, _| Ok(door_checkpoint::last(connection, &session, up_to)?)))
    }

    fn push_queue(&self) -> Option<&dyn PushQueue> {
        Some(self)
    }
}
