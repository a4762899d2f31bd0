//! Options of a client. They contain secrets, which `Debug` does not show.

use std::fmt;
use std::time::Duration;

use multitap_outbound::Screen;

use super::retry::RetryPolicy;
use crate::devtool;

/// How a client connects and calls. The defaults are right for an agent that needs no credentials.
#[derive(Clone)]
pub struct ClientOptions {
    pub(super) card_path: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) hosts: Vec<String>,
    pub(super) extensions: Vec<(String, ExtensionUse)>,
    pub(super) connect_timeout: Duration,
    pub(super) timeouts: Timeouts,
    pub(super) retry: RetryPolicy,
    pub(super) largest: usize,
    pub(super) longest: usize,
    pub(super) screen: Option<Screen>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Time limit of a call that an agent answers at once.
    pub(super) call: Duration,
    /// Time limit of a message, which is answered when the work is done.
    pub(super) send: Duration,
    /// How long a stream may send nothing, not even comments.
    pub(super) silence: Option<Duration>,
}

/// Whether an agent must support an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtensionUse {
    /// An agent that lacks it, or has it in an incompatible version, is refused.
    Required,
    /// The extension is activated if the agent offers a compatible version.
    Optional,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            card_path: None,
            headers: Vec::new(),
            hosts: Vec::new(),
            extensions: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            timeouts: Timeouts {
                call: Duration::from_secs(60),
                // Work takes long, and so may people who answer questions.
                send: Duration::from_secs(30 * 60),
                silence: None,
            },
            retry: RetryPolicy::default(),
            largest: 32 * 1024 * 1024,
            longest: usize::MAX,
            screen: None,
        }
    }
}

impl ClientOptions {
    pub fn new() -> Self {
        Self::default()
    }

    /// Path of the card, relative to the address of the agent. By default the well-known paths of the protocol are tried.
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

    /// Another host that may get the headers, if the card names it.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Activates an extension. The URI says which versions are compatible.
    #[must_use]
    pub fn extension(mut self, uri: impl Into<String>, need: ExtensionUse) -> Self {
        self.extensions.push((uri.into(), need));
        self
    }

    /// Activates the `development-tool` extension.
    #[must_use]
    pub fn development_tool(self, need: ExtensionUse) -> Self {
        self.extension(devtool::URI, need)
    }

    /// How long a TCP connection may take: 10 s.
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

    /// A stream that sends nothing for this long counts as broken. Use it only for agents that send keep-alives: others
    /// may think for longer.
    #[must_use]
    pub fn silence(mut self, limit: Duration) -> Self {
        self.timeouts.silence = Some(limit);
        self
    }

    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Maximum size of an answer, or of an event in a stream: 32 MiB.
    #[must_use]
    pub fn largest(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// Maximum number of bytes of one connection of a stream, comments included: unlimited. A stream that never ends
    /// costs time even if it contains nothing useful.
    #[must_use]
    pub fn longest_stream(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }

    /// Checks every address that is called: the agent's, the one its card names, redirects. Without a screen all are allowed.
    #[must_use]
    pub fn screen(mut self, screen: Screen) -> Self {
        self.screen = Some(screen);
        self
    }
}

impl fmt::Debug for ClientOptions {
    /// The names of headers, not their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("card_path", &self.card_path)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("hosts", &self.hosts)
            .field("extensions", &self.extensions)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeouts", &self.timeouts)
            .field("retry", &self.retry)
            .field("largest", &self.largest)
            .field("longest", &self.longest)
            .finish()
    }
}
