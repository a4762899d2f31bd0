//! Overlays: a list to choose from, or a page to read. Pure.

use multitap_event::ClientId;

use super::{Model, command};
use crate::complete::{Item, matching};
use crate::composer::{Erase, Move};
use crate::effect::{Effect, ScreenExit};
use crate::keys::Action;
use crate::view::Layout;

#[derive(Debug)]
pub(crate) enum Overlay {
    /// The table of keys, from that line on.
    Keys {
        top: usize,
    },
    Picker(Picker),
    Page(Page),
}

/// A list to choose from. Typing filters it.
#[derive(Debug)]
pub(crate) struct Picker {
    pub(crate) title: String,
    pub(crate) filter: String,
    pub(crate) chosen: usize,
    rows: Vec<(Item, Pick)>,
    /// The rows begin with numbers, and a digit chooses.
    is_numbered: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pick {
    Do(Effect),
    Resume(String),
    /// Ask whether to kick that client.
    Client {
        id: ClientId,
        name: String,
    },
    Nothing,
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// A QR code, in half blocks: dark is drawn, light is not.
    pub(crate) code: Vec<String>,
    pub(crate) top: usize,
}

impl Page {
    pub(crate) fn new(title: impl Into<String>, lines: Vec<String>) -> Self {
        Self { title: title.into(), lines, ..Self::default() }
    }
}

impl Picker {
    pub(crate) fn new(title: impl Into<String>, rows: Vec<(Item, Pick)>) -> Self {
        Self { title: title.into(), filter: String::new(), chosen: 0, rows, is_numbered: false }
    }

    pub(crate) fn numbered(self) -> Self {
        Self { is_numbered: true, ..self }
    }

    /// The rows that match the filter, the best first.
    pub(crate) fn items(&self) -> Vec<Item> {
        matching(self.rows.iter().map(|(item, _)| item.clone()), &self.filter)
    }

    fn picked(&self) -> Option<Pick> {
        let items = self.items();
        let item = items.get(self.chosen)?;
        // Of rows that look the same, take the one in the same place.
        let before = items[..self.chosen].iter().filter(|other| *other == item).count();
        self.rows.iter().filter(|(row, _)| row == item).nth(before).map(|(_, pick)| pick.clone())
    }

    fn pressed(&mut self, action: Action) -> Option<Pick> {
        match action {
            Action::Send | Action::Complete => return self.picked(),
            Action::Insert(digit @ '1'..='9') if self.filter.is_empty() && self.is_numbered => {
                self.chosen = digit as usize - '1' as usize;
                return self.picked();
            }
            Action::Insert(letter) => {
                self.filter.push(letter);
                self.chosen = 0;
            }
            Action::Erase(Erase::Back) => {
                self.filter.pop();
                self.chosen = 0;
            }
            Action::Go(direction @ (Move::Up | Move::Down)) => {
                self.chosen = step(self.chosen, direction == Move::Down, self.items().len());
            }
            _ => {}
        }
        None
    }
}

/// The row after or before that one, around the end of a list.
pub(crate) fn step(chosen: usize, down: bool, count: usize) -> usize {
    let count = count.max(1);
    if down { (chosen + 1) % count } else { (chosen + count - 1) % count }
}

pub(crate) fn row(shown: impl Into<String>, does: impl Into<String>, pick: Pick) -> (Item, Pick) {
    (Item::new(shown, does), pick)
}

/// Handles a key while an overlay is open.
pub(super) fn pressed(model: &mut Model, layout: &Layout, action: Action) -> Vec<Effect> {
    let (rows, hidden) = (usize::from(layout.size.height), layout.hidden());
    let closes = matches!(action, Action::Interrupt | Action::Leave | Action::LeaveIfEmpty);
    let scrolled = match &mut model.overlay {
        Some(Overlay::Picker(picker)) if !closes => return pick(picker.pressed(action), model),
        Some(Overlay::Page(page)) => scrolled(&mut page.top, action, rows.saturating_sub(4), hidden),
        // Where nothing is hidden, any key closes it.
        Some(Overlay::Keys { top }) => hidden > 0 && scrolled(top, action, rows.saturating_sub(3), hidden),
        Some(Overlay::Picker(_)) | None => false,
    };
    model.overlay.take_if(|_| !scrolled);
    Vec::new()
}

/// Moves the first line that is shown. Returns whether that key does so.
pub(super) fn scrolled(top: &mut usize, action: Action, page: usize, hidden: usize) -> bool {
    let (from, page) = ((*top).min(hidden), page.max(1));
    *top = match action {
        Action::Go(Move::Up) => from.saturating_sub(1),
        Action::Go(Move::Down) => from + 1,
        Action::PageUp => from.saturating_sub(page),
        Action::PageDown => from + page,
        _ => return false,
    };
    *top = (*top).min(hidden);
    true
}

fn pick(pick: Option<Pick>, model: &mut Model) -> Vec<Effect> {
    let Some(pick) = pick else { return Vec::new() };
    model.overlay = None;
    match pick {
        Pick::Do(effect) => vec![effect],
        Pick::Resume(id) => command::leave(model, ScreenExit::Resume(id)),
        Pick::Client { id, name } => {
            let rows =
                vec![row(format!("kick {name}"), "", Pick::Do(Effect::Kick(id))), row("cancel", "", Pick::Nothing)];
            model.overlay = Some(Overlay::Picker(Picker::new(name, rows)));
            Vec::new()
        }
        Pick::Nothing => Vec::new(),
    }
}
