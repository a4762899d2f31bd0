//! The bridge between scripted A2A agents and a real MCP client.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod agent;
mod behaviour;
mod cancel;
mod client;
mod hostile;
mod list;
mod many;
mod question;
