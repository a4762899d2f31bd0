//! The question on the screen: which of them, which option is chosen, what is said with it. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{Choice, ChoiceKind, ClientRef, Decide, Details, Edit, Question, QuestionId};

use super::form::{Chosen, Form, Row};
use super::{Gone, Model, written};
use crate::composer::{Composer, Move};
use crate::effect::{Edited, Effect};
use crate::keys::Action;

/// A question that waits for whoever sits here.
#[derive(Debug)]
pub(crate) struct Asking {
    /// With the options that can be chosen now.
    pub(crate) question: Question,
    /// All options: an edit hides those that make a rule.
    options: Vec<Choice>,
    /// None as long as a key may still be meant for what was being typed when the question came.
    pub(crate) chosen: Option<usize>,
    /// Words that go with the answer, while they are typed.
    pub(crate) words: Option<Composer>,
    /// The first line that is shown of what is asked about.
    pub(crate) top: usize,
    /// Where the agent wants to know something.
    pub(crate) form: Option<Form>,
    /// What an editor made of the command or the file: an option that allows goes out with it.
    pub(crate) edited: Option<String>,
    /// Somebody chose the option; else it was chosen here, and words do not go with it.
    is_selected: bool,
    /// It came just now and nobody can have read it: a key that is on its way was meant for something else.
    pub(crate) is_fresh: bool,
    /// Somebody was typing when it came: letters may be the rest of that, so only figures and arrows choose.
    is_wary: bool,
    /// Whoever sits here answered it.
    pub(super) is_answered: bool,
}

impl Asking {
    fn new(question: Question, is_typing: bool) -> Self {
        let form = Form::of(&question);
        let chosen = (!is_typing).then(|| if form.is_some() { 0 } else { allows(&question).unwrap_or(0) });
        let mut asking = Self {
            options: question.options.clone(),
            question,
            chosen,
            words: None,
            top: 0,
            form,
            edited: None,
            is_selected: false,
            is_fresh: true,
            is_wary: is_typing,
            is_answered: false,
        };
        if !is_typing {
            asking.open_words();
        }
        asking
    }

    pub(super) fn paste(&mut self, text: &str) {
        if self.is_fresh {
            return self.beware();
        }
        self.begin_words();
        // What is copied often ends with its line, and the next one would hide it.
        self.words.get_or_insert_default().paste(text.trim_end_matches(['\r', '\n']));
    }

    /// Somebody types what is meant for something else.
    fn beware(&mut self) {
        (self.chosen, self.words, self.is_wary) = (None, None, true);
    }

    /// How many things can be chosen.
    fn count(&self) -> usize {
        self.names().len()
    }

    /// What can be chosen, as it is written.
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

    /// A field for words, with those that are there.
    fn begin_words(&mut self) {
        let said = self.form.as_ref().and_then(Form::part).map(|part| part.words.clone()).unwrap_or_default();
        // All of it is looked at, and nothing more is to be said.
        if self.words.is_none() && self.form.as_ref().is_none_or(|form| form.part().is_some()) {
            self.words = Some(Composer::with(&said));
            match &self.form {
                Some(form) => self.chosen = form.rows(&self.question).iter().position(|row| *row == Row::OwnWords),
                // Who comments has a reason: nothing is allowed by it that nobody chose to allow.
                None if !self.is_selected && self.chosen.is_some() => self.chosen = rejects(&self.question),
                None => {}
            }
        }
    }

    /// The words are given up.
    fn end_words(&mut self) {
        self.words = None;
        if self.form.is_none() && !self.is_selected && !self.is_wary {
            self.chosen = Some(allows(&self.question).unwrap_or(0));
        }
    }

    fn select(&mut self, at: usize) {
        (self.chosen, self.is_selected) = (Some(at), true);
    }

    /// A part that only words can answer is answered at once.
    fn open_words(&mut self) {
        if self.form.as_ref().is_some_and(Form::wants_words) {
            self.begin_words();
        }
    }

    /// Another part of the form is on the screen.
    fn turned(&mut self) {
        (self.words, self.top) = (None, 0);
        self.chosen = self.form.as_ref().map(Form::first);
        self.open_words();
    }

    fn decide(&self, at: usize) -> Option<Decide> {
        let choice = self.question.options.get(at)?;
        let words = self.words.as_ref().map(Composer::whole).filter(|words| !words.trim().is_empty());
        let new_content = self.edited.clone().filter(|_| choice.kind.allows());
        Some(Decide { feedback: words, new_content, ..Decide::new(&self.question.question_id, choice.id.clone()) })
    }

