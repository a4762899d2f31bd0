//! Live sessions: one ordered log each, any number of clients at any point of it, exactly one ruling per question.
//!
//! What happens is stamped, kept in a [`Journal`], and only then told. Must not come in: a CLI by name, JSON-RPC, SQL,
//! a terminal.

mod entry;
mod journal;
mod launch;

pub use entry::Entry;
pub use journal::{
    About, Batch, Checkpoint, Claim, Edge, Filter, Flush, Holder, Journal, JournalError, Kept, NewSession, Owner, Page,
    Part, SessionRecord,
};
pub use launch::{Launch, LaunchError, Launching};
