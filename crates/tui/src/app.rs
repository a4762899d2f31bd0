//! The model of the screen, and `update`: the only place where it changes. Pure.

mod act;
mod ask;
mod command;
mod context;
mod form;
mod gone;
mod look;
mod mode;
mod overlay;
#[cfg(test)]
mod tests;
mod typing;
mod written;

use multitap_event::{ApprovalMode, ClientRef, Event, EventKind, QuestionId, SystemSubtype, Timestamp};
use multitap_hub::{Queued, State};

pub(crate) use self::ask::Asking;
pub(crate) use self::context::Context;
pub(crate) use self::form::{Form, Row};
pub(crate) use self::gone::Gone;
pub(crate) use self::look::Search;
pub(crate) use self::overlay::{Overlay, Page, Picker};
use crate::commands::{self, Offered};
use crate::complete::{Completion, Item};
use crate::composer::Composer;
use crate::effect::{Edited, Effect};
use crate::history::History;
use crate::keys::Action;
use crate::msg::Msg;
use crate::theme::Theme;
use crate::transcript::{Mark, Scroll, Shape, Transcript};

/// Whether somebody looks here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    /// Not every terminal tells.
    Unknown,
    Here,
    Elsewhere,
}

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
    /// What was put in it because it was meant for a question.
    was_answer: Option<String>,
    pub(crate) asking: Option<Asking>,
    /// Questions that somebody turned away from, as they were left.
    aside: Vec<Asking>,
    /// The question that went just now without an answer from here.
    gone: Option<Gone>,
    pub(crate) help: bool,
    /// What lies over the screen.
    pub(crate) overlay: Option<Overlay>,
    /// The first line of it.
    pub(crate) help_top: usize,
    /// A line for whoever sits here, until the next key.
    pub(crate) notice: Option<String>,
    /// What was sent before.
    pub(crate) history: History,
    /// What is offered for what is typed; and where somebody did not want it.
    pub(crate) completion: Option<Completion>,
    dismissed: Option<usize>,
    /// The agent's commands, once it told, and whether it was asked.
    commands: Option<Vec<Offered>>,
    asked_commands: bool,
    /// Its models, as far as it told; and whether somebody waits to choose one.
    models: Vec<Item>,
    wants_models: bool,
    /// The id of the session.
    pub(crate) session: Option<String>,
    /// Whether the session ends when this screen is left.
    pub(crate) is_host: bool,
    /// The mode that was asked for last, until it is told; and those that the agent did not take.
    wished: Option<ApprovalMode>,
    refused: Vec<ApprovalMode>,
    /// The agent's own words for its modes, where it lists them.
    offered_modes: Option<Vec<String>>,
    /// The mode that an owner chose last: other clients may not go beyond it.
    ceiling: Option<ApprovalMode>,
    /// A command that was not sent, because the agent has not listed its commands.
    unlisted: Option<String>,
    /// The key before this one was the same, and meant to be pressed twice.
    again: Option<Action>,
    focus: Focus,
    /// The session runs elsewhere and cannot be reached now.
    pub(crate) is_lost: bool,
    /// When the turn that runs began, as far as that was told; and the moment that is drawn.
    began: Option<Timestamp>,
    beat: Option<Timestamp>,
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
            was_answer: None,
            asking: None,
            aside: Vec::new(),
            gone: None,
            help: false,
            overlay: None,
            help_top: 0,
            notice: None,
            history: History::default(),
            completion: None,
            dismissed: None,
            commands: None,
            asked_commands: false,
            models: Vec::new(),
            wants_models: false,
            session: None,
            is_host: false,
            wished: None,
            refused: Vec::new(),
            offered_modes: None,
            ceiling: None,
            unlisted: None,
            again: None,
            focus: Focus::Unknown,
            is_lost: false,
            began: None,
            beat: None,
            over: None,
        }
    }

    /// Begins with what the session is, where its beginning is not told.
    pub(crate) fn begin(&mut self, state: State) -> Vec<Effect> {
        self.transcript.expect(&state);
        self.ceiling = state.mode;
        self.state = state;
        ask::follow(self)
    }

    /// Whether a prompt that waits was sent from here, also over a connection that was lost since.
    pub(crate) fn is_mine(&self, queued: &Queued) -> bool {
        queued.from.as_ref().is_none_or(|from| self.transcript.is_me(from))
    }

    /// The question that came or went just now, and whether it came: keys wait until that can have been seen.
    pub(crate) fn unseen(&self) -> Option<(&QuestionId, bool)> {
        let came = self.asking.as_ref().filter(|asking| asking.is_fresh).map(|it| (&it.question.question_id, true));
        came.or_else(|| self.gone.as_ref().map(|gone| (&gone.question, false)))
    }

    /// The rows that the transcript has.
    pub(crate) fn page(&self) -> usize {
        usize::from(self.rows).saturating_sub(crate::view::below(self)).max(1)
    }

    /// The moment that is drawn while a turn runs, and for how many milliseconds it has.
    pub(crate) fn beat(&self) -> Option<(Timestamp, Option<u64>)> {
        let now = self.beat.filter(|_| self.state.is_busy())?;
        Some((now, self.began.map(|began| now.millis_since(began))))
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
            // What was asked in between would never be seen.
            vec![Effect::Snapshot]
        }
        Msg::Snapshot(state) => {
            if state.seq > model.state.seq {
                model.begin(*state)
            } else {
                Vec::new()
            }
        }
        Msg::Key(key) => act::pressed(model, key),
        Msg::Paste(text) => {
            if model.search.is_some() {
                return look::paste(model, &text);
            }
            match (&mut model.overlay, &mut model.asking) {
                (Some(_), _) => Vec::new(),
                (None, Some(asking)) => {
                    asking.paste(&text);
                    Vec::new()
                }
                (None, None) => typing::paste(model, text),
            }
        }
        Msg::Clipped(clipped) => typing::clipped(model, clipped),
        Msg::Wheel(by) => look::scroll(model, by),
        Msg::Fetched(fetched) => look::fetched(model, fetched),
        Msg::Resized { columns, rows } => {
            look::resized(model, columns, rows);
            Vec::new()
        }
        Msg::Focused(focused) => {
            model.focus = if focused { Focus::Here } else { Focus::Elsewhere };
            // Somebody may have been at it meanwhile.
            if focused { vec![Effect::Branch] } else { Vec::new() }
        }
        Msg::Branch(branch) => {
            model.branch = branch;
            Vec::new()
        }
        Msg::Lost(why) => {
            model.is_lost = true;
            model.notice = Some(format!("the connection is lost ({why}); trying again"));
            Vec::new()
        }
        Msg::Back => {
            model.is_lost = false;
            // Another client now, and still whoever sits here.
            model.transcript.know(&model.me, model.is_host);
            model.notice = Some("connected again; nothing was missed".to_owned());
            Vec::new()
        }
        Msg::Refused(why) => {
            model.notice = Some(why);
            model.wants_models = false;
            mode::give_up(model);
            Vec::new()
        }
        Msg::NotSent { prompt, why } => {
            typing::not_sent(model, &prompt, why);
            Vec::new()
        }
        Msg::NotWithdrawn { prompt, why } => {
            typing::not_withdrawn(model, &prompt, why);
            Vec::new()
        }
        Msg::Found { wanted, paths } => {
            typing::found(model, wanted, paths);
            Vec::new()
        }
        Msg::Picture { name, image, pasted } => {
            match (image, pasted) {
                (Ok(image), _) => typing::picture(model, &name, image),
                (Err(_), Some(pasted)) => model.composer.paste(&pasted),
                (Err(why), None) => model.notice = Some(why),
            }
            Vec::new()
        }
        Msg::Sessions(sessions) => {
            command::sessions(model, sessions);
            Vec::new()
        }
        Msg::Agents(lines) => {
            command::agents(model, lines);
            Vec::new()
        }
        Msg::Shared(address) => {
            command::shared(model, address);
            Vec::new()
        }
        Msg::Edited { what: Edited::Composer, text } => {
            model.composer.rewrite(text.trim_end_matches('\n'));
            Vec::new()
        }
        Msg::Edited { what: Edited::Answer { question, before }, text } => {
            written::edited(model, &question, &before, text)
        }
        Msg::NotEdited(why) => {
            written::tell(model, "the editor cannot be used", &why);
            Vec::new()
        }
        Msg::NotDecided { decide, why } => written::not_decided(model, decide, why),
        Msg::Kept { text, why, file } => {
            written::kept(model, text, &why, file);
            Vec::new()
        }
        Msg::Tick => {
            // What it said about the next key is no longer so.
            if model.again.take().is_some() {
                model.notice = None;
            }
            Vec::new()
        }
        Msg::Ripe => {
            model.asking.iter_mut().for_each(|asking| asking.is_fresh = false);
            model.gone = None;
            Vec::new()
        }
        Msg::Beat(now) => {
            model.beat = Some(now);
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
    model.transcript.know(&model.me, model.is_host);
    model.transcript.apply(event);
    model.context = Context::told(event).or(model.context);
    let mut effects = Vec::new();
    match &event.kind {
        // The words that stand there went with it.
        EventKind::PermissionSettled(ruling) if model.transcript.is_me(&ruling.settled_by) => {
            ask::answered(model, &ruling.question_id);
        }
        EventKind::PermissionAsked(question) => effects.extend(notify(model, &question.title)),
        EventKind::SessionStarted(_) => {
            (model.commands, model.asked_commands) = (None, false);
            (model.offered_modes, model.ceiling) = (None, model.state.mode);
        }
        EventKind::System(note) if note.subtype == SystemSubtype::CAPABILITIES => {
            model.offered_modes = mode::offered(&note.data).or(model.offered_modes.take());
        }
        EventKind::UserMessage(message) if model.transcript.is_cleared_by(message) => {
            (model.scroll, model.left, model.search, model.context) = (Scroll::Latest, None, None, None);
        }
        EventKind::System(note) if note.subtype == SystemSubtype::COMMANDS => {
            model.commands = Some(commands::read(&note.data));
            // Somebody may be in the middle of typing one.
            if model.composer.text().starts_with('/') {
                effects.extend(typing::offer(model));
            }
        }
        EventKind::System(note) if note.subtype == SystemSubtype::MODELS => {
            model.models = command::read_models(&note.data);
            command::choose_model(model);
        }
        EventKind::ModeChanged { mode, by, .. } => {
            model.wished = None;
            if by.as_ref().is_none_or(ClientRef::is_owner) {
                model.ceiling = *mode;
            }
        }
        EventKind::Error(_) => mode::give_up(model),
        EventKind::TurnStarted { .. } => (model.began, model.beat) = (Some(event.timestamp), None),
        EventKind::TurnCompleted(_) => {
            effects.push(Effect::Branch);
            effects.extend(notify(model, "the turn is over"));
        }
        _ => {}
    }
    effects.extend(ask::follow(model));
    effects
}

/// Calls whoever looks elsewhere, or may.
fn notify(model: &Model, words: &str) -> Option<Effect> {
    let is_sure = match model.focus {
        Focus::Here => return None,
        Focus::Elsewhere => true,
        Focus::Unknown => false,
    };
    Some(Effect::Notify { words: words.to_owned(), is_sure })
}
