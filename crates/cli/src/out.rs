//! The only place that writes to stdout, and the words for people on stderr.
//!
//! Stdout is a wire: whoever reads it gets what the output format says and nothing else. A reader that goes away
//! (`| head -1`) is no error; the program ends quietly. Anything else that keeps a
//! line from getting out is one.

use std::io::{self, BufWriter, StdoutLock, Write as _};

use multitap_event::visible;
use tokio::io::AsyncWriteExt as _;

/// What was to go to stdout did not get there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwritten {
    /// Nobody reads it any more.
    #[error("nobody reads stdout")]
    ReaderGone,
    /// It is lost, and somebody may have wanted it.
    #[error("cannot write to stdout: {0}")]
    Failed(io::Error),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ReaderGone } else { Self::Failed(error) }
    }
}

/// Stdout of a command that prints as things happen.
#[derive(Debug)]
pub(crate) struct Out {
    stdout: tokio::io::Stdout,
}

impl Out {
    pub(crate) fn new() -> Self {
        Self { stdout: tokio::io::stdout() }
    }

    /// Writes all of it and sees it out of the door.
    pub(crate) async fn write(&mut self, text: &str) -> Result<(), Unwritten> {
        self.stdout.write_all(text.as_bytes()).await?;
        Ok(self.stdout.flush().await?)
    }
}

/// Prints text for people, or JSON of `words`, at once: nothing in it is obeyed by a terminal or stays unseen. Also where it
/// goes to a pipe: what is at its end is a terminal more often than not. A reader that went away does not mind.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(visible(text).as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Stdout for a command that writes a great many lines; flushed by the caller.
pub(crate) fn buffered() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Tells people something, on stderr: errors, notes and the like, whoever wrote a part of them. If nobody listens there either, there is nobody left to tell.
pub(crate) fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    stderr.write_all(visible(text).as_bytes()).and_then(|()| stderr.write_all(b"\n")).ok();
}
