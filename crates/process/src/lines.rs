//! Bytes to bounded lines.
//!
//! A line ends with `\n` or `\r\n`, as in [`str::lines`]. One that is longer than the cap is reported once, with its
//! head and its length, and skipped to its end: memory stays bounded and the lines after it are whole. Cost is linear
//! in the bytes read, however they are cut.
//!
//! Must not come in: what a line means.

use std::collections::VecDeque;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest line that is kept whole.
pub const MAX_LINE: usize = 64 * 1024 * 1024;
/// How much of a longer line is kept.
const HEAD: usize = 4 * 1024;
const READ: usize = 64 * 1024;

/// One line, without its end. Bytes that are not UTF-8 are replaced.
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
    /// The beginning of the current line: all of it, or its head once it is too long.
    kept: Vec<u8>,
    /// The bytes of the current line so far, and the last of them.
    length: u64,
    last: u8,
    max: usize,
    ready: VecDeque<Line>,
}

/// What closed a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Newline,
    Input,
}

impl LineBuffer {
    /// Lines of up to `max` bytes stay whole.
    pub fn new(max: usize) -> Self {
        Self { kept: Vec::new(), length: 0, last: 0, max, ready: VecDeque::new() }
    }

    /// Takes in more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.finish_line(End::Newline);
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    /// No more bytes come: what is left is the last line.
    pub fn finish(&mut self) {
        if self.length > 0 {
            self.finish_line(End::Input);
        }
    }

    /// The next whole line.
    pub fn pop(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) {
        let Some(&last) = bytes.last() else { return };
        self.last = last;
        self.length += bytes.len() as u64;
        // One more than the cap may still be the `\r` of the line's end.
        if self.length <= self.max as u64 + 1 {
            self.kept.extend_from_slice(bytes);
            return;
        }
        let head = HEAD.min(self.max);
        if self.kept.len() > head {
            self.kept.truncate(head);
            self.kept.shrink_to_fit();
        }
        let room = (head - self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
    }

    fn finish_line(&mut self, end: End) {
        let mut kept = std::mem::take(&mut self.kept);
        let mut bytes = std::mem::take(&mut self.length);
        if end == End::Newline && bytes > 0 && self.last == b'\r' {
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

/// The text of a line that was cut off: a character that the cut went through is left out.
fn head_text(bytes: &[u8]) -> String {
    let tail = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let cut_through = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
    let end = if cut_through { bytes.len() - tail.len() } else { bytes.len() };
    String::from_utf8_lossy(&bytes[..end]).into_owned()
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

    /// More bytes as they come, not cut into lines; 0 at the end. Cancel safe.
    pub(crate) async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reader.read(into).await
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
