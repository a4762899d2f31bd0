//! What clients ask of a session, one by one: checked here, told as events, and answered when those are kept.

use std::sync::Arc;

use multitap_event::{ClientId, ClientRef, Command, EventKind, Prompt, PromptId, SessionConfig, UserMessage};
use tokio::time::Instant;

use super::agent::{Agent, WhenUp};
use super::hand_over::spoken;
use super::{Linger, SWEEP, SessionTask};
use crate::feed::Feed;
use crate::session::ask::{Ask, Reply};
use crate::session::error::{
    CancelError, CommandError, JoinError, KickError, PromptError, RestartError, RevokeError, WithdrawError,
};
use crate::session::right::Rights;
use crate::session::{Join, Joined, Place, WhenBusy};
use crate::state::{Presence, Queued};
use crate::tail::Reader;

/// How many clients may read a session at once.
const CLIENTS: usize = 4096;

impl SessionTask {
    pub(super) fn on_ask(&mut self, ask: Ask) {
        match ask {
            Ask::Join { join, reply } => self.join(join, reply),
            Ask::Snapshot { reply } => {
                let state = Box::new(self.state.clone());
                self.reply(reply, state);
            }
            Ask::Prompt { prompt, when_busy, from, reply } => {
                let accepted = self.prompt(prompt, when_busy, from);
                self.reply(reply, accepted);
            }
            Ask::Withdraw { prompt, by, reply } => {
                let withdrawn = self.withdraw(prompt, by);
                self.reply(reply, withdrawn);
            }
            Ask::Decide { decide, by, reply } => self.answer(decide, by, reply),
            Ask::Cancel { by, reply } => {
                let cancelled = self.cancel(&by);
                self.reply(reply, cancelled);
            }
            Ask::Pass { command, by, reply } => {
                let passed = self.pass(command, by);
                self.reply(reply, passed);
            }
            Ask::Revoke { rule_id, by, reply } => {
                let revoked = self.revoke(rule_id, &by);
                self.reply(reply, revoked);
            }
            Ask::Kick { client, by, reply } => {
                let kicked = self.kick(client, &by);
                self.reply(reply, kicked);
            }
            Ask::Report { error, reply } => {
                let room = self.room();
                if room.is_ok() {
                    self.tell(EventKind::Error(error));
                }
                self.reply(reply, room);
            }
            Ask::Restart { config, reply } => self.restart(config, reply),
            Ask::Finish { reply } => {
                self.finishing = true;
                self.reply(reply, Ok(()));
            }
            Ask::Stop { reply } => {
                self.stop_turn();
                self.reply(reply, Ok(()));
            }
        }
    }

    fn join(&mut self, join: Join, reply: Reply<Result<Joined, JoinError>>) {
        if self.tail.readers() >= CLIENTS {
            // Some may have left meanwhile.
            self.sweep();
        }
        if self.tail.readers() >= CLIENTS {
            return self.reply(reply, Err(JoinError::Full));
        }
        let Join { mut client, from, patience, announce } = join;
        self.joined = true;
        // Nothing comes after the end of a session that ends with its agent.
        let announce = announce && self.unheard.take().is_none();
        let client_id = client.client_id.get_or_insert_with(ClientId::fresh).clone();
        let before = self.state.seq;
        if announce {
            self.tell(EventKind::ClientJoined { client: client.clone() });
        }
        let now = self.state.seq;
        let Place { after, snapshot, gap } = from.place(before, now, self.epoch);
        let snapshot = snapshot.then(|| Box::new(self.state.clone()));
        let reader = Arc::new(Reader::new(client_id, after, patience));
        self.tail.seat(reader.clone());
        if patience.is_some() {
            self.next_sweep.get_or_insert_with(|| Instant::now() + SWEEP);
        }
        let feed = Feed::new(self.id.clone(), client.clone(), reader, self.tail.clone(), self.past.clone());
        self.reply(reply, Ok(Joined { client, feed, snapshot, gap, epoch: self.epoch }));
    }

