//! Signals that ask us to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use tokio::task::JoinSet;

use crate::exit::Problem;

/// Interrupt, terminate and hang-up.
#[cfg(unix)]
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    pub(crate) at_editor: AtEditor,
}

/// Whether the user's editor has the terminal: then Ctrl+C is meant for that.
#[derive(Debug, Clone, Default)]
pub(crate) struct AtEditor(Arc<AtomicBool>);

/// For as long as it has.
#[derive(Debug)]
pub(crate) struct Editing(AtEditor);

impl AtEditor {
    pub(crate) fn begin(&self) -> Editing {
        self.0.store(true, Ordering::Relaxed);
        Editing(self.clone())
    }

    #[cfg_attr(not(unix), expect(dead_code, reason = "consoles tell their programs apart"))]
    fn is(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Relaxed);
    }
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
            at_editor: AtEditor::default(),
        })
    }

    /// Lets go of the terminal as soon as it is gone, or this is to end, whatever the screen is doing: whoever reads
    /// keys may never come to an end with a terminal that is gone. Until what it gives back is dropped.
    pub(crate) fn let_go_in_time() -> Result<JoinSet<()>, Problem> {
        let (mut signals, mut watch) = (Self::new()?, JoinSet::new());
        watch.spawn(async move {
            tokio::select! {
                _ = signals.terminate.recv() => {}
                _ = signals.hangup.recv() => {}
            }
            if let Err(error) = multitap_tui::let_go() {
                tracing::warn!(%error, "the terminal is still held");
            }
        });
        Ok(watch)
    }

    /// The next one. Cancel safe.
    pub(crate) async fn next(&mut self) {
        self.next_kind().await;
    }

    /// The next one, and what it asks for. Cancel safe.
    pub(crate) async fn next_kind(&mut self) -> Signal {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => if !self.at_editor.is() { return Signal::End },
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
    pub(crate) at_editor: AtEditor,
}

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can fail")]
    pub(crate) fn new() -> Result<Self, Problem> {
        Ok(Self { at_editor: AtEditor::default() })
    }

    /// A console that is gone ends its programs.
    #[expect(clippy::unnecessary_wraps, reason = "the same call as on Unix, where it can fail")]
    pub(crate) fn let_go_in_time() -> Result<JoinSet<()>, Problem> {
        Ok(JoinSet::new())
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
