//! What has happened, as a list of cells: who said what, which tools ran and how they ended. Pure.
//!
//! Lines are made of a cell when it comes into view, and kept until it changes or is far away: so what a screen costs
//! depends on the screen, not on how long the session is.

#![warn(clippy::wildcard_enum_match_arm)]

mod cell;
mod draw;
mod find;
mod older;
mod scroll;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use multitap_event::{
    ClientId, ClientRef, Event, EventKind, MessageId, PromptId, Question, QuestionId, Role, ToolCompleted, ToolId,
};
use ratatui::text::Line;

pub(crate) use self::cell::{Cell, ToolCell};
pub(crate) use self::draw::diff_lines;
pub(crate) use self::find::mark;
pub(crate) use self::scroll::{COUNTED, Mark, Scroll, Shape};

/// Everything so far, or the end of it.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    cells: VecDeque<Held>,
    /// The number of the first cell. A cell keeps its number when older ones come before it.
    base: i64,
    /// Who sits here.
    me: Option<ClientId>,
    /// The first event that is in it.
    first: Option<u64>,
    /// Where the tools are that have not ended.
    tools: HashMap<ToolId, i64>,
    /// Where the prompts are that wait.
    queued: HashMap<PromptId, i64>,
    /// Where the plan is.
    plan: Option<i64>,
    /// The questions that are open.
    questions: HashMap<QuestionId, Question>,
    /// The message that goes on.
    saying: Option<(Option<MessageId>, i64)>,
    thinking: Option<(Option<MessageId>, i64)>,
    /// What is told of things that began before the first event.
    strays: Strays,
    /// How many cells have lines at hand.
    made: std::cell::Cell<usize>,
    /// Thoughts and long output are shown whole.
    pub(crate) unfolded: bool,
}

#[derive(Debug, Default)]
struct Strays {
    ended: HashMap<ToolId, ToolCompleted>,
    /// Prompts that wait no more.
    sent: HashSet<PromptId>,
    /// The first cell goes on with this message.
    saying: Option<Option<MessageId>>,
    thinking: Option<Option<MessageId>>,
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

impl Transcript {
    /// What happens from now on, for whoever sits here.
    pub(crate) fn of(me: &ClientRef) -> Self {
        Self { me: me.client_id.clone(), ..Self::default() }
    }

    /// What the agent said last.
    pub(crate) fn last_said(&self) -> Option<String> {
        let said = |cell: &Cell| if let Cell::Said { text, .. } = cell { Some(text.trim().to_owned()) } else { None };
        self.cells.iter().rev().find_map(|held| said(&held.cell)).filter(|said| !said.is_empty())
    }

    /// The last code that the agent wrote.
    pub(crate) fn last_code(&self) -> Option<String> {
        let code =
            |cell: &Cell| if let Cell::Said { text, .. } = cell { crate::markdown::last_code(text) } else { None };
        self.cells.iter().rev().find_map(|held| code(&held.cell))
    }

    /// Takes in what happened.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.first.get_or_insert(event.seq);
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
                        if self.cells.is_empty() && chunk.is_partial {
                            self.strays.saying = Some(chunk.message_id.clone());
                        }
                        let nested = chunk.parent_tool_id.is_some();
                        let at = self.add(Cell::Said { text: chunk.content.clone(), nested });
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
                        if self.cells.is_empty() && thought.is_partial {
                            self.strays.thinking = Some(thought.message_id.clone());
                        }
                        let nested = thought.parent_tool_id.is_some();
                        let at = self.add(Cell::Thought { text: thought.content.clone(), nested });
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
            EventKind::ToolCompleted(done) => self.ended(done),
            EventKind::PermissionAsked(question) => {
                self.questions.insert(question.question_id.clone(), question.clone());
                if let Some(id) = &question.tool_id {
                    self.tool(id, |tool| tool.asking = true);
                }
            }
            EventKind::PermissionSettled(ruling) => {
                let question = self.close(&ruling.question_id);
                let own = ruling.settled_by.client_id.is_some() && ruling.settled_by.client_id == self.me;
                self.add(Cell::Ruled { ruling: Box::new(ruling.clone()), question: question.map(Box::new), own });
            }
            EventKind::PermissionWithdrawn(gone) => {
                self.close(&gone.question_id);
                let why = gone.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                self.add(Cell::Note(format!("the question needs no answer any more{why}")));
            }
            EventKind::UserMessage(message) => {
                if let Some(id) = &message.prompt_id {
                    self.unqueue(id);
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
            EventKind::PromptWithdrawn { prompt_id, .. } => self.unqueue(prompt_id),
            EventKind::TodoList(list) => {
                if let Some(before) = self.plan.take() {
                    self.change(before, |cell| *cell = Cell::Gone);
                }
                self.plan = Some(self.add(Cell::Plan(list.clone())));
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
            // That one sits here oneself is no news.
            EventKind::ClientJoined { client } | EventKind::ClientLeft { client, .. } if self.is_me(client) => {}
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

    fn is_me(&self, client: &ClientRef) -> bool {
        client.client_id.is_some() && client.client_id == self.me
    }

    fn add(&mut self, cell: Cell) -> i64 {
        let (says, thinks) = (matches!(cell, Cell::Said { .. }), matches!(cell, Cell::Thought { .. }));
        if !says {
            self.saying = None;
        }
        if !thinks {
            self.thinking = None;
        }
        self.cells.push_back(Held { cell, version: 0, made: RefCell::default() });
        self.end() - 1
    }

    /// The number after the last.
    fn end(&self) -> i64 {
        self.base.saturating_add_unsigned(self.cells.len() as u64)
    }

    fn held(&self, at: i64) -> Option<&Held> {
        self.cells.get(usize::try_from(at - self.base).ok()?)
    }

    fn ended(&mut self, done: &ToolCompleted) {
        if !self.tools.contains_key(&done.tool_id) {
            self.strays.ended.insert(done.tool_id.clone(), done.clone());
            return;
        }
        self.tool(&done.tool_id, |tool| {
            tool.end = Some(done.clone());
            tool.asking = false;
        });
        self.tools.remove(&done.tool_id);
    }

    /// A question is not open any more.
    fn close(&mut self, id: &QuestionId) -> Option<Question> {
        let question = self.questions.remove(id)?;
        if let Some(tool) = &question.tool_id {
            self.tool(tool, |tool| tool.asking = false);
        }
        Some(question)
    }

    fn unqueue(&mut self, id: &PromptId) {
        match self.queued.remove(id) {
            Some(at) => self.change(at, |cell| *cell = Cell::Gone),
            None => {
                self.strays.sent.insert(id.clone());
            }
        }
    }

    fn tool(&mut self, id: &ToolId, change: impl FnOnce(&mut ToolCell)) {
        let Some(at) = self.tools.get(id).copied() else { return };
        self.change(at, |cell| {
            if let Cell::Tool(tool) = cell {
                change(tool);
            }
        });
    }

    fn change(&mut self, at: i64, change: impl FnOnce(&mut Cell)) {
        let Ok(at) = usize::try_from(at - self.base) else { return };
        if let Some(held) = self.cells.get_mut(at) {
            change(&mut held.cell);
            held.version += 1;
        }
    }
}

#[cfg(test)]
mod tests;
