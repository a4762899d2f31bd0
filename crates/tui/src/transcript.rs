//! The transcript: what happened, as a list of cells. Pure.
//!
//! A cell is laid out when it comes into view, and its lines stay until it changes or is far away. So the cost of a frame
//! depends on the screen, not on the length of the session.

#![warn(clippy::wildcard_enum_match_arm)]

mod cell;
mod copy;
mod draw;
mod find;
mod label;
mod link;
mod older;
mod own_clients;
mod reflow;
mod rendered;
mod scroll;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use multitap_event::{
    ClientRef, EditedCall, Event, EventKind, FileChange, MessageId, Prompt, PromptId, Question, QuestionId, Role,
    SessionEnd, SessionStart, SystemNote, SystemSubtype, ToolId, TurnEnd, UserMessage,
};

use multitap_hub::State;

pub(crate) use self::cell::{Cell, who};
use self::cell::{TextKind, ToolCell, ToolRun};
pub(crate) use self::find::mark;
pub(crate) use self::label::{counts, relative};
pub(crate) use self::link::PathLink;
use self::own_clients::OwnClients;
pub(crate) use self::reflow::Reflow;
use self::rendered::Rendered;
pub(crate) use self::scroll::{COUNTED, Mark, Scroll, Shape};
use crate::number;

/// A transcript: the events of a session so far, or the latest of them.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    cells: VecDeque<Held>,
    /// The number of the first cell. Cells keep their numbers when older ones are prepended.
    base: i64,
    me: OwnClients,
    first: Option<u64>,
    tools: HashMap<ToolId, i64>,
    /// The beginnings of queued prompts. They are shown when the agent gets them.
    queued: HashMap<PromptId, String>,
    plan: Option<i64>,
    questions: HashMap<QuestionId, Question>,
    /// The last error. It is shown once, however often the agent reports it.
    last_error: Option<String>,
    /// The cells of this turn's texts: any of them may be retracted.
    texts: Vec<(MessageId, i64)>,
    /// The text that still grows. Notes about other clients are shown after it.
    open_text: Option<OpenText>,
    /// Whether a turn or a call began after the first event: then a text from before it cannot continue.
    has_begun: bool,
    /// Whether this user cleared the conversation: earlier events are not shown again.
    is_cleared: bool,
    /// Whether the agent started before: then it resumes the conversation when it starts.
    has_started: bool,
    /// The folder of the session, as agents name it.
    folder: Option<Arc<str>>,
    /// Events about calls, prompts and texts that began before the first event.
    orphans: Orphans,
    rendered: std::cell::Cell<usize>,
    /// Whether reasoning and long output are shown in full.
    unfolded: bool,
    opened: HashSet<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenText {
    id: Option<MessageId>,
    kind: TextKind,
    at: i64,
}

/// Events that wait until those are fetched with which their calls, prompts and texts began.
#[derive(Debug, Default)]
struct Orphans {
    tools: HashMap<ToolId, OrphanRun>,
    /// Withdrawn prompts, and the cells that report the withdrawal.
    withdrawn: Vec<(PromptId, i64)>,
    /// Closed questions, and the cells of their answers.
    closed: Vec<(QuestionId, Option<i64>)>,
    /// Retracted messages that began before the first event.
    retracted: Vec<MessageId>,
    /// The first text, which may have begun before the first event.
    open_text: Option<OpenText>,
}

#[derive(Debug, Default)]
struct OrphanRun {
    run: ToolRun,
    cells: Vec<i64>,
}

#[derive(Debug)]
struct Held {
    cell: Cell,
    /// Counts its changes, other than growth.
    version: u64,
    rendered: RefCell<Option<Rendered>>,
}

impl Transcript {
    pub(crate) fn of(me: &ClientRef) -> Self {
        let mut transcript = Self::default();
        transcript.know(me, false);
        transcript
    }

    /// Sets the client of this screen. A new connection makes another client of the same user.
    pub(crate) fn know(&mut self, me: &ClientRef, is_host: bool) {
        self.me.know(me, is_host);
    }

    /// Shows reasoning and long output in full, or folds them again.
    pub(crate) fn unfold(&mut self) {
        self.unfolded = !self.unfolded;
        self.opened.clear();
    }

