//! A form of several questions: one part each, the answers so far, and an overview of them before they are sent. Pure.

use std::collections::BTreeMap;

use multitap_event::{AskedQuestion, Choice, Decide, Details, Question};
use serde_json::Value;

use super::dialog::{allows, rejects};

#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) parts: Vec<Part>,
    /// The number of parts is the overview.
    pub(crate) at: usize,
}

#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) asked: AskedQuestion,
    selected: Vec<usize>,
    pub(crate) words: String,
    /// The user confirmed an empty answer.
    left_empty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Row {
    Label(usize),
    OwnWords,
    Send,
    Refuse,
}

#[derive(Debug)]
pub(super) enum FormStep {
    Stay,
    OtherPart,
    TypeText,
    Decide(Decide),
    /// A part without an answer is shown.
    Unanswered,
}

impl Form {
    /// `None` if the question is no form.
    pub(super) fn of(question: &Question) -> Option<Self> {
        let Details::Input { questions } = &question.details else { return None };
        let part = |asked: &AskedQuestion| Part {
            asked: asked.clone(),
            selected: Vec::new(),
            words: String::new(),
            left_empty: false,
        };
        let parts: Vec<Part> = questions.iter().map(part).collect();
        (!parts.is_empty() && allows(question).is_some()).then_some(Self { parts, at: 0 })
    }

    /// The part that is shown; `None` in the overview.
    pub(crate) fn part(&self) -> Option<&Part> {
        self.parts.get(self.at)
    }

    pub(super) fn has_answers(&self) -> bool {
        self.parts.iter().any(Part::is_answered)
    }

    pub(crate) fn rows(&self, question: &Question) -> Vec<Row> {
        let refuse = rejects(question).map(|_| Row::Refuse);
        match self.part() {
            Some(part) => {
                let mut rows: Vec<Row> = (0..part.asked.labels.len()).map(Row::Label).collect();
                rows.push(Row::OwnWords);
                // A form of several parts is denied in its overview, and by Esc.
                rows.extend(refuse.filter(|_| self.parts.len() == 1));
                rows
            }
            None => std::iter::once(Row::Send).chain(refuse).collect(),
        }
    }

    pub(super) fn first(&self) -> usize {
        self.part().and_then(|part| part.selected.first().copied()).unwrap_or(0)
    }

    /// Whether only text can be the answer, and there is none yet.
    pub(super) fn wants_text(&self) -> bool {
        self.part().is_some_and(|part| part.asked.labels.is_empty() && part.words.is_empty())
    }

    /// Goes to the part before, or to the one after. Returns whether there is one.
    pub(super) fn turn(&mut self, forward: bool) -> bool {
        let last = if self.parts.len() > 1 { self.parts.len() } else { 0 };
        let to = if forward { Some(self.at + 1).filter(|to| *to <= last) } else { self.at.checked_sub(1) };
        self.at = to.unwrap_or(self.at);
        to.is_some()
    }

    pub(super) fn go_to_end(&mut self) {
        self.at = self.parts.len();
    }

    /// Selects a row, or toggles it where several may be selected.
    pub(super) fn toggle(&mut self, row: Row, question: &Question) -> FormStep {
        match (row, self.parts.get_mut(self.at)) {
            (Row::Label(label), Some(part)) if part.asked.multi_select => {
                match part.selected.iter().position(|selected| *selected == label) {
                    Some(at) => drop(part.selected.remove(at)),
                    None => part.selected.push(label),
                }
                part.selected.sort_unstable();
                FormStep::Stay
            }
            (Row::Label(label), Some(part)) => {
                (part.selected, part.words, part.left_empty) = (vec![label], String::new(), false);
                self.go_on(question)
            }
            (Row::OwnWords, Some(_)) => FormStep::TypeText,
            (Row::Send, _) => self.send(question),
            (Row::Refuse, _) => refuse(question).map_or(FormStep::Stay, FormStep::Decide),
            (Row::Label(_) | Row::OwnWords, None) => FormStep::Stay,
        }
    }

    pub(super) fn confirm(&mut self, row: Row, question: &Question) -> FormStep {
        let multi_select = self.part().is_some_and(|part| part.asked.multi_select);
        let Row::Label(label) = row else { return self.toggle(row, question) };
        if !multi_select {
            return self.toggle(row, question);
        }
        // With something selected, Enter only goes on.
        if let Some(part) = self.parts.get_mut(self.at).filter(|part| !part.is_answered()) {
            part.selected.push(label);
        }
        self.go_on(question)
    }

    pub(super) fn submit_text(&mut self, words: &str, question: &Question) -> FormStep {
        self.set_text(words);
        let alone = self.parts.len() == 1;
        let Some(part) = self.parts.get_mut(self.at) else { return FormStep::Stay };
        part.left_empty = part.words.is_empty() && part.selected.is_empty();
        // A single question is denied, not left empty.
        if part.left_empty && alone {
            part.left_empty = false;
            return FormStep::Stay;
        }
        self.go_on(question)
    }

    /// Stores a text as an answer. Where only one can be given, it replaces what was selected.
    pub(super) fn set_text(&mut self, words: &str) {
        let Some(part) = self.parts.get_mut(self.at) else { return };
        part.words = words.trim().to_owned();
        if !part.words.is_empty() && !part.asked.multi_select {
            part.selected.clear();
        }
    }

    fn go_on(&mut self, question: &Question) -> FormStep {
        if self.parts.len() == 1 {
            return self.send(question);
        }
        let all = self.parts.iter().all(Part::is_answered);
        self.at = if all { self.parts.len() } else { self.at + 1 };
        FormStep::OtherPart
    }

    fn send(&mut self, question: &Question) -> FormStep {
        if let Some(missing) = self.parts.iter().position(|part| !part.is_answered()) {
            self.at = missing;
            return FormStep::Unanswered;
        }
        self.decide(question).map_or(FormStep::Stay, FormStep::Decide)
    }

    fn decide(&self, question: &Question) -> Option<Decide> {
        // A label may be an option of its own.
        let label = match self.parts.as_slice() {
            [part] if !part.asked.multi_select => part.selected.first().and_then(|label| part.asked.labels.get(*label)),
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
        !self.selected.is_empty() || !self.words.is_empty() || self.left_empty
    }

    pub(crate) fn is_selected(&self, label: usize) -> bool {
        self.selected.contains(&label)
    }

    pub(crate) fn answers(&self) -> Vec<&str> {
        let labels = self.selected.iter().filter_map(|label| self.asked.labels.get(*label)).map(String::as_str);
        labels.chain(Some(self.words.as_str()).filter(|words| !words.is_empty())).collect()
    }

    fn answer(&self) -> Value {
        let answers = self.answers();
        if self.asked.multi_select { answers.into() } else { answers.concat().into() }
    }
}

fn refuse(question: &Question) -> Option<Decide> {
    let choice = question.options.get(rejects(question)?)?;
    Some(Decide::new(&question.question_id, choice.id.clone()))
}
