//! The task that owns a session: it alone numbers events, queues prompts and rules on answers.
//!
//! It waits only at its `select!`. Outward waits: while events cannot be stored or read, the agent's events stay in its
//! channel. Inward refuses: a full queue is an error for the caller. Every event, reply and command goes through the
//! [`Outbox`](super::outbox), so that it is in the log first.

mod agent;
mod asked;
mod decide;
mod due;
mod hand_over;

use std::future::pending;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    AgentError, AgentErrorKind, ApprovalMode, ClientRef, Command, Door, Draft, Event, EventKind, LaunchError, Mode,
    Prompt, PromptId, QuestionId, SessionConfig, SessionEnd, SessionEndReason, SessionId, SystemNote, SystemSubtype,
    Timestamp,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use self::agent::{Agent, Ear, news};
use self::decide::Reviews;
use super::ask::{Ask, Reply};
use super::log::Log;
use super::outbox::{Effect, Item, Landed, Outbox};
use super::pending::Pending;
use super::right::Rights;
use crate::entry::Entry;
use crate::journal::JournalError;
use crate::launch::Launch;
use crate::past::Past;
use crate::protocol::Refusal;
use crate::state::{Presence, State};
use crate::tail::{Retain, Tail};

/// Most queued calls.
pub(crate) const INBOX: usize = 64;
/// Most events of the agent that are taken at a time.
const DRAFTS: usize = 64;
/// Time between two checks for clients that do not read.
const SWEEP: Duration = Duration::from_secs(1);
/// How long storing the last events may take.
const LAST_EVENTS: Duration = Duration::from_secs(10);

/// How long a session whose agent ended at once waits for the client that opened it.
const FIRST_READER: Duration = Duration::from_secs(2);
const ENDED: &str = "the session ended";
const COPIED: &str = "it was open when the session was copied";

/// The moment at which a session ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Linger {
    /// With its agent.
    #[default]
    WithAgent,
    /// The session ends when it is closed: without an agent others may still read it, and a prompt restarts the agent.
    UntilClosed,
}

/// The state of a session's log before the session is opened.
pub(crate) struct Ground {
    pub(crate) id: SessionId,
    pub(crate) state: State,
    pub(crate) epoch: u64,
    pub(crate) log: Option<Log>,
    /// Why the log could not be created.
    pub(crate) unkept: Option<JournalError>,
}

impl Ground {
    /// Where events are read that are no longer in memory.
    pub(crate) fn past(&self) -> Option<Past> {
        self.log.as_ref().map(|log| Past::Journal(log.journal.clone()))
    }
}

pub(crate) struct Beginning {
    pub(crate) ground: Ground,
    pub(crate) config: SessionConfig,
    /// The client that opened it, and that sent the first prompt.
    pub(crate) by: ClientRef,
    /// Earlier events of the conversation, from another log or from the agent's own store.
    pub(crate) history: Option<EarlierEvents>,
    pub(crate) linger: Linger,
    pub(crate) question_timeout: Option<Duration>,
    /// The mode that only owners may exceed.
    pub(crate) ceiling: Option<Mode>,
    /// What handles know of it.
    pub(crate) bound: watch::Sender<ApprovalMode>,
    pub(crate) launch: Arc<dyn Launch>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) native: watch::Sender<Option<String>>,
    pub(crate) inbox: mpsc::Receiver<Ask>,
    pub(crate) stop: CancellationToken,
}

/// Events of an earlier conversation; it ends when the sender is dropped.
pub type EarlierEvents = mpsc::Receiver<Draft>;

/// The phase of the session. It only moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Takes no more prompts, and ends after the running turn and the queue.
    Draining,
    /// Ends as soon as the agent is gone.
    Closing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    No,
    /// A prompt was sent while the agent was ending.
    WhenGone,
    /// When it is idle, so that it forgets a revoked rule.
    WhenIdle,
}

/// The client that opened a session joins a moment later, and must still find a session whose agent ended at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstReader {
    NotYet,
    /// The agent is gone, and the session waits until then.
    AwaitedUntil(Instant),
    Joined,
}

#[derive(Debug)]
enum LastPrompt {
    Message,
    ShellCommand,
    /// A slash command of this client, which may change the mode. The agent does not know who sent it, so until the
    /// turn ends or asks something, a change is attributed to this client.
    SlashCommand(ClientRef),
}

