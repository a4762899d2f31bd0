//! The handle of doors and screens on a session. Cheap to clone.

mod ask;
pub(crate) mod log;
mod offer;
pub(crate) mod outbox;
mod pending;
mod right;
pub(crate) mod task;

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    AgentError, ApprovalMode, ClientId, ClientRef, Decide, Door, Prompt, PromptId, Query, Rule, Ruling, SessionConfig,
    SessionId,
};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::ask::Ask;
pub use self::right::ModeLimit;
use crate::entry::Entry;
use crate::feed::Feed;
use crate::journal::{Edge, JournalError, Page, Part};
use crate::past::Past;
use crate::protocol::{PageCall, PageReply, Refusal, SessionCall, SessionReply};
use crate::reach::{Reach, Reached};
use crate::state::State;
use crate::tail::{Found, Tail};

/// How long a client of a door may leave its events unread before it is disconnected.
pub const STUCK: Duration = Duration::from_secs(10);

/// How a prompt is handled while a turn runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WhenBusy {
    /// The prompt waits for the running turn and for the prompts before it.
    #[default]
    Queue,
    /// The prompt joins the running turn, if the agent supports that.
    Steer,
    /// The running turn is cancelled, and this prompt comes next.
    Interrupt,
}

#[derive(Debug, Clone)]
pub struct Join {
    /// The joining client; without an id, it gets one.
    pub client: ClientRef,
    pub from: JoinFrom,
    /// How long it may leave its events unread; `None` is forever.
    pub patience: Option<Duration>,
    /// Whether other clients see it come and leave.
    pub announce: bool,
}

impl Join {
    /// A visible client that reads from the first event, without a time limit.
    pub fn new(client: ClientRef) -> Self {
        Self { client, from: JoinFrom::Start, patience: None, announce: true }
    }

    #[must_use]
    pub fn from(mut self, from: JoinFrom) -> Self {
        self.from = from;
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinFrom {
    Start,
    /// After this event, which the client saw in that epoch.
    After {
        seq: u64,
        epoch: Option<u64>,
    },
    /// At the last events, with a snapshot.
    Tail(u64),
    /// At the end, with a snapshot.
    Now,
}

/// A position in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The client reads the events after this one.
    pub(crate) after: u64,
    /// Whether the client needs a snapshot.
    pub(crate) snapshot: bool,
    pub(crate) gap: Option<ReplayGap>,
}

impl JoinFrom {
    /// The place in a log of that epoch, which ended at `before` when the client came, and ends at `now` with it.
    pub(crate) fn place(self, before: u64, now: u64, epoch: u64) -> Place {
        match self {
            Self::After { seq, epoch: of } if seq > before || of.is_some_and(|of| of != epoch) => {
                Place { after: now, snapshot: true, gap: Some(ReplayGap { asked: seq, last: before, epoch }) }
            }
            Self::Start => Place { after: 0, snapshot: false, gap: None },
            Self::After { seq, .. } => Place { after: seq, snapshot: false, gap: None },
            Self::Tail(count) => Place { after: now.saturating_sub(count), snapshot: true, gap: None },
            Self::Now => Place { after: now, snapshot: true, gap: None },
        }
    }
}

#[derive(Debug)]
pub struct Joined {
    /// With its assigned id.
    pub client: ClientRef,
    pub feed: Feed,
    /// The state when it joined, unless it gets the whole log.
    pub snapshot: Option<Box<State>>,
    /// The client's position is not in this log: the snapshot replaces the missing events.
    pub gap: Option<ReplayGap>,
    pub epoch: u64,
}

/// A position that is not in this log: lost in a power cut, or never in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayGap {
    pub asked: u64,
    /// The last event of the log.
    pub last: u64,
    pub epoch: u64,
}

#[derive(Debug, Clone)]
pub struct Session {
    id: SessionId,
    epoch: u64,
    /// The last event before this process owned the session.
    pub(crate) opened_after: u64,
    native: watch::Receiver<Option<String>>,
    /// The mode that only owners may exceed.
    ceiling: watch::Receiver<ApprovalMode>,
    inbox: mpsc::Sender<Ask>,
    tail: Arc<Tail>,
    past: Option<Past>,
    end: CancellationToken,
    /// The connection of a session that may be out of reach.
    pub(crate) reached: Reached,
}

