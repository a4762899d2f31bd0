//! Hands prompts over to the agent, one turn after the other.

use std::mem;

use multitap_event::{ClientRef, Command, EventKind, Prompt, PromptId, UserMessage};
use tokio::sync::mpsc;

use super::SessionTask;
use crate::state::Presence;

impl SessionTask {
    pub(super) fn can_hand_over(&self) -> bool {
        let waits = self.first.is_some() || !self.state.queue.is_empty();
        waits && self.state.agent == Presence::Here && !self.state.is_busy() && !self.renew
    }

    /// Hands over the prompt whose turn it is. If the agent cannot take it now, a later round will.
    pub(super) fn hand_over_next(&mut self) {
        if !self.can_hand_over() {
            return;
        }
        let Ok(permit) = self.agent.permit() else { return };
        let front = self.state.queue.front().and_then(|queued| queued.prompt.prompt_id.as_ref());
        let has_waited = front.is_some_and(|id| self.waited.contains(id));
        if let Some(prompt) = self.first.take_if(|_| !has_waited) {
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
        self.is_line = prompt.within.is_none() && prompt.shell_line().is_some();
        self.said = prompt.text.trim_start().starts_with('/').then(|| from.clone());
        let message = spoken(&mut prompt, from);
        self.tell(EventKind::UserMessage(message));
        for notice in mem::take(&mut prompt.notices) {
            self.tell(EventKind::Error(notice));
        }
        self.hand(permit, Command::Prompt(prompt));
    }

    /// Whether what runs is a command for the shell that somebody typed.
    pub(super) fn runs_line(&self) -> bool {
        self.is_line && self.state.in_flight.is_some()
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
