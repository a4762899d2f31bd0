//! Sessions on scripted agents: the other end of the link is the test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod anything;
mod aside;
mod durable;
mod edits;
mod far;
mod join;
mod memory;
mod questions;
mod recover;
mod rights;
mod scene;
mod session;
mod setting;
mod stalled;
