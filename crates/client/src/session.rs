//! The handle on a live session: what a program holds.

pub(crate) mod task;

use std::fmt;

use multitap_event::{
    AgentError, ClientRef, Command, Decide, Event, Prompt, PromptId, Query, Refused, Ruling, SessionId,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::task::Ask;

/// A live session with one agent. Dropping it ends the agent.
#[derive(Debug)]
pub struct AgentSession {
    id: SessionId,
    me: ClientRef,
    native: watch::Receiver<Option<String>>,
    inbox: mpsc::Sender<Ask>,
    events: Events,
    end: CancellationToken,
}

/// The events of a session, in order. Ends after `sessionEnded`.
///
/// Events wait here to be read; a program that stops reading stops the agent's output too, but prompts, answers and
/// `cancel` still go through.
#[derive(Debug)]
pub struct Events {
    rx: mpsc::Receiver<Event>,
}

impl Events {
    /// The next event; nothing once the session is over. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.rx.recv().await
    }
}

/// What to do with a prompt while a turn runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhenBusy {
    /// It waits until the running turn and the prompts before it are done.
    #[default]
    Queue,
    /// It joins the running turn, where the agent can take it in.
    Steer,
    /// The running turn is cancelled and this prompt comes next.
    Interrupt,
}

impl fmt::Display for WhenBusy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        })
    }
}

/// The agent was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("too much is waiting for the agent or for the reader of its events")]
    Busy,
}

/// The prompt was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("the session takes no more prompts: it ends when the running turn does")]
    Finishing,
    #[error("too many prompts are waiting")]
    QueueFull,
    #[error("the agent takes no prompt into a running turn: let it wait, or interrupt")]
    CannotSteer,
    #[error("too much is waiting for the agent or for the reader of its events")]
    Busy,
}

/// Nothing was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    #[error("no turn is running")]
    NoTurn,
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// The prompt was not withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WithdrawError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("no prompt {0} is waiting")]
    NotWaiting(PromptId),
}

/// The answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("too much is waiting for the agent or for the reader of its events")]
    Busy,
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl AgentSession {
    pub(crate) fn new(
        id: SessionId,
        me: ClientRef,
        native: watch::Receiver<Option<String>>,
        inbox: mpsc::Sender<Ask>,
        events: mpsc::Receiver<Event>,
        end: CancellationToken,
    ) -> Self {
        Self { id, me, native, inbox, events: Events { rx: events }, end }
    }

    /// Our id of the session; every event carries it.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The agent's own id of the conversation, once it told: what [`AgentClient::resume`](crate::AgentClient::resume)
    /// wants.
    pub fn native_id(&self) -> Option<String> {
        self.native.borrow().clone()
    }

    /// What happens, from the first event on.
    pub fn events(&mut self) -> &mut Events {
        &mut self.events
    }

    /// Begins a turn, or waits in line while one runs.
    pub async fn prompt(&self, prompt: Prompt) -> Result<PromptId, PromptError> {
        self.prompt_when(prompt, WhenBusy::Queue).await
    }

    /// The same, with a choice of what happens while a turn runs.
    pub async fn prompt_when(&self, prompt: Prompt, when_busy: WhenBusy) -> Result<PromptId, PromptError> {
        let from = self.me.clone();
        self.ask(|reply| Ask::Prompt { prompt, when_busy, from, reply }).await.ok_or(PromptError::SessionEnded)?
    }

    /// Takes back a prompt that still waits.
    pub async fn withdraw(&self, prompt: PromptId) -> Result<(), WithdrawError> {
        let by = self.me.clone();
        self.ask(|reply| Ask::Withdraw { prompt, by, reply }).await.ok_or(WithdrawError::SessionEnded)?
    }

    /// Answers a question. The first valid answer wins; every other is refused and hears why.
    pub async fn decide(&self, decide: Decide) -> Result<Ruling, DecideError> {
        self.decide_as(decide, self.me.clone()).await
    }

    /// The same, in the name of somebody else.
    pub async fn decide_as(&self, decide: Decide, by: ClientRef) -> Result<Ruling, DecideError> {
        self.ask(|reply| Ask::Decide { decide, by, reply }).await.ok_or(DecideError::SessionEnded)?
    }

    /// Cancels the running turn; the session goes on.
    pub async fn cancel(&self) -> Result<(), CancelError> {
        self.ask(|reply| Ask::Cancel { reply }).await.ok_or(CancelError::Command(CommandError::SessionEnded))?
    }

    /// Changes the approval mode: a unified word, or one of the agent's own.
    pub async fn set_mode(&self, mode: impl Into<String>) -> Result<(), CommandError> {
        self.pass(Command::SetMode { mode: mode.into() }).await
    }

    /// Changes the model.
    pub async fn set_model(&self, model: impl Into<String>) -> Result<(), CommandError> {
        self.pass(Command::SetModel { model: model.into() }).await
    }

    /// Limits how many tokens the agent may think; nothing gives it back its own choice.
    pub async fn set_thinking(&self, tokens: Option<u32>) -> Result<(), CommandError> {
        self.pass(Command::SetThinking { tokens }).await
    }

    /// Asks the agent about itself; the answer comes as a `system` event.
    pub async fn query(&self, what: Query) -> Result<(), CommandError> {
        self.pass(Command::Query { what }).await
    }

    /// Puts an error into the log, where everybody who reads it sees it in its place.
    pub async fn report(&self, error: AgentError) -> Result<(), CommandError> {
        self.ask(|reply| Ask::Report { error, reply }).await.ok_or(CommandError::SessionEnded)?
    }

    /// Ends the session when the running turn and the waiting prompts are done. Read the events to their end.
    pub async fn finish(&self) -> Result<(), CommandError> {
        self.ask(|reply| Ask::Finish { reply }).await.ok_or(CommandError::SessionEnded)
    }

    /// Cancels the running turn, takes back the waiting prompts, and ends the session when the turn is over. Read the
    /// events to their end.
    pub async fn stop(&self) -> Result<(), CommandError> {
        self.ask(|reply| Ask::Stop { reply }).await.ok_or(CommandError::SessionEnded)
    }

    /// Ends the session now; a running turn is cut off. Read the events to their end.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// Ends the session now, and comes back when nothing of the agent is left.
    pub async fn close(mut self) {
        self.end();
        while self.events.next().await.is_some() {}
    }

    async fn pass(&self, command: Command) -> Result<(), CommandError> {
        self.ask(|reply| Ask::Pass { command, reply }).await.ok_or(CommandError::SessionEnded)?
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(ask(reply)).await.ok()?;
        answer.await.ok()
    }
}

impl Drop for AgentSession {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

#[cfg(test)]
mod tests;