impl Session {
    #[expect(clippy::too_many_arguments, reason = "all ends of the channels that one function makes")]
    pub(crate) fn new(
        id: SessionId,
        epoch: u64,
        native: watch::Receiver<Option<String>>,
        ceiling: watch::Receiver<ApprovalMode>,
        inbox: mpsc::Sender<Ask>,
        tail: Arc<Tail>,
        past: Option<Past>,
        end: CancellationToken,
    ) -> Self {
        let opened_after = tail.head().last;
        Self { id, epoch, opened_after, native, ceiling, inbox, tail, past, end, reached: Reached::always() }
    }

    /// Our own id; every event has it.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The agent's own id of the conversation, once known.
    pub fn native_id(&self) -> Option<String> {
        self.native.borrow().clone()
    }

    /// The approval modes that a client may choose now.
    pub fn mode_limit(&self, client: &ClientRef) -> ModeLimit {
        ModeLimit::of(client, *self.ceiling.borrow())
    }

    /// Changes when the end of the log may have been lost; a place in the log is valid in its epoch only.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The last event before the session was opened here.
    pub fn opened_after(&self) -> u64 {
        self.opened_after
    }

    /// The last event that was shown.
    pub fn last(&self) -> u64 {
        self.tail.head().last
    }

    pub fn is_over(&self) -> bool {
        self.tail.head().over
    }

    /// Whether calls reach it.
    pub fn reach(&self) -> Reach {
        self.reached.now()
    }

    /// Reports changes of [`reach`](Self::reach).
    pub fn reaches(&self) -> Reached {
        self.reached.clone()
    }

    /// Executes a client's call. The methods below are the calls one by one.
    pub async fn call(&self, call: SessionCall, by: ClientRef) -> Result<SessionReply, Refusal> {
        self.ask(|reply| Ask::Call { call, by, reply }).await?
    }

    /// Joins: events from a place on, then live ones.
    pub async fn join(&self, join: Join) -> Result<Joined, Refusal> {
        self.ask(|reply| Ask::Join { join, reply }).await?
    }

    pub async fn snapshot(&self) -> Option<Box<State>> {
        // No right is needed to read the state.
        let anybody = ClientRef::new("multitap", Door::Host);
        match self.call(SessionCall::Snapshot, anybody).await {
            Ok(SessionReply::Snapshot(reply)) => Some(reply.snapshot),
            Ok(_) | Err(_) => None,
        }
    }

    pub async fn page_for(&self, call: &PageCall) -> Result<PageReply, Refusal> {
        Ok(self.page(call.part(self.last())?).await?.into())
    }

    /// A range of the log, such as the events before those a client has. Events that could not be stored are included
    /// while they are in memory; lost ones are left out.
    pub async fn page(&self, part: Part) -> Result<Page, JournalError> {
        let entries = match (&self.past, part.edge) {
            (Some(past), Edge::After(seq)) => self.after(past, seq, part).await?,
            (Some(past), Edge::Before(seq)) => self.before(past, seq, part).await?,
            (None, Edge::After(seq)) => self.tail.at_hand(seq, part.limit, part.bytes),
            (None, Edge::Before(seq)) => self.tail.at_hand_before(seq, part.limit, part.bytes),
        };
        Ok(Page { entries, last_seq: self.last() })
    }

    async fn after(&self, past: &Past, seq: u64, part: Part) -> Result<Vec<Entry>, JournalError> {
        match self.tail.after(seq, part.limit, part.bytes) {
            Found::Entries(entries) => return Ok(entries),
            Found::Nothing => return Ok(Vec::new()),
            Found::Behind { .. } => {}
        }
        let kept = kept(past.page(&self.id, part).await)?;
        // Events between the end of the stored log and memory are lost.
        Ok(if kept.is_empty() { self.tail.at_hand(seq, part.limit, part.bytes) } else { kept })
    }

    async fn before(&self, past: &Past, seq: u64, part: Part) -> Result<Vec<Entry>, JournalError> {
        let at_hand = self.tail.at_hand_before(seq, part.limit, part.bytes);
        let first = at_hand.first().map_or(seq, Entry::seq);
        let rest = Part {
            edge: Edge::Before(first),
            limit: part.limit - at_hand.len(),
            bytes: part.bytes.saturating_sub(at_hand.iter().map(Entry::bytes).sum()),
        };
        let is_all = first <= 1 || rest.limit == 0 || rest.bytes == 0 || self.tail.has_before(first);
        if !at_hand.is_empty() && is_all {
            return Ok(at_hand);
        }
        let mut entries = kept(past.page(&self.id, rest).await)?;
        entries.extend(at_hand);
        Ok(entries)
    }

