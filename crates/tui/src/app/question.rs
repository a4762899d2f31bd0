//! Open questions: which of them is on the screen, and what keys do to it. Pure.

use multitap_event::{Question, QuestionId};

use super::closed::ClosedQuestion;
use super::dialog::{Dialog, allows, rejects};
use super::form::{Form, FormStep, Row};
use super::overlay::{scrolled, step};
use super::{Model, unsent};
use crate::composer::{Composer, Move};
use crate::effect::{Edited, Effect};
use crate::keys::Action;
use crate::view::Layout;

#[derive(Debug, Default)]
pub(crate) struct Questions {
    pub(crate) shown: Option<Dialog>,
    /// Questions that the user turned away from, as they were left.
    aside: Vec<Dialog>,
    /// The question that closed just now without an answer from here.
    pub(super) closed: Option<ClosedQuestion>,
}

impl Questions {
    /// The dialogs of that question: one at most.
    pub(super) fn dialogs(&mut self, id: &QuestionId) -> impl Iterator<Item = &mut Dialog> {
        let all = self.aside.iter_mut().chain(&mut self.shown);
        all.filter(move |dialog| dialog.question.question_id == *id)
    }

    /// The user's answer was sent, with everything that was written for it.
    pub(super) fn answered_here(&mut self, id: &QuestionId) {
        for dialog in self.dialogs(id) {
            (dialog.comment, dialog.form, dialog.edited, dialog.is_answered) = (None, None, None, true);
        }
    }

    fn take_aside(&mut self, id: &QuestionId) -> Option<Dialog> {
        let at = self.aside.iter().position(|dialog| dialog.question.question_id == *id)?;
        Some(self.aside.remove(at))
    }

    fn act_on_row(&mut self, act: impl FnOnce(&mut Form, Row, &Question) -> FormStep) -> Option<FormStep> {
        let Dialog { question, chosen, form, .. } = self.shown.as_mut()?;
        let form = form.as_mut()?;
        let row = form.rows(question).get((*chosen)?).copied()?;
        Some(act(form, row, question))
    }
}

/// Shows the oldest open question, and takes it down when it closes.
pub(super) fn follow(model: &mut Model) -> Vec<Effect> {
    let open = model.session.state.questions.open();
    let questions = &mut model.questions;
    let is_closed = |dialog: &mut Dialog| !open.iter().any(|open| open.question_id == dialog.question.question_id);
    let mut closed: Vec<Dialog> = questions.aside.extract_if(.., is_closed).collect();
    // The user may still be typing an answer to the question that closed.
    let is_commenting = questions.shown.as_ref().is_some_and(|dialog| dialog.comment.is_some());
    let is_typing = !model.prompt.composer.is_empty() || is_commenting;
    let shown = questions.shown.take_if(is_closed);
    questions.closed = shown.as_ref().and_then(ClosedQuestion::of).or(questions.closed.take());
    closed.extend(shown);
    if let Some(next) = open.first().filter(|_| questions.shown.is_none()) {
        let begun = questions.take_aside(&next.question_id);
        let mut dialog = begun.unwrap_or_else(|| Dialog::new(next.clone(), &model.session.me, is_typing));
        dialog.is_fresh = true;
        (questions.shown, questions.closed) = (Some(dialog), None);
    }
    unsent::closed(model, closed)
}

/// Handles keys that do the same in every question, whether or not a comment is typed. `None` if the key is not one of
/// them.
fn pressed_in_any(model: &mut Model, layout: &Layout, action: Action) -> Option<Vec<Effect>> {
    if let Action::GoToQuestion(at) = action {
        go_to(model, at);
        return Some(Vec::new());
    }
    let dialog = model.questions.shown.as_mut()?;
    if !matches!(action, Action::Insert(_) | Action::Send | Action::Interrupt | Action::Editor) {
        return None;
    }
    if dialog.is_fresh && matches!(action, Action::Insert(letter) if !letter.is_ascii_digit()) {
        dialog.require_choice();
    }
    let is_ignored = dialog.is_fresh || (!layout.is_question_readable() && action != Action::Interrupt);
    is_ignored.then(Vec::new)
}