    /// Whether the client is this user, on this connection or an earlier one.
    pub(crate) fn is_me(&self, client: &ClientRef) -> bool {
        self.me.is(client)
    }

    /// Takes open questions and waiting prompts from the state of a session whose first events are not read.
    pub(crate) fn expect(&mut self, state: &State) {
        self.works_in(state.start.as_ref());
        let open = state.questions.open().iter();
        self.questions.extend(open.map(|question| (question.question_id.clone(), question.clone())));
        state.queue.iter().for_each(|queued| self.queued(&queued.prompt));
    }

    /// Adds a note beside what the agent does.
    pub(crate) fn note(&mut self, words: String) {
        self.add_beside(Cell::Note(words));
    }

    pub(crate) fn apply(&mut self, event: &Event) {
        if self.first.is_none() {
            (self.first, self.has_started) = (Some(event.seq), event.seq > 1);
        }
        match &event.kind {
            EventKind::TextChunk(chunk) if chunk.role == Some(Role::User) => {
                let nested = chunk.parent_tool_id.is_some();
                self.add(Cell::User { text: chunk.content.clone(), from: None, images: Vec::new(), nested });
            }
            EventKind::TextChunk(chunk) => {
                let (text, nested) = (chunk.content.clone(), chunk.parent_tool_id.is_some());
                self.text(&chunk.message_id, chunk.is_partial, TextKind::Message, text, nested);
            }
            EventKind::Reasoning(thought) => {
                let (text, nested) = (thought.content.clone(), thought.parent_tool_id.is_some());
                self.text(&thought.message_id, thought.is_partial, TextKind::Reasoning, text, nested);
            }
            EventKind::ToolStarted(tool) => {
                let folder = self.folder.clone();
                let at =
                    self.add(Cell::Tool(Box::new(ToolCell { call: tool.clone(), run: ToolRun::default(), folder })));
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
                let is_orphan = question.is_none();
                let at = self.add(Cell::Answered { ruling: Box::new(ruling.clone()), question, own });
                if is_orphan {
                    self.orphans.closed.push((id.clone(), Some(at)));
                }
            }
            EventKind::PermissionWithdrawn(gone) => {
                if self.close(&gone.question_id).is_none() {
                    self.orphans.closed.push((gone.question_id.clone(), None));
                }
                let why = gone.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                self.add(Cell::Note(format!("the question was closed{why}")));
            }
            EventKind::UserMessage(message) => {
                if self.is_cleared_by(message) {
                    self.clear();
                }
                let images = message.images.iter().map(number::image).collect();
                let (text, from) = (message.content.clone(), self.other(&message.from));
                self.add(Cell::User { text, from, images, nested: false });
            }
            EventKind::PromptQueued { prompt, .. } => self.queued(prompt),
            // This user has the prompt in the composer again.
            EventKind::PromptWithdrawn { by: Some(by), .. } if self.me.is(by) => {}
            EventKind::PromptWithdrawn { prompt_id, by } => {
                let begins = self.queued.get(prompt_id).cloned();
                let is_orphan = begins.is_none();
                let at = self.add_beside(Cell::Withdrawn { by: by.clone(), begins });
                if is_orphan {
                    self.orphans.withdrawn.push((prompt_id.clone(), at));
                }
            }
            EventKind::TodoList(list) => {
                if let Some(before) = self.plan.take() {
                    self.change(before, |cell| *cell = Cell::Empty);
                }
                self.plan = Some(self.add(Cell::Plan(list.clone())));
            }
            EventKind::TurnCompleted(end) => {
                self.texts.clear();
                let error = self.new_error(end.error.as_ref());
                self.add(Cell::TurnEnd(Box::new(TurnEnd { error, ..end.clone() })));
            }
            EventKind::SessionEnded(end) => {
                let error = self.new_error(end.error.as_ref());
                self.add(Cell::Ended(Box::new(SessionEnd { error, ..end.clone() })));
            }
            EventKind::Error(error) => {
                self.last_error = Some(error.message.clone());
                self.add(Cell::Error(Box::new(error.clone())));
            }
            EventKind::Retry(retry) => {
                self.add(Cell::Retry(retry.clone()));
            }
            EventKind::AuthStatus(status) => {
                let words = status.error.clone().unwrap_or_else(|| status.output.join("\n"));
                self.add(Cell::Note(if words.is_empty() { "signing in".to_owned() } else { words }));
            }
            EventKind::System(note) if note.subtype == SystemSubtype::FORKED => {
                let words = note.message.clone().unwrap_or_else(|| "forked".to_owned());
                self.add(Cell::Marker(words));
            }
            EventKind::System(note) => {
                note.message.iter().filter(|_| is_news(note)).for_each(|message| self.note(message.clone()));
            }
            EventKind::ModeChanged { mode, native_mode, by } => {
                let word = mode.map(|mode| mode.option_word().to_owned()).or_else(|| native_mode.clone());
                self.mode_changed(word.unwrap_or_default(), self.other(by));
            }
            EventKind::ModelChanged { model, by } => self.note(cell::changed("model", model, self.other(by).as_ref())),
            // The user knows that they are here.
            EventKind::ClientJoined { client } | EventKind::ClientLeft { client, .. } if self.me.is(client) => {
                self.me.joined(client);
            }
            EventKind::ClientJoined { client } => self.note(format!("{} joined", who(client))),
            EventKind::ClientLeft { client, reason } => {
                let why = reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                self.note(format!("{} left{why}", who(client)));
            }
            EventKind::McpServerStatus(server) => self.note(server.summary()),
            EventKind::RuleAdded(rule) => self.note(rule.added_summary()),
            EventKind::RuleRevoked(rule) => self.note(rule.revoked_summary()),
            EventKind::TextRetracted(text) => {
                self.retract(&text.message_ids);
                text.message.iter().for_each(|message| self.note(message.clone()));
            }
            EventKind::SessionStarted(start) => {
                let last = self.end() - 1;
                match self.held(last).map(|held| &held.cell) {
                    // The mark of a fork says it.
                    Some(Cell::Marker(_)) => {}
                    // The marker says that the agent had ended, too.
                    Some(Cell::Ended(end)) if end.error.is_none() => {
                        self.change(last, |cell| *cell = Cell::Marker("resumed".to_owned()));
                    }
                    _ if self.has_started => drop(self.add(Cell::Marker("resumed".to_owned()))),
                    _ => {}
                }
                self.has_started = true;
                self.works_in(Some(start));
            }
            EventKind::TurnStarted { .. }
            | EventKind::NativeSessionChanged { .. }
            | EventKind::Capabilities(_)
            | EventKind::RawDelta { .. }
            | EventKind::Unrecognized { .. } => {}
        }
    }

