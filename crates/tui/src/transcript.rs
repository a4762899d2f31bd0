//! What has happened, as a list of cells: who said what, which tools ran and how they ended. Pure.
//!
//! Lines are made of a cell when it comes into view, and kept until it changes: so what a screen costs depends on the
//! screen, not on how long the session is.

#![warn(clippy::wildcard_enum_match_arm)]

mod cell;
mod draw;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use multitap_event::{Event, EventKind, MessageId, PromptId, Role, ToolId};
use ratatui::text::Line;

pub(crate) use self::cell::{Cell, ToolCell};
pub(crate) use self::draw::diff_lines;
use crate::theme::Theme;

/// Everything so far.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    cells: Vec<Held>,
    /// Where the tools are that have not ended.
    tools: HashMap<ToolId, usize>,
    /// Where the prompts are that wait.
    queued: HashMap<PromptId, usize>,
    /// The message that goes on.
    saying: Option<(Option<MessageId>, usize)>,
    thinking: Option<(Option<MessageId>, usize)>,
    /// Thoughts and long output are shown whole.
    pub(crate) unfolded: bool,
}

#[derive(Debug)]
struct Held {
    cell: Cell,
    /// Counts its changes.
    version: u64,
    made: RefCell<Option<Made>>,
}

/// The lines of a cell, for one width.
#[derive(Debug, Clone)]
struct Made {
    version: u64,
    columns: usize,
    unfolded: bool,
    lines: Rc<Vec<Line<'static>>>,
}

/// Which part is on the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Scroll {
    /// The latest, whatever comes.
    #[default]
    Latest,
    /// That line of that cell is the first.
    At { cell: usize, line: usize },
}

impl Transcript {
    /// What the agent said last.
    pub(crate) fn last_said(&self) -> Option<String> {
        let said = |cell: &Cell| if let Cell::Said { text, .. } = cell { Some(text.clone()) } else { None };
        self.cells.iter().rev().find_map(|held| said(&held.cell))
    }

