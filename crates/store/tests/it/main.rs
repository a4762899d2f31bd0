//! What the store owes the hub.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod contract;
mod crash;
mod form;
mod lease;
mod neighbour;
mod property;
mod push;
mod scene;
mod trouble;
