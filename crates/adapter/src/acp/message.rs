//! What the agent and the user say, and the agent's plan.

use multitap_event::{EventKind, MessageId, Timestamp, TodoItem, TodoList, TodoStatus, ToolId, UserMessage};

use super::decode::AcpCodec;
use super::wire::{Plan, Update};
use crate::codec::Step;
use crate::emit::Voice;

impl AcpCodec {
    pub(super) fn speech(&mut self, mut chunk: Update<'_>, now: Timestamp, out: &mut Step) {
        let content = std::mem::take(&mut chunk.content).into_text();
        if let Some(mode) = self.flavor.mode_in_text(&content) {
            self.session.mode_is(mode, self.flavor, out);
            return;
        }
        let Some((message_id, parent_tool_id)) = self.said(Voice::Speech, &content, &chunk, now, out) else { return };
        if parent_tool_id.is_none() {
            self.messages.said(&content, true);
        }
        out.events.push(Voice::Speech.event(content, true, Some(message_id), parent_tool_id));
    }

    pub(super) fn thought(&mut self, mut chunk: Update<'_>, now: Timestamp, out: &mut Step) {
        let content = self.flavor.thought(std::mem::take(&mut chunk.content).into_text());
        let Some((message_id, parent_tool_id)) = self.said(Voice::Thought, &content, &chunk, now, out) else { return };
        out.events.push(Voice::Thought.event(content, true, Some(message_id), parent_tool_id));
    }

    /// The model speaks: which message it is, and whose. Nothing if it says nothing.
    fn said(
        &mut self,
        voice: Voice,
        content: &str,
        chunk: &Update<'_>,
        now: Timestamp,
        out: &mut Step,
    ) -> Option<(MessageId, Option<ToolId>)> {
        if content.is_empty() {
            return None;
        }
        self.at_work(now, out);
        self.refused_elsewhere(out);
        // The model has heard what became of its calls; the agent will not report those that were refused.
        self.close_denied(now, out);
        let turn = self.emit.turns.count();
        Some((self.messages.id(voice, chunk.message_id.as_deref(), turn), chunk.parent()))
    }

    /// Something of a turn comes. In a recording nothing else shows where the turn began.
    pub(super) fn at_work(&mut self, now: Timestamp, out: &mut Step) {
        self.under_way(out);
        if !self.session.is_live() && !self.session.is_history() {
            self.emit.turns.begin(now, out);
        }
    }

    /// What the user said: agents report it only where they report a conversation again.
    pub(super) fn user_message(&mut self, chunk: Update<'_>, out: &mut Step) {
        self.under_way(out);
        self.session.history_told();
        self.messages.pause();
        let image = chunk.content.image();
        let content = if image.is_some() { String::new() } else { chunk.content.into_text() };
        out.events.push(EventKind::UserMessage(UserMessage {
            content,
            images: image.into_iter().collect(),
            prompt_id: None,
            from: None,
            steering: false,
            message_id: chunk.message_id.as_deref().map(MessageId::from),
            ..UserMessage::default()
        }));
    }

    pub(super) fn plan(&mut self, plan: Plan, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        let item = |entry: super::wire::PlanEntry| TodoItem {
            text: entry.content,
            status: match entry.status.as_str() {
                "in_progress" => TodoStatus::InProgress,
                "completed" => TodoStatus::Completed,
                "cancelled" => TodoStatus::Cancelled,
                _ => TodoStatus::Pending,
            },
            id: None,
        };
        let items = plan.entries.into_iter().map(item).collect();
        out.events.push(EventKind::TodoList(TodoList { items, explanation: None }));
    }
}
