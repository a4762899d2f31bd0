//! How a child is stopped, and how it ended.

use std::fmt;
use std::time::Duration;

use tokio::time::timeout;

use crate::Child;
use crate::handle::{CommandScope, Ending, Order};

/// How long a killed child may take to be gone. Longer only if the kernel holds on to it.
const AFTER_KILL: Duration = Duration::from_secs(10);

/// Time limits of the steps of stopping: close stdin, interrupt, terminate, kill.
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

/// A moment on the clock that the system uses for start times of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64);

impl Moment {
    #[cfg(target_os = "linux")]
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let ticks = rustix::param::clock_ticks_per_second();
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        let part = u64::try_from(now.tv_nsec).unwrap_or_default() * ticks / 1_000_000_000;
        Self(seconds * ticks + part)
    }

    /// Other systems do not report start times with that precision.
    #[cfg(not(target_os = "linux"))]
    pub fn now() -> Self {
        Self(u64::MAX)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    /// The signal that ended it, if any.
    pub signal: Option<i32>,
    /// The end of its stderr, without colours. Control characters stay: make them visible before you show it.
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

impl Child {
    /// Waits for its end, and for the end of its leftovers. Cancel safe.
    ///
    /// Its stdout is not read here: a child with unread output does not end before somebody reads it.
    pub async fn wait(&mut self) -> Exit {
        let ending = self.handle.wait().await;
        self.stdin.close();
        self.stderr.finish().await;
        self.exit(ending)
    }

    /// Stops it: close stdin, interrupt, terminate, kill. Afterwards nothing of it is left.
    pub async fn stop(&mut self, patience: Patience) -> Exit {
        self.stdin.close();
        let steps = [
            (None, patience.after_eof),
            (Some(Order::Interrupt), patience.after_interrupt),
            (Some(Order::Terminate), patience.after_terminate),
            (Some(Order::Kill), AFTER_KILL),
        ];
        for (order, wait) in steps {
            if let Some(order) = order {
                self.handle.order(&order);
            }
            if let Ok(exit) = timeout(wait, self.wait()).await {
                return exit;
            }
        }
        tracing::warn!(pid = self.pid(), "a killed child is still there");
        self.exit(Ending::Unknown)
    }

    /// Ends what the program has started for commands since then, and leaves the program and its other children
    /// alone. Returns when those processes are gone.
    ///
    /// A process belongs to a command if its environment has `variable`, if it descends from such a process, or if it
    /// is an orphan. Without a supervisor, and on systems other than Linux, nothing happens.
    pub async fn end_commands(&mut self, since: Moment, variable: &str) {
        let commands = CommandScope { since: since.0, variable: variable.to_owned() };
        self.handle.end_commands(commands).await;
    }

    fn exit(&self, ending: Ending) -> Exit {
        let stderr_tail = self.stderr_tail();
        match ending {
            Ending::Code(code) => Exit { code: Some(code), signal: None, stderr_tail },
            Ending::Signal(signal) => Exit { code: None, signal: Some(signal), stderr_tail },
            Ending::Unknown => Exit { code: None, signal: None, stderr_tail },
        }
    }
}
