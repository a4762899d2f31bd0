//! The question on the screen: which option is chosen, what is said with it. Pure.

use crossterm::event::{KeyCode, KeyEvent};
use multitap_event::{Decide, Details, Edit, Question};

use super::Model;
use crate::composer::{Composer, Move};
use crate::effect::{Edited, Effect};
use crate::keys::Action;

/// A question that waits for whoever sits here.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) question: Question,
    pub(crate) chosen: usize,
    /// Words that go with the answer, while they are typed.
    pub(crate) words: Option<Composer>,
}

impl Asking {
    pub(super) fn paste(&mut self, text: &str) {
        self.words.get_or_insert_default().paste(text);
    }

    fn decide(&self, at: usize) -> Option<Decide> {
        let choice = self.question.options.get(at)?;
        let words = self.words.as_ref().map(Composer::whole).filter(|words| !words.trim().is_empty());
        Some(Decide { feedback: words, ..Decide::new(&self.question.question_id, choice.id.clone()) })
    }

    /// What an editor would begin with.
    fn content(&self) -> Option<String> {
        if !self.question.edits.contains(&Edit::NewContent) {
            return None;
        }
        match &self.question.details {
            Details::Command { command, .. } => Some(command.clone()),
            Details::FileEdit { after, .. } => after.clone(),
            _ => None,
        }
    }
}

/// Shows the oldest question that is open; takes it down when it is not open any more.
pub(super) fn follow(model: &mut Model) {
    let open = model.state.questions.open();
    let is_open = |asking: &Asking| open.iter().any(|open| open.question_id == asking.question.question_id);
    if model.asking.as_ref().is_some_and(is_open) {
        return;
    }
    model.asking = open.first().map(|question| Asking { question: question.clone(), chosen: 0, words: None });
}

/// What a key does to a question; nothing if it is not for it.
pub(super) fn pressed(model: &mut Model, key: KeyEvent, action: Action) -> Option<Vec<Effect>> {
    let asking = model.asking.as_mut()?;
    let options = asking.question.options.len();
    if let Some(words) = &mut asking.words {
        match action {
            Action::Insert(letter) => words.insert(letter.encode_utf8(&mut [0; 4])),
            Action::Newline => words.insert("\n"),
            Action::Go(way @ (Move::Up | Move::Down)) if words.is_at_edge(way) => choose(asking, way, options),
            Action::Go(way) => words.go(way),
            Action::Erase(what) => words.erase(what),
            Action::Yank => words.yank(),
            Action::Interrupt => asking.words = None,
            Action::Send => return Some(answer(asking, asking.chosen)),
            _ => return None,
        }
        return Some(Vec::new());
    }
    match (action, key.code) {
        (_, KeyCode::Tab) => asking.words = Some(Composer::default()),
        (Action::Go(way @ (Move::Up | Move::Down)), _) => choose(asking, way, options),
        (Action::Insert(digit @ '1'..='9'), _) => {
            let at = digit.to_digit(10).map_or(0, |number| number as usize - 1);
            return Some(if at < options { answer(asking, at) } else { Vec::new() });
        }
        (Action::Insert('y'), _) => return Some(answer(asking, allows(&asking.question)?)),
        (Action::Insert('n'), _) | (Action::Interrupt, _) => return Some(answer(asking, rejects(&asking.question)?)),
        (Action::Send, _) => return Some(answer(asking, asking.chosen)),
        (Action::Editor, _) => return Some(edit(asking)),
        // Scrolling, folding and leaving go on as ever; nothing else is typed now.
        (Action::Insert(_) | Action::Newline | Action::Erase(_), _) => {}
        _ => return None,
    }
    Some(Vec::new())
}

fn choose(asking: &mut Asking, way: Move, options: usize) {
    asking.chosen = match way {
        Move::Up => (asking.chosen + options - 1) % options.max(1),
        _ => (asking.chosen + 1) % options.max(1),
    };
}

fn answer(asking: &Asking, at: usize) -> Vec<Effect> {
    asking.decide(at).map(Effect::Decide).into_iter().collect()
}

fn edit(asking: &Asking) -> Vec<Effect> {
    let decide = allows(&asking.question).and_then(|at| asking.decide(at));
    let edited = decide.zip(asking.content()).map(|(decide, text)| Effect::Edit { what: Edited::Answer(decide), text });
    edited.into_iter().collect()
}

fn allows(question: &Question) -> Option<usize> {
    question.options.iter().position(|choice| choice.kind.allows())
}

fn rejects(question: &Question) -> Option<usize> {
    question.options.iter().position(|choice| choice.kind.rejects())
}