    /// Learns the folder of the session, as agents name it.
    fn works_in(&mut self, start: Option<&SessionStart>) {
        let folder = start.and_then(|start| start.config.as_ref()?.working_directory.as_deref());
        self.folder = folder.map(Arc::from).or(self.folder.take());
    }

    /// Shows the new mode in the line of the change before, if nothing happened in between.
    fn mode_changed(&mut self, word: String, by: Option<ClientRef>) {
        let last = self.end() - 1;
        match self.held(last).map(|held| &held.cell) {
            Some(Cell::Mode { .. }) => self.change(last, |cell| *cell = Cell::Mode { word, by }),
            _ => drop(self.add_beside(Cell::Mode { word, by })),
        }
    }

    /// Whether this user cleared the conversation. A `/clear` of others hides nothing.
    pub(crate) fn is_cleared_by(&self, message: &UserMessage) -> bool {
        message.content.trim() == "/clear" && self.other(&message.from).is_none()
    }

    fn clear(&mut self) {
        self.base = self.end();
        self.cells.clear();
        self.tools.clear();
        self.opened.clear();
        self.texts.clear();
        (self.plan, self.open_text, self.has_begun, self.is_cleared) = (None, None, true, true);
        self.orphans = Orphans::default();
        self.rendered.set(0);
    }

    /// Adds text of the agent: to the open text, or to a new one.
    fn text(&mut self, id: &Option<MessageId>, is_partial: bool, kind: TextKind, text: String, nested: bool) {
        let open = self.open_text.as_ref().filter(|open| open.id == *id && open.kind == kind && is_partial);
        if let Some(at) = open.map(|open| open.at) {
            return self.grow(at, &text);
        }
        let may_have_begun = !self.has_begun;
        let at = self.add(Cell::Text { kind, text, nested });
        self.texts.extend(id.clone().map(|id| (id, at)));
        self.open_text = is_partial.then(|| OpenText { id: id.clone(), kind, at });
        if may_have_begun {
            self.orphans.open_text.clone_from(&self.open_text);
        }
    }

