//! The handle on a live session.

use multitap_event::{AgentError, ClientRef, Decide, Event, Prompt, PromptId, Query, Ruling, SessionId};
use multitap_hub::{Feed, Refusal, Session, SessionCall, SessionReply, Told, WhenBusy};

/// A live session with one agent. Dropping it ends the agent.
#[derive(Debug)]
pub struct AgentSession {
    session: Session,
    me: ClientRef,
    events: Events,
}

/// The events of a session, in order. Ends after `sessionEnded`.
///
/// Events are queued here; a program that stops reading stops the agent's output too, but prompts, answers and
/// `cancel` still go through.
#[derive(Debug)]
pub struct Events {
    feed: Feed,
}

impl Events {
    /// The next event; `None` once the session is over. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            // Without a journal no event is dropped before it was read, and all were made by this version.
            if let Told::Event(entry) = self.feed.next().await?
                && let Some(event) = entry.event()
            {
                return Some(event.clone());
            }
        }
    }
}

impl AgentSession {
    /// Wraps a session of a hub with one client's feed. Dropping it still ends the agent.
    pub fn new(session: Session, feed: Feed) -> Self {
        Self { session, me: feed.client().clone(), events: Events { feed } }
    }

    /// Our id of the session; every event carries it.
    pub fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// The agent's own id of the conversation, once known. [`AgentClient::resume`](crate::AgentClient::resume) takes
    /// it.
    pub fn native_id(&self) -> Option<String> {
        self.session.native_id()
    }

    /// The events, from the first one on.
    pub fn events(&mut self) -> &mut Events {
        &mut self.events
    }

    /// Executes a call. Each method below is one kind of call.
    pub async fn call(&self, call: SessionCall) -> Result<SessionReply, Refusal> {
        self.session.call(call, self.me.clone()).await
    }

    /// Sends a prompt. It begins a turn, or is queued while one runs.
    pub async fn prompt(&self, prompt: Prompt) -> Result<PromptId, Refusal> {
        self.prompt_when(prompt, WhenBusy::Queue).await
    }

    /// Like [`Self::prompt`], with a choice of what happens while a turn runs.
    pub async fn prompt_when(&self, prompt: Prompt, when_busy: WhenBusy) -> Result<PromptId, Refusal> {
        self.session.prompt(prompt, when_busy, self.me.clone()).await
    }

    /// Withdraws a queued prompt.
    pub async fn withdraw(&self, prompt: PromptId) -> Result<(), Refusal> {
        self.session.withdraw(prompt, self.me.clone()).await
    }

    /// Answers a question. The first valid answer wins; every other one is refused with the reason.
    pub async fn decide(&self, decide: Decide) -> Result<Ruling, Refusal> {
        self.decide_as(decide, self.me.clone()).await
    }

    /// Answers a question in the name of another client.
    pub async fn decide_as(&self, decide: Decide, by: ClientRef) -> Result<Ruling, Refusal> {
        self.session.decide(decide, by).await
    }

    /// Cancels the running turn; the session goes on.
    pub async fn cancel(&self) -> Result<(), Refusal> {
        self.session.cancel(self.me.clone()).await
    }

    /// Changes the approval mode: a unified word, or one of the agent's own.
    pub async fn set_mode(&self, mode: impl Into<String>) -> Result<(), Refusal> {
        self.session.set_mode(mode, self.me.clone()).await
    }

    pub async fn set_model(&self, model: impl Into<String>) -> Result<(), Refusal> {
        self.session.set_model(model, self.me.clone()).await
    }

    /// Limits the tokens that the agent may use for thinking; `None` lets the agent choose.
    pub async fn set_thinking(&self, tokens: Option<u32>) -> Result<(), Refusal> {
        self.session.set_thinking(tokens, self.me.clone()).await
    }

    /// Asks the agent about itself; the answer comes as a `system` event.
    pub async fn query(&self, what: Query) -> Result<(), Refusal> {
        self.session.query(what, self.me.clone()).await
    }

    /// Adds an error to the log, where every client sees it.
    pub async fn report(&self, error: AgentError) -> Result<(), Refusal> {
        self.session.report(error).await
    }

    /// Ends the session when the running turn and the waiting prompts are done. Read the events to their end.
    pub async fn finish(&self) -> Result<(), Refusal> {
        self.session.finish().await
    }

    /// Cancels the running turn, withdraws the queued prompts, and ends the session when the turn is over. Read the
    /// events to their end.
    pub async fn stop(&self) -> Result<(), Refusal> {
        self.session.stop().await
    }

    /// Ends the session now; a running turn is interrupted. Read the events to their end.
    pub fn end(&self) {
        self.session.end();
    }

    /// Ends the session now, and returns when the agent and all its processes have ended.
    pub async fn close(mut self) {
        self.end();
        while self.events.next().await.is_some() {}
    }
}

impl Drop for AgentSession {
    fn drop(&mut self) {
        self.end();
    }
}
