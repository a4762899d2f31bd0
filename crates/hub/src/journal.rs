//! The port to the crate that stores logs.
//!
//! The hub decides what is stored, and in which order; the journal decides how. Must not come in: SQL, files.

mod push;
mod task;

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;

use multitap_event::{AgentKind, Ruling, SessionId, Timestamp};
use serde_json::{Map, Value};

pub use self::push::{
    DeliveriesOf, DeliveryOutcome, DeliveryRecord, DeliveryStatus, NewDelivery, NewPushConfig, PUSH_CONFIGS_PER_CLIENT,
    PUSH_CONFIGS_PER_TASK, PUSH_LOG, PUSH_QUEUE, PUSH_QUEUE_BYTES, PendingPush, PushConfigRecord, PushKey,
    PushPosition, PushQueue, PushScope, PutPushConfig, SettledAttempt, TakePush, TakenDelivery,
};
pub use self::task::{TaskFilter, TaskPage, TaskRecord};
use crate::entry::Entry;

/// A pending answer of a journal.
pub type Kept<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'a>>;

/// Stores the logs of sessions.
pub trait Journal: fmt::Debug + Send + Sync + 'static {
    /// Creates a log that only this process may write. On `Ok` it is on disk. On failure nothing of it is on disk, and
    /// it may be created again.
    fn create(&self, session: NewSession) -> Kept<'_, Claim>;

    /// Claims a log that no living process writes. Its epoch is new if clients saw events that it does not have.
    fn claim(&self, session: SessionId) -> Kept<'_, Claim>;

    /// Appends a batch, all of it or nothing. On `Ok`, the batch survives a crash of this process; with [`Flush::Now`]
    /// also a power cut. Entries that are stored already, byte by byte, are skipped, so a batch with an unknown outcome
    /// can be sent again. After a failure the session goes on without the journal: the journal records that by any
    /// means left, before it returns, so that a later claim knows.
    fn append(&self, batch: Batch) -> Kept<'_, ()>;

    fn page(&self, session: SessionId, part: Part) -> Kept<'_, Page>;

    /// Releases the right to write a log. `told` is the last event that a client saw: if the log ends before it, the
    /// next claim gets a new epoch.
    fn release(&self, session: SessionId, owner: Owner, told: u64) -> Kept<'_, ()>;

    /// The stored sessions, newest first.
    fn list(&self, filter: Filter) -> Kept<'_, Vec<SessionRecord>>;

    /// Sessions by a name that a person typed: our id, its beginning, or the agent's own id.
    fn find(&self, name: String) -> Kept<'_, Vec<SessionRecord>>;

    /// Deletes a session that is not live.
    fn remove(&self, session: SessionId) -> Kept<'_, ()>;

    /// The rulings of this session, oldest first; without those of the log that it is a copy of.
    fn rulings(&self, session: SessionId) -> Kept<'_, Vec<Ruling>>;

    /// Stores a task of a stored session, replacing the one with its id. On `Ok`, it survives a crash of this process.
    /// It is deleted with its session.
    fn keep_task(&self, task: TaskRecord) -> Kept<'_, ()>;

    /// Stores a task, unless one with its id exists: a follower of the task may have stored it first.
    fn begin_task(&self, task: TaskRecord) -> Kept<'_, ()>;

    fn task(&self, id: String) -> Kept<'_, Option<TaskRecord>>;

    /// A page of the tasks, the latest changed first, and the number of all.
    fn tasks(&self, filter: TaskFilter) -> Kept<'_, TaskPage>;

    /// Stores what a door made of a session's log up to an event, so that it need not read a long log from its start.
    /// Does nothing if the log does not have that event. Deleted with its session. A journal that stores none is only
    /// slower.
    fn keep_door_checkpoint(&self, _session: SessionId, _checkpoint: Checkpoint) -> Kept<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// The last of them that is not after this event.
    fn door_checkpoint(&self, _session: SessionId, _up_to: u64) -> Kept<'_, Option<Checkpoint>> {
        Box::pin(async { Ok(None) })
    }

    /// Its push notifications; `None` if it stores none.
    fn push_queue(&self) -> Option<&dyn PushQueue> {
        None
    }
}

/// One process's right to write one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner(pub String);

#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub agent: AgentKind,
    pub folder: Option<PathBuf>,
    pub created: Timestamp,
    /// The session whose log this one begins as a copy of.
    pub forked_from: Option<SessionId>,
    /// The configuration with which it was started, to resume it; without secrets.
    pub config: Map<String, Value>,
}

/// The right to write a log, and the state of that log.
#[derive(Debug, Clone)]
pub struct Claim {
    pub owner: Owner,
    pub record: SessionRecord,
    /// The latest stored state, if any; later events must be applied to it.
    pub checkpoint: Option<Checkpoint>,
}

/// The state of a session after an event, so that a long log need not be read from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub seq: u64,
    /// The state as JSON, in the format of the hub or of the door.
    pub state: String,
}

/// Entries to append, in order, without a gap to the stored ones.
#[derive(Debug, Clone)]
pub struct Batch {
    pub session: SessionId,
    pub owner: Owner,
    pub entries: Vec<Entry>,
    pub flush: Flush,
    pub checkpoint: Option<Checkpoint>,
    /// Facts about the session, where they changed.
    pub about: Option<About>,
}

/// When a batch must be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flush {
    /// Eventually: it survives this process.
    Soon,
    /// Before it is acknowledged: it survives a power cut.
    Now,
}

/// Facts for lists of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The first prompt.
    pub title: Option<String>,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    pub model: Option<String>,
    /// The agent runs, so the log is not complete.
    pub open: bool,
}

#[derive(Debug, Clone)]
pub struct SessionRecord {
    pub id: SessionId,
    pub agent: AgentKind,
    pub folder: Option<PathBuf>,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub forked_from: Option<SessionId>,
    pub config: Map<String, Value>,
    pub about: About,
    /// The number of the last stored event.
    pub last_seq: u64,
    /// Changes when the end of the log may have been lost.
    pub epoch: u64,
    /// The process that writes it now.
    pub live: Option<Holder>,
}

/// The process that owns a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub since: Timestamp,
}

/// A range of a log, with limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub edge: Edge,
    /// Most entries.
    pub limit: usize,
    /// Most bytes, roughly; but at least one entry.
    pub bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The entries after this one.
    After(u64),
    /// The last entries before this one.
    Before(u64),
}

/// Entries in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// The number of the last stored event of the whole log.
    pub last_seq: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only sessions in this folder.
    pub folder: Option<PathBuf>,
    /// Only sessions whose agent ran at the end of the log, and that no living process owns.
    pub interrupted: bool,
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Or a quota is exceeded, or the file may not grow.
    #[error("the disk is full, or its quota is exceeded")]
    Full,
    #[error("the log is locked by another program")]
    Locked,
    /// Names the file, and what is wrong with it.
    #[error(
        "the log is damaged: {0}. To start a new one, move that file away, with all files whose names start with its name"
    )]
    Damaged(String),
    #[error(
        "the log was written by a newer multitap (schema version {found}, this version supports {known}): update multitap"
    )]
    Newer { found: u32, known: u32 },
    #[error("there is no session {0}")]
    NoSuchSession(SessionId),
    #[error("session {session} is live in process {}", .holder.pid)]
    LiveElsewhere { session: SessionId, holder: Holder },
    #[error("session {0} is live in this process already")]
    LiveHere(SessionId),
    #[error("this process no longer has session {0}: another one took it over")]
    Lost(SessionId),
    #[error("the log cannot be used: {0}")]
    Other(String),
}
