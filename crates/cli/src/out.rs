//! The only module that writes to stdout, and messages for people on stderr.
//!
//! Stdout carries exactly what the output format says. A reader that closes it early (`| head -1`) is no error: the
//! program ends quietly. Any other failed write is an error.

use std::io::{self, BufWriter, StdoutLock, Write as _};

use multitap_event::visible;
use tokio::io::AsyncWriteExt as _;

/// Output did not reach stdout.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unwritten {
    /// The reader closed it.
    #[error("stdout was closed by its reader")]
    ReaderGone,
    /// The output is lost.
    #[error("cannot write to stdout: {0}")]
    Failed(io::Error),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ReaderGone } else { Self::Failed(error) }
    }
}

/// Stdout of a command that prints continuously.
#[derive(Debug)]
pub(crate) struct Out {
    stdout: tokio::io::Stdout,
}

impl Out {
    pub(crate) fn new() -> Self {
        Self { stdout: tokio::io::stdout() }
    }

    /// Writes and flushes the text.
    pub(crate) async fn write(&mut self, text: &str) -> Result<(), Unwritten> {
        self.stdout.write_all(text.as_bytes()).await?;
        Ok(self.stdout.flush().await?)
    }
}

/// Prints text for people, or JSON of `words`, with control and hidden characters made visible; also into a pipe,
/// since there is usually a terminal at its end. Ignores a closed reader.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(visible(text).as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Stdout for commands that write many lines; the caller flushes.
pub(crate) fn buffered() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Prints a message for people on stderr, made visible. A failure cannot be reported.
pub(crate) fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    stderr.write_all(visible(text).as_bytes()).and_then(|()| stderr.write_all(b"\n")).ok();
}
