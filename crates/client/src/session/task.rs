//! The task that owns a session: it alone numbers events, holds prompts back, rules on answers.
//!
//! It waits only at its `select!`. Outward waits: while the reader of the events is behind, the agent's own events
//! are left where they are. Inward refuses: a full queue is an error the caller sees.

use std::collections::VecDeque;
use std::time::Duration;

use multitap_event::{
    AgentError, AgentLink, ClientRef, Command, Decide, Draft, Event, EventKind, Prompt, PromptId, Ruling, SessionId,
    Timestamp,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{CancelError, CommandError, DecideError, PromptError, WhenBusy, WithdrawError};
use crate::state::{Full, Place, State};

/// How many events may wait for the program to read them.
pub(crate) const EVENT_BUFFER: usize = 256;
/// How many calls may wait for the session task.
pub(crate) const INBOX: usize = 32;
/// How many events may wait in the task itself before it stops listening to the agent.
const BACKLOG: usize = 64;
/// How many more may be added by calls; then they are refused.
const BACKLOG_OF_CALLS: usize = 256;
/// After the end was asked for: how long a reader may leave the events unread.
const UNREAD: Duration = Duration::from_secs(2);

/// What the handle asks of the task.
#[derive(Debug)]
pub(crate) enum Ask {
    Prompt {
        prompt: Prompt,
        when_busy: WhenBusy,
        from: ClientRef,
        reply: oneshot::Sender<Result<PromptId, PromptError>>,
    },
    Withdraw {
        prompt: PromptId,
        by: ClientRef,
        reply: oneshot::Sender<Result<(), WithdrawError>>,
    },
    Decide {
        decide: Decide,
        by: ClientRef,
        reply: oneshot::Sender<Result<Ruling, DecideError>>,
    },
    Cancel {
        reply: oneshot::Sender<Result<(), CancelError>>,
    },
    Pass {
        command: Command,
        reply: oneshot::Sender<Result<(), CommandError>>,
    },
    Report {
        error: AgentError,
        reply: oneshot::Sender<Result<(), CommandError>>,
    },
    Finish {
        reply: oneshot::Sender<()>,
    },
    Stop {
        reply: oneshot::Sender<()>,
    },
}

#[derive(Debug)]
pub(crate) struct SessionTask {
    state: State,
    id: SessionId,
    from_agent: mpsc::Receiver<Draft>,
    /// Dropped when the end was asked for; that ends the agent.
    to_agent: Option<mpsc::Sender<Command>>,
    /// The agent takes prompts into a running turn.
    steers: bool,
    inbox: mpsc::Receiver<Ask>,
    inbox_open: bool,
    out: mpsc::Sender<Event>,
    /// Told, but not yet taken by the reader.
    backlog: VecDeque<Event>,
    reader_gone: bool,
    finishing: bool,
    native: watch::Sender<Option<String>>,
    stop: CancellationToken,
}

impl SessionTask {
    pub(crate) fn new(
        id: SessionId,
        link: AgentLink,
        inbox: mpsc::Receiver<Ask>,
        out: mpsc::Sender<Event>,
        native: watch::Sender<Option<String>>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            state: State::new(id.clone()),
            id,
            from_agent: link.events,
            to_agent: Some(link.commands),
            steers: link.steers,
            inbox,
            inbox_open: true,
            out,
            backlog: VecDeque::new(),
            reader_gone: false,
            finishing: false,
            native,
            stop,
        }
    }

    /// Hands over the first prompt, before anybody can ask anything.
    pub(crate) fn begin(&mut self, prompt: Prompt, from: ClientRef) -> Result<PromptId, PromptError> {
        self.prompt(prompt, WhenBusy::Queue, from)
    }

    #[tracing::instrument(name = "session", skip_all, fields(id = %self.id))]
    pub(crate) async fn run(mut self) {
        loop {
            let unread = !self.backlog.is_empty();
            let stopping = self.to_agent.is_none();
            tokio::select! {
                () = self.stop.cancelled(), if !stopping => self.to_agent = None,
                draft = self.from_agent.recv(), if self.backlog.len() < BACKLOG => match draft {
                    Some(draft) => self.on_draft(draft),
                    None => break,
                },
                ask = self.inbox.recv(), if self.inbox_open => match ask {
                    Some(ask) => self.on_ask(ask),
                    None => {
                        self.inbox_open = false;
                        self.to_agent = None;
                    }
                },
                reads = has_room(Some(&self.out)), if unread => if reads { self.tell([]) } else { self.reader_left() },
                _ = has_room(self.to_agent.as_ref()), if !stopping && self.state.can_hand_over() => {}
                () = sleep(UNREAD), if unread && stopping => self.reader_left(),
            }
            self.hand_over_next();
            if self.finishing && self.state.at_rest() {
                self.to_agent = None;
            }
        }
        let last = self.state.gone(Timestamp::now());
        self.tell(last);
        self.deliver_rest().await;
    }

    fn on_draft(&mut self, draft: Draft) {
        let events = self.state.told(draft);
        let native = self.state.native();
        self.native.send_if_modified(|known| {
            let changed = known.as_deref() != native;
            if changed {
                *known = native.map(str::to_owned);
            }
            changed
        });
        self.tell(events);
    }

    fn on_ask(&mut self, ask: Ask) {
        match ask {
            Ask::Prompt { prompt, when_busy, from, reply } => answer(reply, self.prompt(prompt, when_busy, from)),
            Ask::Withdraw { prompt, by, reply } => answer(reply, self.withdraw(prompt, by)),
            Ask::Decide { decide, by, reply } => answer(reply, self.decide(decide, by)),
            Ask::Cancel { reply } => answer(reply, self.cancel()),
            Ask::Pass { command, reply } => answer(reply, self.pass(command)),
            Ask::Report { error, reply } => answer(reply, self.report(error)),
            Ask::Finish { reply } => {
                self.finishing = true;
                answer(reply, ());
            }
            Ask::Stop { reply } => {
                self.stop_turn();
                answer(reply, ());
            }
        }
    }

    fn prompt(&mut self, prompt: Prompt, when_busy: WhenBusy, from: ClientRef) -> Result<PromptId, PromptError> {
        if self.state.ended() {
            return Err(PromptError::SessionEnded);
        }
        if self.finishing {
            return Err(PromptError::Finishing);
        }
        let now = Timestamp::now();
        if self.state.at_rest() {
            let permit = permit(self.to_agent.as_ref(), &self.backlog)?;
            let (prompt, events) = self.state.hand_over(prompt, from, now);
            let id = prompt.prompt_id.clone();
            permit.send(Command::Prompt(prompt));
            self.tell(events);
            // It always has an id once it was handed over.
            return id.ok_or(PromptError::Busy);
        }
        let (id, queued) = match when_busy {
            WhenBusy::Queue => {
                if self.backlog.len() >= BACKLOG_OF_CALLS {
                    return Err(PromptError::Busy);
                }
                self.state.queue(prompt, from, Place::Last, now)
            }
            WhenBusy::Steer if !self.steers => return Err(PromptError::CannotSteer),
            WhenBusy::Steer if self.state.running() => {
                let permit = permit(self.to_agent.as_ref(), &self.backlog)?;
                let (id, prompt, event) = self.state.steer(prompt, from, now);
                permit.send(Command::Steer(prompt));
                self.tell([event]);
                return Ok(id);
            }
            // The turn is about to begin and takes nothing in yet: it comes next.
            WhenBusy::Steer => self.state.queue(prompt, from, Place::First, now),
            WhenBusy::Interrupt => {
                let permit = permit(self.to_agent.as_ref(), &self.backlog)?;
                let queued = self.state.queue(prompt, from, Place::First, now);
                if queued.is_ok() && self.state.busy() {
                    permit.send(Command::Cancel);
                }
                queued
            }
        }
        .map_err(|Full| PromptError::QueueFull)?;
        self.tell([queued]);
        Ok(id)
    }

    /// Hands over the prompt whose turn it is. If the agent cannot take it now, a later round will.
    fn hand_over_next(&mut self) {
        if !self.state.can_hand_over() {
            return;
        }
        let Some(permit) = self.to_agent.as_ref().and_then(|commands| commands.try_reserve().ok()) else { return };
        if let Some((prompt, events)) = self.state.hand_over_next(Timestamp::now()) {
            permit.send(Command::Prompt(prompt));
            self.tell(events);
        }
    }

    fn withdraw(&mut self, prompt: PromptId, by: ClientRef) -> Result<(), WithdrawError> {
        match self.state.withdraw(&prompt, by, Timestamp::now()) {
            Some(event) => {
                self.tell([event]);
                Ok(())
            }
            None => Err(WithdrawError::NotWaiting(prompt)),
        }
    }

    fn decide(&mut self, decide: Decide, by: ClientRef) -> Result<Ruling, DecideError> {
        // A place in the agent's queue first: a ruling that the agent never hears of would be a lie.
        let permit = permit(self.to_agent.as_ref(), &self.backlog)?;
        let (ruling, event) = self.state.decide(&decide, by, Timestamp::now())?;
        permit.send(Command::Decide(decide));
        self.tell([event]);
        Ok(ruling)
    }

    fn cancel(&mut self) -> Result<(), CancelError> {
        if !self.state.busy() {
            return Err(CancelError::NoTurn);
        }
        self.pass(Command::Cancel).map_err(CancelError::Command)
    }

    fn stop_turn(&mut self) {
        self.finishing = true;
        let events = self.state.withdraw_waiting(Timestamp::now());
        self.tell(events);
        // Without a turn the end comes at once; an agent that takes no command is ended by `end`.
        self.cancel().ok();
    }

    fn pass(&mut self, command: Command) -> Result<(), CommandError> {
        if self.state.ended() {
            return Err(CommandError::SessionEnded);
        }
        permit(self.to_agent.as_ref(), &self.backlog)?.send(command);
        Ok(())
    }

    fn report(&mut self, error: AgentError) -> Result<(), CommandError> {
        if self.backlog.len() >= BACKLOG_OF_CALLS {
            return Err(CommandError::Busy);
        }
        let event = self.state.note(EventKind::Error(error), Timestamp::now()).ok_or(CommandError::SessionEnded)?;
        self.tell([event]);
        Ok(())
    }

    /// Hands events to the reader, in order; what it has no room for waits.
    fn tell(&mut self, events: impl IntoIterator<Item = Event>) {
        if self.reader_gone {
            return;
        }
        self.backlog.extend(events);
        while let Some(event) = self.backlog.pop_front() {
            match self.out.try_send(event) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(event)) => {
                    self.backlog.push_front(event);
                    return;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => return self.reader_left(),
            }
        }
    }

    fn reader_left(&mut self) {
        self.reader_gone = true;
        self.backlog.clear();
        self.to_agent = None;
    }

    /// The agent is gone; the reader may take its time unless the end was asked for.
    async fn deliver_rest(mut self) {
        self.inbox.close();
        while let Some(event) = self.backlog.pop_front() {
            tokio::select! {
                sent = self.out.send(event.clone()) => if sent.is_err() { return },
                () = self.stop.cancelled() => {
                    if !matches!(timeout(UNREAD, self.out.send(event)).await, Ok(Ok(()))) {
                        return;
                    }
                }
            }
        }
    }
}