pub(crate) struct SessionTask {
    id: SessionId,
    epoch: u64,
    state: State,
    config: SessionConfig,
    by: ClientRef,
    history: Option<EarlierEvents>,
    /// The first prompt of this opening, until the agent runs.
    first: Option<Prompt>,
    /// Queued prompts of an earlier process: they come before `first`.
    recovered_prompts: Vec<PromptId>,
    linger: Linger,
    question_timeout: Option<Duration>,
    deadlines: Vec<(QuestionId, Instant)>,
    next_sweep: Option<Instant>,
    past: Option<Past>,
    unkept: Option<JournalError>,
    launch: Arc<dyn Launch>,
    agent: Agent,
    rights: Rights,
    bound: watch::Sender<ApprovalMode>,
    reviews: Reviews,
    /// Changes of mode and model that the agent has not answered yet.
    pending: Pending,
    last_prompt: LastPrompt,
    tail: Arc<Tail>,
    native: watch::Sender<Option<String>>,
    latest: Option<Timestamp>,
    outbox: Outbox,
    inbox: mpsc::Receiver<Ask>,
    phase: Phase,
    restart: Restart,
    first_reader: FirstReader,
    stop: CancellationToken,
}

impl SessionTask {
    pub(crate) fn new(beginning: Beginning) -> Self {
        let Beginning { ground, mut config, by, history, linger, question_timeout, ceiling, .. } = beginning;
        let past = ground.past();
        let Ground { id, state, epoch, log, unkept } = ground;
        let rights = Rights::new(config.agent.agent_type(), ceiling);
        let first = config.prompt.take();
        let recovered_prompts = state.queue.iter().filter_map(|queued| queued.prompt.prompt_id.clone()).collect();
        let outbox = Outbox::new(id.clone(), log, &state);
        Self {
            id,
            epoch,
            state,
            config,
            by,
            history,
            first,
            recovered_prompts,
            linger,
            question_timeout,
            deadlines: Vec::new(),
            next_sweep: None,
            past,
            unkept,
            launch: beginning.launch,
            agent: Agent::Gone,
            rights,
            bound: beginning.bound,
            reviews: Reviews::default(),
            last_prompt: LastPrompt::Message,
            pending: Pending::default(),
            tail: beginning.tail,
            native: beginning.native,
            latest: None,
            outbox,
            inbox: beginning.inbox,
            phase: Phase::Running,
            restart: Restart::No,
            first_reader: FirstReader::NotYet,
            stop: beginning.stop,
        }
    }

    /// Runs until the session is over. `opened` receives the place in the log where this opening begins once the agent
    /// runs, or why it does not.
    #[tracing::instrument(name = "session", skip_all, fields(id = %self.id))]
    pub(crate) async fn run(mut self, opened: oneshot::Sender<Result<u64, LaunchError>>) {
        self.import().await;
        let after = self.state.seq;
        if !self.stop.is_cancelled() {
            self.start(Box::new(move |up| {
                // The caller may be gone.
                opened.send(up.map(|()| after)).ok();
            }));
        }
        let mut drafts = Vec::new();
        while !self.is_done() {
            // A closing session waits for no reader.
            let listens = self.outbox.has_room() && (self.phase == Phase::Closing || !self.tail.is_full());
            let ear = Ear { listens, wants_room: self.can_hand_over() };
            let due = self.next_due();
            tokio::select! {
                () = self.stop.cancelled(), if self.phase != Phase::Closing => self.close_now(),
                heard = news(&mut self.agent, &mut drafts, ear) => self.on_news(heard, &mut drafts),
                ask = self.inbox.recv(), if self.outbox.takes_calls() => match ask {
                    Some(ask) => self.on_ask(ask),
                    None => self.close_now(),
                },
                reviewed = self.reviews.next() => self.on_reviewed(reviewed),
                landed = self.outbox.landed(&self.state) => self.on_landed(landed),
                () = self.tail.moved.notified() => self.sweep(),
                () = at(due) => self.on_due(),
            }
            self.move_on();
        }
        self.end().await;
    }

    /// Copies the earlier events to the beginning of the log, as far as time allows. Turns and questions that are open
    /// in the original are closed in this log.
    async fn import(&mut self) {
        let Some(mut history) = self.history.take() else { return };
        while let Some(Some(draft)) = self.stop.clone().run_until_cancelled(history.recv()).await {
            let event = self.number(draft);
            self.outbox.entry(Entry::copy(event));
            while !self.outbox.has_room() {
                let landed = self.outbox.landed(&self.state).await;
                self.on_landed(landed);
            }
        }
        for kind in self.state.interrupted(COPIED) {
            self.tell(kind);
        }
        self.take_back();
    }

