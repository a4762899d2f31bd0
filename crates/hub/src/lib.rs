//! Live sessions: one ordered log each, any number of clients at any place in it, exactly one ruling per question.
//!
//! A [`Hub`] opens sessions; a [`Session`] is the handle of doors and screens; a [`Feed`] is one client's way through
//! the log. An event is stamped, applied to the [`State`], stored by a [`Journal`], and only then shown: nobody sees an
//! event that could still be lost.
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
pub use far::{Answer, Elsewhere, FarEnd, FarNews, FarStart, FarTask, Left};
pub use feed::{Feed, FeedEnd, Told};
pub use hub::{Hub, Open, OpenError, Which, rebuild};
pub use journal::{
    About, Batch, Checkpoint, Claim, DeliveriesOf, DeliveryOutcome, DeliveryRecord, DeliveryStatus, Edge, Filter,
    Flush, Holder, Journal, JournalError, Kept, NewDelivery, NewPushConfig, NewSession, Owner, PUSH_CONFIGS_PER_CLIENT,
    PUSH_CONFIGS_PER_TASK, PUSH_LOG, PUSH_QUEUE, PUSH_QUEUE_BYTES, Page, Part, PendingPush, PushConfigRecord, PushKey,
    PushPosition, PushQueue, PushScope, PutPushConfig, SessionRecord, SettledAttempt, TakePush, TakenDelivery,
    TaskFilter, TaskPage, TaskRecord,
};
pub use launch::{Launch, Launching};
pub use live::LiveOutput;
pub use protocol::{
    AboutSession, AgentSummary, ClientsReply, FilesCall, GapNotice, HostCall, HostReply, JoinCall, JoinReply, OpenCall,
    OpenReply, PageCall, PageReply, PromptReply, Refusal, RulesReply, SessionCall, SessionQuestion, SessionReply,
    SessionRequest, SessionStatus, SessionSummary, SessionsCall, SessionsReply, SnapshotReply,
};
pub use reach::{Reach, Reached};
pub use session::task::{EarlierEvents, Linger};
pub use session::{Join, JoinFrom, Joined, ModeLimit, ReplayGap, STUCK, Session, WhenBusy};
pub use state::{Mark, Output, Presence, Queued, State, ToolCall, ToolStatus, Turn};
