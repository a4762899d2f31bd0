//! Sessions elsewhere: a real door over a real hub, reached by TCP, through a proxy that cuts, and by a private socket.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod asked;
mod cuts;
mod older;
#[cfg(unix)]
mod private;
mod proxy;
mod refusals;
mod stage;
