//! The model of the screen, and `update`: the only place where it changes. Pure.

mod ask;
mod context;
mod look;

use crossterm::event::KeyEvent;
use multitap_event::{ApprovalMode, ClientRef, Decide, Event, EventKind, Prompt, PromptId};
use multitap_hub::State;

pub(crate) use self::ask::Asking;
pub(crate) use self::context::Context;
pub(crate) use self::look::Search;
use crate::composer::{Composer, Move};
use crate::effect::{Edited, Effect};
use crate::keys::{self, Action, Copied};
use crate::msg::Msg;
use crate::theme::Theme;
use crate::transcript::{Mark, Scroll, Shape, Transcript};

/// How many prompts are remembered.
const REMEMBERED: usize = 1000;
/// The modes that Shift+Tab goes through.
const MODES: [ApprovalMode; 4] = [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Plan, ApprovalMode::AutoAll];

/// Everything that is on the screen, or could be.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) me: ClientRef,
    /// Where the session works, for the status line.
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    /// Where others join.
    pub(crate) door: Option<String>,
    pub(crate) theme: Theme,
    pub(crate) columns: u16,
    pub(crate) rows: u16,
    pub(crate) state: State,
    pub(crate) transcript: Transcript,
    pub(crate) scroll: Scroll,
    /// Where the end was when the screen went away from it.
    pub(crate) left: Option<Mark>,
    pub(crate) search: Option<Search>,
    /// What came before is on its way.
    pub(crate) fetching: bool,
    pub(crate) context: Option<Context>,
    pub(crate) composer: Composer,
    pub(crate) asking: Option<Asking>,
    pub(crate) help: bool,
    /// The first line of it.
    pub(crate) help_top: usize,
    /// A line for whoever sits here, until the next key.
    pub(crate) notice: Option<String>,
    /// What was sent before, the latest last; and which of it is shown.
    past: Vec<String>,
    at: Option<usize>,
    draft: Option<Composer>,
    /// The key before this one was the same, and meant to be pressed twice.
    again: Option<Action>,
    focused: bool,
    pub(crate) over: Option<String>,
}

impl Model {
    pub(crate) fn new(me: ClientRef, folder: String, theme: Theme) -> Self {
        Self {
            folder,
            branch: None,
            door: None,
            theme,
            columns: 80,
            rows: 24,
            state: State::default(),
            transcript: Transcript::of(&me),
            me,
            scroll: Scroll::Latest,
            left: None,
            search: None,
            fetching: false,
            context: None,
            composer: Composer::default(),
            asking: None,
            help: false,
            help_top: 0,
            notice: None,
            past: Vec::new(),
            at: None,
            draft: None,
            again: None,
            focused: true,
            over: None,
        }
    }

    /// Begins with what the session is, where its beginning is not told.
    pub(crate) fn begin(&mut self, state: State) {
        self.transcript.expect(state.questions.open());
        self.state = state;
        ask::follow(self);
    }

    /// The rows that the transcript has.
    pub(crate) fn page(&self) -> usize {
        usize::from(self.rows).saturating_sub(crate::view::below(self)).max(1)
    }

    /// What the lines of the transcript are made for.
    pub(crate) fn shape(&self) -> Shape {
        Shape { columns: usize::from(self.columns), rows: self.page(), theme: self.theme }
    }
}

/// Takes in what happened, and says what is to be done.
pub(crate) fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Told(event) => told(model, &event),
        Msg::Gap { after, next } => {
            model.notice = Some(format!("events {} to {} are lost", after + 1, next.saturating_sub(1)));
            Vec::new()
        }
        Msg::Key(key) => pressed(model, key),
        Msg::Paste(text) => {
            if model.search.is_some() {
                return look::paste(model, &text);
            }
            match &mut model.asking {
                Some(asking) => asking.paste(&text),
                None => model.composer.paste(&text),
            }
            Vec::new()
        }
        Msg::Wheel(by) => look::scroll(model, by),
        Msg::Fetched(fetched) => {
            model.fetching = false;
            match fetched {
                Ok(events) => model.transcript.prepend(&events),
                Err(why) => model.notice = Some(why),
            }
            Vec::new()
        }
        Msg::Resized { columns, rows } => {
            (model.columns, model.rows) = (columns, rows);
            Vec::new()
        }
        Msg::Focused(focused) => {
            model.focused = focused;
            Vec::new()
        }
        Msg::Refused(why) => {
            model.notice = Some(why);
            Vec::new()
        }
        Msg::Edited { what: Edited::Composer, text } => {
            model.composer = Composer::with(text.trim_end_matches('\n'));
            Vec::new()
        }
        Msg::Edited { what: Edited::Answer(decide), text } => {
            vec![Effect::Decide(Decide { new_content: Some(text), ..decide })]
        }
        Msg::Tick => {
            model.again = None;
            Vec::new()
        }
        Msg::Over(why) => {
            model.over = Some(why);
            Vec::new()
        }
    }
}

