//! What the agent and the user say, and the agent's plan.

use multitap_event::{
    EventKind, Image, MessageId, Reasoning, Role, TextChunk, Timestamp, TodoItem, TodoList, TodoStatus, ToolId,
    UserMessage,
};
use serde_json::Value;

use super::decode::AcpCodec;
use super::wire::{Chunk, Plan};
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
    fn id(&mut self, voice: Voice, native: Option<String>, turn: u64) -> MessageId {
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
    pub(super) fn speech(&mut self, chunk: Chunk, now: Timestamp, out: &mut Step) {
        let content = text_of(&chunk.content);
        if let Some(mode) = self.flavor.mode_in_text(&content) {
            self.session.mode_is(mode, self.flavor, out);
            return;
        }
        let Some((message_id, parent_tool_id)) = self.said(Voice::Speech, &content, chunk, now, out) else { return };
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

    pub(super) fn thought(&mut self, chunk: Chunk, now: Timestamp, out: &mut Step) {
        let content = self.flavor.thought(text_of(&chunk.content));
        let Some((message_id, parent_tool_id)) = self.said(Voice::Thought, &content, chunk, now, out) else { return };
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
        chunk: Chunk,
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
        let parent = chunk.meta.and_then(|meta| meta.claude?.parent_tool_use_id).map(ToolId::from);
        Some((self.texts.id(voice, chunk.message_id, self.turns.count()), parent))
    }

    /// Something of a turn comes. In a recording nothing else shows where the turn began.
    pub(super) fn at_work(&mut self, now: Timestamp, out: &mut Step) {
        self.under_way(out);
        if !self.session.is_live() && !self.session.is_history() {
            self.turns.begin(now, out);
        }
    }

    /// What the user said: agents tell it only where they tell a conversation again.
    pub(super) fn user_message(&mut self, chunk: Chunk, out: &mut Step) {
        self.under_way(out);
        self.session.history_told();
        self.texts.pause();
        let image = image_of(&chunk.content);
        let content = if image.is_some() { String::new() } else { text_of(&chunk.content) };
        out.events.push(EventKind::UserMessage(UserMessage {
            content,
            images: image.into_iter().collect(),
            prompt_id: None,
            from: None,
            steering: false,
            message_id: chunk.message_id.map(Into::into),
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

/// A content block as text; what is no text is named.
pub(super) fn text_of(block: &Value) -> String {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some("resource_link") => text("uri").or(text("name")).unwrap_or_default().to_owned(),
        Some("resource") => {
            let resource = block.get("resource");
            let of = |key: &str| resource.and_then(|resource| resource.get(key)?.as_str());
            of("text").or(of("uri")).unwrap_or_default().to_owned()
        }
        Some(other) => format!("[{other}]"),
        None => block.as_str().unwrap_or_default().to_owned(),
    }
}

fn image_of(block: &Value) -> Option<Image> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
    if text("type")? != "image" {
        return None;
    }
    Some(Image { media_type: text("mimeType")?, data: text("data")? })
}
