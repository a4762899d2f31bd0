//! What a key does: whatever lies in its way has it first. Pure.

use crossterm::event::KeyEvent;

use super::look::Search;
use super::{Model, ask, command, gone, look, mode, overlay, typing};
use crate::composer::{Erase, Move};
use crate::effect::{Edited, Effect, Outcome};
use crate::keys::{self, Action, Copied};
use crate::transcript::Scroll;

pub(super) fn pressed(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    let action = keys::action(key);
    let twice = model.again.take() == Some(action);
    model.notice = None;
    // Wherever one types, and never in place of an answer.
    if action == Action::Paste && !model.help && model.overlay.is_none() {
        model.notice = Some("reading the clipboard".to_owned());
        return vec![Effect::Paste];
    }
    if model.help {
        read_help(model, action);
        return Vec::new();
    }
    if model.overlay.is_some() {
        return overlay::pressed(model, action);
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
    if gone::swallows(model, action) {
        return Vec::new();
    }
    if let Some(effects) = typing::pressed_in_search(model, action) {
        return effects;
    }
    if let Some(effects) = typing::pressed_in_completion(model, action) {
        return effects;
    }
    let before = (model.composer.text().len(), model.composer.cursor());
    let mut effects = act(model, action, twice);
    model.was_answer.take_if(|_| model.composer.is_empty());
    if before != (model.composer.text().len(), model.composer.cursor()) {
        effects.extend(typing::offer(model));
    }
    effects
}

/// What a key does when nothing else is in its way.
fn act(model: &mut Model, action: Action, twice: bool) -> Vec<Effect> {
    match action {
        Action::Send => return typing::send(model),
        Action::Newline => model.composer.insert("\n"),
        // As in a pager, when one reads and does not type.
        Action::Insert('/') if model.composer.is_empty() && model.scroll != Scroll::Latest => {
            model.search = Some(Search::default());
        }
        Action::Insert('?') if model.composer.is_empty() => model.help = true,
        Action::Insert(letter) => model.composer.insert(letter.encode_utf8(&mut [0; 4])),
        Action::Go(way @ (Move::Up | Move::Down)) if model.composer.is_at_edge(way) => {
            if way == Move::Up
                && model.composer.is_empty()
                && let Some(effects) = typing::take_back(model)
            {
                return effects;
            }
            model.history.walk(&mut model.composer, way);
        }
        Action::Go(way) => model.composer.go(way),
        Action::Erase(what) => model.composer.erase(what),
        Action::Yank => model.composer.yank(),
        Action::Recall => model.history.search(&mut model.composer),
        Action::Complete => return typing::offer(model),
        Action::Interrupt => return typing::interrupt(model, twice),
        Action::Leave => return leave(model, twice),
        Action::LeaveIfEmpty if model.composer.is_empty() => return command::leave(model, Outcome::Left),
        Action::LeaveIfEmpty => model.composer.erase(Erase::Forward),
        Action::Suspend => return suspend(model),
        Action::NextMode => return mode::next(model),
        Action::Unfold => model.transcript.unfold(),
        Action::PageUp => return look::page(model, -1),
        Action::PageDown => return look::page(model, 1),
        Action::Top => return look::go(model, model.transcript.top(model.shape())),
        Action::Bottom => return look::go(model, Scroll::Latest),
        Action::Search => model.search = Some(Search::default()),
        Action::Copy(what) => return copy(model, what),
        Action::Editor => return vec![Effect::Edit { what: Edited::Composer, text: model.composer.whole() }],
        // Seen to before.
        Action::Paste | Action::Nothing => {}
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

pub(super) fn copy(model: &mut Model, what: Copied) -> Vec<Effect> {
    let (text, name) = match what {
        Copied::Answer => (model.transcript.last_said(), "answer"),
        Copied::Code => (model.transcript.last_code(), "code"),
    };
    // Whether it does is not told.
    let verb = if text.is_some() { "asked the terminal to copy the last" } else { "there is no" };
    model.notice = Some(format!("{verb} {name}"));
    text.map(Effect::Copy).into_iter().collect()
}

fn leave(model: &mut Model, twice: bool) -> Vec<Effect> {
    if twice {
        return command::leave(model, Outcome::Left);
    }
    model.again = Some(Action::Leave);
    model.notice = Some("Ctrl+C again quits".to_owned());
    if !model.composer.is_empty() {
        model.composer.clear();
        return Vec::new();
    }
    if model.state.is_busy() { vec![Effect::Cancel] } else { Vec::new() }
}

/// All of this process stops, and so would the session for whoever else is there.
fn suspend(model: &mut Model) -> Vec<Effect> {
    if model.is_host && command::others(model).next().is_some() {
        model.notice = Some("others are connected, and the session would stand still for them".to_owned());
        return Vec::new();
    }
    vec![Effect::Suspend]
}
