//! The two ends of the channels between an agent and the owner of its session.

use tokio::sync::{mpsc, oneshot};

use crate::{ApprovalMode, Command, Decide, Draft, EditedCall, Question};

/// Maximum number of queued events. A full queue makes the agent wait: back-pressure reaches its stdout.
pub const EVENT_QUEUE: usize = 256;
/// Maximum number of queued commands. A full queue refuses.
pub const COMMAND_QUEUE: usize = 64;
/// Maximum number of queued edited answers. A full queue refuses.
pub const REVIEW_QUEUE: usize = 16;

/// The owner's end. When `events` ends, the agent is gone, after a `sessionEnded`. Dropping `commands` asks the agent
/// to end.
#[derive(Debug)]
pub struct AgentLink {
    pub events: mpsc::Receiver<Draft>,
    pub commands: mpsc::Sender<Command>,
    /// Whether the agent accepts [`Command::Steer`].
    pub steers: bool,
    /// Checks edited answers before they count. If closed, the agent accepts none.
    pub reviews: mpsc::Sender<EditReview>,
}

#[derive(Debug)]
pub struct AgentEnd {
    pub events: mpsc::Sender<Draft>,
    pub commands: mpsc::Receiver<Command>,
    /// An agent that drops it accepts no edited answers.
    pub reviews: mpsc::Receiver<EditReview>,
}

/// A request to judge an edited answer: whether the resulting call may run.
#[derive(Debug)]
pub struct EditReview {
    pub question: Box<Question>,
    pub decide: Decide,
    /// The mode of the session, if it is a unified one.
    pub mode: Option<ApprovalMode>,
    /// The call that would run, or why it must not. If the sender is dropped, the edit is refused.
    pub reply: oneshot::Sender<Result<EditedCall, String>>,
}

pub fn link() -> (AgentLink, AgentEnd) {
    let (event_tx, events) = mpsc::channel(EVENT_QUEUE);
    let (commands, command_rx) = mpsc::channel(COMMAND_QUEUE);
    let (reviews, review_rx) = mpsc::channel(REVIEW_QUEUE);
    let link = AgentLink { events, commands, steers: false, reviews };
    (link, AgentEnd { events: event_tx, commands: command_rx, reviews: review_rx })
}
