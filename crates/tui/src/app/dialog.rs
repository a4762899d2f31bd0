//! One question: which option is chosen, and what is written for the answer. Pure.

use std::cell::RefCell;
use std::rc::Rc;

use multitap_event::{Choice, ChoiceKind, ClientRef, Decide, Details, Edit, Question};

use ratatui::text::Line;

use super::form::{Form, Row};
use crate::composer::Composer;
use crate::transcript::counts;

/// The lines of what would be done. A diff may be long, so they are laid out once for a width, not for each frame.
#[derive(Debug, Default)]
pub(crate) struct ActionLines(RefCell<Option<(usize, Rc<Vec<Line<'static>>>)>>);

impl ActionLines {
    pub(crate) fn lines(&self, columns: usize, lay_out: impl FnOnce() -> Vec<Line<'static>>) -> Rc<Vec<Line<'static>>> {
        let mut known = self.0.borrow_mut();
        if let Some((width, lines)) = known.as_ref()
            && *width == columns
        {
            return lines.clone();
        }
        let lines = Rc::new(lay_out());
        *known = Some((columns, lines.clone()));
        lines
    }
}

#[derive(Debug)]
pub(crate) struct Dialog {
    /// With the options that can be chosen now.
    pub(crate) question: Question,
    /// All options: an edit hides those that add a rule.
    options: Vec<Choice>,
    /// `None` while a key may still be meant for what was being typed when the question opened.
    pub(crate) chosen: Option<usize>,
    /// The comment on the answer while it is typed, or the answer itself in the user's own words.
    pub(crate) comment: Option<Composer>,
    /// The first visible line of the details.
    pub(crate) top: usize,
    /// The answers so far, where the agent asks for information.
    pub(crate) form: Option<Form>,
    /// The command or file as the user edited it: sent with an option that allows.
    pub(crate) edited: Option<String>,
    /// The user's edit of the file, as a unified diff.
    pub(crate) edited_diff: Option<String>,
    pub(crate) action: ActionLines,
    /// How many lines the change adds and removes.
    pub(crate) counts: (usize, usize),
    /// Whether the user chose the option. A preselected option must not be sent with a comment.
    is_selected: bool,
    /// The dialog opened just now and nobody can have read it: a key was meant for something else.
    pub(crate) is_fresh: bool,
    /// Whether the user was typing when the dialog opened: letters may belong to that text, so only digits and arrows
    /// choose.
    pub(super) ignores_letters: bool,
    pub(super) is_answered: bool,
}

impl Dialog {
    /// Without the options that only an owner may choose, unless this user is one.
    pub(super) fn new(mut question: Question, me: &ClientRef, is_typing: bool) -> Self {
        question.options.retain(|choice| choice.is_open_to(me));
        question.options.sort_by_key(|choice| order(choice.kind));
        let form = Form::of(&question);
        let chosen = (!is_typing).then(|| if form.is_some() { 0 } else { allows(&question).unwrap_or(0) });
        let mut dialog = Self {
            options: question.options.clone(),
            question,
            chosen,
            comment: None,
            top: 0,
            form,
            edited: None,
            edited_diff: None,
            action: ActionLines::default(),
            counts: (0, 0),
            is_selected: false,
            is_fresh: true,
            ignores_letters: is_typing,
            is_answered: false,
        };
        dialog.count_lines();
        if !is_typing {
            dialog.open_comment();
        }
        dialog
    }

    /// Its place among the open questions.
    pub(crate) fn place(&self, open: &[Question]) -> usize {
        open.iter().position(|open| open.question_id == self.question.question_id).unwrap_or(0)
    }

    pub(super) fn paste(&mut self, text: &str) {
        if self.is_fresh {
            return self.require_choice();
        }
        self.begin_comment();
        // A line break at the end would scroll the text out of its single row.
        self.comment.get_or_insert_default().paste(text.trim_end_matches(['\r', '\n']));
    }

    /// The user's keys were meant for something else: clears the choice, so that the user must choose.
    pub(super) fn require_choice(&mut self) {
        (self.chosen, self.comment, self.ignores_letters) = (None, None, true);
    }

    pub(super) fn count(&self) -> usize {
        self.names().len()
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let option =
            |at: Option<usize>| at.and_then(|at| self.question.options.get(at)).map_or("", |it| it.name.as_str());
        let Some(form) = &self.form else { return self.question.options.iter().map(|it| it.name.as_str()).collect() };
        let name = |row: Row| match row {
            Row::Label(at) => form.part().and_then(|part| part.asked.labels.get(at)).map_or("", String::as_str),
            Row::OwnWords => "In your own words",
            Row::Send => "Send these answers",
            Row::Refuse => option(rejects(&self.question)),
        };
        form.rows(&self.question).into_iter().map(name).collect()
    }

    /// Opens the field for the comment, with what was written before.
    pub(super) fn begin_comment(&mut self) {
        let written = self.form.as_ref().and_then(Form::part).map(|part| part.words.clone()).unwrap_or_default();
        // The overview of a form has nothing to comment on.
        if self.comment.is_none() && self.form.as_ref().is_none_or(|form| form.part().is_some()) {
            self.comment = Some(Composer::with(&written));
            match &self.form {
                Some(form) => self.chosen = form.rows(&self.question).iter().position(|row| *row == Row::OwnWords),
                // A comment must not allow anything that nobody chose to allow: select the option that denies.
                None if !self.is_selected && self.chosen.is_some() => self.chosen = rejects(&self.question),
                None => {}
            }
        }
    }

    pub(super) fn end_comment(&mut self) {
        self.comment = None;
        if self.form.is_none() && !self.is_selected && !self.ignores_letters {
            self.chosen = Some(allows(&self.question).unwrap_or(0));
        }
    }

    pub(super) fn select(&mut self, at: usize) {
        (self.chosen, self.is_selected) = (Some(at), true);
    }

    /// Opens the field at once for a part that only text can answer.
    fn open_comment(&mut self) {
        if self.form.as_ref().is_some_and(Form::wants_text) {
            self.begin_comment();
        }
    }

    /// Another part of the form is shown.
    pub(super) fn part_changed(&mut self) {
        (self.comment, self.top) = (None, 0);
        self.chosen = self.form.as_ref().map(Form::first);
        self.open_comment();
    }

    pub(super) fn decide(&self, at: usize) -> Option<Decide> {
        let choice = self.question.options.get(at)?;
        let feedback = self.comment.as_ref().map(Composer::whole).filter(|words| !words.trim().is_empty());
        let new_content = self.edited.clone().filter(|_| choice.kind.allows());
        Some(Decide { feedback, new_content, ..Decide::new(&self.question.question_id, choice.id.clone()) })
    }

    pub(super) fn written(&self) -> String {
        let typed = self.comment.as_ref().map(Composer::whole);
        let parts = self.form.as_ref().map_or(&[][..], |form| &form.parts);
        let now = self.form.as_ref().map(|form| form.at).filter(|_| typed.is_some());
        let others = parts.iter().enumerate().filter(|(at, _)| Some(*at) != now).map(|(_, part)| part.words.clone());
        let written: Vec<String> = others.chain(typed).filter(|words| !words.trim().is_empty()).collect();
        written.join("\n")
    }

    /// The text that the editor opens, if the answer can be edited.
    pub(crate) fn content(&self) -> Option<String> {
        if !self.question.edits.contains(&Edit::NewContent) || allows(&self.question).is_none() {
            return None;
        }
        self.edited.clone().or_else(|| self.original())
    }

    /// The agent's version of the command or the file.
    fn original(&self) -> Option<String> {
        match &self.question.details {
            Details::Command { command, .. } => Some(command.clone()),
            Details::FileEdit { after, .. } => after.clone(),
            _ => None,
        }
    }

    fn count_lines(&mut self) {
        let Details::FileEdit { diff, .. } = &self.question.details else { return };
        self.counts = counts(self.edited_diff.as_deref().or(diff.as_deref()).into_iter());
    }

    /// Applies the user's edit of the command or the file: the question is asked again with it.
    pub(super) fn edit(&mut self, text: String) {
        self.action = ActionLines::default();
        self.edited = Some(text).filter(|text| Some(text) != self.original().as_ref());
        self.edited_diff = match (&self.question.details, &self.edited) {
            (Details::FileEdit { file_path, before, .. }, Some(edited)) => {
                Some(multitap_diff::unified(file_path, before.as_deref().unwrap_or_default(), file_path, edited))
            }
            _ => None,
        };
        self.count_lines();
        // A rule is about the agent's original call, so an edited answer with such an option would be refused.
        let fits = |choice: &&Choice| self.edited.is_none() || choice.kind != ChoiceKind::AllowAlways;
        let options: Vec<Choice> = self.options.iter().filter(fits).cloned().collect();
        let was = self.chosen.and_then(|at| self.question.options.get(at).cloned());
        self.question.options = options;
        let same = |was: Choice| self.question.options.iter().position(|choice| choice.id == was.id);
        self.chosen = was.map(|was| same(was).or_else(|| rejects(&self.question)).unwrap_or(0));
        (self.top, self.is_fresh, self.ignores_letters) = (0, true, false);
        if self.comment.is_none() {
            (self.chosen, self.is_selected) = (allows(&self.question), false);
        }
    }
}

/// The same order for every agent: first what allows least, at the end the plain denial.
fn order(kind: ChoiceKind) -> u8 {
    match kind {
        ChoiceKind::AllowOnce => 0,
        ChoiceKind::AllowAlways => 1,
        ChoiceKind::RejectAlways => 2,
        ChoiceKind::RejectOnce => 3,
    }
}

/// The option that allows just this once, or else one that allows for longer.
pub(super) fn allows(question: &Question) -> Option<usize> {
    let once = question.options.iter().position(|choice| choice.kind == ChoiceKind::AllowOnce);
    once.or_else(|| question.options.iter().position(|choice| choice.kind.allows()))
}

/// The option that denies just this once, or else one that denies for longer.
pub(super) fn rejects(question: &Question) -> Option<usize> {
    let once = question.options.iter().position(|choice| choice.kind == ChoiceKind::RejectOnce);
    once.or_else(|| question.options.iter().position(|choice| choice.kind.rejects()))
}
