//! The model's text and thoughts, in pieces or whole, each emitted once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use multitap_event::{EventKind, MessageId, Reasoning, Role, TextChunk, TextRetraction, ToolId};

use crate::codec::Step;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    Speech,
    Thought,
}

impl Voice {
    /// A text of the model, or a piece of it. `parent` is the call that started the sub-agent that wrote it.
    pub(crate) fn event(
        self,
        content: String,
        is_partial: bool,
        message_id: Option<MessageId>,
        parent_tool_id: Option<ToolId>,
    ) -> EventKind {
        match self {
            Self::Speech => {
                let role = Some(Role::Assistant);
                EventKind::TextChunk(TextChunk { content, is_partial, role, message_id, parent_tool_id })
            }
            Self::Thought => EventKind::Reasoning(Reasoning { content, is_partial, message_id, parent_tool_id }),
        }
    }
}

/// Whether the text may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    Comes,
    None,
}

/// The texts of the turn. The cost of a text does not depend on how many there are.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    numbers: HashMap<Arc<str>, u64>,
    emitted: HashMap<u64, EmittedText>,
    /// Texts that may continue; a later text has a higher number.
    unfinished: BTreeSet<u64>,
    count: u64,
}

#[derive(Debug)]
struct EmittedText {
    id: MessageId,
    text: String,
}

impl Texts {
    fn number(&mut self, id: &str) -> u64 {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let number = self.count;
        self.count += 1;
        self.numbers.insert(id.into(), number);
        self.unfinished.insert(number);
        number
    }

    fn emitted(&mut self, id: &str) -> &mut EmittedText {
        let number = self.number(id);
        self.emitted.entry(number).or_insert_with(|| EmittedText { id: id.into(), text: String::new() })
    }

    pub(crate) fn piece(&mut self, id: &str, voice: Voice, piece: String, parent: Option<&ToolId>, out: &mut Step) {
        if piece.is_empty() {
            return;
        }
        let emitted = self.emitted(id);
        emitted.text.push_str(&piece);
        out.events.push(voice.event(piece, true, Some(emitted.id.clone()), parent.cloned()));
    }

    /// The whole text, so far or finally. Emits only the new part.
    pub(crate) fn whole(
        &mut self,
        id: &str,
        voice: Voice,
        text: &str,
        more: More,
        parent: Option<&ToolId>,
        out: &mut Step,
    ) {
        let number = self.number(id);
        match more {
            More::Comes => self.unfinished.insert(number),
            More::None => self.unfinished.remove(&number),
        };
        let emitted = self.emitted(id);
        if emitted.text.is_empty() && more == More::None {
            if !text.is_empty() {
                text.clone_into(&mut emitted.text);
                out.events.push(voice.event(text.to_owned(), false, Some(emitted.id.clone()), parent.cloned()));
            }
        } else if let Some(rest) = text.strip_prefix(emitted.text.as_str()) {
            self.piece(id, voice, rest.to_owned(), parent, out);
        } else if more == More::None && !emitted.text.contains(text.trim()) {
            // The whole text differs from the streamed pieces.
            let id = format!("{id}:final");
            self.whole(&id, voice, text, more, parent, out);
        }
    }

    /// The model's stream broke and the model starts again: retract the texts that it did not finish.
    pub(crate) fn retract_unfinished(&mut self, out: &mut Step) {
        let unfinished = std::mem::take(&mut self.unfinished).into_iter();
        let unfinished: Vec<EmittedText> = unfinished.filter_map(|number| self.emitted.remove(&number)).collect();
        for text in &unfinished {
            self.numbers.remove(text.id.as_str());
        }
        let shown = unfinished.into_iter().filter(|text| !text.text.is_empty());
        retract(shown.map(|text| text.id).collect(), out);
    }

    /// The turn is over: later text under these ids is another text.
    pub(crate) fn turn_over(&mut self) {
        *self = Self::default();
    }
}