    /// An error, unless it was shown last.
    fn new_error(&mut self, error: Option<&String>) -> Option<String> {
        let error = error.filter(|error| self.last_error.as_ref() != Some(error))?;
        self.last_error = Some(error.clone());
        Some(error.clone())
    }

    /// Removes the text of those messages. Parts in events that are not loaded yet are removed when they are loaded.
    fn retract(&mut self, messages: &[MessageId]) {
        let shown: Vec<_> = self.texts.extract_if(.., |(id, _)| messages.contains(id)).collect();
        let is_retracted = |text: &mut OpenText| text.id.as_ref().is_some_and(|id| messages.contains(id));
        self.open_text.take_if(is_retracted);
        let first = self.orphans.open_text.take_if(is_retracted).and_then(|text| text.id);
        let began_before = |id: &&MessageId| first.as_ref() == Some(*id) || !shown.iter().any(|(one, _)| one == *id);
        self.orphans.retracted.extend(messages.iter().filter(began_before).cloned());
        for (_, at) in shown {
            self.change(at, |cell| *cell = Cell::Empty);
        }
    }

    /// The client, if it is another user.
    fn other(&self, client: &Option<ClientRef>) -> Option<ClientRef> {
        client.clone().filter(|client| !self.me.is(client))
    }

    /// Adds a cell, and ends the open text.
    fn add(&mut self, cell: Cell) -> i64 {
        (self.open_text, self.has_begun) = (None, true);
        self.add_beside(cell)
    }

    /// Adds a cell for other clients. The open text continues.
    fn add_beside(&mut self, cell: Cell) -> i64 {
        self.cells.push_back(Held { cell, version: 0, rendered: RefCell::default() });
        self.end() - 1
    }

    /// The number after that of the last cell.
    fn end(&self) -> i64 {
        self.base.saturating_add_unsigned(self.cells.len() as u64)
    }

    fn held(&self, at: i64) -> Option<&Held> {
        self.cells.get(usize::try_from(at - self.base).ok()?)
    }

    fn file_changed(&mut self, change: &FileChange) {
        let Some(id) = change.tool_id.as_ref() else {
            self.add(Cell::Changed { change: Box::new(change.clone()), folder: self.folder.clone() });
            return;
        };
        if !self.tools.contains_key(id) {
            // The tool call may be among older events.
            let at = self.add_beside(Cell::Changed { change: Box::new(change.clone()), folder: self.folder.clone() });
            let orphan = self.orphans.tools.entry(id.clone()).or_default();
            if orphan.run.end.is_none() {
                orphan.cells.push(at);
            }
        }
        self.tool(id, |run| run.changed(change));
    }

    fn close(&mut self, id: &QuestionId) -> Option<Question> {
        let question = self.questions.remove(id)?;
        if let Some(tool) = &question.tool_id {
            self.tool(tool, |run| run.asking = false);
        }
        Some(question)
    }

    fn queued(&mut self, prompt: &Prompt) {
        self.queued.extend(prompt.prompt_id.clone().map(|id| (id, cell::beginning(&prompt.text))));
    }

    /// Changes a tool call, unless it has ended.
    fn tool(&mut self, id: &ToolId, change: impl FnOnce(&mut ToolRun)) {
        let Some(at) = self.tools.get(id).copied() else {
            let run = &mut self.orphans.tools.entry(id.clone()).or_default().run;
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

/// Whether a notice is for people. Claude Code reports every request to its model, and stores what it told its model
/// about the session, each by a word of its protocol.
fn is_news(note: &SystemNote) -> bool {
    let is_word = |message: &str| message.contains('_') && !message.contains(char::is_whitespace);
    let is_request = note.subtype == "status" && note.message.as_deref() == Some("requesting");
    let is_stored = matches!(note.subtype.as_str(), "attachment" | "title");
    !is_request && !is_stored && !note.message.as_deref().is_some_and(is_word)
}
