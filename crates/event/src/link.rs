//! The two channel ends between one agent and whoever owns its session.

use tokio::sync::mpsc;

use crate::{Command, Draft};

/// How many events may wait for the owner. A full queue makes the agent wait: back-pressure ends at its stdout.
pub const EVENT_QUEUE: usize = 256;
/// How many commands may wait for the agent. A full queue refuses.
pub const COMMAND_QUEUE: usize = 64;

/// The owner's end. When `events` ends the agent is gone, after a `sessionEnded`; dropping `commands` asks it to go.
#[derive(Debug)]
pub struct AgentLink {
    pub events: mpsc::Receiver<Draft>,
    pub commands: mpsc::Sender<Command>,
    /// Whether the agent takes [`Command::Steer`].
    pub steers: bool,
}

/// The agent's end.
#[derive(Debug)]
pub struct AgentEnd {
    pub events: mpsc::Sender<Draft>,
    pub commands: mpsc::Receiver<Command>,
}

/// Both ends of a new link.
pub fn link() -> (AgentLink, AgentEnd) {
    let (event_tx, events) = mpsc::channel(EVENT_QUEUE);
    let (commands, command_rx) = mpsc::channel(COMMAND_QUEUE);
    (AgentLink { events, commands, steers: false }, AgentEnd { events: event_tx, commands: command_rx })
}
