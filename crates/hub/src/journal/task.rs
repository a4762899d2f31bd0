//! Stored tasks: parts of a session's log that clients know by an id.
//!
//! The door that creates a task defines its states and events.

use multitap_event::{SessionId, Timestamp};
use serde_json::{Map, Value};

/// One task as the journal knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub id: String,
    pub session: SessionId,
    /// A state of the door's protocol.
    pub state: String,
    /// The first event that belongs to it.
    pub first_seq: u64,
    /// The last event; `None` while the task runs.
    pub last_seq: Option<u64>,
    pub created: Timestamp,
    /// When its state last changed. Lists are sorted by it.
    pub updated: Timestamp,
    /// Data for the door, without secrets.
    pub metadata: Map<String, Value>,
}

/// Which tasks to list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFilter {
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only those in this state.
    pub state: Option<String>,
    /// Only tasks that changed at this time or later.
    pub updated_after: Option<Timestamp>,
    /// The end of the previous page: the last task's time of change and id.
    pub before: Option<(Timestamp, String)>,
    /// Maximum number of tasks; 0 only counts them.
    pub limit: usize,
}

/// Part of a list of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    /// Latest change first; for equal times, the greater id first.
    pub tasks: Vec<TaskRecord>,
    /// Total number of matching tasks.
    pub total: u64,
}
