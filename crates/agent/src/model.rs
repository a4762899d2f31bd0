//! Models: a provider's, or the rehearsal, which needs no network.
//!
//! One request in, pieces of a reply out. Knows nothing of turns, running tools or permissions.

pub(crate) mod catalog;
pub(crate) mod choice;
pub(crate) mod live;
pub(crate) mod rehearsal;
pub(crate) mod vendor;

use std::sync::Arc;
use std::time::Duration;

use multitap_event::TokenUsage;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::choice::Choice;
use self::live::Live;
use crate::conversation::{Call, Message};
use crate::tool::Spec;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) system: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<Spec>,
    /// Tokens it may spend on thinking; absent leaves it to the model.
    pub(crate) thinking: Option<u32>,
    /// A JSON Schema that the final answer must match.
    pub(crate) output_schema: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delta {
    Text(String),
    Thought(String),
    /// The signature by which the provider recognises the thought before it.
    Signature(String),
    Call(Call),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) usage: Option<TokenUsage>,
    /// Why the reply is incomplete, such as a length limit; for people.
    pub(crate) cut_short: Option<String>,
}

/// A model did not answer, or not to the end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ModelError {
    pub(crate) kind: ModelErrorKind,
    /// For people: what went wrong and what helps.
    pub(crate) message: String,
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelErrorKind {
    /// No key, or a key that is not accepted.
    Key,
    UnknownModel,
    RateLimited,
    /// The provider has a problem.
    Overloaded,
    /// The connection could not be made, or broke.
    Connection,
    /// The conversation no longer fits the model.
    TooLong,
    /// Anything else; asking again would not help.
    Refused,
}

/// Longest wait for a retry. If a provider asks for a longer one, the request has failed.
const MOST_WAIT: Duration = Duration::from_secs(5 * 60);

impl ModelError {
    pub(crate) fn new(kind: ModelErrorKind, message: String) -> Self {
        Self { kind, message, status: None, retry_after: None }
    }

    /// Whether a retry may help, and soon enough.
    pub(crate) fn passes(&self) -> bool {
        let passes =
            matches!(self.kind, ModelErrorKind::RateLimited | ModelErrorKind::Overloaded | ModelErrorKind::Connection);
        passes && self.retry_after.is_none_or(|wait| wait <= MOST_WAIT)
    }
}

/// Where the pieces of a reply are sent.
pub(crate) type Deltas = mpsc::Sender<Delta>;

#[derive(Debug, Clone)]
pub(crate) enum Model {
    Rehearsal,
    Live(Arc<Live>),
}

impl From<Choice> for Model {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Rehearsal => Self::Rehearsal,
            Choice::Live(target) => Self::Live(Arc::new(Live::new(target))),
        }
    }
}

impl Model {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Rehearsal => rehearsal::NAME,
            Self::Live(live) => live.name(),
        }
    }

    /// Its context window in tokens, if known.
    pub(crate) fn window(&self) -> Option<u64> {
        match self {
            Self::Rehearsal => None,
            Self::Live(live) => live.window(),
        }
    }

    /// Which provider answers, and which key it uses.
    pub(crate) fn account(&self) -> Value {
        match self {
            Self::Rehearsal => json!({ "provider": rehearsal::NAME }),
            Self::Live(live) => live.account(),
        }
    }

    /// Asks it. Dropping the future stops it.
    pub(crate) async fn ask(&self, request: Request, deltas: Deltas) -> Result<Reply, ModelError> {
        match self {
            Self::Rehearsal => rehearsal::ask(request, deltas).await,
            Self::Live(live) => live.ask(request, deltas).await,
        }
    }
}
