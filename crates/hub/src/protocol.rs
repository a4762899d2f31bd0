//! What a client can ask of a session and how it is answered: one serde form for the lines of
//! `-p --input-format stream-json`, for `dialect=events`, and for sessions that run in another process.
//!
//! A [`SessionCall`] asks a session, a [`HostCall`] whatever has the sessions. Either is an object tagged by `type`. On JSON-RPC the `type` is the method and the other fields are the
//! params. A [`Refusal`] is an object tagged by `code`. Must not come in: JSON-RPC itself, a transport.

mod call;
mod host;
mod refusal;
mod reply;

pub use self::call::{JoinCall, PageCall, SessionCall, SessionRequest};
pub use self::host::{
    AboutSession, AgentSummary, FilesCall, HostCall, HostReply, OpenCall, OpenReply, SessionQuestion, SessionStatus,
    SessionSummary, SessionsCall, SessionsReply,
};
pub use self::refusal::Refusal;
pub use self::reply::{
    ClientsReply, GapNotice, JoinReply, PageReply, PromptReply, RulesReply, SessionReply, SnapshotReply,
};