/// Handles a key while a comment is typed. `None` if the key is not for the question.
pub(super) fn pressed_in_comment(model: &mut Model, layout: &Layout, action: Action) -> Option<Vec<Effect>> {
    if let Some(effects) = pressed_in_any(model, layout, action) {
        return Some(effects);
    }
    let dialog = model.questions.shown.as_mut()?;
    let options = dialog.count();
    let comment = dialog.comment.as_mut()?;
    match action {
        Action::Insert(letter) => comment.insert(letter.encode_utf8(&mut [0; 4])),
        Action::Newline => comment.insert("\n"),
        Action::Go(direction @ (Move::Up | Move::Down)) if comment.is_at_edge(direction) => {
            if let Some(form) = dialog.form.as_mut().filter(|_| options > 1) {
                form.set_text(&comment.whole());
                dialog.comment = None;
            }
            choose(dialog, direction);
        }
        Action::Go(direction @ (Move::Left | Move::Right)) if comment.is_at_edge(direction) => {
            if let Some(form) = &mut dialog.form {
                form.set_text(&comment.whole());
            }
            turn(model, direction);
        }
        Action::Go(direction) => comment.go(direction),
        Action::Erase(what) => comment.erase(what),
        Action::Yank => comment.yank(),
        Action::Interrupt if dialog.form.as_ref().is_some_and(Form::wants_text) && comment.is_empty() => {
            return Some(deny(dialog));
        }
        Action::Interrupt => dialog.end_comment(),
        Action::Editor => return Some(edit(dialog)),
        // Their effect in the composer would not be visible now.
        Action::Recall | Action::Complete => {}
        Action::Send => return Some(submit(model)),
        _ => return None,
    }
    Some(Vec::new())
}

/// Handles a key for the question on the screen. `None` if the key is not for it.
pub(super) fn pressed(model: &mut Model, layout: &Layout, action: Action) -> Option<Vec<Effect>> {
    if let Some(effects) = pressed_in_any(model, layout, action) {
        return Some(effects);
    }
    let (hidden, page) = (layout.hidden_details(), layout.details_page());
    let dialog = model.questions.shown.as_mut()?;
    match action {
        Action::Complete => dialog.begin_comment(),
        Action::Go(direction @ (Move::Up | Move::Down)) => choose(dialog, direction),
        Action::Go(direction @ (Move::Left | Move::Right)) => turn(model, direction),
        Action::Insert(' ') if dialog.form.is_some() => return Some(act_on_row(model, Form::toggle)),
        Action::Insert(letter) => return Some(by_letter(model, letter)),
        Action::Interrupt => return Some(deny(dialog)),
        Action::Send if dialog.form.is_some() => return Some(act_on_row(model, Form::confirm)),
        Action::Send => return Some(answer_chosen(dialog)),
        Action::Editor => return Some(edit(dialog)),
        Action::PageUp | Action::PageDown if hidden > 0 => {
            scrolled(&mut dialog.top, action, page, hidden);
        }
        // Scrolling, folding and leaving work as ever; nothing else is typed now.
        Action::Newline | Action::Erase(_) => {}
        _ => return None,
    }
    Some(Vec::new())
}

/// Sends the comment with the chosen option, or as the answer.
fn submit(model: &mut Model) -> Vec<Effect> {
    let Some(dialog) = &mut model.questions.shown else { return Vec::new() };
    let text = dialog.comment.as_ref().map(Composer::whole).unwrap_or_default();
    match &mut dialog.form {
        Some(form) => {
            let step = form.submit_text(&text, &dialog.question);
            go_on(model, step)
        }
        None => answer_chosen(dialog),
    }
}

/// Applies `act` to the chosen row of a form, and continues from there.
fn act_on_row(model: &mut Model, act: impl FnOnce(&mut Form, Row, &Question) -> FormStep) -> Vec<Effect> {
    let step = model.questions.act_on_row(act).unwrap_or(FormStep::Stay);
    go_on(model, step)
}

fn go_on(model: &mut Model, step: FormStep) -> Vec<Effect> {
    let Some(dialog) = &mut model.questions.shown else { return Vec::new() };
    match step {
        FormStep::Stay => {}
        FormStep::OtherPart => dialog.part_changed(),
        FormStep::TypeText => dialog.begin_comment(),
        FormStep::Decide(decide) => return vec![Effect::Decide(decide)],
        FormStep::Unanswered => {
            dialog.part_changed();
            model.status.show("this has no answer yet");
        }
    }
    Vec::new()
}

