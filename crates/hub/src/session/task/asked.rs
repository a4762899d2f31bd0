//! Calls of clients: checked here, recorded as events, and answered when those are stored.

use multitap_event::{ClientId, ClientRef, Command, EventKind, Prompt, PromptId, SessionConfig, UserMessage};
use tokio::time::Instant;

use super::agent::{Agent, WhenUp};
use super::hand_over::spoken;
use super::{FirstReader, Linger, Phase, Restart, SWEEP, SessionTask};
use crate::feed::Feed;
use crate::protocol::{PromptReply, Refusal, SessionCall, SessionReply};
use crate::session::ask::{Ask, Reply};
use crate::session::right::Rights;
use crate::session::{Join, Joined, Place, WhenBusy};
use crate::state::{Presence, Queued};

/// Most clients that may read a session at once.
const CLIENTS: usize = 4096;

impl SessionTask {
    pub(super) fn on_ask(&mut self, ask: Ask) {
        match ask {
            Ask::Join { join, reply } => self.join(join, reply),
            Ask::Call { call, by, reply } => self.call(call, by, reply),
            Ask::Report { error, reply } => {
                let room = self.room();
                if room.is_ok() {
                    self.tell(EventKind::Error(error));
                }
                self.reply(reply, room);
            }
            Ask::Restart { config, reply } => self.restart(config, reply),
            Ask::Finish { reply } => {
                self.drain();
                self.reply(reply, Ok(()));
            }
            Ask::Stop { reply } => {
                self.stop_turn();
                self.reply(reply, Ok(()));
            }
        }
    }

    fn call(&mut self, call: SessionCall, by: ClientRef, reply: Reply<SessionReply>) {
        if let Some(answer) = self.state.answer(&call, &self.id, self.epoch) {
            return self.reply(reply, Ok(answer));
        }
        let done = |done: Result<(), Refusal>| done.map(|()| SessionReply::Done {});
        let answer = match call {
            // The agent may have to judge it first.
            SessionCall::Decide(decide) => return self.answer(decide, by, reply),
            SessionCall::Prompt { prompt, when_busy } => {
                let accepted = self.prompt(prompt, when_busy.unwrap_or_default(), by);
                accepted.map(|prompt_id| SessionReply::Prompt(PromptReply { prompt_id }))
            }
            SessionCall::Withdraw { prompt_id } => done(self.withdraw(prompt_id, by)),
            SessionCall::Cancel => done(self.cancel(&by)),
            SessionCall::SetMode { mode } => done(self.pass(Command::SetMode { mode }, by)),
            SessionCall::SetModel { model } => done(self.pass(Command::SetModel { model }, by)),
            SessionCall::SetThinking { tokens } => done(self.pass(Command::SetThinking { tokens }, by)),
            SessionCall::SetThinkingLevel { level } => done(self.pass(Command::SetThinkingLevel { level }, by)),
            SessionCall::Query { what } => done(self.pass(Command::Query { what }, by)),
            SessionCall::Kick { client_id } => done(self.kick(client_id, &by)),
            SessionCall::Revoke { rule_id } => done(self.revoke(rule_id, &by)),
            // Answered above.
            SessionCall::Clients | SessionCall::Rules | SessionCall::Snapshot => return,
        };
        self.reply(reply, answer);
    }

    fn join(&mut self, join: Join, reply: Reply<Joined>) {
        if self.tail.readers() >= CLIENTS {
            // Some may have left meanwhile.
            self.sweep();
        }
        if self.tail.readers() >= CLIENTS {
            return self.reply(reply, Err(Refusal::TooManyClients));
        }
        let Join { mut client, from, patience, announce } = join;
        // No event follows the end of a session that ends with its agent.
        let was_awaited = matches!(self.first_reader, FirstReader::AwaitedUntil(_));
        let announce = announce && !was_awaited;
        self.first_reader = FirstReader::Joined;
        client.client_id.get_or_insert_with(ClientId::fresh);
        let before = self.state.seq;
        if announce {
            self.tell(EventKind::ClientJoined { client: client.clone() });
        }
        let now = self.state.seq;
        let Place { after, snapshot, gap } = from.place(before, now, self.epoch);
        let snapshot = snapshot.then(|| Box::new(self.state.clone()));
        if patience.is_some() {
            self.next_sweep.get_or_insert_with(|| Instant::now() + SWEEP);
        }
        let feed = Feed::new(self.id.clone(), client.clone(), after, patience, self.tail.clone(), self.past.clone());
        self.reply(reply, Ok(Joined { client, feed, snapshot, gap, epoch: self.epoch }));
    }

