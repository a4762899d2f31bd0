//! The model of the screen, and `update`: the only place where it changes. Pure.

mod agent;
mod closed;
mod command;
mod dialog;
mod focus;
mod form;
mod key;
mod overlay;
mod prompt;
mod question;
mod scrollback;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod unsent;

use multitap_event::{ClientRef, Event, EventKind, QuestionId};
use multitap_hub::{Queued, State};

use self::agent::AgentOffer;
pub(crate) use self::dialog::Dialog;
pub(crate) use self::form::{Form, Row};
pub(crate) use self::overlay::{Overlay, Page, Picker, step};
use self::prompt::PromptInput;
use self::question::Questions;
use self::scrollback::Scrollback;
pub(crate) use self::scrollback::Search;
pub(crate) use self::session::{Context, SessionView};
use self::status::{Attention, Status};
use crate::effect::{Edited, Effect};
use crate::msg::Msg;
use crate::theme::Theme;
use crate::view::Layout;

/// Everything that is on the screen, or could be.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) theme: Theme,
    /// Whether names of files are links: the terminal shows them, and the files are on this machine.
    pub(crate) has_links: bool,
    pub(crate) session: SessionView,
    agent: AgentOffer,
    pub(crate) scrollback: Scrollback,
    pub(crate) prompt: PromptInput,
    pub(crate) questions: Questions,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) status: Status,
    attention: Attention,
}

impl Model {
    pub(crate) fn new(me: ClientRef, folder: String, theme: Theme) -> Self {
        Self {
            theme,
            has_links: false,
            scrollback: Scrollback::new(&me),
            session: SessionView::new(me, folder),
            agent: AgentOffer::default(),
            prompt: PromptInput::default(),
            questions: Questions::default(),
            overlay: None,
            status: Status::default(),
            attention: Attention::Unknown,
        }
    }

    /// Starts from the state of a session whose first events are not read.
    pub(crate) fn begin(&mut self, state: State) -> Vec<Effect> {
        self.scrollback.transcript.expect(&state);
        self.agent.ceiling = state.mode;
        self.agent.learn(&state.capabilities);
        self.session.state = state;
        question::follow(self)
    }

    /// Whether a queued prompt was sent from here, even over a connection that was lost since.
    pub(crate) fn is_mine(&self, queued: &Queued) -> bool {
        queued.from.as_ref().is_none_or(|from| self.scrollback.transcript.is_me(from))
    }

    /// The question that opened or closed just now, and whether it opened. Keys for it are ignored for a moment, until
    /// the user can have seen that.
    pub(crate) fn unseen(&self) -> Option<(&QuestionId, bool)> {
        let opened = self.questions.shown.as_ref().filter(|dialog| dialog.is_fresh);
        let opened = opened.map(|dialog| (&dialog.question.question_id, true));
        opened.or_else(|| self.questions.closed.as_ref().map(|closed| (&closed.question, false)))
    }
}

