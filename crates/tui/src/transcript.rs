//! What has happened, as a list of cells: who said what, which tools ran and how they ended. Pure.
//!
//! Lines are made of a cell when it comes into view, and kept until it changes or is far away: so what a screen costs
//! depends on the screen, not on how long the session is.

#![warn(clippy::wildcard_enum_match_arm)]

mod cell;
mod draw;
mod find;
mod made;
mod me;
mod older;
mod reshape;
mod said;
mod scroll;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};

use multitap_event::{
    ClientRef, EditedCall, Event, EventKind, FileChange, MessageId, Prompt, PromptId, Question, QuestionId, Role,
    SessionEnd, ToolId, TurnEnd, UserMessage,
};

use multitap_hub::State;

pub(crate) use self::cell::{Cell, who};
use self::cell::{ToolCell, ToolRun};
pub(crate) use self::draw::diff_lines;
pub(crate) use self::find::mark;
use self::made::Made;
use self::me::Me;
pub(crate) use self::reshape::Reshape;
pub(crate) use self::scroll::{COUNTED, Mark, Scroll, Shape};

/// Everything so far, or the end of it.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    cells: VecDeque<Held>,
    /// The number of the first cell. A cell keeps its number when older ones come before it.
    base: i64,
    me: Me,
    /// The first event that is in it.
    first: Option<u64>,
    /// Where the tools are that have not ended.
    tools: HashMap<ToolId, i64>,
    /// How the prompts begin that waited, or still do. Until they are handed over they are not shown here.
    queued: HashMap<PromptId, String>,
    /// Where the plan is.
    plan: Option<i64>,
    /// The questions that are open.
    questions: HashMap<QuestionId, Question>,
    /// What went wrong last: it is told once, however often the agent tells it.
    wrong: Option<String>,
    /// The message or the thought that goes on. What others do meanwhile stands after it.
    going: Option<Going>,
    /// Something else has begun since the first event: a message from before it cannot go on.
    is_cut: bool,
    /// Somebody here cleared the conversation: what was before is not shown again.
    is_cleared: bool,
    /// What is told of things that began before the first event.
    strays: Strays,
    /// How many cells have lines at hand.
    made: std::cell::Cell<usize>,
    /// Thoughts and long output are shown whole: all of them, or where something was found.
    unfolded: bool,
    opened: HashSet<i64>,
}

/// A message or a thought that goes on, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Going {
    id: Option<MessageId>,
    is_thought: bool,
    at: i64,
}

/// Kept until the events are fetched with which those things began.
#[derive(Debug, Default)]
struct Strays {
    tools: HashMap<ToolId, StrayRun>,
    /// Prompts that somebody took back, and where that stands.
    taken_back: Vec<(PromptId, i64)>,
    /// Questions that are not open any more, and where their rulings are.
    closed: Vec<(QuestionId, Option<i64>)>,
    /// The first message here, which may have begun before.
    going: Option<Going>,
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
    /// Counts its changes, other than growth.
    version: u64,
    made: RefCell<Option<Made>>,
}

impl Transcript {
    /// What happens from now on, for whoever sits here.
    pub(crate) fn of(me: &ClientRef) -> Self {
        let mut transcript = Self::default();
        transcript.know(me, false);
        transcript
    }

    /// Who sits here now: a connection that was lost and found makes another client of them.
    pub(crate) fn know(&mut self, me: &ClientRef, is_host: bool) {
        self.me.know(me, is_host);
    }

    /// Shows thoughts and long output whole, or folds them again.
    pub(crate) fn unfold(&mut self) {
        self.unfolded = !self.unfolded;
        self.opened.clear();
    }

    /// Whether it was whoever sits here, also over a connection that was lost since.
    pub(crate) fn is_me(&self, client: &ClientRef) -> bool {
        self.me.is(client)
    }

    /// Questions that are open and prompts that wait though nothing here told of them.
    pub(crate) fn expect(&mut self, state: &State) {
        let open = state.questions.open().iter();
        self.questions.extend(open.map(|question| (question.question_id.clone(), question.clone())));
        state.queue.iter().for_each(|queued| self.waits(&queued.prompt));
    }

    /// Something that only whoever sits here needs to know.
    pub(crate) fn note(&mut self, words: String) {
        self.add_beside(Cell::Note(words));
    }

