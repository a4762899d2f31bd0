//! In-memory pipes to servers. The lines of a server program pass through one, which filters out everything that is not
//! a message. A server in this process is connected by a pipe alone.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use multitap_event::{MAX_JSON_VALUES, has_more_values};
use multitap_process::{Child, Exit, Line, Lines, Patience};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};

/// Capacity of the pipe, each way.
pub(super) const PIPE: usize = 64 * 1024;
/// How long a server may leave a full pipe unread.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of characters of a stray line that are kept.
const SHOWN: usize = 200;
/// Maximum number of characters of stderr that an error repeats, from its end.
const LAST_WORDS: usize = 1000;
/// JSON-RPC's code for a request that failed.
const INTERNAL_ERROR: i32 = -32603;

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
            Line::Text(line) if has_more_values(&line, MAX_JSON_VALUES) => {
                tracing::warn!(target: "mcp", bytes = line.len(), "a message of an MCP server has too many values");
                let Some(refusal) = refusal(&line) else { continue };
                if to_us.write_all(format!("{refusal}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
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

/// An error in place of a response that would take too much memory, so that its request fails at once.
fn refusal(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Response<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
        method: Option<IgnoredAny>,
    }

    let Ok(Response { id, method: None }) = serde_json::from_str(line) else { return None };
    let message = format!("the answer of the server has more than {MAX_JSON_VALUES} values");
    Some(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": INTERNAL_ERROR, "message": message } }).to_string())
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

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_response_of_many_values_becomes_an_error_and_other_messages_are_left_out() {
        let many = "{},".repeat(MAX_JSON_VALUES);
        let output = format!(
            "{{\"method\":\"x\",\"params\":[{many}0]}}\n{{\"result\":[{many}0],\"id\":7}}\n{{\"id\":8,\"result\":{{}}}}\n"
        );
        let (to_us, mut ours) = tokio::io::duplex(PIPE);
        let (_, to_us) = split(to_us);
        let noise = StrayOutput::default();
        outward(&mut Lines::new(output.as_bytes()), to_us, &noise).await;
        let mut heard = String::new();
        ours.read_to_string(&mut heard).await.unwrap();
        let error = r#"{"code":-32603,"message":"the answer of the server has more than 250000 values"}"#;
        assert_eq!(
            heard,
            format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{error}}}\n{{\"id\":8,\"result\":{{}}}}\n")
        );
        assert_eq!(noise.words(), "");
    }
}
