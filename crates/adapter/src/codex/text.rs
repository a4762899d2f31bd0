//! What the model says and thinks: in pieces or whole, each told once.

use multitap_event::{EventKind, MessageId, Reasoning, Role, TextChunk, ToolId};
use serde_json::{Map, Value};

use super::notice::note;
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

/// The texts of the turn.
#[derive(Debug, Default)]
pub(super) struct Texts {
    told: Vec<Told>,
}

#[derive(Debug)]
struct Told {
    id: MessageId,
    text: String,
    /// Nothing more of it comes.
    is_whole: bool,
}

impl Texts {
    fn told(&mut self, id: &str) -> &mut Told {
        // The one that is under way is among the last.
        let at = self.told.iter().rposition(|told| told.id.as_str() == id).unwrap_or_else(|| {
            self.told.push(Told { id: id.into(), text: String::new(), is_whole: false });
            self.told.len() - 1
        });
        &mut self.told[at]
    }

    /// A new piece.
    pub(super) fn piece(&mut self, id: &str, voice: Voice, piece: String, parent: Option<&ToolId>, out: &mut Step) {
        if piece.is_empty() {
            return;
        }
        let told = self.told(id);
        told.text.push_str(&piece);
        out.events.push(chunk(voice, piece, true, &told.id, parent));
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
        let told = self.told(id);
        told.is_whole = so == So::Final;
        if told.text.is_empty() && so == So::Final {
            if !text.is_empty() {
                text.clone_into(&mut told.text);
                out.events.push(chunk(voice, text.to_owned(), false, &told.id, parent));
            }
        } else if let Some(rest) = text.strip_prefix(told.text.as_str()) {
            self.piece(id, voice, rest.to_owned(), parent, out);
        } else if so == So::Final && !told.text.contains(text.trim()) {
            // It came out otherwise than it began.
            let id = format!("{id}:final");
            self.whole(&id, voice, text, so, parent, out);
        }
    }

    /// The model was cut off and begins again: what it was about to say is void.
    pub(super) fn cut_off(&mut self, out: &mut Step) {
        let void = self.told.extract_if(.., |told| !told.is_whole && !told.text.is_empty());
        let ids: Vec<Value> = void.map(|told| told.id.as_str().into()).collect();
        if !ids.is_empty() {
            let message = "the model was cut off and begins this text again".to_owned();
            let data = Map::from_iter([("messageIds".to_owned(), ids.into())]);
            out.events.push(note("discarded", Some(message), data));
        }
    }

    /// The turn is over; what comes later under these ids is another text.
    pub(super) fn turn_over(&mut self) {
        self.told.clear();
    }
}

fn chunk(voice: Voice, content: String, is_partial: bool, id: &MessageId, parent: Option<&ToolId>) -> EventKind {
    let (message_id, parent_tool_id) = (Some(id.clone()), parent.cloned());
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