    /// Everything that somebody wrote here.
    pub(super) fn written(&self) -> String {
        let typed = self.words.as_ref().map(Composer::whole);
        let parts = self.form.as_ref().map(Form::parts).unwrap_or_default();
        let now = self.form.as_ref().map(Form::at).filter(|_| typed.is_some());
        let said = parts.iter().enumerate().filter(|(at, _)| Some(*at) != now).map(|(_, part)| part.words.clone());
        let written: Vec<String> = said.chain(typed).filter(|words| !words.trim().is_empty()).collect();
        written.join("\n")
    }

    /// What an editor would begin with.
    pub(crate) fn content(&self) -> Option<String> {
        if !self.question.edits.contains(&Edit::NewContent) || allows(&self.question).is_none() {
            return None;
        }
        self.edited.clone().or_else(|| self.original())
    }

    /// What would be run or written as it was asked.
    fn original(&self) -> Option<String> {
        match &self.question.details {
            Details::Command { command, .. } => Some(command.clone()),
            Details::FileEdit { after, .. } => after.clone(),
            _ => None,
        }
    }

    /// An editor was closed with that text: it is shown, and asked about again.
    pub(super) fn edit(&mut self, text: String) {
        self.edited = Some(text).filter(|text| Some(text) != self.original().as_ref());
        // A rule is about the call as it was asked, so an edited answer with such an option would be refused.
        let fits = |choice: &&Choice| self.edited.is_none() || choice.kind != ChoiceKind::AllowAlways;
        let options: Vec<Choice> = self.options.iter().filter(fits).cloned().collect();
        let was = self.chosen.and_then(|at| self.question.options.get(at).cloned());
        self.question.options = options;
        let same = |was: Choice| self.question.options.iter().position(|choice| choice.id == was.id);
        self.chosen = was.map(|was| same(was).or_else(|| rejects(&self.question)).unwrap_or(0));
        (self.top, self.is_fresh, self.is_wary) = (0, true, false);
        if self.words.is_none() {
            (self.chosen, self.is_selected) = (allows(&self.question), false);
        }
    }
}

/// Shows the oldest question that is open; takes it down when it is not open any more.
pub(super) fn follow(model: &mut Model) -> Vec<Effect> {
    let open = model.state.questions.open();
    let is_over = |asking: &mut Asking| !open.iter().any(|open| open.question_id == asking.question.question_id);
    let mut over: Vec<Asking> = model.aside.extract_if(.., is_over).collect();
    // Words for the one that went may still be on their way.
    let is_typing = !model.composer.is_empty() || model.asking.as_ref().is_some_and(|asking| asking.words.is_some());
    let shown = model.asking.take_if(is_over);
    model.gone = shown.as_ref().and_then(Gone::of).or(model.gone.take());
    over.extend(shown);
    if let Some(next) = open.first().filter(|_| model.asking.is_none()).cloned() {
        let begun = take_up(&mut model.aside, &next);
        let mut asking = begun.unwrap_or_else(|| Asking::new(offered_to(&model.me, next), is_typing));
        asking.is_fresh = true;
        (model.asking, model.gone) = (Some(asking), None);
    }
    written::closed(model, over)
}

/// The question without the options that only an owner may choose, unless one sits here.
fn offered_to(me: &ClientRef, mut question: Question) -> Question {
    question.options.retain(|choice| choice.is_open_to(me));
    question
}

/// Whoever sits here answered it: what was written went with the answer.
pub(super) fn answered(model: &mut Model, id: &QuestionId) {
    let written = model.aside.iter_mut().chain(&mut model.asking).filter(|asking| asking.question.question_id == *id);
    written.for_each(|asking| {
        (asking.words, asking.form, asking.edited, asking.is_answered) = (None, None, None, true);
    });
}

/// A question that somebody turned away from, as it was left.
fn take_up(aside: &mut Vec<Asking>, question: &Question) -> Option<Asking> {
    let at = aside.iter().position(|asking| asking.question.question_id == question.question_id)?;
    Some(aside.remove(at))
}

