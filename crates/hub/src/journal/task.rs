//! Tasks at rest: stretches of a session's log that clients know by an id of their own.
//!
//! What a task's state means, and which events belong to it, is the business of the door that makes it.

use multitap_event::{SessionId, Timestamp};
use serde_json::{Map, Value};

/// One task as the journal knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub id: String,
    pub session: SessionId,
    /// In the door's own words.
    pub state: String,
    /// The first event that belongs to it.
    pub first_seq: u64,
    /// The last one; nothing while it goes on.
    pub last_seq: Option<u64>,
    pub created: Timestamp,
    /// When its state last changed: lists go by it.
    pub updated: Timestamp,
    /// What the door wants to find again: no secrets.
    pub metadata: Map<String, Value>,
}

/// Which tasks to list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFilter {
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only those in this state.
    pub state: Option<String>,
    /// Only those that changed then or later.
    pub updated_after: Option<Timestamp>,
    /// Where the page before ended: when its last task changed, and that task's id.
    pub before: Option<(Timestamp, String)>,
    /// At most so many; with 0 they are only counted.
    pub limit: usize,
}

/// Part of a list of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    /// Those that changed last first; of those that changed at once, the greater id first.
    pub tasks: Vec<TaskRecord>,
    /// How many there are on all pages.
    pub total: u64,
}
