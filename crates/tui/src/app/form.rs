//! What an agent wants to know: its questions one after the other, the answers so far, and a look at all of them before
//! they are sent. Pure.

use std::collections::BTreeMap;

use multitap_event::{AskedQuestion, Choice, Decide, Details, Question};
use serde_json::Value;

use super::ask::{allows, rejects};

/// The questions, and which of them is on the screen.
#[derive(Debug)]
pub(crate) struct Form {
    parts: Vec<Part>,
    /// Behind the last one is the look at all of them.
    at: usize,
}

/// One question, and what is answered to it.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) asked: AskedQuestion,
    picked: Vec<usize>,
    pub(crate) words: String,
    /// No answer is the answer.
    left_empty: bool,
}

/// One thing that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    Label(usize),
    OwnWords,
    Send,
    Refuse,
}

/// What choosing comes to.
#[derive(Debug)]
pub(super) enum Chosen {
    Nothing,
    /// Another part is on the screen.
    Turned,
    /// Words are wanted.
    Words,
    Decide(Decide),
    /// Something has no answer yet, and is on the screen.
    Missing,
}

impl Form {
    /// The form of a question that is one.
    pub(super) fn of(question: &Question) -> Option<Self> {
        let Details::Input { questions } = &question.details else { return None };
        let part = |asked: &AskedQuestion| Part {
            asked: asked.clone(),
            picked: Vec::new(),
            words: String::new(),
            left_empty: false,
        };
        let parts: Vec<Part> = questions.iter().map(part).collect();
        (!parts.is_empty() && allows(question).is_some()).then_some(Self { parts, at: 0 })
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The one on the screen; none if all are looked at.
    pub(crate) fn part(&self) -> Option<&Part> {
        self.parts.get(self.at)
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn has_answers(&self) -> bool {
        self.parts.iter().any(Part::is_answered)
    }

    /// What can be chosen now.
    pub(crate) fn rows(&self, question: &Question) -> Vec<Row> {
        let refuse = rejects(question).map(|_| Row::Refuse);
        match self.part() {
            Some(part) => {
                let mut rows: Vec<Row> = (0..part.asked.labels.len()).map(Row::Label).collect();
                rows.push(Row::OwnWords);
                // Several are refused at their end, and by Esc.
                rows.extend(refuse.filter(|_| self.parts.len() == 1));
                rows
            }
            None => std::iter::once(Row::Send).chain(refuse).collect(),
        }
    }

    /// Which row is the first to be chosen.
    pub(super) fn first(&self) -> usize {
        self.part().and_then(|part| part.picked.first().copied()).unwrap_or(0)
    }

    /// Whether only words can be the answer, and there are none yet.
    pub(super) fn wants_words(&self) -> bool {
        self.part().is_some_and(|part| part.asked.labels.is_empty() && part.words.is_empty())
    }

    /// The part before, or the one after; whether there is one.
    pub(super) fn turn(&mut self, forward: bool) -> bool {
        let last = if self.parts.len() > 1 { self.parts.len() } else { 0 };
        let to = if forward { Some(self.at + 1).filter(|to| *to <= last) } else { self.at.checked_sub(1) };
        self.at = to.unwrap_or(self.at);
        to.is_some()
    }

    /// To the look at all of them.
    pub(super) fn turn_to_end(&mut self) {
        self.at = self.parts.len();
    }

    /// Takes a row, or takes it back where several may be taken.
    pub(super) fn toggle(&mut self, row: Row, question: &Question) -> Chosen {
        match (row, self.parts.get_mut(self.at)) {
            (Row::Label(label), Some(part)) if part.asked.multi_select => {
                match part.picked.iter().position(|picked| *picked == label) {
                    Some(at) => drop(part.picked.remove(at)),
                    None => part.picked.push(label),
                }
                part.picked.sort_unstable();
                Chosen::Nothing
            }
            (Row::Label(label), Some(part)) => {
                (part.picked, part.words, part.left_empty) = (vec![label], String::new(), false);
                self.go_on(question)
            }
            (Row::OwnWords, Some(_)) => Chosen::Words,
            (Row::Send, _) => self.send(question),
            (Row::Refuse, _) => refuse(question).map_or(Chosen::Nothing, Chosen::Decide),
            (Row::Label(_) | Row::OwnWords, None) => Chosen::Nothing,
        }
    }

    /// Takes a row and goes on.
    pub(super) fn take(&mut self, row: Row, question: &Question) -> Chosen {
        let several = self.part().is_some_and(|part| part.asked.multi_select);
        let Row::Label(label) = row else { return self.toggle(row, question) };
        if !several {
            return self.toggle(row, question);
        }
        // Whoever picked some goes on with those.
        if let Some(part) = self.parts.get_mut(self.at).filter(|part| !part.is_answered()) {
            part.picked.push(label);
        }
        self.go_on(question)
    }

    /// Takes the words as the answer, and goes on.
    pub(super) fn say(&mut self, words: &str, question: &Question) -> Chosen {
        self.keep(words);
        let alone = self.parts.len() == 1;
        let Some(part) = self.parts.get_mut(self.at) else { return Chosen::Nothing };
        part.left_empty = part.words.is_empty() && part.picked.is_empty();
        // An only question is refused, not left empty.
        if part.left_empty && alone {
            part.left_empty = false;
            return Chosen::Nothing;
        }
        self.go_on(question)
    }

    /// Keeps the words as an answer. Where only one can be given, they are it.
    pub(super) fn keep(&mut self, words: &str) {
        let Some(part) = self.parts.get_mut(self.at) else { return };
        part.words = words.trim().to_owned();
        if !part.words.is_empty() && !part.asked.multi_select {
            part.picked.clear();
        }
    }

    fn go_on(&mut self, question: &Question) -> Chosen {
        if self.parts.len() == 1 {
            return self.send(question);
        }
        let all = self.parts.iter().all(Part::is_answered);
        self.at = if all { self.parts.len() } else { self.at + 1 };
        Chosen::Turned
    }

    fn send(&mut self, question: &Question) -> Chosen {
        if let Some(missing) = self.parts.iter().position(|part| !part.is_answered()) {
            self.at = missing;
            return Chosen::Missing;
        }
        self.decide(question).map_or(Chosen::Nothing, Chosen::Decide)
    }

    fn decide(&self, question: &Question) -> Option<Decide> {
        // A single label may be an option of its own.
        let label = match self.parts.as_slice() {
            [part] if !part.asked.multi_select => part.picked.first().and_then(|label| part.asked.labels.get(*label)),
            _ => None,
        };
        let is_it = |choice: &&Choice| choice.kind.allows() && Some(&choice.name) == label;
        if let Some(choice) = question.options.iter().find(is_it) {
            return Some(Decide::new(&question.question_id, choice.id.clone()));
        }
        let answers: BTreeMap<String, Value> =
            self.parts.iter().map(|part| (part.asked.question.clone(), part.answer())).collect();
        let choice = &question.options[allows(question)?];
        Some(Decide { answers: Some(answers), ..Decide::new(&question.question_id, choice.id.clone()) })
    }
}

impl Part {
    pub(crate) fn is_answered(&self) -> bool {
        !self.picked.is_empty() || !self.words.is_empty() || self.left_empty
    }

    pub(crate) fn is_picked(&self, label: usize) -> bool {
        self.picked.contains(&label)
    }

    /// What is answered, in pieces.
    pub(crate) fn said(&self) -> Vec<&str> {
        let labels = self.picked.iter().filter_map(|label| self.asked.labels.get(*label)).map(String::as_str);
        labels.chain(Some(self.words.as_str()).filter(|words| !words.is_empty())).collect()
    }

    fn answer(&self) -> Value {
        let said = self.said();
        if self.asked.multi_select { said.into() } else { said.concat().into() }
    }
}

fn refuse(question: &Question) -> Option<Decide> {
    let choice = question.options.get(rejects(question)?)?;
    Some(Decide::new(&question.question_id, choice.id.clone()))
}
