//! Signals that end the program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::exit::Problem;

/// Interrupt, terminate and hang-up.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    pub(crate) editor_state: EditorState,
}

/// How long after its end Ctrl+C may have been meant for the editor: we receive the same signal, and maybe later. In
/// the terminal UI Ctrl+C is a key and no signal.
const AFTER_EDITOR: Duration = Duration::from_secs(2);

/// Whether the user's editor has the terminal: then Ctrl+C is meant for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct EditorState(Arc<Mutex<Use>>);

#[derive(Debug, Clone, Copy, Default)]
enum Use {
    #[default]
    Never,
    Now,
    Before(Instant),
}

/// The editor has the terminal until this is dropped.
#[derive(Debug)]
pub(crate) struct Editing(EditorState);

impl EditorState {
    pub(crate) fn begin(&self) -> Editing {
        self.set(Use::Now);
        Editing(self.clone())
    }

    #[cfg_attr(not(unix), expect(dead_code, reason = "consoles tell their programs apart"))]
    fn is_meant(&self) -> bool {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Use::Never => false,
            Use::Now => true,
            Use::Before(end) => end.elapsed() < AFTER_EDITOR,
        }
    }

    fn set(&self, now: Use) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        self.0.set(Use::Before(Instant::now()));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    End,
    /// The terminal is gone.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix tells"))]
    Hangup,
}

impl Signals {
    /// The next signal. Cancel safe.
    pub(crate) async fn next(&mut self) {
        self.next_kind().await;
    }
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Self, Problem> {
        use tokio::signal::unix::{SignalKind, signal};
        crate::deadline::start();
        let listen = |kind| signal(kind).context("listen to signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
            editor_state: EditorState::default(),
        })
    }

    /// Restores the terminal as soon as the terminal closes or the program must end, even if the UI is blocked: reading
    /// keys from a closed terminal may never return. Runs until the result is dropped.
    pub(crate) fn let_go_in_time() -> Result<JoinSet<()>, Problem> {
        let (mut signals, mut watch) = (Self::new()?, JoinSet::new());
        watch.spawn(async move {
            tokio::select! {
                _ = signals.terminate.recv() => {}
                _ = signals.hangup.recv() => {}
            }
            if let Err(error) = multitap_tui::detach_stdin() {
                tracing::warn!(%error, "the terminal is still held");
            }
        });
        Ok(watch)
    }

    /// The next signal and its kind. Cancel safe.
    pub(crate) async fn next_kind(&mut self) -> Signal {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => if !self.editor_state.is_meant() { return Signal::End },
                _ = self.terminate.recv() => return Signal::End,
                _ = self.hangup.recv() => return Signal::Hangup,
            }
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
#[derive(Debug)]
pub(crate) struct Signals {
    pub(crate) editor_state: EditorState,
}

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can fail")]
    pub(crate) fn new() -> Result<Self, Problem> {
        Ok(Self { editor_state: EditorState::default() })
    }

    /// A closed console ends its programs.
    #[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can fail")]
    pub(crate) fn let_go_in_time() -> Result<JoinSet<()>, Problem> {
        Ok(JoinSet::new())
    }

    /// The next signal and its kind. Cancel safe.
    pub(crate) async fn next_kind(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.context("listen to Ctrl-C").is_err() {
            std::future::pending::<()>().await;
        }
        Signal::End
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_interrupt_that_ends_the_editor_is_not_meant_for_us() {
        let editor_state = EditorState::default();
        assert!(!editor_state.is_meant());
        let editing = editor_state.begin();
        tokio::time::advance(Duration::from_secs(600)).await;
        assert!(editor_state.is_meant());
        drop(editing);
        assert!(editor_state.is_meant(), "we hear of it when the editor is gone already");
        tokio::time::advance(AFTER_EDITOR).await;
        assert!(!editor_state.is_meant());
    }
}
