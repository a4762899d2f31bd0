//! Translates native lines of coding agents to unified events, and commands to native lines.
//!
//! One folder per agent, with the same files in each: its `wire` shapes, `decode`, `encode`, and a launch plan
//! (arguments and environment). A [`Codec`] has no I/O; one [`pump`](launch) moves its lines to and from the child.
//!
//! Must not come in: clients, doors, the hub, anything that owns a log.

mod acp;
mod claude;
mod codec;
mod codex;
mod diff;
mod emit;
mod form;
mod gemini;
mod history;
mod info;
mod json;
mod line;
mod mcp;
mod project;
mod pump;
mod sign_in;
mod spec;

pub use acp::{AcpCodec, program as acp_program};
pub use claude::ClaudeCodec;
pub use codec::{Codec, DiskFiles, End, Files, NoFiles, Run, RunArg, Step, decode_line};
pub use codex::{CodexCodec, sandbox_trouble as codex_sandbox_trouble};
pub use gemini::{GeminiCodec, StreamCodec as GeminiStreamCodec};
pub use history::{History, HistoryError, Reading, StoredSession, read};
pub use info::{AgentFeatures, AgentInfo, ProgramInfo};
pub use mcp::left_out as mcp_left_out;
/// The caller that starts an agent chooses how its children are supervised.
pub use multitap_process::Keeper;
pub use project::{ActingFile, acting_files, acting_files_of_added, left_out as project_left_out};
pub use pump::drafts;
pub use sign_in::{SignIn, sign_in};
pub use spec::{LaunchSpec, archive, launch, recorded, steers};
