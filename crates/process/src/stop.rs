//! How a child is asked to end, and how it ended.

use std::fmt;
use std::time::Duration;

/// How long each step of stopping may take: close stdin, interrupt, terminate, kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub after_eof: Duration,
    pub after_interrupt: Duration,
    pub after_terminate: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            after_eof: Duration::from_millis(1500),
            after_interrupt: Duration::from_millis(500),
            after_terminate: Duration::from_millis(1000),
        }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    /// The signal that ended it, where there was one.
    pub signal: Option<i32>,
    /// The last it wrote to stderr.
    pub stderr_tail: String,
}

impl Exit {
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("an unknown end"),
        }
    }
}