    fn prompt(&mut self, mut prompt: Prompt, when_busy: WhenBusy, from: ClientRef) -> Result<PromptId, Refusal> {
        self.rights.may_act(&from)?;
        match self.phase {
            Phase::Running => {}
            Phase::Draining => return Err(Refusal::Draining),
            Phase::Closing => return Err(Refusal::SessionEnded),
        }
        self.room()?;
        let id = prompt.prompt_id.get_or_insert_with(PromptId::fresh).clone();
        if self.is_taken(&id) {
            return Err(Refusal::PromptIdTaken { prompt_id: id });
        }
        if self.state.agent != Presence::Here {
            return self.prompt_without_agent(prompt, from).map(|()| id);
        }
        if self.state.is_idle() && self.first.is_none() && self.restart != Restart::WhenIdle {
            let permit = self.agent.permit()?;
            self.hand_over(permit, prompt, from);
            return Ok(id);
        }
        // A shell command is not part of a turn, and cannot be steered.
        let is_shell_command = prompt.shell_line().is_some() && from.is_owner();
        match when_busy {
            WhenBusy::Queue => self.queue(prompt, from, false)?,
            WhenBusy::Steer if is_shell_command || self.runs_shell_command() => self.queue(prompt, from, false)?,
            WhenBusy::Steer if !self.agent.steers() => return Err(Refusal::CannotSteer),
            WhenBusy::Steer if self.state.turn.is_some() => {
                let permit = self.agent.permit()?;
                prompt.within = self.rights.within(&from);
                prompt.account.clone_from(&from.account);
                let message = UserMessage { steering: true, ..spoken(&mut prompt, from) };
                self.tell(EventKind::UserMessage(message));
                self.hand(permit, Command::Steer(prompt));
            }
            // The turn is about to begin and cannot be steered yet: the prompt comes next.
            WhenBusy::Steer => self.queue(prompt, from, true)?,
            WhenBusy::Interrupt => {
                let permit = self.agent.permit()?;
                self.queue(prompt, from, true)?;
                if self.state.is_busy() {
                    self.hand(permit, Command::Cancel);
                }
            }
        }
        Ok(id)
    }

    /// Whether a queued or running prompt has that id. Ids must be unique among these.
    fn is_taken(&self, id: &PromptId) -> bool {
        let first = self.first.as_ref().and_then(|first| first.prompt_id.as_ref());
        let waiting = self.state.queue.iter().filter_map(|queued| queued.prompt.prompt_id.as_ref());
        waiting.chain(first).chain(&self.state.in_flight).any(|taken| taken == id)
    }

    /// The agent is starting, or has to be restarted.
    fn prompt_without_agent(&mut self, prompt: Prompt, from: ClientRef) -> Result<(), Refusal> {
        let lingers = self.linger == Linger::UntilClosed;
        match self.agent {
            Agent::Starting { .. } => self.queue(prompt, from, false),
            Agent::Up { .. }
                if lingers || self.restart == Restart::WhenIdle || self.state.agent == Presence::NotYet =>
            {
                // An agent that is ending is restarted.
                if self.restart == Restart::No {
                    self.restart = Restart::WhenGone;
                }
                self.queue(prompt, from, false)
            }
            Agent::Gone if lingers => {
                self.queue(prompt, from, false)?;
                self.start_again(Box::new(|_| {}));
                Ok(())
            }
            Agent::Gone | Agent::Up { .. } => Err(Refusal::SessionEnded),
        }
    }

    fn queue(&mut self, prompt: Prompt, from: ClientRef, first: bool) -> Result<(), Refusal> {
        if !self.state.has_room_for(&prompt) {
            return Err(Refusal::QueueFull);
        }
        self.tell(EventKind::PromptQueued { prompt, from: Some(from), first });
        Ok(())
    }

