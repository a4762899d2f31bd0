//! A client for other agents: finds the card, picks a dialect and a transport, and asks.
//!
//! ```no_run
//! use multitap_a2a::client::{Client, Need, Options};
//! use multitap_a2a::{Message, Part, SendMessage, Update};
//!
//! # async fn example() -> Result<(), multitap_a2a::client::ClientError> {
//! let options = Options::new().bearer("a token").development_tool(Need::May);
//! let client = Client::connect("https://agent.example.org", options).await?;
//! let message = Message { parts: vec![Part::text("hello")], ..Message::default() };
//! let mut updates = client.stream(SendMessage { message, ..SendMessage::default() }).await?;
//! while let Some(told) = updates.next().await {
//!     if let Update::Status(update) = told?.update {
//!         println!("{:?}", update.status.state);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Calls that change nothing are made again when they fail on the way; a message is not, unless the caller says that it
//! may be ([`Client::repeating`]). A stream that breaks is taken up again by itself, from the last event on where the
//! agent numbers them. Must not come in: sessions, settings, what agents are asked for.

mod ask;
mod command;
mod discover;
mod error;
mod follow;
mod line;
mod options;
mod place;
mod retry;
mod sse;
mod updates;
mod way;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use command::Executed;
pub use error::ClientError;
pub use options::{Need, Options};
pub use retry::Retry;
pub use updates::{Told, Updates};

use crate::card::{Card, Interface};
use crate::dialect::Dialect;
use line::{Line, Repeat};
use options::Timeouts;
use way::Way;

/// An agent, ready to be asked. A clone is the same connection.
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
    way: Way,
    line: Line,
}

impl Client {
    /// Finds the agent at an address: that of the agent, or that of its card. Nothing is asked of the agent yet.
    pub async fn connect(url: &str, options: Options) -> Result<Self, ClientError> {
        let line = Line::new(&options)?;
        let discover::Found { card, interface, extensions, way } = discover::discover(&line, url, &options).await?;
        let agent = Arc::new(Agent { card, interface, extensions, way, line });
        Ok(Self { agent, timeouts: options.timeouts, sends: Repeat::Never })
    }

    pub fn card(&self) -> &Card {
        &self.agent.card
    }

    /// The way that was chosen of those that the card lists.
    pub fn interface(&self) -> &Interface {
        &self.agent.interface
    }

    pub fn dialect(&self) -> Dialect {
        self.agent.way.dialect
    }

    /// The extensions that both sides speak, as the agent spells them.
    pub fn extensions(&self) -> &[String] {
        &self.agent.extensions
    }

    /// The same agent, with another limit for each call, messages among them.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        let timeouts = Timeouts { call: limit, send: limit, ..self.timeouts };
        Self { timeouts, ..self.clone() }
    }

    /// The same agent, which is known to take a message that comes twice under one id for one message: so it may be sent
    /// again when it is not known what became of it. Such a message must have an id of the caller's.
    #[must_use]
    pub fn repeating(&self) -> Self {
        Self { sends: Repeat::Safe, ..self.clone() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("agent", &self.agent.card.name)
            .field("url", &place::shown(&self.agent.way.url))
            .field("binding", &self.agent.interface.binding)
            .field("dialect", &self.agent.way.dialect)
            .field("extensions", &self.agent.extensions)
            .finish_non_exhaustive()
    }
}
