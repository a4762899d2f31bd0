//! Remote A2A agents as MCP tools.
//!
//! A [`Bridge`] loads A2A agents by their `A2aServer` and serves them to MCP clients, in the `initialize` era and in
//! that of 2026-07-28: each agent becomes a few tools (`NAME_sendMessage`, `NAME_getTask`, …), and three more manage the
//! list (`load_agent`, `list_agents`, `unload_agent`).
//!
//! The path of a call: `server` receives it and finds the agent in the `registry`; `call` reads its arguments; a `run`
//! follows the remote task and collects what it says; `ask` turns its questions into MCP elicitation; `result` writes
//! the answer, marked as the words of a remote agent.
//!
//! Knows A2A and MCP. Must not come in: sessions, settings files, command lines, a listening socket.

mod argument;
mod ask;
mod bridge;
mod call;
mod collect;
mod describe;
mod hops;
mod name;
mod pending;
mod progress;
mod registry;
mod remote;
mod result;
mod run;
mod server;
mod tool;
mod watched;

pub use bridge::{Bridge, BridgeOptions, HttpService, Loaded, ServeError};
pub use hops::Hops;
