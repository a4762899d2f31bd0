//! The two channel ends between one agent and whoever owns its session.

use tokio::sync::{mpsc, oneshot};

use crate::{ApprovalMode, Command, Decide, Draft, EditedCall, Question};

/// How many events may wait for the owner. A full queue makes the agent wait: back-pressure ends at its stdout.
pub const EVENT_QUEUE: usize = 256;
/// How many commands may wait for the agent. A full queue refuses.
pub const COMMAND_QUEUE: usize = 64;
/// How many edited answers may wait for the agent's judgement. A full queue refuses.
pub const REVIEW_QUEUE: usize = 16;

/// The owner's end. When `events` ends the agent is gone, after a `sessionEnded`; dropping `commands` asks it to go.
#[derive(Debug)]
pub struct AgentLink {
    pub events: mpsc::Receiver<Draft>,
    pub commands: mpsc::Sender<Command>,
    /// Whether the agent takes [`Command::Steer`].
    pub steers: bool,
    /// Checks edited answers before they count. Closed: the agent accepts none.
    pub reviews: mpsc::Sender<EditReview>,
}

#[derive(Debug)]
pub struct AgentEnd {
    pub events: mpsc::Sender<Draft>,
    pub commands: mpsc::Receiver<Command>,
    /// An agent that drops it accepts no edited answers.
    pub reviews: mpsc::Receiver<EditReview>,
}

/// An edited answer that waits for judgement: whether it may run as what the edit makes of it.
#[derive(Debug)]
pub struct EditReview {
    pub question: Box<Question>,
    pub decide: Decide,
    /// The mode that the session is in, where it is one of ours.
    pub mode: Option<ApprovalMode>,
    /// What would run, or why it must not. Dropped: refused.
    pub reply: oneshot::Sender<Result<EditedCall, String>>,
}

pub fn link() -> (AgentLink, AgentEnd) {
    let (event_tx, events) = mpsc::channel(EVENT_QUEUE);
    let (commands, command_rx) = mpsc::channel(COMMAND_QUEUE);
    let (reviews, review_rx) = mpsc::channel(REVIEW_QUEUE);
    let link = AgentLink { events, commands, steers: false, reviews };
    (link, AgentEnd { events: event_tx, commands: command_rx, reviews: review_rx })
}