    fn is_done(&self) -> bool {
        if !matches!(self.agent, Agent::Gone) {
            return false;
        }
        let ends = match self.phase {
            Phase::Closing => return true,
            Phase::Draining => true,
            Phase::Running => self.linger == Linger::WithAgent,
        };
        ends && self.restart != Restart::WhenIdle && !matches!(self.first_reader, FirstReader::AwaitedUntil(_))
    }

    /// Stores the last events, then gives up the log.
    async fn end(mut self) {
        self.inbox.close();
        while let Ok(ask) = self.inbox.try_recv() {
            drop(ask);
        }
        self.take_back();
        let deadline = Instant::now() + LAST_EVENTS;
        while !self.outbox.is_empty() {
            match timeout_at(deadline, self.outbox.landed(&self.state)).await {
                Ok(landed) => self.on_landed(landed),
                Err(_) => {
                    tracing::warn!(session = %self.id, "the last events could not be stored in time");
                    break;
                }
            }
        }
        timeout_at(deadline, self.outbox.last_try(&self.state)).await.ok(); // events that are not stored by now are lost
        if let Err(error) = self.outbox.let_go(self.tail.head().last).await {
            tracing::warn!(session = %self.id, %error, "cannot let go of the log");
        }
    }

    /// Makes a draft an event, and sends it to the outbox.
    fn stamp(&mut self, draft: Draft) {
        let event = self.number(draft);
        self.outbox.entry(Entry::new(event));
    }

    /// Makes a draft an event: numbers and applies it.
    fn number(&mut self, mut draft: Draft) -> Event {
        // An agent's event may be older than one of our own; in a log, time never goes back.
        self.latest = self.latest.max(Some(draft.at));
        draft.at = self.latest.unwrap_or(draft.at);
        let event = draft.stamp(self.id.clone(), self.state.seq + 1);
        self.state.apply(&event);
        self.state.show_native_id(&self.native);
        event
    }

    fn tell(&mut self, kind: EventKind) {
        self.stamp(Draft::new(Timestamp::now(), kind));
    }

