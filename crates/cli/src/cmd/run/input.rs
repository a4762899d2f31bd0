//! Reads stdin: text for the prompt, or lines for the session.

use std::io::IsTerminal as _;
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use multitap_process::{Line, Lines};
use tokio::io::{AsyncReadExt as _, Stdin};
use tokio::time::timeout;

use crate::args::is_stdin;
use crate::exit::Problem;
use crate::out;

/// How long stdin may be silent before a note says that it is read.
const QUIETLY: Duration = Duration::from_secs(3);
/// The longest text taken from stdin.
const LONGEST: u64 = 16 * 1024 * 1024;

const EMPTY: &str = "the prompt is empty: multitap -p PROMPT";

/// The prompt of a one-shot run: the words, with piped text before them.
pub(super) async fn prompt(words: Option<String>) -> Result<String, Problem> {
    let at_terminal = std::io::stdin().is_terminal();
    let prompt = match words {
        Some(words) if !is_stdin(&words) => {
            // Text typed into a terminal is not the prompt.
            let text = if at_terminal { None } else { piped().await? };
            match text {
                Some(text) => format!("{}\n\n{words}", text.trim_end()),
                None => words,
            }
        }
        None if at_terminal => return Err(Problem::usage(EMPTY)),
        Some(_) | None => piped().await?.unwrap_or_default(),
    };
    if prompt.trim().is_empty() {
        return Err(Problem::usage(EMPTY));
    }
    Ok(prompt)
}

/// The piped text, if any.
pub(super) async fn if_piped() -> Result<Option<String>, Problem> {
    if std::io::stdin().is_terminal() { Ok(None) } else { piped().await }
}

/// The first prompt of a session whose stdin carries lines.
pub(super) fn first_prompt(words: Option<String>) -> Result<Option<String>, Problem> {
    match words {
        Some(words) if is_stdin(&words) => Err(Problem::usage(
            "-p - cannot be used with --input-format stream-json, which reads JSON lines from stdin",
        )),
        Some(words) if words.trim().is_empty() => Err(Problem::usage(EMPTY)),
        other => Ok(other),
    }
}

/// All of stdin, as text and never as a shell command; `None` if it is blank. If the pipe stays open, a note says so
/// once.
async fn piped() -> Result<Option<String>, Problem> {
    let mut bytes = Vec::new();
    let mut stdin = tokio::io::stdin().take(LONGEST + 1);
    let ended = {
        let mut read = pin!(stdin.read_to_end(&mut bytes));
        match timeout(QUIETLY, &mut read).await {
            Ok(ended) => ended,
            Err(_) => {
                // A user who types at a terminal needs no note.
                if !std::io::stdin().is_terminal() {
                    out::say("multitap: waiting for the end of stdin (close it or use </dev/null)…");
                }
                read.await
            }
        }
    };
    ended.context("read stdin")?;
    if bytes.len() as u64 > LONGEST {
        return Err(Problem::usage(format!("stdin has more than {LONGEST} bytes: too long for a prompt")));
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if text.starts_with('!') {
        // Piped text is no shell command: a file may begin with a picture `![…]`.
        text.insert(0, ' ');
    }
    Ok((!text.trim().is_empty()).then_some(text))
}

/// The input lines for the session.
#[derive(Debug)]
pub(super) struct Input {
    lines: Option<Lines<Stdin>>,
    was_there: bool,
}

impl Input {
    pub(super) fn none() -> Self {
        Self { lines: None, was_there: false }
    }

    pub(super) fn stdin() -> Self {
        Self { lines: Some(Lines::new(tokio::io::stdin())), was_there: true }
    }

    /// Whether more lines may come.
    pub(super) fn is_open(&self) -> bool {
        self.lines.is_some()
    }

    /// Whether there were input lines at all.
    pub(super) fn was_there(&self) -> bool {
        self.was_there
    }

    /// The next line; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Line> {
        let lines = self.lines.as_mut()?;
        lines.next().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read stdin");
            None
        })
    }

    pub(super) fn close(&mut self) {
        self.lines = None;
    }
}