/// Applies what happened, and returns what to do. `layout` is that of the frame which the user sees.
pub(crate) fn update(model: &mut Model, layout: &Layout, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Event(event) => return on_event(model, &event),
        Msg::Gap { after, next } => {
            model.status.show(format!("events {} to {} were lost", after + 1, next.saturating_sub(1)));
            // A question asked in between would never be shown.
            return vec![Effect::Snapshot];
        }
        Msg::Snapshot(state) if state.seq > model.session.state.seq => return model.begin(*state),
        Msg::Snapshot(_) => {}
        Msg::Key(key) => return focus::pressed(model, layout, key),
        Msg::Paste(text) => return focus::pasted(model, layout, text),
        Msg::Clipped(clipped) => return prompt::clipped(model, layout, clipped),
        Msg::Wheel(lines) => return model.scrollback.scroll(lines, layout.shape),
        Msg::Fetched(Ok(events)) => return model.scrollback.prepend(&events, layout.shape),
        Msg::Fetched(Err(why)) => {
            model.scrollback.not_fetched();
            model.status.show(why);
        }
        Msg::Resized(size) => model.scrollback.resize(layout.shape, usize::from(size.width)),
        Msg::Focused(true) => {
            model.attention = Attention::Here;
            // The user may have switched branches elsewhere.
            return vec![Effect::Branch];
        }
        Msg::Focused(false) => model.attention = Attention::Elsewhere,
        Msg::Branch(branch) => model.session.branch = branch,
        Msg::ConnectionLost(why) => {
            model.session.is_lost = true;
            model.status.show(format!("connection lost ({why}); reconnecting"));
        }
        Msg::Reconnected(me) => {
            // Another client now, and the same user.
            model.session.me = me;
            model.session.is_lost = false;
            model.scrollback.transcript.know(&model.session.me, model.session.is_host);
            model.status.show("reconnected; nothing was missed");
        }
        Msg::Refused(why) => {
            model.status.show(why);
            model.agent.refused();
        }
        Msg::NotSent { prompt, why } => prompt::not_sent(model, &prompt, why),
        Msg::NotWithdrawn { prompt, why } => prompt::not_withdrawn(model, &prompt, why),
        Msg::Found { wanted, paths } => model.prompt.files_found(wanted, paths),
        Msg::Picture { name, image: Ok(image), .. } => prompt::insert_picture(model, &name, image),
        Msg::Picture { pasted: Some(text), .. } => model.prompt.composer.paste(&text),
        Msg::Picture { image: Err(why), .. } => model.status.show(why),
        Msg::Sessions(sessions) => command::show_sessions(model, sessions),
        Msg::Agents(lines) => model.overlay = Some(Overlay::Page(Page::new("Agents", lines))),
        Msg::Shared(address) => command::show_address(model, address),
        Msg::Edited { what: Edited::Composer, text } => model.prompt.composer.rewrite(text.trim_end_matches('\n')),
        Msg::Edited { what: Edited::Answer { question, before }, text } => {
            return unsent::edited(model, &question, &before, text);
        }
        Msg::NotEdited(why) => unsent::report(model, "the editor cannot be used", &why),
        Msg::NotDecided { decide, why } => return unsent::not_decided(model, decide, why),
        Msg::TextSaved { text, why, file } => unsent::kept(model, text, &why, file),
        Msg::RepeatExpired => model.status.disarm(),
        Msg::QuestionSeen => {
            model.questions.shown.iter_mut().for_each(|dialog| dialog.is_fresh = false);
            model.questions.closed = None;
        }
        Msg::Clock(now) => model.session.now = Some(now),
        Msg::Over(why) => model.session.over = Some(why),
    }
    Vec::new()
}

fn on_event(model: &mut Model, event: &Event) -> Vec<Effect> {
    // A client that joins late starts from a state that already includes the latest events.
    if event.seq > model.session.state.seq {
        model.session.state.apply(event);
    }
    model.scrollback.transcript.know(&model.session.me, model.session.is_host);
    model.scrollback.transcript.apply(event);
    model.session.context = Context::of(event).or(model.session.context);
    let mut effects = Vec::new();
    match &event.kind {
        // Everything written for the question was sent with the answer.
        EventKind::PermissionSettled(ruling) if model.scrollback.transcript.is_me(&ruling.settled_by) => {
            model.questions.answered_here(&ruling.question_id);
        }
        EventKind::PermissionAsked(question) => effects.extend(model.attention.notify(&question.title)),
        EventKind::SessionStarted(_) => model.agent.restarted(model.session.state.mode),
        EventKind::UserMessage(message) if model.scrollback.transcript.is_cleared_by(message) => {
            model.scrollback.cleared();
            model.session.context = None;
        }
        EventKind::Capabilities(capabilities) => {
            model.agent.learn(capabilities);
            // A completion may be waiting for the commands.
            if capabilities.commands.is_some() && model.prompt.composer.text().starts_with('/') {
                effects.extend(prompt::complete(model));
            }
            if capabilities.models.is_some() {
                command::choose_model(model);
            }
        }
        EventKind::ModeChanged { mode, by, .. } => model.agent.mode_changed(*mode, by.as_ref()),
        EventKind::Error(_) => model.agent.mode_refused(),
        EventKind::TurnStarted { .. } => (model.session.began, model.session.now) = (Some(event.timestamp), None),
        EventKind::TurnCompleted(_) => {
            effects.push(Effect::Branch);
            effects.extend(model.attention.notify("the turn is over"));
        }
        _ => {}
    }
    effects.extend(question::follow(model));
    effects
}
