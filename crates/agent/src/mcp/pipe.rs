//! In-memory pipes to servers. The lines of a server program pass through one, which filters out everything that is not
//! a message. A server in this process is connected by a pipe alone.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use multitap_process::{Child, Exit, Line, Lines, Patience};
use tokio::io::{AsyncRead, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};

/// Capacity of the pipe, each way.
pub(super) const PIPE: usize = 64 * 1024;
/// How long a server may leave a full pipe unread.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of characters of a stray line that are kept.
const SHOWN: usize = 200;
/// Maximum number of characters of stderr that an error repeats, from its end.
const LAST_WORDS: usize = 1000;

/// Connects to a server in this process. A clone connects to the same server.
#[derive(Clone)]
pub struct McpPipe(Arc<dyn Fn() -> DuplexStream + Send + Sync>);

impl McpPipe {
    /// `connect` starts to serve one more client and returns that client's end. It is called within a runtime.
    pub fn new(connect: impl Fn() -> DuplexStream + Send + Sync + 'static) -> Self {
        Self(Arc::new(connect))
    }

    pub(super) fn connect(&self) -> DuplexStream {
        (self.0)()
    }
}

impl fmt::Debug for McpPipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpPipe").finish_non_exhaustive()
    }
}

/// The first line on a server's stdout that is not a message.
#[derive(Debug, Clone, Default)]
pub(super) struct StrayOutput(Arc<OnceLock<String>>);

impl StrayOutput {
    fn heard(&self, line: &str) {
        let line = line.trim();
        if !line.is_empty() {
            tracing::debug!(target: "mcp", line, "no message");
            self.0.get_or_init(|| line.chars().take(SHOWN).collect());
        }
    }

    pub(super) fn words(&self) -> String {
        match self.0.get() {
            Some(line) => format!("; its stdout has a line that is not a message: \"{line}\""),
            None => String::new(),
        }
    }
}

/// Carries lines both ways until either side ends, then ends the program with all it started.
pub(super) async fn carry(mut child: Child, pipe: DuplexStream, noise: StrayOutput) -> Exit {
    let (from_us, to_us) = split(pipe);
    {
        let Child { stdin, stdout, .. } = &mut child;
        tokio::select! {
            () = outward(stdout, to_us, &noise) => {}
            () = inward(from_us, stdin) => {}
        }
    }
    child.stop(Patience::default()).await
}

async fn outward(stdout: &mut Lines<impl AsyncRead + Unpin>, mut to_us: WriteHalf<DuplexStream>, noise: &StrayOutput) {
    while let Ok(Some(line)) = stdout.next().await {
        match line {
            Line::Text(line) if line.trim_start().starts_with(['{', '[']) => {
                if to_us.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
            Line::Text(line) => noise.heard(&line),
            Line::TooLong { head, bytes } => {
                tracing::warn!(target: "mcp", bytes, "a message of an MCP server is too long and is left out");
                noise.heard(&head);
            }
        }
    }
}

async fn inward(from_us: ReadHalf<DuplexStream>, stdin: &mut multitap_process::Stdin) {
    let mut lines = Lines::new(from_us);
    while let Ok(Some(line)) = lines.next().await {
        let Line::Text(line) = line else { continue };
        if stdin.write(line, PATIENCE).await.is_err() {
            return;
        }
    }
}

/// Describes how a program ended.
pub(super) fn ended(exit: &Exit) -> String {
    if exit.stderr_tail.is_empty() {
        format!("it ended ({exit})")
    } else {
        format!("it ended ({exit}): {}", last_words(exit))
    }
}

pub(super) fn last_words(exit: &Exit) -> String {
    let surplus = exit.stderr_tail.chars().count().saturating_sub(LAST_WORDS);
    exit.stderr_tail.chars().skip(surplus).collect()
}
