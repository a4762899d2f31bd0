//! What lies over the screen for a while: something to choose from, or a page to read. Pure.

use multitap_event::ClientId;

use super::{Model, command};
use crate::complete::{Item, matching};
use crate::composer::{Erase, Move};
use crate::effect::{Effect, Outcome};
use crate::keys::Action;

#[derive(Debug)]
pub(crate) enum Overlay {
    Picker(Picker),
    Page(Page),
}

/// Something to choose from, narrowed by typing.
#[derive(Debug)]
pub(crate) struct Picker {
    pub(crate) title: String,
    pub(crate) filter: String,
    pub(crate) chosen: usize,
    rows: Vec<(Item, Pick)>,
    /// The rows begin with their numbers, and a number chooses.
    is_numbered: bool,
}

/// What choosing does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pick {
    Model(String),
    Mode(String),
    Resume(String),
    /// Ask whether to send that client away.
    Client {
        id: ClientId,
        name: String,
    },
    Kick(ClientId),
    Leave(Outcome),
    Nothing,
}

/// Lines to read.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    /// A QR code, in half blocks: dark is drawn, light is not.
    pub(crate) code: Vec<String>,
    /// The first line that is shown.
    pub(crate) top: usize,
}

impl Picker {
    pub(crate) fn new(title: impl Into<String>, rows: Vec<(Item, Pick)>) -> Self {
        Self { title: title.into(), filter: String::new(), chosen: 0, rows, is_numbered: false }
    }

    pub(crate) fn numbered(self) -> Self {
        Self { is_numbered: true, ..self }
    }

    /// The rows that match what is typed, the best first.
    pub(crate) fn items(&self) -> Vec<Item> {
        matching(self.rows.iter().map(|(item, _)| item.clone()), &self.filter)
    }

    fn picked(&self) -> Option<Pick> {
        let items = self.items();
        let item = items.get(self.chosen)?;
        // Two may look the same: then it is the same of them as on the screen.
        let before = items[..self.chosen].iter().filter(|other| *other == item).count();
        self.rows.iter().filter(|(row, _)| row == item).nth(before).map(|(_, pick)| pick.clone())
    }

    fn go(&mut self, way: Move) {
        let count = self.items().len().max(1);
        self.chosen = match way {
            Move::Up => (self.chosen + count - 1) % count,
            Move::Down => (self.chosen + 1) % count,
            _ => self.chosen,
        };
    }
}

/// A row of a picker.
pub(crate) fn row(shown: impl Into<String>, does: impl Into<String>, pick: Pick) -> (Item, Pick) {
    let shown = shown.into();
    (Item { text: shown.clone(), shown, does: does.into(), is_whole: true }, pick)
}

/// What a key does while something lies over the screen.
pub(super) fn pressed(model: &mut Model, action: Action) -> Vec<Effect> {
    let rows = usize::from(model.rows).saturating_sub(4).max(1);
    let hidden = crate::view::hidden_page(model);
    match (&mut model.overlay, action) {
        (_, Action::Interrupt | Action::Leave | Action::LeaveIfEmpty) => model.overlay = None,
        (Some(Overlay::Picker(picker)), _) => return pick(model_picker(picker, action), model),
        (Some(Overlay::Page(page)), Action::Go(Move::Up)) => page.top = page.top.min(hidden).saturating_sub(1),
        (Some(Overlay::Page(page)), Action::PageUp) => page.top = page.top.min(hidden).saturating_sub(rows),
        (Some(Overlay::Page(page)), Action::Go(Move::Down)) => page.top = (page.top + 1).min(hidden),
        (Some(Overlay::Page(page)), Action::PageDown) => page.top = (page.top + rows).min(hidden),
        (Some(Overlay::Page(_)) | None, _) => model.overlay = None,
    }
    Vec::new()
}

fn model_picker(picker: &mut Picker, action: Action) -> Option<Pick> {
    match action {
        Action::Send | Action::Complete => return picker.picked(),
        // What is numbered is chosen by its number.
        Action::Insert(digit @ '1'..='9') if picker.filter.is_empty() && picker.is_numbered => {
            picker.chosen = digit.to_digit(10).map_or(0, |number| number as usize - 1);
            return picker.picked();
        }
        Action::Insert(letter) => {
            picker.filter.push(letter);
            picker.chosen = 0;
        }
        Action::Erase(Erase::Back) => {
            picker.filter.pop();
            picker.chosen = 0;
        }
        Action::Go(way) => picker.go(way),
        _ => {}
    }
    None
}

fn pick(pick: Option<Pick>, model: &mut Model) -> Vec<Effect> {
    let Some(pick) = pick else { return Vec::new() };
    model.overlay = None;
    match pick {
        Pick::Model(name) => vec![Effect::SetModel(name)],
        Pick::Mode(mode) => vec![Effect::SetMode(mode)],
        Pick::Resume(id) => command::leave(model, Outcome::Resume(id)),
        Pick::Client { id, name } => {
            let rows =
                vec![row(format!("send {name} away"), "", Pick::Kick(id)), row("leave it be", "", Pick::Nothing)];
            model.overlay = Some(Overlay::Picker(Picker::new(name, rows)));
            Vec::new()
        }
        Pick::Kick(client) => vec![Effect::Kick(client)],
        Pick::Leave(outcome) => vec![Effect::Leave(outcome)],
        Pick::Nothing => Vec::new(),
    }
}
