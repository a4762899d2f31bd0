//! What a program may want of its client. Secrets live here, and are shown to nobody.

use std::fmt;
use std::time::Duration;

use multitap_outbound::Screen;

use super::retry::Retry;
use crate::devtool;

/// How a client connects and calls. The defaults are right for an agent that needs no credentials.
#[derive(Clone)]
pub struct Options {
    pub(super) card_path: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) hosts: Vec<String>,
    pub(super) extensions: Vec<(String, Need)>,
    pub(super) connect_timeout: Duration,
    pub(super) timeouts: Timeouts,
    pub(super) retry: Retry,
    pub(super) largest: usize,
    pub(super) screen: Option<Screen>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// A call that an agent answers by itself.
    pub(super) call: Duration,
    /// A message, which is answered when the work is done.
    pub(super) send: Duration,
    /// How long a stream may be silent, be it only of comments.
    pub(super) silence: Option<Duration>,
}

/// Whether an extension has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// An agent that lacks it, or has it in a version that does not go with ours, is refused.
    Must,
    /// It is made use of where it is offered in a version that goes with ours.
    May,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            card_path: None,
            headers: Vec::new(),
            hosts: Vec::new(),
            extensions: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            timeouts: Timeouts {
                call: Duration::from_secs(60),
                // Work takes its time, and so do people who are asked.
                send: Duration::from_secs(30 * 60),
                silence: None,
            },
            retry: Retry::default(),
            largest: 32 * 1024 * 1024,
            screen: None,
        }
    }
}

impl Options {
    pub fn new() -> Self {
        Self::default()
    }

    /// Where the card is, from the address of the agent; else it is looked for where the protocol says.
    #[must_use]
    pub fn card_path(mut self, path: impl Into<String>) -> Self {
        self.card_path = Some(path.into());
        self
    }

    /// `Authorization: Bearer`, to the agent's own host and no other.
    #[must_use]
    pub fn bearer(self, token: impl fmt::Display) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    /// A header that goes with every call, to the agent's own host and no other. Its value counts as a secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Another host that may get the headers, if the card says that the agent is reached there.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Makes use of an extension. Its version is judged by the one that stands in the URI.
    #[must_use]
    pub fn extension(mut self, uri: impl Into<String>, need: Need) -> Self {
        self.extensions.push((uri.into(), need));
        self
    }

    /// Makes use of the `development-tool` extension.
    #[must_use]
    pub fn development_tool(self, need: Need) -> Self {
        self.extension(devtool::URI, need)
    }

    /// How long it may take until somebody answers at the address: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// How long one call may take, and how long a stream may take to begin: 60 s.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeouts.call = limit;
        self
    }

    /// How long a message may take that is answered when its work is done: 30 minutes.
    #[must_use]
    pub fn send_timeout(mut self, limit: Duration) -> Self {
        self.timeouts.send = limit;
        self
    }

    /// A stream that says nothing at all for so long counts as broken. Only for agents that are known to show that they
    /// are alive: others think for longer than one likes to wait.
    #[must_use]
    pub fn silence(mut self, limit: Duration) -> Self {
        self.timeouts.silence = Some(limit);
        self
    }

    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// The most bytes that an answer, or an event of a stream, may have: 32 MiB.
    #[must_use]
    pub fn largest(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// Which addresses may be reached: the agent's own, the one its card names, and redirects. Without a screen, all.
    #[must_use]
    pub fn screen(mut self, screen: Screen) -> Self {
        self.screen = Some(screen);
        self
    }
}

impl fmt::Debug for Options {
    /// The names of headers, not what they say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("card_path", &self.card_path)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("hosts", &self.hosts)
            .field("extensions", &self.extensions)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .field("largest", &self.largest)
            .finish()
    }
}
