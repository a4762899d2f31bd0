//! What is kept at rest: the logs of sessions, who ruled on what, tasks, and where a session is live.
//!
//! [`Store`] fills the hub's port [`Journal`](multitap_hub::Journal) with SQLite. The only crate that knows SQL. What a
//! journal owes the hub is written down in `tests/it/contract.rs`, for any backend that comes to stand beside this one.
//!
//! Must not come in: what an event means for a session, agents, doors.

mod holder;
mod sqlite;

pub use sqlite::{Limits, OpenError, Store};
