//! The transcript as it is read: scrolling, searching, and fetching older events at its top. Pure.

use multitap_event::{ClientRef, Event};

use crate::composer::{Composer, Move};
use crate::effect::Effect;
use crate::keys::Action;
use crate::transcript::{Mark, Reflow, Scroll, Shape, Transcript};

#[derive(Debug)]
pub(crate) struct Scrollback {
    pub(crate) transcript: Transcript,
    pub(crate) scroll: Scroll,
    /// Where the end was when the user scrolled away from it.
    pub(crate) left: Option<Mark>,
    pub(crate) search: Option<Search>,
    is_fetching: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) words: Composer,
    found: Option<(i64, usize)>,
    /// There is no further match in that direction.
    pub(crate) is_last: bool,
    /// The search goes on in older events as soon as they are fetched.
    pub(crate) is_waiting: bool,
}

impl Search {
    pub(crate) fn has_found(&self) -> bool {
        self.found.is_some()
    }
}

impl Scrollback {
    pub(super) fn new(me: &ClientRef) -> Self {
        let transcript = Transcript::of(me);
        Self { transcript, scroll: Scroll::Latest, left: None, search: None, is_fetching: false }
    }

    pub(super) fn cleared(&mut self) {
        (self.scroll, self.left, self.search) = (Scroll::Latest, None, None);
    }

    /// Adapts to a new width of the screen. The lines that the user reads stay visible.
    pub(super) fn resize(&mut self, from: Shape, columns: usize) {
        if from.columns == columns {
            return;
        }
        let mut reshape = Reflow::new(&self.transcript, from, Shape { columns, ..from });
        self.scroll = reshape.scroll(self.scroll);
        self.left = self.left.map(|left| reshape.mark(left));
        if let Some(search) = &mut self.search {
            search.found = search.found.map(|found| reshape.place(found));
        }
    }

    /// Scrolls by that many lines, up if they are negative.
    pub(super) fn scroll(&mut self, lines: isize, shape: Shape) -> Vec<Effect> {
        let to = self.transcript.scrolled(self.scroll, lines, shape);
        self.go(to, shape)
    }

    pub(super) fn page(&mut self, pages: isize, shape: Shape) -> Vec<Effect> {
        let step = shape.rows.saturating_sub(2).max(1).cast_signed();
        self.scroll(pages * step, shape)
    }

    pub(super) fn go(&mut self, to: Scroll, shape: Shape) -> Vec<Effect> {
        self.left = match to {
            Scroll::Latest => None,
            Scroll::At { .. } => self.left.or_else(|| Some(self.transcript.mark(shape))),
        };
        self.scroll = to;
        let missing = self.transcript.missing(to, shape);
        self.fetch(missing)
    }

    fn fetch(&mut self, before: Option<u64>) -> Vec<Effect> {
        let before = before.filter(|_| !self.is_fetching);
        self.is_fetching |= before.is_some();
        before.map(|before| Effect::Fetch { before }).into_iter().collect()
    }

    pub(super) fn prepend(&mut self, events: &[Event], shape: Shape) -> Vec<Effect> {
        let goes_on = self.not_fetched();
        self.transcript.prepend(events);
        if goes_on { self.find_next(true, shape) } else { Vec::new() }
    }

    /// Older events could not be fetched. Returns whether a search waited for them.
    pub(super) fn not_fetched(&mut self) -> bool {
        self.is_fetching = false;
        self.search.as_mut().is_some_and(|search| std::mem::take(&mut search.is_waiting))
    }

    /// Handles a key for the search. `None` if the key does nothing to it.
    pub(super) fn pressed(&mut self, action: Action, shape: Shape) -> Option<Vec<Effect>> {
        let search = self.search.as_mut()?;
        match action {
            Action::Insert(letter) => search.words.insert(letter.encode_utf8(&mut [0; 4])),
            Action::Erase(what) => search.words.erase(what),
            Action::Yank => search.words.yank(),
            Action::Go(Move::Up) | Action::Send | Action::Search => return Some(self.find_next(true, shape)),
            Action::Go(Move::Down) | Action::Newline => return Some(self.find_next(false, shape)),
            Action::Go(direction) => {
                search.words.go(direction);
                return Some(Vec::new());
            }
            Action::Interrupt => {
                self.search = None;
                return Some(Vec::new());
            }
            _ => return None,
        }
        search.found = None;
        Some(self.find_next(true, shape))
    }

    pub(super) fn paste(&mut self, text: &str, shape: Shape) -> Vec<Effect> {
        let Some(search) = &mut self.search else { return Vec::new() };
        search.words.insert(text.lines().next().unwrap_or_default());
        search.found = None;
        self.find_next(true, shape)
    }

    fn find_next(&mut self, earlier: bool, shape: Shape) -> Vec<Effect> {
        let Some(search) = &mut self.search else { return Vec::new() };
        let from = search.found.unwrap_or_else(|| self.transcript.search_start());
        let found = self.transcript.find(search.words.text(), from, earlier, shape);
        let before = self.transcript.first_known().filter(|_| earlier && found.is_none() && !search.words.is_empty());
        search.is_waiting = before.is_some();
        search.is_last = found.is_none() && before.is_none();
        let Some(found) = found else { return self.fetch(before) };
        search.found = Some(found);
        let to = self.transcript.show(found, shape);
        self.go(to, shape)
    }
}
