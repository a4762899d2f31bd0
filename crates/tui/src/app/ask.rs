//! The question on the screen: which of them, which option is chosen, what is said with it. Pure.

use crossterm::event::{KeyCode, KeyEvent};
use multitap_event::{ChoiceKind, Decide, Details, Edit, Question};

use super::Model;
use crate::composer::{Composer, Move};
use crate::effect::{Edited, Effect};
use crate::keys::Action;

/// A question that waits for whoever sits here.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) question: Question,
    /// None as long as a key may still be meant for something else: what was being typed when the question came, or
    /// the question before it.
    pub(crate) chosen: Option<usize>,
    /// Whoever sits here has answered, so their next key is meant for the next question.
    is_answered: bool,
    /// Words that go with the answer, while they are typed.
    pub(crate) words: Option<Composer>,
    /// The first line that is shown of what is asked about.
    pub(crate) top: usize,
}

impl Asking {
    fn new(question: Question, is_surprise: bool) -> Self {
        let chosen = (!is_surprise).then(|| allows(&question).unwrap_or(0));
        Self { question, chosen, is_answered: false, words: None, top: 0 }
    }

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
    let is_typing = !model.composer.is_empty();
    // Somebody else answered what was on the screen: a key for it may be on its way.
    let is_overtaken = model.asking.as_ref().is_some_and(|gone| !gone.is_answered);
    model.asking = open.first().map(|question| Asking::new(question.clone(), is_typing || is_overtaken));
}

/// What a key does to a question; nothing if it is not for it.
pub(super) fn pressed(model: &mut Model, key: KeyEvent, action: Action) -> Option<Vec<Effect>> {
    let hidden = crate::view::hidden_details(model);
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
            Action::Send => return Some(answer_chosen(asking)),
            _ => return None,
        }
        return Some(Vec::new());
    }
    match (action, key.code) {
        (_, KeyCode::Tab) => asking.words = Some(Composer::default()),
        (Action::Go(way @ (Move::Up | Move::Down)), _) => choose(asking, way, options),
        (Action::Go(way @ (Move::Left | Move::Right)), _) => turn_to_other(model, way),
        (Action::Insert(letter), _) => return Some(by_letter(asking, letter)),
        (Action::Interrupt, _) => {
            let no = rejects(&asking.question)?;
            return Some(answer(asking, no));
        }
        (Action::Send, _) => return Some(answer_chosen(asking)),
        (Action::Editor, _) => return Some(edit(asking)),
        (Action::PageUp, _) if hidden > 0 => asking.top = asking.top.min(hidden).saturating_sub(PAGE),
        (Action::PageDown, _) if hidden > 0 => asking.top = (asking.top + PAGE).min(hidden),
        // Scrolling, folding and leaving go on as ever; nothing else is typed now.
        (Action::Newline | Action::Erase(_), _) => {}
        _ => return None,
    }
    Some(Vec::new())
}

/// How many lines of what is asked about a page goes on.
const PAGE: usize = 5;

/// The question before or after the one that is shown.
fn turn_to_other(model: &mut Model, way: Move) {
    let open = model.state.questions.open();
    let Some(asking) = model.asking.as_mut().filter(|_| open.len() > 1) else { return };
    let now = open.iter().position(|open| open.question_id == asking.question.question_id).unwrap_or(0);
    let next = if way == Move::Left { now + open.len() - 1 } else { now + 1 } % open.len();
    // Whoever turns pages is not typing.
    *asking = Asking::new(open[next].clone(), false);
}

fn choose(asking: &mut Asking, way: Move, options: usize) {
    asking.chosen = match (way, asking.chosen) {
        (_, None) => Some(0),
        (Move::Up, Some(chosen)) => Some((chosen + options.saturating_sub(1)) % options.max(1)),
        (_, Some(chosen)) => Some((chosen + 1) % options.max(1)),
    };
}

/// An option by its number, by the letter it begins with, or by yes and no. Where that leaves a choice, or the letter
/// may be meant for something else, it is chosen and not yet answered.
fn by_letter(asking: &mut Asking, letter: char) -> Vec<Effect> {
    let options = &asking.question.options;
    let begins = |name: &str| name.chars().next().is_some_and(|first| first.to_lowercase().eq(letter.to_lowercase()));
    let mut named: Vec<usize> = (0..options.len()).filter(|at| begins(&options[*at].name)).collect();
    if named.is_empty() {
        let meant = match letter {
            'y' => allows(&asking.question),
            'n' => rejects(&asking.question),
            _ => letter.to_digit(10).and_then(|number| (number as usize).checked_sub(1)),
        };
        named.extend(meant.filter(|at| *at < options.len()));
    }
    match named[..] {
        [] => Vec::new(),
        [only] if asking.chosen.is_some() => answer(asking, only),
        [first, ..] => {
            let after = |at: &&usize| asking.chosen.is_some_and(|chosen| **at > chosen);
            asking.chosen = Some(named.iter().find(after).copied().unwrap_or(first));
            Vec::new()
        }
    }
}

fn answer_chosen(asking: &mut Asking) -> Vec<Effect> {
    asking.chosen.map(|at| answer(asking, at)).unwrap_or_default()
}

fn answer(asking: &mut Asking, at: usize) -> Vec<Effect> {
    asking.is_answered = true;
    asking.decide(at).map(Effect::Decide).into_iter().collect()
}

fn edit(asking: &Asking) -> Vec<Effect> {
    let decide = allows(&asking.question).and_then(|at| asking.decide(at));
    let edited = decide.zip(asking.content()).map(|(decide, text)| Effect::Edit { what: Edited::Answer(decide), text });
    edited.into_iter().collect()
}

/// Just this once, where that is offered: who wants it for good says so.
fn allows(question: &Question) -> Option<usize> {
    let once = question.options.iter().position(|choice| choice.kind == ChoiceKind::AllowOnce);
    once.or_else(|| question.options.iter().position(|choice| choice.kind.allows()))
}

fn rejects(question: &Question) -> Option<usize> {
    question.options.iter().position(|choice| choice.kind.rejects())
}