    /// Takes in what happened.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.first.get_or_insert(event.seq);
        match &event.kind {
            EventKind::TextChunk(chunk) if chunk.role == Some(Role::User) => {
                let nested = chunk.parent_tool_id.is_some();
                self.add(Cell::User { text: chunk.content.clone(), from: None, images: 0, nested });
            }
            EventKind::TextChunk(chunk) => {
                let (text, nested) = (chunk.content.clone(), chunk.parent_tool_id.is_some());
                self.spoken(&chunk.message_id, chunk.is_partial, Cell::Said { text, nested });
            }
            EventKind::Reasoning(thought) => {
                let (text, nested) = (thought.content.clone(), thought.parent_tool_id.is_some());
                self.spoken(&thought.message_id, thought.is_partial, Cell::Thought { text, nested });
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
                let (id, own) = (&ruling.question_id, self.me.is(&ruling.settled_by));
                let question = self.close(id).map(Box::new);
                let tool = question.as_ref().and_then(|question| question.tool_id.clone());
                if let (Some(tool), Some(runs)) = (tool, &ruling.runs) {
                    self.edited(&tool, runs);
                }
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
                if self.is_cleared_by(message) {
                    self.clear();
                }
                let (text, images, from) = (message.content.clone(), message.images.len(), self.other(&message.from));
                self.add(Cell::User { text, from, images, nested: false });
            }
            EventKind::PromptQueued { prompt, .. } => self.waits(prompt),
            // Whoever takes a prompt back has it again.
            EventKind::PromptWithdrawn { by: Some(by), .. } if self.me.is(by) => {}
            EventKind::PromptWithdrawn { prompt_id, by } => {
                let begins = self.queued.get(prompt_id).cloned();
                let is_stray = begins.is_none();
                let at = self.add_beside(Cell::TakenBack { by: by.clone(), begins });
                if is_stray {
                    self.strays.taken_back.push((prompt_id.clone(), at));
                }
            }
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
                // Claude Code reports every request to its model; the status line shows that it works.
                let is_news = !(note.subtype == "status" && note.message.as_deref() == Some("requesting"));
                if let Some(message) = note.message.as_ref().filter(|_| is_news) {
                    self.add_beside(Cell::Note(message.clone()));
                }
            }
            EventKind::ModeChanged { mode, native_mode, by } => {
                let word = mode.map(|mode| mode.to_string()).or_else(|| native_mode.clone()).unwrap_or_default();
                self.add_beside(Cell::Note(cell::changed("mode", &word, self.other(by).as_ref())));
            }
            EventKind::ModelChanged { model, by } => {
                self.add_beside(Cell::Note(cell::changed("model", model, self.other(by).as_ref())));
            }
            // That one sits here oneself is no news.
            EventKind::ClientJoined { client } | EventKind::ClientLeft { client, .. } if self.me.is(client) => {
                self.me.came(client);
            }
            EventKind::ClientJoined { client } => {
                self.add_beside(Cell::Note(format!("{} joined", who(client))));
            }
            EventKind::ClientLeft { client, reason } => {
                let why = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                self.add_beside(Cell::Note(format!("{} left{why}", who(client))));
            }
            EventKind::SessionStarted(_)
            | EventKind::TurnStarted { .. }
            | EventKind::RawDelta { .. }
            | EventKind::Unrecognized { .. } => {}
        }
    }

    /// Whether whoever sits here had the agent forget the conversation. What others do hides nothing.
    pub(crate) fn is_cleared_by(&self, message: &UserMessage) -> bool {
        message.content.trim() == "/clear" && self.other(&message.from).is_none()
    }

    /// Begins with an empty screen.
    fn clear(&mut self) {
        self.base = self.end();
        self.cells.clear();
        self.tools.clear();
        self.opened.clear();
        (self.plan, self.going, self.is_cut, self.is_cleared) = (None, None, true, true);
        self.strays = Strays::default();
        self.made.set(0);
    }

    /// The agent says or thinks something: it goes on with what it was at, or begins anew.
    fn spoken(&mut self, id: &Option<MessageId>, is_partial: bool, cell: Cell) {
        let is_thought = matches!(cell, Cell::Thought { .. });
        let going = self.going.as_ref().filter(|going| going.id == *id && going.is_thought == is_thought && is_partial);
        if let Some(at) = going.map(|going| going.at) {
            return self.grow(at, cell.text());
        }
        let may_have_begun = !self.is_cut;
        let at = self.add(cell);
        self.going = is_partial.then(|| Going { id: id.clone(), is_thought, at });
        if may_have_begun {
            self.strays.going.clone_from(&self.going);
        }
    }

    /// What went wrong, unless that was told last.
    fn news(&mut self, error: Option<&String>) -> Option<String> {
        let error = error.filter(|error| self.wrong.as_ref() != Some(error))?;
        self.wrong = Some(error.clone());
        Some(error.clone())
    }

    /// Who it was, if it was somebody else.
    fn other(&self, client: &Option<ClientRef>) -> Option<ClientRef> {
        client.clone().filter(|client| !self.me.is(client))
    }

    /// Something begins, and what was going on is over.
    fn add(&mut self, cell: Cell) -> i64 {
        (self.going, self.is_cut) = (None, true);
        self.add_beside(cell)
    }

    /// Something that others do, whatever the agent is at.
    fn add_beside(&mut self, cell: Cell) -> i64 {
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
            // It begins nothing: its tool call may be among older events.
            let at = self.add_beside(Cell::Changed(Box::new(change.clone())));
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

    fn waits(&mut self, prompt: &Prompt) {
        self.queued.extend(prompt.prompt_id.clone().map(|id| (id, cell::beginning(&prompt.text))));
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

    /// A call that an answer edited is shown as what runs.
    fn edited(&mut self, id: &ToolId, runs: &EditedCall) {
        let Some(at) = self.tools.get(id).copied() else { return };
        self.change(at, |cell| {
            if let Cell::Tool(tool) = cell {
                tool.call.title = Some(runs.title.clone());
                tool.call.arguments.clone_from(&runs.arguments);
            }
        });
    }

    fn grow(&mut self, at: i64, more: &str) {
        let Ok(at) = usize::try_from(at - self.base) else { return };
        if let Some(held) = self.cells.get_mut(at) {
            held.cell.append(more);
        }
    }

    fn change(&mut self, at: i64, change: impl FnOnce(&mut Cell)) {
        let Ok(at) = usize::try_from(at - self.base) else { return };
        if let Some(held) = self.cells.get_mut(at) {
            change(&mut held.cell);
            held.version += 1;
        }
    }
}
