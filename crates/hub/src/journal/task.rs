//! Stored tasks: ranges of a session's log that clients know by an id of their own.
//!
//! What a task's state means, and which events belong to it, is up to the door that creates it.

use multitap_event::{SessionId, Timestamp};
use serde_json::{Map, Value};

/// One task in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub id: String,
    pub session: SessionId,
    /// In the door's own words.
    pub state: String,
    /// Its first event.
    pub first_seq: u64,
    /// Its last event; `None` while it runs.
    pub last_seq: Option<u64>,
    pub created: Timestamp,
    /// When its state last changed; lists are sorted by it.
    pub updated: Timestamp,
    /// Data for the door to find again; no secrets.
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFilter {
    pub session: Option<SessionId>,
    /// No tasks of these sessions.
    pub hidden: Vec<SessionId>,
    pub state: Option<String>,
    /// Only tasks that changed then or later.
    pub updated_after: Option<Timestamp>,
    /// Where the previous page ended: the time and the id of its last task.
    pub before: Option<(Timestamp, String)>,
    /// Most tasks; 0 only counts them.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    /// The latest changed first; of those that changed at the same time, the greater id first.
    pub tasks: Vec<TaskRecord>,
    /// The number of tasks on all pages.
    pub total: u64,
}
