//! Multitap's own agent, behind the same link as the CLIs.
//!
//! A prompt arrives as a command; `turn` is the pure machine that decides what happens next, `run` carries it out:
//! asks the model (`model`), turns a call into a job (`tools`), lets the `policy` judge it, asks people (`question`),
//! runs it. What happens goes out as events.
//!
//! Also here: `edit_gate`, which judges edited answers for any other agent, and `shell_lines`, which runs prompts
//! that begin with `!` in front of any other agent.
//!
//! Must not come in: the hub, doors, terminals, other agents.

mod chat;
mod command;
mod conversation;
mod edit_gate;
mod job;
mod launch;
mod mcp;
mod memory;
mod model;
mod policy;
mod question;
mod run;
mod sandbox;
#[cfg(test)]
#[cfg(unix)]
mod scene;
mod seen;
mod shell_lines;
mod slash;
mod tool;
mod tools;
mod turn;
mod workspace;

pub use edit_gate::edit_gate;
pub use launch::{Save, Setup, default_model, launch};
pub use mcp::McpPipe;
pub use sandbox::{Enforced, Enforcement, FileAccess, NetworkAccess, SANDBOXED, Sandbox, SandboxError, sandboxed};
pub use shell_lines::{UserShell, shell_lines};
pub use slash::commands;
