//! Looking around in the transcript: scrolling, searching, and what is fetched when somebody comes to its top. Pure.

use multitap_event::Event;

use super::Model;
use crate::composer::{Composer, Move};
use crate::effect::Effect;
use crate::keys::Action;
use crate::transcript::{Reshape, Scroll};

/// Words that are looked for.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) words: Composer,
    /// The line that was found last.
    found: Option<(i64, usize)>,
    /// There is no other in that direction.
    pub(crate) is_last: bool,
    /// It goes on in what came before, when that is there.
    seeks: bool,
}

impl Search {
    pub(crate) fn has_found(&self) -> bool {
        self.found.is_some()
    }

    pub(crate) fn seeks(&self) -> bool {
        self.seeks
    }
}

/// Another size. Whoever reads goes on where they were.
pub(super) fn resized(model: &mut Model, columns: u16, rows: u16) {
    let from = model.shape();
    (model.columns, model.rows) = (columns, rows);
    if from.columns == usize::from(columns) {
        return;
    }
    let mut reshape = Reshape::new(&model.transcript, from, model.shape());
    model.scroll = reshape.scroll(model.scroll);
    model.left = model.left.map(|left| reshape.mark(left));
    if let Some(search) = &mut model.search {
        search.found = search.found.map(|found| reshape.place(found));
    }
}

/// Moves by so many lines, up if they are negative.
pub(super) fn scroll(model: &mut Model, by: isize) -> Vec<Effect> {
    let to = model.transcript.scrolled(model.scroll, by, model.shape());
    go(model, to)
}

pub(super) fn page(model: &mut Model, pages: isize) -> Vec<Effect> {
    let step = model.page().saturating_sub(2).max(1).cast_signed();
    scroll(model, pages * step)
}

pub(super) fn go(model: &mut Model, to: Scroll) -> Vec<Effect> {
    model.left = match to {
        Scroll::Latest => None,
        Scroll::At { .. } => model.left.or_else(|| Some(model.transcript.mark(model.shape()))),
    };
    model.scroll = to;
    let missing = model.transcript.missing(to, model.shape());
    fetch(model, missing)
}

fn fetch(model: &mut Model, before: Option<u64>) -> Vec<Effect> {
    let before = before.filter(|_| !model.fetching);
    model.fetching |= before.is_some();
    before.map(|before| Effect::Fetch { before }).into_iter().collect()
}

/// What came before is there, or cannot be had.
pub(super) fn fetched(model: &mut Model, fetched: Result<Vec<Event>, String>) -> Vec<Effect> {
    model.fetching = false;
    let seeks = model.search.as_mut().is_some_and(|search| std::mem::take(&mut search.seeks));
    match fetched {
        Ok(events) => model.transcript.prepend(&events),
        Err(why) => {
            model.notice = Some(why);
            return Vec::new();
        }
    }
    if seeks { next(model, true) } else { Vec::new() }
}

/// What a key does to a search; nothing if it is not for it.
pub(super) fn pressed(model: &mut Model, action: Action) -> Option<Vec<Effect>> {
    let search = model.search.as_mut()?;
    match action {
        Action::Insert(letter) => search.words.insert(letter.encode_utf8(&mut [0; 4])),
        Action::Erase(what) => search.words.erase(what),
        Action::Yank => search.words.yank(),
        Action::Go(Move::Up) | Action::Send | Action::Search => return Some(next(model, true)),
        Action::Go(Move::Down) | Action::Newline => return Some(next(model, false)),
        Action::Go(way) => {
            search.words.go(way);
            return Some(Vec::new());
        }
        Action::Interrupt => {
            model.search = None;
            return Some(Vec::new());
        }
        _ => return None,
    }
    search.found = None;
    Some(next(model, true))
}

pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    let Some(search) = &mut model.search else { return Vec::new() };
    search.words.insert(text.lines().next().unwrap_or_default());
    search.found = None;
    next(model, true)
}

/// Goes to the next place that has the words.
fn next(model: &mut Model, earlier: bool) -> Vec<Effect> {
    let shape = model.shape();
    let Some(search) = &mut model.search else { return Vec::new() };
    let from = search.found.unwrap_or_else(|| model.transcript.search_start());
    let found = model.transcript.find(search.words.text(), from, earlier, shape);
    let before = model.transcript.first_known().filter(|_| earlier && found.is_none() && !search.words.is_empty());
    search.seeks = before.is_some();
    search.is_last = found.is_none() && before.is_none();
    let Some(found) = found else { return fetch(model, before) };
    search.found = Some(found);
    let to = model.transcript.show(found, shape);
    go(model, to)
}
