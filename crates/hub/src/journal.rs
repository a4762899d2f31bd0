//! The port to whatever keeps logs at rest.
//!
//! The hub says what is to be kept and in which order; how is the journal's business. Must not come in: SQL, files.

mod task;

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;

use multitap_event::{AgentKind, Ruling, SessionId, Timestamp};
use serde_json::{Map, Value};

pub use self::task::{TaskFilter, TaskPage, TaskRecord};
use crate::entry::Entry;

/// What a journal answers, in its own time.
pub type Kept<'a, T> = Pin<Box<dyn Future<Output = Result<T, JournalError>> + Send + 'a>>;

/// Keeps the logs of sessions.
pub trait Journal: fmt::Debug + Send + Sync + 'static {
    /// Begins a log, for this process alone to write. It is on the disk when this comes back; after a failure there is
    /// nothing of it, and it may be begun again.
    fn create(&self, session: NewSession) -> Kept<'_, Claim>;

    /// Takes up a log that no living process writes. If events were told that it does not have, its epoch is new.
    fn claim(&self, session: SessionId) -> Kept<'_, Claim>;

    /// Adds to a log. What comes back well is kept through the death of this process; with [`Flush::Now`] also through
    /// a power cut. All of a batch is kept or nothing; what of it is kept already, to the letter, is not kept again, so
    /// that it can be handed in once more when it is not clear what became of it. After a failure the session goes on
    /// without the journal: that is noted in whatever way is left, before the failure is told, for a later claim.
    fn append(&self, batch: Batch) -> Kept<'_, ()>;

    /// Part of a log.
    fn page(&self, session: SessionId, part: Part) -> Kept<'_, Page>;

    /// Nobody writes this log any more. `told` is the last event that anybody saw: if the log ends before it, whoever
    /// takes it up next has a new epoch.
    fn release(&self, session: SessionId, owner: Owner, told: u64) -> Kept<'_, ()>;

    /// What is known of the sessions, newest first.
    fn list(&self, filter: Filter) -> Kept<'_, Vec<SessionRecord>>;

    /// Those a person may mean: by our id, by how it begins, or by the agent's own id.
    fn find(&self, name: String) -> Kept<'_, Vec<SessionRecord>>;

    /// Forgets a session that is not live.
    fn remove(&self, session: SessionId) -> Kept<'_, ()>;

    /// Who ruled on what in this session, oldest first; not what its log was copied with.
    fn rulings(&self, session: SessionId) -> Kept<'_, Vec<Ruling>>;

    /// Keeps a task of a session that is known, in place of what was kept under its id. What comes back well is kept
    /// through the death of this process. It is gone with its session.
    fn keep_task(&self, task: TaskRecord) -> Kept<'_, ()>;

    /// Stores a task, unless one is stored under its id already: who follows the task may have been quicker.
    fn begin_task(&self, task: TaskRecord) -> Kept<'_, ()>;

    /// The task of that id.
    fn task(&self, id: String) -> Kept<'_, Option<TaskRecord>>;

    /// Some of the tasks, those that changed last first, and how many there are.
    fn tasks(&self, filter: TaskFilter) -> Kept<'_, TaskPage>;
}

/// Names one process's right to write one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner(pub String);

/// A log that begins.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub agent: AgentKind,
    pub folder: Option<PathBuf>,
    pub created: Timestamp,
    /// The session whose log this one began as a copy of.
    pub forked_from: Option<SessionId>,
    /// How it was started, for whoever takes it up: no secrets.
    pub config: Map<String, Value>,
}

/// The right to write a log, and where it stands.
#[derive(Debug, Clone)]
pub struct Claim {
    pub owner: Owner,
    pub record: SessionRecord,
    /// The latest kept state, if there is one; what comes after it must be applied.
    pub checkpoint: Option<Checkpoint>,
}

/// What a session was after an event, so that a long log need not be read from its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub seq: u64,
    /// The state as JSON, of the hub's own form.
    pub state: String,
}

/// Entries to keep, in order, without a gap to what was kept before.
#[derive(Debug, Clone)]
pub struct Batch {
    pub session: SessionId,
    pub owner: Owner,
    pub entries: Vec<Entry>,
    pub flush: Flush,
    pub checkpoint: Option<Checkpoint>,
    /// What is known of the session now, where that changed.
    pub about: Option<About>,
}

/// When a batch must be on the disk itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flush {
    /// In the system's own time: it outlives this process.
    Soon,
    /// Before it is acknowledged: it outlives a power cut.
    Now,
}

/// What lists show of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The first thing somebody said.
    pub title: Option<String>,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    pub model: Option<String>,
    /// The agent runs: the log is not at its end.
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
    /// The number of the last kept event.
    pub last_seq: u64,
    /// Changes when the end of the log may have been lost.
    pub epoch: u64,
    /// The process that writes it now.
    pub live: Option<Holder>,
}

/// The process that has a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub since: Timestamp,
}

/// Which part of a log, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub edge: Edge,
    /// At most so many entries.
    pub limit: usize,
    /// And about so many bytes, but at least one entry.
    pub bytes: usize,
}

/// Where a part begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The entries that follow this one.
    After(u64),
    /// The last ones before this one.
    Before(u64),
}

/// Entries in order, however they were asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// The number of the last kept event of the whole log.
    pub last_seq: u64,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only of this folder.
    pub folder: Option<PathBuf>,
    /// Only those at whose end the agent still ran, and that no living process has.
    pub cut_off: bool,
    pub limit: Option<usize>,
}

/// The journal did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// Or a quota is used up, or the file may not grow.
    #[error("the disk is full, or its quota is exceeded")]
    Full,
    #[error("the log is locked by another program")]
    Locked,
    /// Says which file, and what is wrong with it.
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

/// A journal that cannot be used at all, and says why whatever it is asked.
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
