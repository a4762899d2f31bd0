//! A client for other agents: finds the card, picks a dialect and a transport, and sends requests.
//!
//! ```no_run
//! use multitap_a2a::client::{Client, ExtensionUse, ClientOptions};
//! use multitap_a2a::{Message, Part, SendMessage, Update};
//!
//! # async fn example() -> Result<(), multitap_a2a::client::ClientError> {
//! let options = ClientOptions::default().bearer("a token").development_tool(ExtensionUse::Optional);
//! let client = Client::connect("https://agent.example.org", options).await?;
//! let message = Message { parts: vec![Part::text("hello")], ..Message::default() };
//! let mut updates = client.stream(SendMessage { message, ..SendMessage::default() }).await?;
//! while let Some(received) = updates.next().await {
//!     if let Update::Status(update) = received?.update {
//!         println!("{:?}", update.status.state);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Calls that change nothing are retried when they fail; a message is not, unless the caller allows it
//! ([`Client::repeating`]). A stream that breaks is resumed, after the last event if the agent numbers its events. Must not
//! come in: sessions, settings, what agents are asked for.

mod address;
mod ask;
mod binding;
mod command;
mod discover;
mod error;
mod follow;
mod http;
mod options;
mod retry;
mod sse;
mod updates;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use command::Executed;
pub use error::ClientError;
pub use options::{ClientOptions, ExtensionUse, Timeouts};
pub use retry::RetryPolicy;
pub use updates::{StreamUpdate, Updates};

use crate::card::{Card, Interface};
use crate::dialect::Dialect;
use binding::AgentBinding;
use http::{HttpClient, Repeat};

/// A client of one agent. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    agent: Arc<Agent>,
    timeouts: Timeouts,
    /// Whether messages may be sent again.
    sends: Repeat,
}

struct Agent {
    card: Card,
    interface: Interface,
    extensions: Vec<String>,
    binding: AgentBinding,
    http: HttpClient,
}

impl Client {
    /// Finds the agent at an address: its own, or that of its card. Sends no request to the agent yet.
    pub async fn connect(url: &str, options: ClientOptions) -> Result<Self, ClientError> {
        let http = HttpClient::new(&options)?;
        let discover::DiscoveredAgent { card, interface, extensions, binding } =
            discover::discover(&http, url, &options).await?;
        let agent = Arc::new(Agent { card, interface, extensions, binding, http });
        Ok(Self { agent, timeouts: options.timeouts, sends: Repeat::Never })
    }

    pub fn card(&self) -> &Card {
        &self.agent.card
    }

    /// The interface that was chosen from the card.
    pub fn interface(&self) -> &Interface {
        &self.agent.interface
    }

    pub fn dialect(&self) -> Dialect {
        self.agent.binding.dialect
    }

    /// The active extensions, as the agent spells them.
    pub fn extensions(&self) -> &[String] {
        &self.agent.extensions
    }

    /// A copy of the client with another time limit for each call, messages included.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        let timeouts = Timeouts { call: limit, send: limit, ..self.timeouts };
        Self { timeouts, ..self.clone() }
    }

    /// Lets the client send a message again when its outcome is unknown. For agents that treat two messages with the
    /// same id as one; the caller must give each message an id.
    #[must_use]
    pub fn repeating(&self) -> Self {
        Self { sends: Repeat::Safe, ..self.clone() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("agent", &self.agent.card.name)
            .field("url", &address::shown(&self.agent.binding.url))
            .field("binding", &self.agent.interface.binding)
            .field("dialect", &self.agent.binding.dialect)
            .field("extensions", &self.agent.extensions)
            .finish_non_exhaustive()
    }
}
