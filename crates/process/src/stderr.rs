//! The child's stderr: logged line by line, and its end stored for errors. Never parsed.

mod plain;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStderr;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::Instrument as _;

use crate::{Line, LineBuffer};
use plain::plain;

/// How many bytes of the end are stored.
const TAIL: usize = 8 * 1024;
/// The longest line that is logged whole.
const LOGGED: usize = 4 * 1024;
/// How long the last output of a dead child may take. Longer only if a descendant holds the pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Stderr {
    tail: Arc<Mutex<Tail>>,
    reader: JoinSet<()>,
}

impl Stderr {
    /// Reads that pipe until its end; `program` names it in the log.
    pub(crate) fn new(pipe: ChildStderr, program: String) -> Self {
        let tail = Arc::<Mutex<Tail>>::default();
        let mut reader = JoinSet::new();
        reader.spawn(read(pipe, program, Arc::clone(&tail)).in_current_span());
        Self { tail, reader }
    }

    /// The end of the output, without colours. Control characters stay: make them visible before you show it.
    pub(crate) fn tail(&self) -> String {
        lock(&self.tail).text()
    }

    /// Waits briefly for what is still in the pipe. Cancel safe.
    pub(crate) async fn finish(&mut self) {
        timeout(LAST_WORDS, self.reader.join_next()).await.ok();
    }
}

async fn read(mut pipe: ChildStderr, program: String, tail: Arc<Mutex<Tail>>) {
    let mut lines = LineBuffer::new(LOGGED);
    let mut chunk = vec![0; 4096];
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        lock(&tail).push(&chunk[..read]);
        lines.push(&chunk[..read]);
        log(&mut lines, &program);
    }
    lines.finish();
    log(&mut lines, &program);
}

fn log(lines: &mut LineBuffer, program: &str) {
    while let Some(Line::Text(line) | Line::TooLong { head: line, .. }) = lines.pop() {
        tracing::debug!(target: "agent_stderr", program, "{}", plain(&line));
    }
}

fn lock(tail: &Mutex<Tail>) -> MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    /// Something before these bytes was dropped.
    cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * TAIL {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let surplus = self.bytes.len().saturating_sub(TAIL);
        self.bytes.drain(..surplus);
        self.cut |= surplus > 0;
    }

    fn text(&mut self) -> String {
        self.shorten();
        // A cut may leave part of a character or an escape sequence: begin at the next line.
        let whole = if self.cut { memchr::memchr(b'\n', &self.bytes).map_or(0, |end| end + 1) } else { 0 };
        plain(&String::from_utf8_lossy(&self.bytes[whole..])).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{TAIL, Tail};

    #[test]
    fn the_tail_is_bounded_and_begins_with_a_whole_line() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(format!("\u{1b}[31mline {number}\u{1b}[0m 漢字\n").as_bytes());
            assert!(tail.bytes.len() <= 2 * TAIL);
        }
        let text = tail.text();
        assert!(text.len() <= TAIL);
        assert!(text.ends_with("line 9999 漢字"));
        assert!(text.lines().all(|line| line.starts_with("line ") && line.ends_with(" 漢字")), "{text}");
    }

    #[test]
    fn one_endless_line_keeps_its_end() {
        let mut tail = Tail::default();
        tail.push("x".repeat(5 * TAIL).as_bytes());
        tail.push(b"the end");
        let text = tail.text();
        assert!(text.len() == TAIL && text.ends_with("xthe end"));
    }

    #[test]
    fn asking_twice_gives_the_same() {
        let mut tail = Tail::default();
        tail.push(b" one\ntwo\xff\n\n");
        assert_eq!(tail.text(), "one\ntwo\u{fffd}");
        assert_eq!(tail.text(), "one\ntwo\u{fffd}");
    }
}