/// Denies. A form with answers shows them first: they would be lost.
fn deny(dialog: &mut Dialog) -> Vec<Effect> {
    let form = dialog.form.as_mut().filter(|form| form.parts.len() > 1 && form.has_answers());
    match form.filter(|form| form.part().is_some()) {
        Some(form) => {
            form.go_to_end();
            dialog.part_changed();
            dialog.chosen = dialog.count().checked_sub(1);
            Vec::new()
        }
        None => rejects(&dialog.question).map(|at| answer(dialog, at)).unwrap_or_default(),
    }
}

/// Goes to the part, or to the question, before or after the one that is shown.
fn turn(model: &mut Model, direction: Move) {
    let Some(dialog) = &mut model.questions.shown else { return };
    let forward = direction == Move::Right;
    if dialog.form.as_mut().is_some_and(|form| form.turn(forward)) {
        return dialog.part_changed();
    }
    let open = model.session.state.questions.open();
    let next = step(dialog.place(open), forward, open.len());
    go_to(model, next);
}

/// Shows one of the open questions, and keeps the previous one as it is.
fn go_to(model: &mut Model, at: usize) {
    let (questions, open) = (&mut model.questions, model.session.state.questions.open());
    let Some(next) = open.get(at) else { return };
    if questions.shown.as_ref().is_some_and(|dialog| dialog.question.question_id == next.question_id) {
        return;
    }
    // A user who switches between questions is not typing.
    let begun = questions.take_aside(&next.question_id);
    let mut dialog = begun.unwrap_or_else(|| Dialog::new(next.clone(), &model.session.me, false));
    dialog.is_fresh = false;
    questions.aside.extend(questions.shown.replace(dialog));
}

fn choose(dialog: &mut Dialog, direction: Move) {
    let count = dialog.count();
    dialog.select(dialog.chosen.map_or(0, |chosen| step(chosen, direction == Move::Down, count)));
}

/// Chooses an option by its number, by its first letter, or by yes and no, and answers with it. Where several options
/// begin with that letter, or the letter may be meant for something else, the option is only chosen.
fn by_letter(model: &mut Model, letter: char) -> Vec<Effect> {
    let Some(dialog) = &mut model.questions.shown else { return Vec::new() };
    let names = dialog.names();
    // A digit is an option's number, even if an option's name begins with one.
    let number = letter.to_digit(10).and_then(|number| (number as usize).checked_sub(1));
    if dialog.ignores_letters && number.is_none() {
        return Vec::new();
    }
    let begins = |name: &str| name.chars().next().is_some_and(|first| first.to_lowercase().eq(letter.to_lowercase()));
    let mut named: Vec<usize> = (0..names.len()).filter(|at| number.is_none() && begins(names[*at])).collect();
    if named.is_empty() {
        let is_plain = dialog.form.is_none();
        let meant = match letter {
            'y' if is_plain => allows(&dialog.question),
            'n' if is_plain => rejects(&dialog.question),
            _ => number,
        };
        named.extend(meant.filter(|at| *at < names.len()));
    }
    match named[..] {
        [] => Vec::new(),
        [only] if dialog.chosen.is_some_and(|chosen| !dialog.ignores_letters || chosen == only) => {
            if dialog.form.is_none() {
                return answer(dialog, only);
            }
            dialog.chosen = Some(only);
            act_on_row(model, Form::toggle)
        }
        [first, ..] => {
            let after = |at: &&usize| dialog.chosen.is_some_and(|chosen| **at > chosen);
            let to = named.iter().find(after).copied().unwrap_or(first);
            dialog.select(to);
            Vec::new()
        }
    }
}

fn answer_chosen(dialog: &Dialog) -> Vec<Effect> {
    dialog.chosen.map(|at| answer(dialog, at)).unwrap_or_default()
}

fn answer(dialog: &Dialog, at: usize) -> Vec<Effect> {
    dialog.decide(at).map(Effect::Decide).into_iter().collect()
}

fn edit(dialog: &Dialog) -> Vec<Effect> {
    let question = dialog.question.question_id.clone();
    let edited = dialog.content().map(|text| {
        let what = Edited::Answer { question, before: text.clone() };
        Effect::Edit { what, text }
    });
    edited.into_iter().collect()
}
