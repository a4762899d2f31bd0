//! Signals that ask us to end.

use anyhow::Context as _;

use crate::exit::Problem;

/// Interrupt, terminate and hang-up.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    End,
    /// The terminal is gone.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix tells"))]
    Hangup,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Self, Problem> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).context("listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel safe.
    pub(crate) async fn next(&mut self) {
        self.next_kind().await;
    }

    /// The next one, and what it asks for. Cancel safe.
    pub(crate) async fn next_kind(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::End,
            _ = self.terminate.recv() => Signal::End,
            _ = self.hangup.recv() => Signal::Hangup,
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can fail")]
    pub(crate) fn new() -> Result<Self, Problem> {
        Ok(Self)
    }

    /// The next one. Cancel safe.
    pub(crate) async fn next(&mut self) {
        self.next_kind().await;
    }

    /// The next one, and what it asks for. Cancel safe.
    pub(crate) async fn next_kind(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.context("listen to Ctrl-C").is_err() {
            std::future::pending::<()>().await;
        }
        Signal::End
    }
}