/// What a key does to a question; nothing if it is not for it.
pub(super) fn pressed(model: &mut Model, key: KeyEvent, action: Action) -> Option<Vec<Effect>> {
    let hidden = crate::view::hidden_details(model);
    if let KeyCode::Char(digit @ '1'..='9') = key.code
        && key.modifiers.contains(KeyModifiers::ALT)
    {
        turn_to(model, digit as usize - '1' as usize);
        return Some(Vec::new());
    }
    let is_readable = crate::view::is_readable(model);
    let asking = model.asking.as_mut()?;
    let answers = matches!(action, Action::Insert(_) | Action::Send | Action::Interrupt | Action::Editor);
    if answers && asking.is_fresh {
        if matches!(action, Action::Insert(letter) if !letter.is_ascii_digit()) {
            asking.beware();
        }
        return Some(Vec::new());
    }
    if answers && !is_readable && action != Action::Interrupt {
        return Some(Vec::new());
    }
    let options = asking.count();
    if let Some(words) = &mut asking.words {
        match action {
            Action::Insert(letter) => words.insert(letter.encode_utf8(&mut [0; 4])),
            Action::Newline => words.insert("\n"),
            Action::Go(way @ (Move::Up | Move::Down)) if words.is_at_edge(way) => {
                if let Some(form) = asking.form.as_mut().filter(|_| options > 1) {
                    form.keep(&words.whole());
                    asking.words = None;
                }
                choose(asking, way, options);
            }
            Action::Go(way @ (Move::Left | Move::Right)) if words.is_at_edge(way) => {
                if let Some(form) = &mut asking.form {
                    form.keep(&words.whole());
                }
                turn(model, way);
            }
            Action::Go(way) => words.go(way),
            Action::Erase(what) => words.erase(what),
            Action::Yank => words.yank(),
            Action::Interrupt if asking.form.as_ref().is_some_and(Form::wants_words) && words.is_empty() => {
                return Some(refuse(asking));
            }
            Action::Interrupt => asking.end_words(),
            Action::Editor => return Some(edit(asking)),
            // Not what it does where prompts are typed: that is not to be seen now.
            Action::Recall | Action::Complete => {}
            Action::Send => return Some(say(model)),
            _ => return None,
        }
        return Some(Vec::new());
    }
    match (action, key.code) {
        (_, KeyCode::Tab) => asking.begin_words(),
        (Action::Go(way @ (Move::Up | Move::Down)), _) => choose(asking, way, options),
        (Action::Go(way @ (Move::Left | Move::Right)), _) => turn(model, way),
        (Action::Insert(' '), _) if asking.form.is_some() => return Some(act_on_chosen(model, Form::toggle)),
        (Action::Insert(letter), _) => return Some(by_letter(model, letter)),
        (Action::Interrupt, _) => return Some(refuse(asking)),
        (Action::Send, _) if asking.form.is_some() => return Some(act_on_chosen(model, Form::take)),
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

/// Words are an answer, or go with one.
fn say(model: &mut Model) -> Vec<Effect> {
    let Some(asking) = &mut model.asking else { return Vec::new() };
    let words = asking.words.as_ref().map(Composer::whole).unwrap_or_default();
    match &mut asking.form {
        Some(form) => {
            let chosen = form.say(&words, &asking.question);
            came_to(model, chosen)
        }
        None => answer_chosen(asking),
    }
}

/// Does that to the row that is chosen.
fn act_on_chosen(model: &mut Model, act: impl FnOnce(&mut Form, Row, &Question) -> Chosen) -> Vec<Effect> {
    let Some(Asking { question, chosen: Some(at), form: Some(form), .. }) = &mut model.asking else {
        return Vec::new();
    };
    let Some(row) = form.rows(question).get(*at).copied() else { return Vec::new() };
    let chosen = act(form, row, question);
    came_to(model, chosen)
}

fn came_to(model: &mut Model, chosen: Chosen) -> Vec<Effect> {
    let Some(asking) = &mut model.asking else { return Vec::new() };
    match chosen {
        Chosen::Nothing => {}
        Chosen::Turned => asking.turned(),
        Chosen::Words => asking.begin_words(),
        Chosen::Decide(decide) => return vec![Effect::Decide(decide)],
        Chosen::Missing => {
            asking.turned();
            model.notice = Some("this has no answer yet".to_owned());
        }
    }
    Vec::new()
}

/// Says no. What was filled in is looked at first: it would be lost.
fn refuse(asking: &mut Asking) -> Vec<Effect> {
    let form = asking.form.as_mut().filter(|form| form.parts().len() > 1 && form.has_answers());
    match form.filter(|form| form.part().is_some()) {
        Some(form) => {
            form.turn_to_end();
            asking.turned();
            asking.chosen = asking.count().checked_sub(1);
            Vec::new()
        }
        None => rejects(&asking.question).map(|at| answer(asking, at)).unwrap_or_default(),
    }
}

/// The part or the question before or after the one that is shown.
fn turn(model: &mut Model, way: Move) {
    let Some(asking) = &mut model.asking else { return };
    let forward = way == Move::Right;
    if asking.form.as_mut().is_some_and(|form| form.turn(forward)) {
        return asking.turned();
    }
    let open = model.state.questions.open();
    let now = open.iter().position(|open| open.question_id == asking.question.question_id).unwrap_or(0);
    let next = if forward { now + 1 } else { now + open.len().saturating_sub(1) } % open.len().max(1);
    turn_to(model, next);
}

/// Shows that one of the questions that are open. The one that was shown is kept as it is.
fn turn_to(model: &mut Model, at: usize) {
    let Some(next) = model.state.questions.open().get(at).cloned() else { return };
    if model.asking.as_ref().is_some_and(|asking| asking.question.question_id == next.question_id) {
        return;
    }
    // Whoever turns pages is not typing.
    let mut begun = take_up(&mut model.aside, &next).unwrap_or_else(|| Asking::new(offered_to(&model.me, next), false));
    begun.is_fresh = false;
    model.aside.extend(model.asking.replace(begun));
}

fn choose(asking: &mut Asking, way: Move, options: usize) {
    asking.select(match (way, asking.chosen) {
        (_, None) => 0,
        (Move::Up, Some(chosen)) => (chosen + options.saturating_sub(1)) % options.max(1),
        (_, Some(chosen)) => (chosen + 1) % options.max(1),
    });
}

/// An option by its number, by the letter it begins with, or by yes and no. Where that leaves a choice, or the letter
/// may be meant for something else, it is chosen and not yet answered.
fn by_letter(model: &mut Model, letter: char) -> Vec<Effect> {
    let Some(asking) = &mut model.asking else { return Vec::new() };
    let names = asking.names();
    // A figure is a number, also where a name begins with one.
    let number = letter.to_digit(10).and_then(|number| (number as usize).checked_sub(1));
    if asking.is_wary && number.is_none() {
        return Vec::new();
    }
    let begins = |name: &str| name.chars().next().is_some_and(|first| first.to_lowercase().eq(letter.to_lowercase()));
    let mut named: Vec<usize> = (0..names.len()).filter(|at| number.is_none() && begins(names[*at])).collect();
    if named.is_empty() {
        let is_plain = asking.form.is_none();
        let meant = match letter {
            'y' if is_plain => allows(&asking.question),
            'n' if is_plain => rejects(&asking.question),
            _ => number,
        };
        named.extend(meant.filter(|at| *at < names.len()));
    }
    match named[..] {
        [] => Vec::new(),
        [only] if asking.chosen.is_some_and(|chosen| !asking.is_wary || chosen == only) => {
            if asking.form.is_none() {
                return answer(asking, only);
            }
            asking.chosen = Some(only);
            act_on_chosen(model, Form::toggle)
        }
        [first, ..] => {
            let after = |at: &&usize| asking.chosen.is_some_and(|chosen| **at > chosen);
            let to = named.iter().find(after).copied().unwrap_or(first);
            asking.select(to);
            Vec::new()
        }
    }
}

fn answer_chosen(asking: &Asking) -> Vec<Effect> {
    asking.chosen.map(|at| answer(asking, at)).unwrap_or_default()
}

fn answer(asking: &Asking, at: usize) -> Vec<Effect> {
    asking.decide(at).map(Effect::Decide).into_iter().collect()
}

fn edit(asking: &Asking) -> Vec<Effect> {
    let question = asking.question.question_id.clone();
    let edited = asking.content().map(|text| {
        let what = Edited::Answer { question, before: text.clone() };
        Effect::Edit { what, text }
    });
    edited.into_iter().collect()
}

/// Just this once, where that is offered: who wants it for good says so.
pub(super) fn allows(question: &Question) -> Option<usize> {
    let once = question.options.iter().position(|choice| choice.kind == ChoiceKind::AllowOnce);
    once.or_else(|| question.options.iter().position(|choice| choice.kind.allows()))
}

pub(super) fn rejects(question: &Question) -> Option<usize> {
    question.options.iter().position(|choice| choice.kind.rejects())
}
