//! A reply as it arrives: the event for each piece, and the message in the end.

use multitap_event::{EventKind, MessageId, Reasoning, Role, TextChunk, TextRetraction};

use crate::conversation::{Call, Part};
use crate::model::Delta;

/// The part of a reply that has arrived.
#[derive(Debug)]
pub(super) struct Gathered {
    id: MessageId,
    pub(super) parts: Vec<Part>,
}

impl Gathered {
    pub(super) fn new(id: MessageId) -> Self {
        Self { id, parts: Vec::new() }
    }

    /// Handles a piece; returns its event.
    pub(super) fn take(&mut self, delta: Delta) -> Option<EventKind> {
        let message_id = Some(self.id.clone());
        match delta {
            Delta::Text(content) if content.is_empty() => None,
            Delta::Text(content) => {
                match self.parts.last_mut() {
                    Some(Part::Text { text }) => text.push_str(&content),
                    _ => self.parts.push(Part::Text { text: content.clone() }),
                }
                Some(EventKind::TextChunk(TextChunk {
                    content,
                    is_partial: true,
                    role: Some(Role::Assistant),
                    message_id,
                    parent_tool_id: None,
                }))
            }
            Delta::Thought(content) if content.is_empty() => None,
            Delta::Thought(content) => {
                match self.parts.last_mut() {
                    Some(Part::Thought { text, signature: None }) => text.push_str(&content),
                    _ => self.parts.push(Part::Thought { text: content.clone(), signature: None }),
                }
                let parent_tool_id = None;
                Some(EventKind::Reasoning(Reasoning { content, is_partial: true, message_id, parent_tool_id }))
            }
            Delta::Signature(sign) => {
                match self.parts.last_mut() {
                    Some(Part::Thought { signature: signature @ None, .. }) => *signature = Some(sign),
                    _ => self.parts.push(Part::Thought { text: String::new(), signature: Some(sign) }),
                }
                None
            }
            Delta::Call(call) => {
                self.parts.push(Part::Call(call));
                None
            }
        }
    }

    /// The event that retracts the text of this reply; `None` if none of it was shown.
    pub(super) fn retracted(&self) -> Option<EventKind> {
        let heard = |part: &Part| match part {
            Part::Text { .. } => true,
            Part::Thought { text, .. } => !text.is_empty(),
            Part::Call(_) => false,
        };
        let is_shown = self.parts.iter().any(heard);
        is_shown.then(|| EventKind::TextRetracted(TextRetraction::interrupted(vec![self.id.clone()])))
    }

    /// All its text, without thoughts.
    pub(super) fn text(&self) -> Option<String> {
        let text: String = self
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Thought { .. } | Part::Call(_) => None,
            })
            .collect();
        Some(text).filter(|text| !text.is_empty())
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.parts.iter().filter_map(Part::call).cloned().collect()
    }
}
