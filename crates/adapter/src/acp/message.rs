//! What the agent and the user say, and the agent's plan.

use multitap_event::{
    EventKind, MessageId, Reasoning, Role, TextChunk, Timestamp, TodoItem, TodoList, TodoStatus, ToolId, UserMessage,
};

use super::decode::AcpCodec;
use super::wire::{Plan, Update};
use crate::codec::Step;
use crate::track::Forgotten;

/// The message under way. Its pieces share an id; what comes in between ends it.
#[derive(Debug, Default)]
pub(super) struct Texts {
    current: Option<(Voice, MessageId)>,
    /// How many messages of this turn had no id of the agent's.
    count: u64,
    /// What was said since something else happened.
    closing: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Speech,
    Thought,
}

impl Texts {
    fn id(&mut self, voice: Voice, native: Option<&str>, turn: u64) -> MessageId {
        match (&self.current, native) {
            (Some((of, id)), Some(native)) if *of == voice && id.as_str() == native => id.clone(),
            (Some((of, id)), None) if *of == voice => id.clone(),
            (_, native) => {
                let id: MessageId = native.map_or_else(
                    || {
                        self.count += 1;
                        format!("turn-{turn}:{}", self.count).into()
                    },
                    Into::into,
                );
                self.current = Some((voice, id.clone()));
                self.closing.clear();
                id
            }
        }
    }

    /// Something else happened; what is said next is another message.
    pub(super) fn pause(&mut self) {
        self.current = None;
        self.closing.clear();
    }

    pub(super) fn turn_over(&mut self) {
        *self = Self::default();
    }

    /// What was said last in the turn.
    pub(super) fn closing_words(&self) -> Option<String> {
        Some(self.closing.clone()).filter(|text| !text.is_empty())
    }
}

impl AcpCodec {
    pub(super) fn speech(&mut self, mut chunk: Update<'_>, now: Timestamp, out: &mut Step) {
        let content = std::mem::take(&mut chunk.content).into_text();
        if let Some(mode) = self.flavor.mode_in_text(&content) {
            self.session.mode_is(mode, self.flavor, out);
            return;
        }
        let Some((message_id, parent_tool_id)) = self.said(Voice::Speech, &content, &chunk, now, out) else { return };
        if parent_tool_id.is_none() {
            self.texts.closing.push_str(&content);
        }
        out.events.push(EventKind::TextChunk(TextChunk {
            content,
            is_partial: true,
            role: Some(Role::Assistant),
            message_id: Some(message_id),
            parent_tool_id,
        }));
    }

    pub(super) fn thought(&mut self, mut chunk: Update<'_>, now: Timestamp, out: &mut Step) {
        let content = self.flavor.thought(std::mem::take(&mut chunk.content).into_text());
        let Some((message_id, parent_tool_id)) = self.said(Voice::Thought, &content, &chunk, now, out) else { return };
        out.events.push(EventKind::Reasoning(Reasoning {
            content,
            is_partial: true,
            message_id: Some(message_id),
            parent_tool_id,
        }));
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
        // The model has heard what became of its calls; the agent will not tell of those that were refused.
        self.tools.close(Forgotten::Denied, self.turns.why_no_end(), self.clock(now), out);
        Some((self.texts.id(voice, chunk.message_id.as_deref(), self.turns.count()), chunk.parent()))
    }

    /// Something of a turn comes. In a recording nothing else shows where the turn began.
    pub(super) fn at_work(&mut self, now: Timestamp, out: &mut Step) {
        self.under_way(out);
        if !self.session.is_live() && !self.session.is_history() {
            self.turns.begin(now, out);
        }
    }

    /// What the user said: agents tell it only where they tell a conversation again.
    pub(super) fn user_message(&mut self, chunk: Update<'_>, out: &mut Step) {
        self.under_way(out);
        self.session.history_told();
        self.texts.pause();
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