/// The model was interrupted and starts these messages again under other ids.
pub(crate) fn retract(ids: Vec<MessageId>, out: &mut Step) {
    if !ids.is_empty() {
        out.events.push(EventKind::TextRetracted(TextRetraction::interrupted(ids)));
    }
}

/// Messages of an agent that does not mark their ends: an event of another kind ends a message. The pieces of a message
/// share an id.
#[derive(Debug, Default)]
pub(crate) struct MessageStream {
    current: Option<(Voice, MessageId)>,
    /// Number of messages in this turn to which the agent gave no id.
    count: u64,
    /// The text since the last event of another kind.
    closing: String,
}

impl MessageStream {
    /// The id of the message that the next piece belongs to. `native` is the agent's own id, `turn` the number of the
    /// turn.
    pub(crate) fn id(&mut self, voice: Voice, native: Option<&str>, turn: u64) -> MessageId {
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

    /// Records a piece of the message, or the whole message if `is_partial` is false.
    pub(crate) fn said(&mut self, content: &str, is_partial: bool) {
        if !is_partial {
            self.closing.clear();
        }
        self.closing.push_str(content);
    }

    pub(crate) fn is(&self, content: &str) -> bool {
        self.closing == content
    }

    /// Another kind of event came: later text is another message.
    pub(crate) fn pause(&mut self) {
        self.current = None;
        self.closing.clear();
    }

    pub(crate) fn turn_over(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn closing_words(&self) -> Option<String> {
        Some(self.closing.clone()).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(steps: &[(&str, More)]) -> Vec<(String, bool)> {
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

    /// Each text of a turn was once compared with all others.
    #[test]
    fn a_turn_may_have_very_many_texts() {
        const TEXTS: usize = 150_000;
        let (mut texts, mut out) = (Texts::default(), Step::default());
        for number in 0..TEXTS {
            texts.whole(&number.to_string(), Voice::Speech, "x", More::None, None, &mut out);
        }
        assert_eq!(out.events.len(), TEXTS);
        // The model is interrupted again and again.
        for number in TEXTS..2 * TEXTS {
            texts.piece(&number.to_string(), Voice::Speech, "x".to_owned(), None, &mut out);
            texts.retract_unfinished(&mut out);
        }
        assert_eq!((out.events.len(), texts.emitted.len(), texts.unfinished.len()), (3 * TEXTS, TEXTS, 0));
    }

    #[test]
    fn interrupted_texts_are_retracted_in_their_order() {
        let (mut texts, mut out) = (Texts::default(), Step::default());
        for (id, so) in [("b", More::Comes), ("a", More::Comes), ("c", More::None), ("e", More::Comes)] {
            let text = if id == "e" { "" } else { "x" };
            texts.whole(id, Voice::Speech, text, so, None, &mut out);
        }
        out.events.clear();
        texts.retract_unfinished(&mut out);
        let Some(EventKind::TextRetracted(retracted)) = out.events.first() else { panic!("{:?}", out.events) };
        assert_eq!(retracted.message_ids, ["b".into(), "a".into()]);
        texts.retract_unfinished(&mut out);
        assert_eq!(out.events.len(), 1);
    }

    #[test]
    fn only_what_is_new_is_told() {
        let steps = [("", More::Comes), ("I'll ", More::Comes), ("I'll help", More::Comes), ("I'll help.", More::None)];
        let parts = ["I'll ", "help", "."].map(|text| (text.to_owned(), true));
        assert_eq!(reported(&steps), parts);
        assert_eq!(reported(&[("all at once", More::None)]), [("all at once".to_owned(), false)]);
        assert_eq!(reported(&[("done ", More::Comes), ("done", More::None)]), [("done ".to_owned(), true)]);
        let other = [("one".to_owned(), true), ("two".to_owned(), false)];
        assert_eq!(reported(&[("one", More::Comes), ("two", More::None)]), other);
    }
}
