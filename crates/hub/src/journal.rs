//! The trait behind which logs are stored.
//!
//! The hub decides what to store and in which order; the journal decides how. Must not come in: SQL, files.

mod task;

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;

use multitap_event::{AgentKind, Ruling, SessionId, Timestamp};
use serde_json::{Map, Value};

pub use self::task::{TaskFilter, TaskPage, TaskRecord};
use crate::entry::Entry;

/// The pending result of a journal's operation.
pub type Kept<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'a>>;

/// Stores the logs of sessions.
pub trait Journal: fmt::Debug + Send + Sync + 'static {
    /// Creates a log that only this process may write. On `Ok` it is on the disk. After an error nothing of it exists,
    /// and it may be created again.
    fn create(&self, session: NewSession) -> Kept<'_, Claim>;

    /// Claims a log that no living process writes. If clients saw events that the log lacks, its epoch is new.
    fn claim(&self, session: SessionId) -> Kept<'_, Claim>;

    /// Appends a batch to a log, all of it or nothing. On `Ok` the batch survives a process crash, and with
    /// [`Flush::Now`] a power failure. Entries that the log already has are skipped if they are identical, so a batch
    /// with an unknown outcome can be appended again. Before an error is returned, it is recorded for a later claim that
    /// the session continues without the journal.
    fn append(&self, batch: Batch) -> Kept<'_, ()>;

    /// Reads part of a log.
    fn page(&self, session: SessionId, part: Part) -> Kept<'_, Page>;

    /// Gives up the right to write a log. `told` is the last event that clients saw: if the log ends before it, the next
    /// claim has a new epoch.
    fn release(&self, session: SessionId, owner: Owner, told: u64) -> Kept<'_, ()>;

    /// Lists sessions, newest first.
    fn list(&self, filter: Filter) -> Kept<'_, Vec<SessionRecord>>;

    /// Sessions that a user may mean by `name`: our id, a prefix of it, or the agent's own id.
    fn find(&self, name: String) -> Kept<'_, Vec<SessionRecord>>;

    /// Deletes a session that is not live.
    fn remove(&self, session: SessionId) -> Kept<'_, ()>;

    /// The rulings of this session, oldest first, without copied ones.
    fn rulings(&self, session: SessionId) -> Kept<'_, Vec<Ruling>>;

    /// Stores a task of a known session and replaces the one with the same id. On `Ok` it survives a process crash. It
    /// is deleted with its session.
    fn keep_task(&self, task: TaskRecord) -> Kept<'_, ()>;

    /// Stores a task unless one with its id exists: a follower of the task may have been faster.
    fn begin_task(&self, task: TaskRecord) -> Kept<'_, ()>;

    /// The task of that id.
    fn task(&self, id: String) -> Kept<'_, Option<TaskRecord>>;

    /// A page of tasks, latest change first, and their total number.
    fn tasks(&self, filter: TaskFilter) -> Kept<'_, TaskPage>;
}

/// Identifies one process's right to write one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner(pub String);

/// A new log.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub agent: AgentKind,
    pub folder: Option<PathBuf>,
    pub created: Timestamp,
    /// The session whose log this one is a copy of.
    pub forked_from: Option<SessionId>,
    /// The configuration for resuming it, without secrets.
    pub config: Map<String, Value>,
}

/// The right to write a log, and its current end.
#[derive(Debug, Clone)]
pub struct Claim {
    pub owner: Owner,
    pub record: SessionRecord,
    /// The latest stored state; later events must be applied to it.
    pub checkpoint: Option<Checkpoint>,
}

/// The state of a session after an event, so that a long log need not be read from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub seq: u64,
    /// The state as JSON, in the hub's own format.
    pub state: String,
}

/// Entries to store, in order, without a gap to earlier ones.
#[derive(Debug, Clone)]
pub struct Batch {
    pub session: SessionId,
    pub owner: Owner,
    pub entries: Vec<Entry>,
    pub flush: Flush,
    pub checkpoint: Option<Checkpoint>,
    /// The session's summary, if it changed.
    pub about: Option<About>,
}

/// When a batch must be flushed to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flush {
    /// When the system chooses: survives a process crash.
    Soon,
    /// Before the acknowledgement: survives a power failure.
    Now,
}

/// A session's summary in lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The first prompt.
    pub title: Option<String>,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    pub model: Option<String>,
    /// Whether the agent runs, so the log has no end yet.
    pub open: bool,
}

/// One session as the journal knows it.
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
    /// The process that writes the log now.
    pub live: Option<Holder>,
}

/// The process that has a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub since: Timestamp,
}

/// Selects part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub edge: Edge,
    /// Maximum number of entries.
    pub limit: usize,
    /// Approximate maximum of bytes; at least one entry is returned.
    pub bytes: usize,
}

/// Where the part begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The entries that follow this one.
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

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only of this folder.
    pub folder: Option<PathBuf>,
    /// Only sessions that were interrupted, and that no living process owns.
    pub cut_off: bool,
    pub limit: Option<usize>,
}

/// An operation of the journal failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Also an exceeded quota or file size limit.
    #[error("the disk is full, or its quota is exceeded")]
    Full,
    #[error("the log is locked by another program")]
    Locked,
    /// Names the file and the damage.
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

/// A journal that fails every operation with this error.
#[derive(Debug)]
pub struct Unusable(pub JournalError);

impl Unusable {
    fn refuse<T: Send + 'static>(&self) -> Kept<'_, T> {
        let error = self.0.clone();
        Box::pin(async { Err(error) })
    }
}

impl Journal for Unusable {
    fn create(&self, _: NewSession) -> Kept<'_, Claim> {
        self.refuse()
    }

    fn claim(&self, _: SessionId) -> Kept<'_, Claim> {
        self.refuse()
    }

    fn append(&self, _: Batch) -> Kept<'_, ()> {
        self.refuse()
    }

    fn page(&self, _: SessionId, _: Part) -> Kept<'_, Page> {
        self.refuse()
    }

    fn release(&self, _: SessionId, _: Owner, _: u64) -> Kept<'_, ()> {
        self.refuse()
    }

    fn list(&self, _: Filter) -> Kept<'_, Vec<SessionRecord>> {
        self.refuse()
    }

    fn find(&self, _: String) -> Kept<'_, Vec<SessionRecord>> {
        self.refuse()
    }

    fn remove(&self, _: SessionId) -> Kept<'_, ()> {
        self.refuse()
    }

    fn rulings(&self, _: SessionId) -> Kept<'_, Vec<Ruling>> {
        self.refuse()
    }

    fn keep_task(&self, _: TaskRecord) -> Kept<'_, ()> {
        self.refuse()
    }

    fn begin_task(&self, _: TaskRecord) -> Kept<'_, ()> {
        self.refuse()
    }

    fn task(&self, _: String) -> Kept<'_, Option<TaskRecord>> {
        self.refuse()
    }

    fn tasks(&self, _: TaskFilter) -> Kept<'_, TaskPage> {
        self.refuse()
    }
}