fn told(model: &mut Model, event: &Event) -> Vec<Effect> {
    // Whoever joins late begins with a state that knows the latest events.
    if event.seq > model.state.seq {
        model.state.apply(event);
    }
    model.transcript.apply(event);
    model.context = Context::told(event).or(model.context);
    let mut effects = Vec::new();
    match &event.kind {
        EventKind::PermissionAsked(question) if !model.focused => {
            effects.push(Effect::Notify(question.title.clone()));
        }
        EventKind::TurnCompleted(_) if !model.focused => effects.push(Effect::Notify("the turn is over".to_owned())),
        _ => {}
    }
    ask::follow(model);
    effects
}

fn pressed(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let action = keys::action(key);
    let twice = model.again.take() == Some(action);
    model.notice = None;
    if model.help {
        read_help(model, action);
        return Vec::new();
    }
    if model.search.is_some()
        && let Some(effects) = look::pressed(model, action)
    {
        return effects;
    }
    if model.asking.is_some()
        && let Some(effects) = ask::pressed(model, key, action)
    {
        return effects;
    }
    match action {
        Action::Send => return send(model),
        Action::Newline => model.composer.insert("\n"),
        // As in a pager, when one reads and does not type.
        Action::Insert('/') if model.composer.is_empty() && model.scroll != Scroll::Latest => {
            model.search = Some(Search::default());
        }
        Action::Insert('?') if model.composer.is_empty() => model.help = true,
        Action::Insert(letter) => model.composer.insert(letter.encode_utf8(&mut [0; 4])),
        Action::Go(Move::Up) if model.composer.is_empty() && last_queued(&model.state).is_some() => {
            return take_back(model);
        }
        Action::Go(way @ (Move::Up | Move::Down)) if model.composer.is_at_edge(way) => recall(model, way),
        Action::Go(way) => model.composer.go(way),
        Action::Erase(what) => model.composer.erase(what),
        Action::Yank => model.composer.yank(),
        Action::Interrupt => return interrupt(model, twice),
        Action::Leave => return leave(model, twice),
        Action::LeaveIfEmpty if model.composer.is_empty() => return vec![Effect::Quit],
        Action::LeaveIfEmpty => model.composer.erase(crate::composer::Erase::Forward),
        Action::NextMode => return next_mode(model),
        Action::Unfold => model.transcript.unfolded = !model.transcript.unfolded,
        Action::PageUp => return look::page(model, -1),
        Action::PageDown => return look::page(model, 1),
        Action::Top => return look::go(model, model.transcript.top(model.shape())),
        Action::Bottom => return look::go(model, Scroll::Latest),
        Action::Search => model.search = Some(Search::default()),
        Action::Copy(what) => return copy(model, what),
        Action::Editor => return vec![Effect::Edit { what: Edited::Composer, text: model.composer.whole() }],
        Action::Nothing => {}
    }
    Vec::new()
}

/// What does not fit is scrolled to; any other key closes it.
fn read_help(model: &mut Model, action: Action) {
    let hidden = crate::view::hidden_help(model);
    let page = usize::from(model.rows).saturating_sub(3).max(1);
    let top = model.help_top.min(hidden);
    let to = match action {
        Action::Go(Move::Up) => Some(top.saturating_sub(1)),
        Action::Go(Move::Down) => Some(top + 1),
        Action::PageUp => Some(top.saturating_sub(page)),
        Action::PageDown => Some(top + page),
        _ => None,
    };
    model.help = to.is_some() && hidden > 0;
    model.help_top = to.filter(|_| model.help).unwrap_or(0).min(hidden);
}

