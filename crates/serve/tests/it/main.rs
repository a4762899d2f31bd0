//! Doors from outside: a real socket, and a host with or without sessions.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod acp;
mod events;
mod grpc;
mod http;
mod live;
mod lost;
mod peers;
mod scene;
mod sut;
#[path = "../../examples/a2a_sut/host.rs"]
mod sut_host;
mod tasks;
mod ws;
