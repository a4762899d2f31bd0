//! What the model says and thinks: in pieces or whole, each told once.

use std::collections::HashMap;

use multitap_event::{EventKind, MessageId, Reasoning, Role, TextChunk, ToolId};

use crate::codec::Step;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Speech,
    Thought,
}

/// Whether more of a text may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum So {
    Far,
    Final,
}

/// The texts under way, by their id.
#[derive(Debug, Default)]
pub(super) struct Texts {
    told: HashMap<String, String>,
}

impl Texts {
    /// A new piece.
    pub(super) fn piece(&mut self, id: &str, voice: Voice, piece: &str, parent: Option<&ToolId>, out: &mut Step) {
        if piece.is_empty() {
            return;
        }
        self.told.entry(id.to_owned()).or_default().push_str(piece);
        out.events.push(chunk(voice, piece.to_owned(), true, id, parent));
    }

    /// All of it, so far or for good. What was told already is not told again.
    pub(super) fn whole(
        &mut self,
        id: &str,
        voice: Voice,
        text: &str,
        so: So,
        parent: Option<&ToolId>,
        out: &mut Step,
    ) {
        let told = self.told.get(id).map(String::as_str).unwrap_or_default();
        if told.is_empty() && so == So::Final {
            if !text.is_empty() {
                self.told.insert(id.to_owned(), text.to_owned());
                out.events.push(chunk(voice, text.to_owned(), false, id, parent));
            }
        } else if let Some(rest) = text.strip_prefix(told) {
            let rest = rest.to_owned();
            self.piece(id, voice, &rest, parent, out);
        } else if so == So::Final && !told.contains(text.trim()) {
            // It came out otherwise than it began.
            let id = format!("{id}:final");
            self.whole(&id, voice, text, so, parent, out);
        }
    }

    /// The turn is over; what comes later under these ids is another text.
    pub(super) fn turn_over(&mut self) {
        self.told.clear();
    }
}

fn chunk(voice: Voice, content: String, is_partial: bool, id: &str, parent: Option<&ToolId>) -> EventKind {
    let (message_id, parent_tool_id) = (Some(MessageId::from(id)), parent.cloned());
    match voice {
        Voice::Speech => {
            let role = Some(Role::Assistant);
            EventKind::TextChunk(TextChunk { content, is_partial, role, message_id, parent_tool_id })
        }
        Voice::Thought => EventKind::Reasoning(Reasoning { content, is_partial, message_id, parent_tool_id }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(steps: &[(&str, So)]) -> Vec<(String, bool)> {
        let (mut texts, mut out) = (Texts::default(), Step::default());
        for (text, so) in steps {
            texts.whole("1", Voice::Speech, text, *so, None, &mut out);
        }
        let chunk = |kind| match kind {
            EventKind::TextChunk(chunk) => (chunk.content, chunk.is_partial),
            other => panic!("{other:?}"),
        };
        out.events.into_iter().map(chunk).collect()
    }

    #[test]
    fn only_what_is_new_is_told() {
        let steps = [("", So::Far), ("I'll ", So::Far), ("I'll help", So::Far), ("I'll help.", So::Final)];
        let parts = ["I'll ", "help", "."].map(|text| (text.to_owned(), true));
        assert_eq!(told(&steps), parts);
        assert_eq!(told(&[("all at once", So::Final)]), [("all at once".to_owned(), false)]);
        assert_eq!(told(&[("done ", So::Far), ("done", So::Final)]), [("done ".to_owned(), true)]);
        let other = [("one".to_owned(), true), ("two".to_owned(), false)];
        assert_eq!(told(&[("one", So::Far), ("two", So::Final)]), other);
    }
}