/// Waits until the channel has room; false if nobody will ever read it.
async fn has_room<T>(tx: Option<&mpsc::Sender<T>>) -> bool {
    match tx {
        Some(tx) => tx.reserve().await.is_ok(),
        None => false,
    }
}

fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    // A caller that went away wants no answer.
    reply.send(value).ok();
}

/// A place in the agent's queue, if there is one and the reader is not too far behind.
fn permit<'a>(
    to_agent: Option<&'a mpsc::Sender<Command>>,
    backlog: &VecDeque<Event>,
) -> Result<mpsc::Permit<'a, Command>, CommandError> {
    let commands = to_agent.ok_or(CommandError::SessionEnded)?;
    if backlog.len() >= BACKLOG_OF_CALLS {
        return Err(CommandError::Busy);
    }
    commands.try_reserve().map_err(|error| match error {
        mpsc::error::TrySendError::Full(()) => CommandError::Busy,
        mpsc::error::TrySendError::Closed(()) => CommandError::SessionEnded,
    })
}

impl From<CommandError> for PromptError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::SessionEnded => Self::SessionEnded,
            CommandError::Busy => Self::Busy,
        }
    }
}

impl From<CommandError> for DecideError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::SessionEnded => Self::SessionEnded,
            CommandError::Busy => Self::Busy,
        }
    }
}
