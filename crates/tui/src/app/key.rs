//! Keys in the composer, when nothing else has the keyboard. Pure.

use super::{Model, Overlay, Search, command, prompt};
use crate::composer::{Erase, Move};
use crate::effect::{Edited, Effect, ScreenExit};
use crate::keys::{Action, Copied};
use crate::transcript::Scroll;
use crate::view::Layout;

pub(super) fn pressed(model: &mut Model, layout: &Layout, action: Action, is_repeat: bool) -> Vec<Effect> {
    let typed = |model: &Model| (model.prompt.composer.text().len(), model.prompt.composer.cursor());
    let before = typed(model);
    let mut effects = act(model, layout, action, is_repeat);
    model.prompt.was_answer.take_if(|_| model.prompt.composer.is_empty());
    if before != typed(model) {
        effects.extend(prompt::complete(model));
    }
    effects
}

fn act(model: &mut Model, layout: &Layout, action: Action, is_repeat: bool) -> Vec<Effect> {
    let (shape, composer) = (layout.shape, &mut model.prompt.composer);
    match action {
        Action::Send => return prompt::send(model, layout),
        Action::Newline => composer.insert("\n"),
        // As in a pager, while the user reads and does not type.
        Action::Insert('/') if composer.is_empty() && model.scrollback.scroll != Scroll::Latest => {
            model.scrollback.search = Some(Search::default());
        }
        Action::Insert('?') if composer.is_empty() => model.overlay = Some(Overlay::Keys { top: 0 }),
        Action::Insert(letter) => composer.insert(letter.encode_utf8(&mut [0; 4])),
        Action::Go(Move::Up) if composer.is_empty() => match prompt::withdraw_last(model) {
            Some(effect) => return vec![effect],
            None => model.prompt.history.walk(&mut model.prompt.composer, Move::Up),
        },
        Action::Go(direction @ (Move::Up | Move::Down)) if composer.is_at_edge(direction) => {
            model.prompt.history.walk(composer, direction);
        }
        Action::Go(direction) => composer.go(direction),
        Action::Erase(what) => composer.erase(what),
        Action::Yank => composer.yank(),
        Action::Recall => model.prompt.history.search(composer),
        Action::Complete => return prompt::complete(model),
        Action::Interrupt => return prompt::interrupt(model, is_repeat),
        Action::Leave => return leave(model, is_repeat),
        Action::LeaveIfEmpty if composer.is_empty() => return command::leave(model, ScreenExit::Quit),
        Action::LeaveIfEmpty => composer.erase(Erase::Forward),
        Action::Suspend => return suspend(model),
        Action::NextMode => match model.agent.next_mode(&model.session) {
            Some(mode) => return vec![Effect::SetMode(mode.to_string())],
            None => model.status.show("no other approval mode is available here"),
        },
        Action::Unfold => model.scrollback.transcript.unfold(),
        Action::PageUp => return model.scrollback.page(-1, shape),
        Action::PageDown => return model.scrollback.page(1, shape),
        Action::Top => return model.scrollback.go(model.scrollback.transcript.top(shape), shape),
        Action::Bottom => return model.scrollback.go(Scroll::Latest, shape),
        Action::Search => model.scrollback.search = Some(Search::default()),
        Action::Copy(what) => return copy(model, what),
        Action::Editor => return vec![Effect::Edit { what: Edited::Composer, text: composer.whole() }],
        // Handled before, or only in a question.
        Action::Paste | Action::GoToQuestion(_) | Action::Nothing => {}
    }
    Vec::new()
}

pub(super) fn copy(model: &mut Model, what: Copied) -> Vec<Effect> {
    let (text, name) = match what {
        Copied::Answer => (model.scrollback.transcript.last_message(), "answer"),
        Copied::Code => (model.scrollback.transcript.last_code(), "code"),
    };
    // Terminals do not report whether they do.
    let verb = if text.is_some() { "asked the terminal to copy the last" } else { "there is no" };
    model.status.show(format!("{verb} {name}"));
    text.map(Effect::Copy).into_iter().collect()
}

fn leave(model: &mut Model, is_repeat: bool) -> Vec<Effect> {
    if is_repeat {
        return command::leave(model, ScreenExit::Quit);
    }
    model.status.arm(Action::Leave, "Ctrl+C again quits");
    if !model.prompt.composer.is_empty() {
        model.prompt.composer.clear();
        return Vec::new();
    }
    if model.session.state.is_busy() { vec![Effect::Cancel] } else { Vec::new() }
}

/// Stops this process, and with it the session: not while others use it.
fn suspend(model: &mut Model) -> Vec<Effect> {
    if model.session.is_host && model.session.others().next().is_some() {
        model.status.show("cannot suspend: others are connected to this session");
        return Vec::new();
    }
    vec![Effect::Suspend]
}
