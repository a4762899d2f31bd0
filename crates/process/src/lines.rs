//! Bytes to bounded lines.
//!
//! A line longer than the cap is reported once, with its head and its length, and skipped to its end: memory stays
//! bounded and the lines after it are whole. Cost is linear in the bytes read, however they are cut.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line that is kept whole.
pub const MAX_LINE: usize = 64 * 1024 * 1024;
/// How much of a longer line is kept.
const HEAD: usize = 4 * 1024;
const READ: usize = 64 * 1024;

/// One line, without its newline. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Longer than the cap: its beginning, and how many bytes it had.
    TooLong {
        head: String,
        bytes: u64,
    },
}

/// Cuts bytes into lines, whatever the pieces they come in.
#[derive(Debug)]
pub struct LineBuffer {
    partial: Vec<u8>,
    /// Bytes of the current line that were thrown away.
    skipped: u64,
    max: usize,
    ready: VecDeque<Line>,
}

impl LineBuffer {
    pub fn new(max: usize) -> Self {
        Self { partial: Vec::new(), skipped: 0, max, ready: VecDeque::new() }
    }

    /// Takes in more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.finish_line();
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// No more bytes come: what is left is the last line.
    pub fn finish(&mut self) {
        if !self.partial.is_empty() || self.skipped > 0 {
            self.finish_line();
        }
    }

    /// The next whole line.
    pub fn pop(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.skipped == 0 && self.partial.len() + bytes.len() <= self.max {
            self.partial.extend_from_slice(bytes);
            return;
        }
        let room = HEAD.min(self.max).saturating_sub(self.partial.len()).min(bytes.len());
        self.partial.extend_from_slice(&bytes[..room]);
        self.skipped += (bytes.len() - room) as u64;
        if self.partial.len() > HEAD {
            self.skipped += (self.partial.len() - HEAD) as u64;
            self.partial.truncate(HEAD);
            self.partial.shrink_to_fit();
        }
    }

    fn finish_line(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        let total = bytes.len() as u64 + self.skipped;
        let mut text =
            String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned());
        if text.ends_with('\r') {
            text.pop();
        }
        let line = if self.skipped > 0 { Line::TooLong { head: text, bytes: total } } else { Line::Text(text) };
        self.skipped = 0;
        self.ready.push_back(line);
    }
}

/// Lines of a pipe.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: LineBuffer,
    chunk: Box<[u8]>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: LineBuffer::new(MAX_LINE), chunk: vec![0; READ].into(), ended: false }
    }

    /// The next line, or nothing at the end. Cancel safe.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.buffer.pop() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            let read = self.reader.read(&mut self.chunk).await?;
            if read == 0 {
                self.ended = true;
                self.buffer.finish();
            } else {
                self.buffer.push(&self.chunk[..read]);
            }
        }
    }
}
