//! Messages of the agent and the user, and the agent's plan.

use multitap_event::{EventKind, MessageId, Timestamp, TodoItem, TodoList, ToolId, UserMessage};
use serde_json::{Map, Value};

use super::decode::AcpCodec;
use super::wire::Update;
use crate::codec::Step;
use crate::emit::{Voice, todo_status};
use crate::json::JsonFields as _;
use crate::line::unrecognized;

impl AcpCodec {
    pub(super) fn speech(&mut self, chunk: &Update<'_>, now: Timestamp, out: &mut Step) {
        let content = chunk.text();
        if let Some(mode) = self.flavor.mode_in_text(&content) {
            self.mode_is(mode, out);
            return;
        }
        let Some((message_id, parent_tool_id)) = self.said(Voice::Speech, &content, chunk, now, out) else { return };
        if parent_tool_id.is_none() {
            self.emit.messages.said(&content, true);
        }
        out.events.push(Voice::Speech.event(content, true, Some(message_id), parent_tool_id));
    }

    pub(super) fn thought(&mut self, chunk: &Update<'_>, now: Timestamp, out: &mut Step) {
        let content = self.flavor.thought(chunk.text());
        let Some((message_id, parent_tool_id)) = self.said(Voice::Thought, &content, chunk, now, out) else { return };
        out.events.push(Voice::Thought.event(content, true, Some(message_id), parent_tool_id));
    }

    /// A piece of text of the model: finds its message and its speaker. `None` if the piece is empty.
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
        // The model has seen the results of its calls; the agent will not report those that were refused.
        self.close_denied(now, out);
        let turn = self.emit.turns.count();
        Some((self.emit.messages.id(voice, chunk.message_id.as_deref(), turn), chunk.parent()))
    }

    /// Begins a turn when something in it arrives: a recording shows no other beginning.
    pub(super) fn at_work(&mut self, now: Timestamp, out: &mut Step) {
        self.under_way(out);
        if !self.emit.session.is_live() && !self.session.in_history {
            self.emit.turns.begin(now, out);
        }
    }

    /// A message of the user. Agents send these only when they replay a conversation.
    pub(super) fn user_message(&mut self, chunk: &Update<'_>, out: &mut Step) {
        self.under_way(out);
        self.session.in_history = true;
        self.emit.messages.pause();
        let image = chunk.image();
        out.events.push(EventKind::UserMessage(UserMessage {
            content: if image.is_some() { String::new() } else { chunk.text() },
            images: image.into_iter().collect(),
            message_id: chunk.message_id.as_deref().map(MessageId::from),
            ..UserMessage::default()
        }));
    }

    pub(super) fn plan(&mut self, plan: &Map<String, Value>, line: &str, now: Timestamp, out: &mut Step) {
        let Some(entries) = plan.field("entries").and_then(Value::as_array) else {
            out.events.push(unrecognized(line, "a plan without entries"));
            return;
        };
        self.at_work(now, out);
        let item = |entry: &Value| TodoItem {
            text: entry.string("content").unwrap_or_default(),
            status: todo_status(entry.text("status")),
            id: None,
        };
        let items = entries.iter().map(item).collect();
        out.events.push(EventKind::TodoList(TodoList { items, explanation: None }));
    }
}