fn copy(model: &mut Model, what: Copied) -> Vec<Effect> {
    let (text, name) = match what {
        Copied::Answer => (model.transcript.last_said(), "answer"),
        Copied::Code => (model.transcript.last_code(), "code"),
    };
    let verb = if text.is_some() { "copied the last" } else { "there is no" };
    model.notice = Some(format!("{verb} {name}"));
    text.map(Effect::Copy).into_iter().collect()
}

fn send(model: &mut Model) -> Vec<Effect> {
    // A line that ends with a backslash goes on.
    if model.composer.text()[..model.composer.cursor()].ends_with('\\') {
        model.composer.erase(crate::composer::Erase::Back);
        model.composer.insert("\n");
        return Vec::new();
    }
    let text = model.composer.take();
    if text.trim().is_empty() {
        return Vec::new();
    }
    (model.at, model.draft) = (None, None);
    look::go(model, Scroll::Latest);
    if model.past.last() != Some(&text) {
        if model.past.len() == REMEMBERED {
            model.past.remove(0);
        }
        model.past.push(text.clone());
    }
    match text.trim().split_once(' ').unwrap_or((text.trim(), "")) {
        ("/quit" | "/exit", _) => return vec![Effect::Quit],
        ("/model", model) if !model.trim().is_empty() => return vec![Effect::SetModel(model.trim().to_owned())],
        ("/mode", mode) if !mode.trim().is_empty() => return vec![Effect::SetMode(mode.trim().to_owned())],
        ("/copy", _) => return model.transcript.last_said().map(Effect::Copy).into_iter().collect(),
        ("/help", _) => {
            model.help = true;
            return Vec::new();
        }
        _ => {}
    }
    vec![Effect::Prompt(Prompt::text(text))]
}

/// Goes through what was sent before; what is under way is not lost by it.
fn recall(model: &mut Model, way: Move) {
    let at = match (way, model.at) {
        (Move::Up, None) => model.past.len().checked_sub(1),
        (Move::Up, Some(at)) => Some(at.saturating_sub(1)),
        (_, Some(at)) if at + 1 < model.past.len() => Some(at + 1),
        _ => None,
    };
    match at {
        Some(at) => {
            if model.at.is_none() {
                model.draft = Some(model.composer.clone());
            }
            model.composer = Composer::with(&model.past[at]);
        }
        None if model.at.is_some() => model.composer = model.draft.take().unwrap_or_default(),
        None => return model.composer.go(if way == Move::Up { Move::Start } else { Move::End }),
    }
    model.at = at;
}

fn interrupt(model: &mut Model, twice: bool) -> Vec<Effect> {
    if model.state.is_busy() {
        return vec![Effect::Cancel];
    }
    if twice {
        model.composer.clear();
    } else if !model.composer.is_empty() {
        model.again = Some(Action::Interrupt);
        model.notice = Some("Esc again clears what is typed".to_owned());
    }
    Vec::new()
}

fn leave(model: &mut Model, twice: bool) -> Vec<Effect> {
    if twice {
        return vec![Effect::Quit];
    }
    model.again = Some(Action::Leave);
    model.notice = Some("Ctrl+C again quits".to_owned());
    if !model.composer.is_empty() {
        model.composer.clear();
        return Vec::new();
    }
    if model.state.is_busy() { vec![Effect::Cancel] } else { Vec::new() }
}

/// The prompt that waits last is taken back, to be changed.
fn take_back(model: &mut Model) -> Vec<Effect> {
    let Some((id, text)) = last_queued(&model.state) else { return Vec::new() };
    model.composer = Composer::with(&text);
    vec![Effect::Withdraw(id)]
}

fn last_queued(state: &State) -> Option<(PromptId, String)> {
    let queued = state.queue.back()?;
    Some((queued.prompt.prompt_id.clone()?, queued.prompt.text.clone()))
}

fn next_mode(model: &Model) -> Vec<Effect> {
    let now = MODES.iter().position(|mode| Some(*mode) == model.state.mode);
    let next = MODES[now.map_or(1, |at| (at + 1) % MODES.len())];
    vec![Effect::SetMode(next.to_string())]
}
