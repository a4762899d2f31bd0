//! Splits bytes into bounded lines.
//!
//! A line ends with `\n` or `\r\n`, as in [`str::lines`]. One that is longer than the limit is reported once, with
//! its head and its length, and skipped to its end: memory stays bounded and the lines after it are complete. Cost is
//! linear in the bytes read, however they are split.
//!
//! Must not come in: what a line means.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line that is returned whole.
pub const MAX_LINE: usize = 64 * 1024 * 1024;
/// How much of a longer line is returned.
const HEAD: usize = 4 * 1024;
const READ: usize = 64 * 1024;

/// One line, without its end. Invalid UTF-8 is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Longer than the limit: its beginning, and its length in bytes.
    TooLong {
        head: String,
        bytes: u64,
    },
}

/// Splits bytes into lines, however the bytes arrive.
#[derive(Debug)]
pub struct LineBuffer {
    /// The current line so far, or its head once it is too long.
    head: Vec<u8>,
    /// Length of the current line so far, and its last byte.
    length: u64,
    last: u8,
    max: usize,
    ready: VecDeque<Line>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Newline,
    Input,
}

impl LineBuffer {
    /// Lines of up to `max` bytes are returned whole.
    pub fn new(max: usize) -> Self {
        Self { head: Vec::new(), length: 0, last: 0, max, ready: VecDeque::new() }
    }

    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.finish_line(LineEnd::Newline);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// End of input: the rest is the last line.
    pub fn finish(&mut self) {
        if self.length > 0 {
            self.finish_line(LineEnd::Input);
        }
    }

    pub fn pop(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else { return };
        self.last = last;
        self.length += bytes.len() as u64;
        // One byte more than the limit may still be the `\r` of the line end.
        if self.length <= self.max as u64 + 1 {
            self.head.extend_from_slice(bytes);
            return;
        }
        let head = HEAD.min(self.max);
        if self.head.len() > head {
            self.head.truncate(head);
            self.head.shrink_to_fit();
        }
        let room = (head - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
    }

    fn finish_line(&mut self, end: LineEnd) {
        let mut kept = std::mem::take(&mut self.head);
        let mut bytes = std::mem::take(&mut self.length);
        if end == LineEnd::Newline && bytes > 0 && self.last == b'\r' {
            if kept.len() as u64 == bytes {
                kept.pop();
            }
            bytes -= 1;
        }
        let line = if bytes > self.max as u64 {
            kept.truncate(HEAD.min(self.max));
            Line::TooLong { head: head_text(&kept), bytes }
        } else {
            Line::Text(text(kept))
        };
        self.ready.push_back(line);
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned())
}

/// The text of a truncated line, without an incomplete last character.
fn head_text(bytes: &[u8]) -> String {
    let tail = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let cut_through = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
    let end = if cut_through { bytes.len() - tail.len() } else { bytes.len() };
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

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

    /// Raw bytes as they arrive; 0 at the end. Cancel safe.
    pub(crate) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reader.read(into).await
    }

    /// The next line, or `None` at the end. Cancel safe.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.buffer.pop() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(None);
            }
            match self.reader.read(&mut self.chunk).await? {
                0 => {
                    self.ended = true;
                    self.buffer.finish();
                }
                read => self.buffer.push(&self.chunk[..read]),
            }
        }
    }
}

#[cfg(test)]
mod tests;
