//! Persistence: the logs of sessions, the audit trail of rulings, tasks, and where a session is live.
//!
//! [`Store`] implements the hub's port [`Journal`](multitap_hub::Journal) with SQLite. The only crate that knows SQL.
//! `tests/it/contract.rs` defines what a journal promises the hub, for any further backend.
//!
//! Must not come in: what an event means for a session, agents, doors.

mod holder;
mod sqlite;

pub use sqlite::{Store, StoreLimits};