    /// Whether there is room for more events: not while they are neither stored nor read.
    pub(super) fn room(&self) -> Result<(), Refusal> {
        if self.outbox.has_room() && !self.tail.is_full() { Ok(()) } else { Err(Refusal::Busy) }
    }

    fn withdraw(&mut self, prompt: PromptId, by: ClientRef) -> Result<(), Refusal> {
        self.rights.may_act(&by)?;
        if !self.state.queue.iter().any(|queued| queued.prompt.prompt_id.as_ref() == Some(&prompt)) {
            return Err(Refusal::PromptNotQueued { prompt_id: prompt });
        }
        self.tell(EventKind::PromptWithdrawn { prompt_id: prompt, by: Some(by) });
        Ok(())
    }

    fn cancel(&mut self, by: &ClientRef) -> Result<(), Refusal> {
        self.rights.may_act(by)?;
        if !self.state.is_busy() {
            return Err(Refusal::NoTurn);
        }
        let permit = self.agent.permit()?;
        self.hand(permit, Command::Cancel);
        Ok(())
    }

    fn stop_turn(&mut self) {
        self.drain();
        self.first = None;
        self.take_back();
        // Without a turn the end comes at once; an agent that takes no command is ended by `end`.
        if self.state.is_busy()
            && let Ok(permit) = self.agent.permit()
        {
            self.hand(permit, Command::Cancel);
        }
    }

    fn pass(&mut self, command: Command, by: ClientRef) -> Result<(), Refusal> {
        self.rights.may_act(&by)?;
        if self.linger == Linger::WithAgent && self.state.agent == Presence::Gone {
            return Err(Refusal::SessionEnded);
        }
        if let Command::SetMode { mode } = &command {
            self.rights.may_choose(mode, &by)?;
        }
        let permit = self.agent.permit()?;
        self.pending.sent(&command, self.config.agent.agent_type(), by);
        self.hand(permit, command);
        Ok(())
    }

    fn revoke(&mut self, rule_id: String, by: &ClientRef) -> Result<(), Refusal> {
        self.rights.may_act(by)?;
        let rule = self.state.rules.iter().find(|rule| rule.rule_id == rule_id).cloned();
        let rule = rule.ok_or_else(|| Refusal::UnknownRule { rule_id: rule_id.clone() })?;
        if !Rights::may_revoke(&rule, by) {
            return Err(Refusal::RuleOfOther);
        }
        if rule.outlives_the_agent() {
            return Err(Refusal::SavedRule { rule_id });
        }
        self.tell(EventKind::RuleRevoked(rule));
        if matches!(self.agent, Agent::Up { .. }) && self.phase != Phase::Closing {
            self.restart = Restart::WhenIdle;
        }
        Ok(())
    }

    fn kick(&mut self, client: ClientId, by: &ClientRef) -> Result<(), Refusal> {
        self.rights.may_act(by)?;
        let Some(found) = self.state.client(&client) else { return Err(Refusal::UnknownClient { client_id: client }) };
        self.rights.kick(found, by)?;
        // A kicked client's queued prompts go with it.
        let is_theirs =
            |queued: &&Queued| queued.from.as_ref().and_then(|from| from.client_id.as_ref()) == Some(&client);
        let waiting = self.state.queue.iter().filter(is_theirs);
        let waiting: Vec<PromptId> = waiting.filter_map(|queued| queued.prompt.prompt_id.clone()).collect();
        for prompt_id in waiting {
            self.tell(EventKind::PromptWithdrawn { prompt_id, by: Some(by.clone()) });
        }
        self.tail.cut(&client);
        Ok(())
    }

    fn restart(&mut self, config: Option<Box<SessionConfig>>, reply: Reply<()>) {
        if !matches!(self.agent, Agent::Gone) {
            return self.reply(reply, Err(Refusal::AgentRunning));
        }
        if let Some(config) = config {
            self.config = *config;
        }
        let when_up: WhenUp = Box::new(move |up| drop(reply.send(up.map_err(Refusal::from))));
        self.start_again(when_up);
    }
}