    /// Begins a turn; during a turn, `when_busy` decides.
    pub async fn prompt(&self, prompt: Prompt, when_busy: WhenBusy, from: ClientRef) -> Result<PromptId, Refusal> {
        match self.call(SessionCall::Prompt { prompt, when_busy: Some(when_busy) }, from).await? {
            SessionReply::Prompt(reply) => Ok(reply.prompt_id),
            other => Err(other.unexpected()),
        }
    }

    /// Removes a prompt from the queue.
    pub async fn withdraw(&self, prompt: PromptId, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::Withdraw { prompt_id: prompt }, by).await.map(drop)
    }

    /// Answers a question. The first valid answer wins; every other is refused with a reason.
    pub async fn decide(&self, decide: Decide, by: ClientRef) -> Result<Ruling, Refusal> {
        match self.call(SessionCall::Decide(decide), by).await? {
            SessionReply::Decide(ruling) => Ok(*ruling),
            other => Err(other.unexpected()),
        }
    }

    /// Cancels the running turn; the session goes on.
    pub async fn cancel(&self, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::Cancel, by).await.map(drop)
    }

    /// Changes the approval mode: a unified word, or one of the agent's own.
    pub async fn set_mode(&self, mode: impl Into<String>, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::SetMode { mode: mode.into() }, by).await.map(drop)
    }

    pub async fn set_model(&self, model: impl Into<String>, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::SetModel { model: model.into() }, by).await.map(drop)
    }

    /// Limits the agent's thinking tokens; `None` restores its own choice.
    pub async fn set_thinking(&self, tokens: Option<u32>, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::SetThinking { tokens }, by).await.map(drop)
    }

    /// Sets how thoroughly the agent thinks, to one of its levels.
    pub async fn set_thinking_level(&self, level: impl Into<String>, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::SetThinkingLevel { level: level.into() }, by).await.map(drop)
    }

    /// Asks the agent about itself; the answer is a `system` event.
    pub async fn query(&self, what: Query, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::Query { what }, by).await.map(drop)
    }

    /// The answers that hold for the rest of the session.
    pub async fn rules(&self) -> Vec<Rule> {
        self.snapshot().await.map(|state| state.rules).unwrap_or_default()
    }

    /// Revokes such a rule. The agent is restarted when it is idle, since no agent can be told to forget one.
    pub async fn revoke(&self, rule_id: impl Into<String>, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::Revoke { rule_id: rule_id.into() }, by).await.map(drop)
    }

    pub async fn kick(&self, client: ClientId, by: ClientRef) -> Result<(), Refusal> {
        self.call(SessionCall::Kick { client_id: client }, by).await.map(drop)
    }

    /// Adds an error to the log, for every reader.
    pub async fn report(&self, error: AgentError) -> Result<(), Refusal> {
        self.ask(|reply| Ask::Report { error, reply }).await?
    }

    /// Restarts the agent after it is gone, with its conversation.
    pub async fn restart(&self, config: Option<SessionConfig>) -> Result<(), Refusal> {
        let config = config.map(Box::new);
        self.ask(|reply| Ask::Restart { config, reply }).await?
    }

    /// Ends the session after the running turn and the queued prompts.
    pub async fn finish(&self) -> Result<(), Refusal> {
        self.ask(|reply| Ask::Finish { reply }).await?
    }

    /// Cancels the running turn, withdraws the queued prompts, and ends the session after the turn.
    pub async fn stop(&self) -> Result<(), Refusal> {
        self.ask(|reply| Ask::Stop { reply }).await?
    }

    /// Ends the session now; a running turn is interrupted.
    pub fn end(&self) {
        self.end.cancel();
    }

    /// Returns when the session is over and every event was shown.
    pub async fn over(&self) {
        let mut head = self.tail.watch();
        head.wait_for(|head| head.over).await.ok(); // a task that is gone without a word is over too
    }

    async fn ask<T>(&self, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.inbox.send(ask(reply)).await.map_err(|_| Refusal::SessionEnded)?;
        answer.await.map_err(|_| Refusal::SessionEnded)
    }
}

/// The stored events; none, as long as the log is not created.
fn kept(page: Result<Page, JournalError>) -> Result<Vec<Entry>, JournalError> {
    match page {
        Ok(page) => Ok(page.entries),
        Err(JournalError::NoSuchSession(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