    fn prompt(&mut self, mut prompt: Prompt, when_busy: WhenBusy, from: ClientRef) -> Result<PromptId, PromptError> {
        self.rights.may_act(&from)?;
        if self.closing {
            return Err(PromptError::SessionEnded);
        }
        if self.finishing {
            return Err(PromptError::Finishing);
        }
        self.room()?;
        let id = prompt.prompt_id.get_or_insert_with(PromptId::fresh).clone();
        if self.is_taken(&id) {
            return Err(PromptError::SameId(id));
        }
        if self.state.agent != Presence::Here {
            return self.prompt_without_agent(prompt, from).map(|()| id);
        }
        if self.state.is_at_rest() && self.first.is_none() && !self.renew {
            let permit = self.agent.permit()?;
            self.hand_over(permit, prompt, from);
            return Ok(id);
        }
        // A command for the shell is no part of a turn, nor takes it anything in.
        let is_line = prompt.shell_line().is_some() && from.is_owner();
        match when_busy {
            WhenBusy::Queue => self.queue(prompt, from, false)?,
            WhenBusy::Steer if is_line || self.runs_line() => self.queue(prompt, from, false)?,
            WhenBusy::Steer if !self.agent.steers() => return Err(PromptError::CannotSteer),
            WhenBusy::Steer if self.state.turn.is_some() => {
                let permit = self.agent.permit()?;
                prompt.within = self.rights.within(&from);
                prompt.account.clone_from(&from.account);
                let message = UserMessage { steering: true, ..spoken(&mut prompt, from) };
                self.tell(EventKind::UserMessage(message));
                self.hand(permit, Command::Steer(prompt));
            }
            // The turn is about to begin and takes nothing in yet: it comes next.
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

    /// Whether a prompt of that id waits or is being worked on: one of two would be taken for the other.
    fn is_taken(&self, id: &PromptId) -> bool {
        let first = self.first.as_ref().and_then(|first| first.prompt_id.as_ref());
        let waiting = self.state.queue.iter().filter_map(|queued| queued.prompt.prompt_id.as_ref());
        waiting.chain(first).chain(&self.state.in_flight).any(|taken| taken == id)
    }

    /// The agent is on its way, or has to be started again.
    fn prompt_without_agent(&mut self, prompt: Prompt, from: ClientRef) -> Result<(), PromptError> {
        let lingers = self.linger == Linger::UntilClosed;
        match self.agent {
            Agent::Starting { .. } => self.queue(prompt, from, false),
            Agent::Up { .. } if lingers || self.renew || self.state.agent == Presence::NotYet => {
                // If it is about to go, it is started again.
                self.wanted = true;
                self.queue(prompt, from, false)
            }
            Agent::Gone if lingers => {
                self.queue(prompt, from, false)?;
                self.start_again(Box::new(|_| {}));
                Ok(())
            }
            Agent::Gone | Agent::Up { .. } => Err(PromptError::SessionEnded),
        }
    }

    fn queue(&mut self, prompt: Prompt, from: ClientRef, first: bool) -> Result<(), PromptError> {
        if !self.state.has_room_for(&prompt) {
            return Err(PromptError::QueueFull);
        }
        self.tell(EventKind::PromptQueued { prompt, from: Some(from), first });
        Ok(())
    }

    /// Whether more can be told: not while nobody keeps or reads what was.
    pub(super) fn room(&self) -> Result<(), CommandError> {
        if self.outbox.has_room() && !self.tail.is_full() { Ok(()) } else { Err(CommandError::Busy) }
    }

    fn withdraw(&mut self, prompt: PromptId, by: ClientRef) -> Result<(), WithdrawError> {
        self.rights.may_act(&by)?;
        if !self.state.queue.iter().any(|queued| queued.prompt.prompt_id.as_ref() == Some(&prompt)) {
            return Err(WithdrawError::NotWaiting(prompt));
        }
        self.tell(EventKind::PromptWithdrawn { prompt_id: prompt, by: Some(by) });
        Ok(())
    }

    fn cancel(&mut self, by: &ClientRef) -> Result<(), CancelError> {
        self.rights.may_act(by)?;
        if !self.state.is_busy() {
            return Err(CancelError::NoTurn);
        }
        let permit = self.agent.permit()?;
        self.hand(permit, Command::Cancel);
        Ok(())
    }

    fn stop_turn(&mut self) {
        self.finishing = true;
        self.first = None;
        self.take_back();
        // Without a turn the end comes at once; an agent that takes no command is ended by `end`.
        if self.state.is_busy()
            && let Ok(permit) = self.agent.permit()
        {
            self.hand(permit, Command::Cancel);
        }
    }

    fn pass(&mut self, command: Command, by: ClientRef) -> Result<(), CommandError> {
        self.rights.may_act(&by)?;
        if self.linger == Linger::WithAgent && self.state.agent == Presence::Gone {
            return Err(CommandError::SessionEnded);
        }
        if let Command::SetMode { mode } = &command {
            self.rights.may_choose(mode, &by)?;
        }
        let permit = self.agent.permit()?;
        self.pending.sent(&command, self.config.agent.agent_type(), by);
        self.hand(permit, command);
        Ok(())
    }

    fn revoke(&mut self, rule_id: String, by: &ClientRef) -> Result<(), RevokeError> {
        self.rights.may_act(by)?;
        let rule = self.state.rules.iter().find(|rule| rule.rule_id == rule_id).cloned();
        let rule = rule.ok_or_else(|| RevokeError::NoSuchRule(rule_id.clone()))?;
        if !Rights::may_revoke(&rule, by) {
            return Err(RevokeError::NotYours);
        }
        if rule.outlives_the_agent() {
            return Err(RevokeError::Saved(rule_id));
        }
        self.tell(EventKind::RuleRevoked(rule));
        self.renew = matches!(self.agent, Agent::Up { .. });
        Ok(())
    }

    fn kick(&mut self, client: ClientId, by: &ClientRef) -> Result<(), KickError> {
        self.rights.may_act(by)?;
        let Some(found) = self.state.client(&client) else { return Err(KickError::NoSuchClient(client)) };
        self.rights.send_away(found, by)?;
        // It is heard no more, so what it said and nobody has heard yet is not either.
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

    fn restart(&mut self, config: Option<Box<SessionConfig>>, reply: Reply<Result<(), RestartError>>) {
        if !matches!(self.agent, Agent::Gone) {
            return self.reply(reply, Err(RestartError::Running));
        }
        if let Some(config) = config {
            self.config = *config;
        }
        let when_up: WhenUp = Box::new(move |up| drop(reply.send(up.map_err(RestartError::from))));
        self.start_again(when_up);
    }
}
