//! The agent card: description, addresses and capabilities of an agent; one model for 0.3 and 1.0.
//!
//! Written for either version, or with the fields of both; read from any of these.

mod read;
mod security;
mod write;

use serde_json::Value;

pub use security::{SecurityRequirement, SecurityScheme};

use crate::dialect::Dialect;

/// The versions whose fields a card is written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    V0_3,
    /// As on HTTP+JSON of 0.3, where authentication has the shapes of 1.0.
    V0_3Rest,
    V1_0,
    /// Both: clients of 0.3 break on a card of 1.0 alone.
    Hybrid,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Card {
    pub name: String,
    pub description: String,
    /// The version of the agent, not of the protocol.
    pub version: String,
    pub provider: Option<Provider>,
    pub documentation_url: Option<String>,
    pub icon_url: Option<String>,
    /// The interfaces, the preferred one first.
    pub interfaces: Vec<Interface>,
    pub capabilities: Capabilities,
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// The client must meet one of these; if empty, no authentication is needed.
    pub security_requirements: Vec<SecurityRequirement>,
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub skills: Vec<Skill>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provider {
    pub organization: String,
    pub url: String,
}

/// An address of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub url: String,
    pub binding: Binding,
    /// The version of the protocol, such as `0.3` or `1.0`.
    pub version: String,
    /// Required in every request of 1.0 to this interface.
    pub tenant: Option<String>,
}

impl Interface {
    pub fn new(url: impl Into<String>, binding: Binding, dialect: Dialect) -> Self {
        Self { url: url.into(), binding, version: dialect.version().to_owned(), tenant: None }
    }

    /// `None` for a version that we do not speak.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::of_version(&self.version)
    }
}

/// The transport.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Binding {
    JsonRpc,
    HttpJson,
    Grpc,
    /// The URI of a binding outside the protocol.
    Other(String),
}

impl Binding {
    pub fn as_str(&self) -> &str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
            Self::Other(name) => name,
        }
    }
}

impl From<&str> for Binding {
    fn from(name: &str) -> Self {
        let known = [Self::JsonRpc, Self::HttpJson, Self::Grpc];
        known.into_iter().find(|binding| binding.as_str() == name).unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capabilities {
    pub streaming: bool,
    pub push_notifications: bool,
    /// Only in 0.3.
    pub state_transition_history: bool,
    /// Authenticated clients get a larger card.
    pub extended_card: bool,
    pub extensions: Vec<Extension>,
}

/// A capability beyond the protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extension {
    pub uri: String,
    pub description: Option<String>,
    /// A client that does not use it is refused.
    pub required: bool,
    pub params: Option<Value>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
    /// Input types of the skill; if empty, those of the card.
    pub input_modes: Vec<String>,
    pub output_modes: Vec<String>,
    pub security_requirements: Vec<SecurityRequirement>,
}