    /// Replies when every event so far is stored.
    fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, value: Result<T, Refusal>) {
        // The caller may be gone.
        self.outbox.then(Effect::Do(Box::new(move || drop(reply.send(value)))));
    }

    /// Hands the agent a command when every event so far is stored.
    fn hand(&mut self, permit: mpsc::OwnedPermit<Command>, command: Command) {
        self.outbox.then(Effect::Tell(permit, command));
    }

    fn on_landed(&mut self, landed: Landed) {
        match landed {
            Landed::Kept(items) => self.release(items),
            Landed::Unkept(items, failed) => {
                if let Some(error) = failed {
                    self.tail.retain(Retain::Volatile);
                    self.say_unkept(&error);
                }
                self.release(items);
            }
            Landed::KeptAgain => {
                self.tail.retain(Retain::Ring);
                self.tell(log_note("the log is stored again, and nothing was lost", true));
            }
            Landed::Lost(mut items) => {
                // The other process's log lacks these events: no caller gets a reply, and the agent gets no command.
                items.retain(|item| matches!(item, Item::Entry(_)));
                let message = "another process took over this session: it ends here";
                self.tail.retain(Retain::Volatile);
                self.release(items);
                self.tell(EventKind::Error(AgentError::new(AgentErrorKind::Unknown, message)));
                self.close_now();
            }
        }
    }

    fn say_unkept(&mut self, error: &JournalError) {
        let message = format!("{error}: this session continues in memory, and new events may be lost");
        self.tell(log_note(&message, false));
    }

    fn release(&mut self, items: Vec<Item>) {
        let mut entries = Vec::new();
        for item in items {
            match item {
                Item::Entry(entry) => entries.push(entry),
                Item::Then(effect) => {
                    self.tail.add(mem::take(&mut entries));
                    match effect {
                        Effect::Tell(permit, command) => drop(permit.send(command)),
                        Effect::Do(act) => act(),
                    }
                }
            }
        }
        self.tail.add(entries);
    }

    fn on_draft(&mut self, mut draft: Draft) {
        match &mut draft.kind {
            EventKind::SessionEnded(_) => self.tie_up(),
            EventKind::PermissionAsked(question) => {
                self.rights.mark(question);
                if let Some(patience) = self.question_timeout {
                    self.deadlines.push((question.question_id.clone(), Instant::now() + patience));
                }
            }
            EventKind::TurnCompleted(_) => self.forget_slash_command(),
            EventKind::ModeChanged { by, mode, native_mode } if by.is_none() => {
                *by = self.mode_changed(*mode, native_mode.as_deref());
            }
            EventKind::ModelChanged { by, model } if by.is_none() => {
                *by = self.pending.model_confirmed(model);
                if by.is_some() {
                    self.config.model = Some(model.clone());
                }
            }
            EventKind::Error(AgentError { refused_setting: Some(setting), refused_value, .. }) => {
                self.pending.refused(self.config.agent.agent_type(), *setting, refused_value.as_deref());
            }
            _ => {}
        }
        let started = matches!(draft.kind, EventKind::SessionStarted(_));
        if started && self.restart == Restart::WhenGone {
            // This agent takes the queued prompts.
            self.restart = Restart::No;
        }
        self.stamp(draft);
        if started && let Some(error) = self.unkept.take() {
            self.say_unkept(&error);
        }
    }

    /// The agent changed its mode: finds out which client chose it, if any, and sets the session's mode.
    fn mode_changed(&mut self, mode: Option<ApprovalMode>, native: Option<&str>) -> Option<ClientRef> {
        let asked = self.pending.mode_confirmed(self.config.agent.agent_type(), mode, native);
        // A slash command may change the mode as well, and the agent does not know who sent it.
        let slash_sender = match &self.last_prompt {
            LastPrompt::SlashCommand(sender) => Some(sender.clone()),
            LastPrompt::Message | LastPrompt::ShellCommand => None,
        };
        let Some((mode, by)) = asked.or_else(|| Some((Mode::Unified(mode?), slash_sender.clone()?))) else {
            return slash_sender;
        };
        self.rights.chosen(&mode, &by);
        self.bound.send_replace(self.rights.bound());
        self.config.mode = Some(mode);
        Some(by)
    }

    /// From now on, a change of the mode is not attributed to the sender of a slash command.
    fn forget_slash_command(&mut self) {
        if matches!(self.last_prompt, LastPrompt::SlashCommand(_)) {
            self.last_prompt = LastPrompt::Message;
        }
    }

    /// Closes everything that is open before the agent's end is reported.
    fn tie_up(&mut self) {
        for kind in self.state.loose_ends(ENDED) {
            self.tell(kind);
        }
        if self.linger == Linger::WithAgent && self.restart != Restart::WhenIdle {
            self.take_back();
        }
    }

    /// Withdraws every queued prompt.
    fn take_back(&mut self) {
        let waiting: Vec<_> = self.state.queue.iter().filter_map(|queued| queued.prompt.prompt_id.clone()).collect();
        for prompt_id in waiting {
            self.tell(EventKind::PromptWithdrawn { prompt_id, by: None });
        }
    }

    /// Takes the next steps that the current state allows.
    fn move_on(&mut self) {
        if self.state.agent == Presence::Here && !self.state.is_busy() {
            if self.restart == Restart::WhenIdle {
                self.agent.let_go();
            } else {
                self.hand_over_next();
            }
        }
        // A closing session has released its agent already.
        let drains = self.phase == Phase::Draining && self.state.agent != Presence::NotYet;
        if drains && self.first.is_none() && self.state.is_idle() {
            self.agent.let_go();
        }
    }

    /// Takes no more prompts, and ends after everything accepted so far.
    fn drain(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
        }
    }

    fn close_now(&mut self) {
        self.phase = Phase::Closing;
        self.restart = Restart::No;
        self.agent.end();
    }
}

fn log_note(message: &str, durable: bool) -> EventKind {
    let data = serde_json::Map::from_iter([("durable".to_owned(), durable.into())]);
    EventKind::System(SystemNote { subtype: SystemSubtype::LOG.to_owned(), message: Some(message.to_owned()), data })
}

fn host() -> ClientRef {
    ClientRef::new("multitap", Door::Host)
}

/// The end of an agent that reported none.
fn gone_without_a_word(state: &State) -> SessionEnd {
    let reason = state.last_turn.map_or(SessionEndReason::Failed, SessionEndReason::from);
    SessionEnd { error: Some("the agent ended without an error message".to_owned()), ..SessionEnd::of(reason) }
}

async fn at(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}
