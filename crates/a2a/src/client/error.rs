//! Errors of the client. They contain no secrets, neither in addresses nor in the agent's words.

use std::fmt;
use std::time::Duration;

use crate::card::Interface;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::extension::Incompatible;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The agent refused, in its own words.
    #[error(transparent)]
    Agent(Box<Error>),
    /// The response is not an A2A error: it comes from a proxy, a guard or a broken server.
    #[error("{url} answered {status}{}", said(tail))]
    Http { url: String, status: u16, tail: String },
    #[error("{url} answered {status} and redirects to another origin, {to}: if you trust that address, use it")]
    Redirected { url: String, status: u16, to: String },
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    /// The caller's address screen refuses it.
    #[error("{url} is not allowed: {why}")]
    Refused { url: String, why: multitap_outbound::RefusedAddress },
    /// The connection broke while the answer came.
    #[error("the connection to {url} broke: {why}")]
    Cut { url: String, why: String },
    #[error("{url} did not answer within {limit:?}")]
    Timeout { url: String, limit: Duration },
    /// The response violates the protocol.
    #[error("invalid response from the agent: {0}")]
    Malformed(String),
    #[error("the agent's response is larger than {most} bytes")]
    TooLarge { most: usize },
    /// A stream broke and could not be resumed. The updates before it were delivered.
    #[error("the stream broke and could not be resumed: {0}")]
    Broken(#[source] Box<ClientError>),
    #[error("invalid agent address '{url}': {why}")]
    Address { url: String, why: String },
    #[error("no agent card was found: {}", tried.join("; "))]
    NoCard { tried: Vec<String> },
    #[error(
        "the agent has no interface that this client supports (JSONRPC or HTTP+JSON, 0.3 or 1.0); it lists {}",
        Listed(listed)
    )]
    NothingInCommon { listed: Vec<Interface> },
    #[error(transparent)]
    Extension(#[from] Incompatible),
    #[error("the agent does not offer the extension {wanted}; it offers {}", none_or(offered))]
    NoExtension { wanted: String, offered: Vec<String> },
    #[error("invalid header '{name}'")]
    Header { name: String },
    #[error(
        "the card of {given} names an agent at {host}, but your headers are for another host: allow {host} to send them there too"
    )]
    OtherHost { given: String, host: String },
    #[error("A2A {} over {binding} has no such method", dialect.version())]
    NotSpoken { dialect: Dialect, binding: String },
    #[error("'{0}' cannot be part of an address")]
    Id(String),
    #[error("a message needs an id before it can be sent again")]
    NoMessageId,
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

impl ClientError {
    /// The agent's own refusal, also as the source of a broken stream.
    pub fn agent(&self) -> Option<&Error> {
        match self {
            Self::Agent(error) => Some(error),
            Self::Broken(error) => error.agent(),
            _ => None,
        }
    }

    /// Whether a retry may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Cut { .. } => true,
            Self::Http { status, .. } => is_busy(*status),
            _ => false,
        }
    }

    pub(super) fn malformed(error: impl fmt::Display) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<Error> for ClientError {
    fn from(error: Error) -> Self {
        Self::Agent(Box::new(error))
    }
}

/// Whether a status asks to retry later.
pub(super) fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

fn said(tail: &str) -> String {
    if tail.is_empty() { String::new() } else { format!(": {tail}") }
}

fn none_or(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

struct Listed<'a>(&'a [Interface]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.iter().map(|interface| format!("{} {}", interface.binding.as_str(), interface.version));
        f.write_str(&none_or(&words.collect::<Vec<_>>()))
    }
}
