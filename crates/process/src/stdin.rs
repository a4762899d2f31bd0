//! The child's stdin: a queue of lines and the task that writes them, so that no caller blocks on a full pipe.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Most lines that may wait for the child.
const QUEUE: usize = 64;

/// The child no longer reads its stdin, or not fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StdinClosed {
    #[error("its input is closed")]
    Closed,
    #[error("it does not read its input")]
    NotReading,
}

/// The child's stdin. A task writes the lines in order.
#[derive(Debug)]
pub struct Stdin {
    tx: Option<mpsc::Sender<String>>,
    /// When the write of the current line began.
    since: watch::Receiver<Option<Instant>>,
}

impl Stdin {
    /// Takes the pipe and starts its `writer`; without a pipe it is closed from the start.
    pub(crate) fn new(pipe: Option<ChildStdin>, writer: &mut JoinSet<()>) -> Self {
        let (busy, since) = watch::channel(None);
        let tx = pipe.map(|pipe| {
            let (tx, rx) = mpsc::channel(QUEUE);
            writer.spawn(write_lines(pipe, rx, busy));
            tx
        });
        Self { tx, since }
    }

    /// Queues one line; waits at most `patience` for the child to read earlier ones.
    ///
    /// If the child closed its stdin before a line was written, the next one returns [`StdinClosed::Closed`].
    pub async fn write(&mut self, line: String, patience: Duration) -> Result<(), StdinClosed> {
        let Some(tx) = &self.tx else { return Err(StdinClosed::Closed) };
        match timeout(patience, tx.send(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(StdinClosed::Closed),
            Err(_) => Err(StdinClosed::NotReading),
        }
    }

    /// Whether the child closed its stdin before we did. Detected only by a failed line.
    pub fn is_broken(&self) -> bool {
        self.tx.as_ref().is_some_and(mpsc::Sender::is_closed)
    }

    /// For how long the child has not read the oldest line, because the pipe is full.
    pub fn stuck_for(&self) -> Option<Duration> {
        self.since.borrow().map(|since| since.elapsed())
    }

    /// Closes stdin after the queued lines.
    pub fn close(&mut self) {
        self.tx = None;
    }
}

async fn write_lines(mut pipe: ChildStdin, mut rx: mpsc::Receiver<String>, busy: watch::Sender<Option<Instant>>) {
    while let Some(mut line) = rx.recv().await {
        line.push('\n');
        busy.send_replace(Some(Instant::now()));
        if pipe.write_all(line.as_bytes()).await.is_err() || pipe.flush().await.is_err() {
            break;
        }
        busy.send_replace(None);
    }
    busy.send_replace(None);
}
