//! The library as a program uses it, on fake agents.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod history;
mod lines;
mod session;
#[path = "../../examples/stream.rs"]
#[expect(dead_code, unreachable_pub, reason = "the example is a program of its own; the tests run its heart")]
mod stream;
mod trust;
