//! What has happened, as a list of cells: who said what, which tools ran and how they ended. Pure.
//!
//! Lines are made of a cell when it comes into view, and kept until it changes or is far away: so what a screen costs
//! depends on the screen, not on how long the session is.

#![warn(clippy::wildcard_enum_match_arm)]

mod cell;
mod draw;
mod find;
mod older;
mod said;
mod scroll;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use multitap_event::{
    ClientId, ClientRef, Event, EventKind, FileChange, MessageId, PromptId, Question, QuestionId, Role, SessionEnd,
    ToolId, TurnEnd,
};
use ratatui::text::Line;

pub(crate) use self::cell::Cell;
use self::cell::{ToolCell, ToolRun};
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
    /// What went wrong last: it is told once, however often the agent tells it.
    wrong: Option<String>,
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

/// Kept until the events are fetched with which those things began.
#[derive(Debug, Default)]
struct Strays {
    tools: HashMap<ToolId, StrayRun>,
    /// Prompts that wait no more.
    sent: HashSet<PromptId>,
    /// Questions that are not open any more, and where their rulings are.
    closed: Vec<(QuestionId, Option<i64>)>,
    /// The first cell goes on with this message.
    saying: Option<Option<MessageId>>,
    thinking: Option<Option<MessageId>>,
}

#[derive(Debug, Default)]
struct StrayRun {
    run: ToolRun,
    /// Cells that tell what belongs to the tool call.
    cells: Vec<i64>,
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

    /// Questions that are open though nothing here told of them.
    pub(crate) fn expect(&mut self, open: &[Question]) {
        self.questions.extend(open.iter().map(|question| (question.question_id.clone(), question.clone())));
    }

    /// Takes in what happened.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.first.get_or_insert(event.seq);
        match &event.kind {
            EventKind::TextChunk(chunk) if chunk.role == Some(Role::User) => {
                let nested = chunk.parent_tool_id.is_some();
                self.add(Cell::User { text: chunk.content.clone(), from: None, images: 0, waits: false, nested });
            }
            EventKind::TextChunk(chunk) => {
                self.thinking = None;
                match &self.saying {
                    Some((id, at)) if *id == chunk.message_id && chunk.is_partial => {
                        let at = *at;
                        self.change(at, |cell| cell.append(&chunk.content));
                        self.part(chunk.content.len());
                    }
                    _ => {
                        if self.cells.is_empty() && chunk.is_partial {
                            self.strays.saying = Some(chunk.message_id.clone());
                        }
                        let nested = chunk.parent_tool_id.is_some();
                        let at = self.add(Cell::Said { text: chunk.content.clone(), nested, goes_on: false });
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
                let at = self.add(Cell::Tool(Box::new(ToolCell { call: tool.clone(), run: ToolRun::default() })));
                self.tools.insert(tool.tool_id.clone(), at);
            }
            EventKind::ToolProgress(progress) => self.tool(&progress.tool_id, |run| run.progressed(progress)),
            EventKind::FileChanged(change) => self.file_changed(change),
            EventKind::ToolCompleted(done) => {
                self.tool(&done.tool_id, |run| run.ended(done));
                self.tools.remove(&done.tool_id);
            }
            EventKind::PermissionAsked(question) => {
                self.questions.insert(question.question_id.clone(), question.clone());
                if let Some(id) = &question.tool_id {
                    self.tool(id, |run| run.asking = true);
                }
            }
            EventKind::PermissionSettled(ruling) => {
                let (id, own) = (&ruling.question_id, self.is_me(&ruling.settled_by));
                let question = self.close(id).map(Box::new);
                let is_stray = question.is_none();
                let at = self.add(Cell::Ruled { ruling: Box::new(ruling.clone()), question, own });
                if is_stray {
                    self.strays.closed.push((id.clone(), Some(at)));
                }
            }
            EventKind::PermissionWithdrawn(gone) => {
                if self.close(&gone.question_id).is_none() {
                    self.strays.closed.push((gone.question_id.clone(), None));
                }
                let why = gone.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                self.add(Cell::Note(format!("the question needs no answer any more{why}")));
            }
            EventKind::UserMessage(message) => {
                if let Some(id) = &message.prompt_id {
                    self.unqueue(id);
                }
                let (text, images) = (message.content.clone(), message.images.len());
                self.add(Cell::User { text, from: message.from.clone(), images, waits: false, nested: false });
            }
            EventKind::PromptQueued { prompt, from, .. } => {
                let (text, images) = (prompt.text.clone(), prompt.images.len());
                let at = self.add(Cell::User { text, from: from.clone(), images, waits: true, nested: false });
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
                let error = self.news(end.error.as_ref());
                self.add(Cell::TurnEnd(Box::new(TurnEnd { error, ..end.clone() })));
            }
            EventKind::SessionEnded(end) => {
                let error = self.news(end.error.as_ref());
                self.add(Cell::Ended(Box::new(SessionEnd { error, ..end.clone() })));
            }
            EventKind::Error(error) => {
                self.wrong = Some(error.message.clone());
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

    /// What went wrong, unless that was told last.
    fn news(&mut self, error: Option<&String>) -> Option<String> {
        let error = error.filter(|error| self.wrong.as_ref() != Some(error))?;
        self.wrong = Some(error.clone());
        Some(error.clone())
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

    fn file_changed(&mut self, change: &FileChange) {
        let Some(id) = change.tool_id.as_ref() else {
            self.add(Cell::Changed(Box::new(change.clone())));
            return;
        };
        if !self.tools.contains_key(id) {
            let at = self.add(Cell::Changed(Box::new(change.clone())));
            let stray = self.strays.tools.entry(id.clone()).or_default();
            if stray.run.end.is_none() {
                stray.cells.push(at);
            }
        }
        self.tool(id, |run| run.change = Some(change.clone()));
    }

    /// A question is not open any more.
    fn close(&mut self, id: &QuestionId) -> Option<Question> {
        let question = self.questions.remove(id)?;
        if let Some(tool) = &question.tool_id {
            self.tool(tool, |run| run.asking = false);
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

    /// What becomes of a tool call; once it is over nothing does.
    fn tool(&mut self, id: &ToolId, change: impl FnOnce(&mut ToolRun)) {
        let Some(at) = self.tools.get(id).copied() else {
            let run = &mut self.strays.tools.entry(id.clone()).or_default().run;
            if run.end.is_none() {
                change(run);
            }
            return;
        };
        self.change(at, |cell| {
            if let Cell::Tool(tool) = cell {
                change(&mut tool.run);
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
