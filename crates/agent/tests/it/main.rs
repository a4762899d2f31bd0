//! The built-in agent by its public entry: a link with commands going in and events coming out.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod interop_mcp;
mod mcp;
mod scene;