    /// Takes in what happened.
    pub(crate) fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TextChunk(chunk) if chunk.role == Some(Role::User) => {
                self.add(Cell::User { text: chunk.content.clone(), from: None, images: 0, waits: false });
            }
            EventKind::TextChunk(chunk) => {
                self.thinking = None;
                match &self.saying {
                    Some((id, at)) if *id == chunk.message_id && chunk.is_partial => {
                        let at = *at;
                        self.change(at, |cell| cell.append(&chunk.content));
                    }
                    _ => {
                        let at = self
                            .add(Cell::Said { text: chunk.content.clone(), nested: chunk.parent_tool_id.is_some() });
                        self.saying = chunk.is_partial.then(|| (chunk.message_id.clone(), at));
                    }
                }
            }
            EventKind::Reasoning(thought) => {
                self.saying = None;
                match &self.thinking {
                    Some((id, at)) if *id == thought.message_id && thought.is_partial => {
                        let at = *at;
                        self.change(at, |cell| cell.append(&thought.content));
                    }
                    _ => {
                        let at = self.add(Cell::Thought { text: thought.content.clone() });
                        self.thinking = thought.is_partial.then(|| (thought.message_id.clone(), at));
                    }
                }
            }
            EventKind::ToolStarted(tool) => {
                let at = self.add(Cell::Tool(Box::new(ToolCell::new(tool.clone()))));
                self.tools.insert(tool.tool_id.clone(), at);
            }
            EventKind::ToolProgress(progress) => self.tool(&progress.tool_id, |tool| tool.progressed(progress)),
            EventKind::FileChanged(change) => match change.tool_id.as_ref().filter(|id| self.tools.contains_key(*id)) {
                Some(id) => self.tool(&id.clone(), |tool| tool.change = Some(change.clone())),
                None => {
                    self.add(Cell::Changed(Box::new(change.clone())));
                }
            },
            EventKind::ToolCompleted(done) => {
                self.tool(&done.tool_id, |tool| tool.end = Some(done.clone()));
                self.tools.remove(&done.tool_id);
            }
            EventKind::PermissionAsked(question) => {
                if let Some(id) = &question.tool_id {
                    self.tool(id, |tool| tool.asking = true);
                }
            }
            EventKind::PermissionSettled(ruling) => {
                for at in self.tools.values().copied().collect::<Vec<_>>() {
                    self.change(at, |cell| {
                        if let Cell::Tool(tool) = cell {
                            tool.asking = false;
                        }
                    });
                }
                self.add(Cell::Ruled(Box::new(ruling.clone())));
            }
            EventKind::PermissionWithdrawn(_) => {
                self.add(Cell::Note("the question needs no answer any more".to_owned()));
            }
            EventKind::UserMessage(message) => {
                let waited = message.prompt_id.as_ref().and_then(|id| self.queued.remove(id));
                if let Some(at) = waited {
                    self.change(at, |cell| *cell = Cell::Gone);
                }
                let (text, images) = (message.content.clone(), message.images.len());
                self.add(Cell::User { text, from: message.from.clone(), images, waits: false });
            }
            EventKind::PromptQueued { prompt, from, .. } => {
                let (text, images) = (prompt.text.clone(), prompt.images.len());
                let at = self.add(Cell::User { text, from: from.clone(), images, waits: true });
                if let Some(id) = &prompt.prompt_id {
                    self.queued.insert(id.clone(), at);
                }
            }
            EventKind::PromptWithdrawn { prompt_id, .. } => {
                if let Some(at) = self.queued.remove(prompt_id) {
                    self.change(at, |cell| *cell = Cell::Gone);
                }
            }
            EventKind::TodoList(list) => {
                self.add(Cell::Plan(list.clone()));
            }
            EventKind::TurnCompleted(end) => {
                self.add(Cell::TurnEnd(Box::new(end.clone())));
            }
            EventKind::SessionEnded(end) => {
                self.add(Cell::Ended(Box::new(end.clone())));
            }
            EventKind::Error(error) => {
                self.add(Cell::Wrong(Box::new(error.clone())));
            }
            EventKind::Retry(retry) => {
                self.add(Cell::Retry(retry.clone()));
            }
            EventKind::AuthStatus(status) => {
                let words = status.error.clone().unwrap_or_else(|| status.output.join("\n"));
                self.add(Cell::Note(if words.is_empty() { "signing in".to_owned() } else { words }));
            }
            EventKind::System(note) => {
                if let Some(message) = &note.message {
                    self.add(Cell::Note(message.clone()));
                }
            }
            EventKind::ModeChanged { mode, native_mode, by } => {
                let word = mode.map(|mode| mode.to_string()).or_else(|| native_mode.clone()).unwrap_or_default();
                self.add(Cell::Note(cell::changed("mode", &word, by.as_ref())));
            }
            EventKind::ModelChanged { model, by } => {
                self.add(Cell::Note(cell::changed("model", model, by.as_ref())));
            }
            EventKind::ClientJoined { client } => {
                self.add(Cell::Note(format!("{} joined", cell::who(client))));
            }
            EventKind::ClientLeft { client, reason } => {
                let why = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                self.add(Cell::Note(format!("{} left{why}", cell::who(client))));
            }
            EventKind::SessionStarted(_)
            | EventKind::TurnStarted { .. }
            | EventKind::RawDelta { .. }
            | EventKind::Unrecognized { .. } => {}
        }
    }

    fn add(&mut self, cell: Cell) -> usize {
        let (says, thinks) = (matches!(cell, Cell::Said { .. }), matches!(cell, Cell::Thought { .. }));
        if !says {
            self.saying = None;
        }
        if !thinks {
            self.thinking = None;
        }
        self.cells.push(Held { cell, version: 0, made: RefCell::default() });
        self.cells.len() - 1
    }

    fn tool(&mut self, id: &ToolId, change: impl FnOnce(&mut ToolCell)) {
        let Some(at) = self.tools.get(id).copied() else { return };
        self.change(at, |cell| {
            if let Cell::Tool(tool) = cell {
                change(tool);
            }
        });
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Cell)) {
        if let Some(held) = self.cells.get_mut(at) {
            change(&mut held.cell);
            held.version += 1;
        }
    }

    /// The lines of a cell.
    fn lines(&self, at: usize, columns: usize, theme: Theme) -> Rc<Vec<Line<'static>>> {
        let Some(held) = self.cells.get(at) else { return Rc::default() };
        let mut made = held.made.borrow_mut();
        let fits = |made: &&Made| (made.version, made.columns, made.unfolded) == (held.version, columns, self.unfolded);
        if let Some(made) = made.as_ref().filter(fits) {
            return made.lines.clone();
        }
        let lines = Rc::new(draw::lines(&held.cell, columns, self.unfolded, theme));
        *made = Some(Made { version: held.version, columns, unfolded: self.unfolded, lines: lines.clone() });
        lines
    }

    /// What is on a screen of that size.
    pub(crate) fn visible(&self, scroll: Scroll, columns: usize, rows: usize, theme: Theme) -> Vec<Line<'static>> {
        let Scroll::At { cell, line } = self.settle(scroll, columns, rows, theme) else { return Vec::new() };
        let mut shown = Vec::with_capacity(rows);
        for at in cell..self.cells.len() {
            let lines = self.lines(at, columns, theme);
            let skip = if at == cell { line } else { 0 };
            shown.extend(lines.iter().skip(skip).take(rows - shown.len()).cloned());
            if shown.len() >= rows {
                break;
            }
        }
        shown
    }

    /// Where a screen begins that shows the latest, or that would show less than it could.
    fn settle(&self, scroll: Scroll, columns: usize, rows: usize, theme: Theme) -> Scroll {
        let last = self.first_of_latest(columns, rows, theme);
        match (scroll, last) {
            (Scroll::At { cell, line }, Scroll::At { cell: last_cell, line: last_line })
                if (cell, line) < (last_cell, last_line) =>
            {
                scroll
            }
            _ => last,
        }
    }

    /// Where the last screen begins.
    fn first_of_latest(&self, columns: usize, rows: usize, theme: Theme) -> Scroll {
        let mut room = rows;
        for at in (0..self.cells.len()).rev() {
            let lines = self.lines(at, columns, theme).len();
            if lines >= room {
                return Scroll::At { cell: at, line: lines - room };
            }
            room -= lines;
        }
        Scroll::At { cell: 0, line: 0 }
    }

    /// Moves the screen by so many lines, up if they are negative.
    pub(crate) fn scrolled(&self, scroll: Scroll, by: isize, columns: usize, rows: usize, theme: Theme) -> Scroll {
        let Scroll::At { mut cell, mut line } = self.settle(scroll, columns, rows, theme) else { return scroll };
        let mut left = by.unsigned_abs();
        if by < 0 {
            while left > line && cell > 0 {
                left -= line;
                cell -= 1;
                line = self.lines(cell, columns, theme).len();
            }
            line = line.saturating_sub(left);
        } else {
            while cell < self.cells.len() {
                let rest = self.lines(cell, columns, theme).len() - line.min(self.lines(cell, columns, theme).len());
                if left < rest {
                    break;
                }
                left -= rest;
                (cell, line) = (cell + 1, 0);
            }
            line += left;
        }
        let moved = Scroll::At { cell, line };
        if self.settle(moved, columns, rows, theme) == moved && moved != self.first_of_latest(columns, rows, theme) {
            moved
        } else {
            Scroll::Latest
        }
    }
}
