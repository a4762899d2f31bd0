//! Options of a client. They contain secrets, which `Debug` does not show.

use std::fmt;
use std::time::Duration;

use multitap_outbound::Screen;

use super::retry::RetryPolicy;
use crate::devtool;

/// How a client connects and calls. The defaults are right for an agent that needs no credentials.
#[derive(Clone)]
pub struct ClientOptions {
    /// Path of the card, relative to the address of the agent. By default the well-known paths of the protocol are tried.
    pub card_path: Option<String>,
    /// Headers that go with every call, to the agent's own host and no other. Their values count as secrets.
    pub headers: Vec<(String, String)>,
    /// Other hosts that may get the headers, if the card names them.
    pub allowed_hosts: Vec<String>,
    /// Extensions to activate. Each URI says which versions are compatible.
    pub extensions: Vec<(String, ExtensionUse)>,
    /// How long a TCP connection may take: 10 s.
    pub connect_timeout: Duration,
    pub timeouts: Timeouts,
    pub retry: RetryPolicy,
    /// The most bytes that an answer, or an event of a stream, may have: 32 MiB.
    pub largest: usize,
    /// The most bytes that one connection of a stream may bring, comments included: unlimited. A stream that never ends
    /// costs time even if nothing comes of it.
    pub longest_stream: usize,
    /// Checks every address that is called: the agent's, the one its card names, redirects. Without a screen all are
    /// allowed.
    pub screen: Option<Screen>,
}

/// How long a client waits.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a call that an agent answers at once, and for a stream to begin: 60 s.
    pub call: Duration,
    /// For a message that is answered when its work is done: 30 minutes.
    pub send: Duration,
    /// A stream that sends nothing for so long, not even comments, counts as broken. Only for agents that send
    /// keep-alives: others may think for longer.
    pub silence: Option<Duration>,
}

/// Whether an agent must support an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtensionUse {
    /// An agent that lacks it, or has it in an incompatible version, is refused.
    Required,
    /// The extension is activated if the agent offers a compatible version.
    Optional,
}

impl Default for Timeouts {
    fn default() -> Self {
        // Work takes long, and so do people who answer questions.
        Self { call: Duration::from_secs(60), send: Duration::from_secs(30 * 60), silence: None }
    }
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            card_path: None,
            headers: Vec::new(),
            allowed_hosts: Vec::new(),
            extensions: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            timeouts: Timeouts::default(),
            retry: RetryPolicy::default(),
            largest: 32 * 1024 * 1024,
            longest_stream: usize::MAX,
            screen: None,
        }
    }
}

impl ClientOptions {
    /// Adds `Authorization: Bearer`.
    #[must_use]
    pub fn bearer(self, token: impl fmt::Display) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Activates the `development-tool` extension.
    #[must_use]
    pub fn development_tool(mut self, need: ExtensionUse) -> Self {
        self.extensions.push((devtool::URI.to_owned(), need));
        self
    }
}

impl fmt::Debug for ClientOptions {
    /// The names of headers, not their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions")
            .field("card_path", &self.card_path)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("allowed_hosts", &self.allowed_hosts)
            .field("extensions", &self.extensions)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}
