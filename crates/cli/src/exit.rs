//! Exit codes and errors of commands. For a `-p` session, `cmd/run/tally.rs` derives the code from its events.

use std::fmt;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed = 0,
    Failed = 1,
    /// Usage or settings.
    Usage = 2,
    /// The agent was not found or could not start.
    NotStarted = 3,
    /// A question was left unanswered and denied.
    Denied = 4,
    Timeout = 5,
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The error of a command: a message and an exit code.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    message: String,
}

impl Problem {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    /// The request is invalid.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Failed, format!("{error:#}"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
