//! A client at the other end of two pipes: each line is one message.

use std::fmt;
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::message::Fault;
use super::transport::{Disconnected, Received};

/// How much is gathered before it is written.
const WRITE_BUFFER: usize = 64 * 1024;

pub(crate) struct Stdio {
    reader: Box<dyn AsyncBufRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    patience: Duration,
    /// The line that is coming.
    line: Vec<u8>,
    /// The line is longer than it may be: the rest of it is skipped.
    is_too_long: bool,
    unsent: Vec<u8>,
}

impl Stdio {
    /// `patience` is how long the client may leave messages unread.
    pub(crate) fn new(
        reader: impl AsyncBufRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        patience: Duration,
    ) -> Self {
        let (reader, writer) = (Box::new(reader), Box::new(writer));
        Self { reader, writer, patience, line: Vec::new(), is_too_long: false, unsent: Vec::new() }
    }

    /// The next line that is not empty. Cancel safe.
    pub(super) async fn receive(&mut self, limit: usize) -> Result<Received, Disconnected> {
        loop {
            let bytes = self.reader.fill_buf().await.map_err(|_| Disconnected)?;
            let is_over = bytes.is_empty();
            if is_over && self.line.is_empty() && !self.is_too_long {
                return Ok(Received::Over);
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            self.is_too_long |= self.line.len() + part.len() > limit;
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            let read = part.len() + usize::from(end.is_some());
            self.reader.consume(read);
            // A last line may have no end.
            if end.is_none() && !is_over {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.is_too_long) {
                return Ok(Received::Fault(Fault::too_large(limit)));
            }
            match String::from_utf8(line) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => return Ok(Received::Text(Utf8Bytes::from(line))),
                Err(_) => return Ok(Received::Fault(Fault::invalid_request("a line must be valid UTF-8"))),
            }
        }
    }

    pub(super) async fn ready(&mut self) -> Result<(), Disconnected> {
        if self.is_full() { self.flush().await } else { Ok(()) }
    }

    pub(super) fn start_send(&mut self, text: &str) {
        self.unsent.extend_from_slice(text.as_bytes());
        self.unsent.push(b'\n');
    }

    pub(super) fn is_full(&self) -> bool {
        self.unsent.len() >= WRITE_BUFFER
    }

    pub(super) async fn flush(&mut self) -> Result<(), Disconnected> {
        while !self.unsent.is_empty() {
            match timeout(self.patience, self.writer.write(&self.unsent)).await {
                Ok(Ok(written)) if written > 0 => drop(self.unsent.drain(..written)),
                _ => return Err(Disconnected),
            }
        }
        match timeout(self.patience, self.writer.flush()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Disconnected),
        }
    }
}

impl fmt::Debug for Stdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdio").field("unsent", &self.unsent.len()).finish_non_exhaustive()
    }
}
