//! Live sessions: one ordered log each, any number of clients at any point of it, exactly one ruling per question.
//!
//! A [`Hub`] opens sessions; a [`Session`] is the handle that doors and screens hold; a [`Feed`] is one client's way
//! through the log. What happens is stamped, applied to the [`State`], kept by a [`Journal`], and only then told:
//! nobody sees what could still be lost.
//!
//! Must not come in: a CLI by name, JSON-RPC, SQL, a terminal.

mod arbiter;
mod entry;
mod far;
mod feed;
mod hub;
mod journal;
mod launch;
mod live;
mod past;
mod protocol;
mod reach;
mod session;
mod state;
mod tail;

pub use arbiter::Arbiter;
pub use entry::Entry;
pub use far::{Answer, Elsewhere, FarEnd, FarStart, FarTask, Left};
pub use feed::{Feed, FeedEnd, Told};
pub use hub::{Hub, Open, OpenError, Which, rebuild};
pub use journal::{
    About, Batch, Checkpoint, Claim, Edge, Filter, Flush, Holder, Journal, JournalError, Kept, NewSession, Owner, Page,
    Part, SessionRecord, TaskFilter, TaskPage, TaskRecord, Unusable,
};
pub use launch::{Launch, Launching};
pub use live::LiveOutput;
pub use protocol::{
    ClientsReply, GapNotice, JoinCall, JoinReply, PageCall, PageReply, PromptReply, Refusal, RulesReply, SessionCall,
    SessionReply, SessionRequest, SnapshotReply,
};
pub use reach::{Reach, Reached};
pub use session::task::{History, Linger};
pub use session::{Join, JoinFrom, Joined, ReplayGap, STUCK, Session, WhenBusy};
pub use state::{Mark, Output, Presence, Queued, State, ToolCall, ToolStatus, Turn};
