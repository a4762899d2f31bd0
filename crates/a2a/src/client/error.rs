//! What can go wrong on the way to an agent and back. No secret stands in it: not in an address, not in what the agent
//! says.

use std::fmt;
use std::time::Duration;

use crate::card::Interface;
use crate::dialect::Dialect;
use crate::error::Error;
use crate::extension::Incompatible;

/// Why a call to an agent brought nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The agent refused, in its own words.
    #[error(transparent)]
    Agent(Box<Error>),
    /// Something answered that is no A2A error: a proxy, a guard, a server that broke.
    #[error("{url} answered {status}{}", said(tail))]
    Http { url: String, status: u16, tail: String },
    #[error("{url} answered {status} and sends us to {to}, which is another place: use that address if it is right")]
    Redirected { url: String, status: u16, to: String },
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    /// The caller's screen does not allow the address.
    #[error("{url} is refused: {why}")]
    Refused { url: String, why: multitap_outbound::RefusedAddress },
    /// The connection broke while the answer came.
    #[error("the connection to {url} broke: {why}")]
    Cut { url: String, why: String },
    #[error("{url} gave no answer within {limit:?}")]
    Timeout { url: String, limit: Duration },
    /// The answer is not what the protocol says.
    #[error("the agent's answer cannot be understood: {0}")]
    Malformed(String),
    #[error("the agent's answer has more than {most} bytes")]
    TooLarge { most: usize },
    /// A stream broke, and could not be taken up again; what came before it broke was told.
    #[error("the stream broke and could not be taken up again: {0}")]
    Broken(#[source] Box<ClientError>),
    #[error("'{url}' is no address of an agent: {why}")]
    Address { url: String, why: String },
    #[error("no agent card was found: {}", tried.join("; "))]
    NoCard { tried: Vec<String> },
    #[error(
        "the agent lists nothing that this client speaks (JSONRPC or HTTP+JSON, 0.3 or 1.0); it lists {}",
        Listed(listed)
    )]
    NothingInCommon { listed: Vec<Interface> },
    #[error(transparent)]
    Extension(#[from] Incompatible),
    #[error("the agent does not offer the extension {wanted}; it offers {}", none_or(offered))]
    NoExtension { wanted: String, offered: Vec<String> },
    #[error("the header '{name}' cannot be sent")]
    Header { name: String },
    #[error(
        "the card of {given} says that the agent is at {host}, which the given headers are not for: allow that host if it is right"
    )]
    OtherHost { given: String, host: String },
    #[error("A2A {} has no way to ask for this over {binding}", dialect.version())]
    NotSpoken { dialect: Dialect, binding: String },
    #[error("'{0}' cannot stand in an address")]
    Id(String),
    #[error("a message that may be sent again needs an id of its own")]
    NoMessageId,
    #[error("no secure connections can be made: {0}")]
    Tls(String),
}

impl ClientError {
    /// The agent's own refusal, also behind a stream that broke.
    pub fn agent(&self) -> Option<&Error> {
        match self {
            Self::Agent(error) => Some(error),
            Self::Broken(error) => error.agent(),
            _ => None,
        }
    }

    /// Whether it may be different the next time.
    pub(super) fn may_pass(&self) -> bool {
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

/// Whether a status says: not now.
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
