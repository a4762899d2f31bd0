//! What the model says and thinks: in pieces or whole, each told once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use multitap_event::{EventKind, MessageId, Reasoning, Role, TextChunk, TextRetraction, ToolId};

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

/// The texts of the turn. Each costs the same however many there are.
#[derive(Debug, Default)]
pub(super) struct Texts {
    numbers: HashMap<Arc<str>, u64>,
    told: HashMap<u64, Told>,
    /// Those of which more may come: a later text has a higher number.
    unfinished: BTreeSet<u64>,
    count: u64,
}

#[derive(Debug)]
struct Told {
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

    fn told(&mut self, id: &str) -> &mut Told {
        let number = self.number(id);
        self.told.entry(number).or_insert_with(|| Told { id: id.into(), text: String::new() })
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
        let number = self.number(id);
        match so {
            So::Far => self.unfinished.insert(number),
            So::Final => self.unfinished.remove(&number),
        };
        let told = self.told(id);
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

    /// The model stream broke and the model starts again: retract the texts it did not finish.
    pub(super) fn retract_unfinished(&mut self, out: &mut Step) {
        let unfinished = std::mem::take(&mut self.unfinished).into_iter();
        let unfinished: Vec<Told> = unfinished.filter_map(|number| self.told.remove(&number)).collect();
        for told in &unfinished {
            self.numbers.remove(told.id.as_str());
        }
        let shown = unfinished.into_iter().filter(|told| !told.text.is_empty());
        let ids: Vec<MessageId> = shown.map(|told| told.id).collect();
        if !ids.is_empty() {
            out.events.push(EventKind::TextRetracted(TextRetraction::interrupted(ids)));
        }
    }

    /// The turn is over; what comes later under these ids is another text.
    pub(super) fn turn_over(&mut self) {
        *self = Self::default();
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

    /// Each text of a turn was once compared with all others.
    #[test]
    fn a_turn_may_have_very_many_texts() {
        const TEXTS: usize = 150_000;
        let (mut texts, mut out) = (Texts::default(), Step::default());
        for number in 0..TEXTS {
            texts.whole(&number.to_string(), Voice::Speech, "x", So::Final, None, &mut out);
        }
        assert_eq!(out.events.len(), TEXTS);
        // The model is interrupted again and again.
        for number in TEXTS..2 * TEXTS {
            texts.piece(&number.to_string(), Voice::Speech, "x".to_owned(), None, &mut out);
            texts.retract_unfinished(&mut out);
        }
        assert_eq!((out.events.len(), texts.told.len(), texts.unfinished.len()), (3 * TEXTS, TEXTS, 0));
    }

    #[test]
    fn interrupted_texts_are_retracted_in_their_order() {
        let (mut texts, mut out) = (Texts::default(), Step::default());
        for (id, so) in [("b", So::Far), ("a", So::Far), ("c", So::Final), ("e", So::Far)] {
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
        let steps = [("", So::Far), ("I'll ", So::Far), ("I'll help", So::Far), ("I'll help.", So::Final)];
        let parts = ["I'll ", "help", "."].map(|text| (text.to_owned(), true));
        assert_eq!(told(&steps), parts);
        assert_eq!(told(&[("all at once", So::Final)]), [("all at once".to_owned(), false)]);
        assert_eq!(told(&[("done ", So::Far), ("done", So::Final)]), [("done ".to_owned(), true)]);
        let other = [("one".to_owned(), true), ("two".to_owned(), false)];
        assert_eq!(told(&[("one", So::Far), ("two", So::Final)]), other);
    }
}
