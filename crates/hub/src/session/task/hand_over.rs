//! Hands prompts over to the agent, one turn after the other.

use std::mem;

use multitap_event::{ClientRef, Command, EventKind, Prompt, PromptId, UserMessage};
use tokio::sync::mpsc;

use super::{LastPrompt, Restart, SessionTask};
use crate::state::Presence;

impl SessionTask {
    pub(super) fn can_hand_over(&self) -> bool {
        let waits = self.first.is_some() || !self.state.queue.is_empty();
        waits && self.state.agent == Presence::Here && !self.state.is_busy() && self.restart != Restart::WhenIdle
    }

    /// Hands over the prompt whose turn it is. If the agent cannot take it now, a later round will.
    pub(super) fn hand_over_next(&mut self) {
        if !self.can_hand_over() {
            return;
        }
        let Ok(permit) = self.agent.permit() else { return };
        let front = self.state.queue.front().and_then(|queued| queued.prompt.prompt_id.as_ref());
        let is_recovered = front.is_some_and(|id| self.recovered_prompts.contains(id));
        if let Some(prompt) = self.first.take_if(|_| !is_recovered) {
            let by = self.by.clone();
            self.hand_over(permit, prompt, by);
        } else if let Some(queued) = self.state.queue.front().cloned() {
            let from = queued.from.unwrap_or_else(|| self.by.clone());
            self.hand_over(permit, queued.prompt, from);
        }
    }

    pub(super) fn hand_over(&mut self, permit: mpsc::OwnedPermit<Command>, mut prompt: Prompt, from: ClientRef) {
        prompt.within = self.rights.within(&from);
        prompt.account.clone_from(&from.account);
        self.last_prompt = if prompt.within.is_none() && prompt.shell_line().is_some() {
            LastPrompt::ShellCommand
        } else if prompt.text.trim_start().starts_with('/') {
            LastPrompt::SlashCommand(from.clone())
        } else {
            LastPrompt::Message
        };
        let message = spoken(&mut prompt, from);
        self.tell(EventKind::UserMessage(message));
        for notice in mem::take(&mut prompt.notices) {
            self.tell(EventKind::Error(notice));
        }
        self.hand(permit, Command::Prompt(prompt));
    }

    /// Whether a shell command that somebody typed is running.
    pub(super) fn runs_shell_command(&self) -> bool {
        matches!(self.last_prompt, LastPrompt::ShellCommand) && self.state.in_flight.is_some()
    }
}

/// What the log says of a prompt that goes to the agent, which has an id from now on.
pub(super) fn spoken(prompt: &mut Prompt, from: ClientRef) -> UserMessage {
    let id = prompt.prompt_id.get_or_insert_with(PromptId::fresh).clone();
    UserMessage {
        content: prompt.text.clone(),
        images: prompt.images.clone(),
        prompt_id: Some(id),
        from: Some(from),
        sent_as: prompt.sent_as.clone(),
        ..UserMessage::default()
    }
}
