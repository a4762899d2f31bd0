//! The crate from outside: a link with commands going in and events coming out.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod edits;
mod elicitation;
mod interop_mcp;
mod mcp;
#[cfg(target_os = "linux")]
mod sandbox;
mod scene;
#[cfg(unix)]
mod wait;
