//! Events to frames.
//!
//! Pure, and led by the log alone, so that a client that comes back gets the same frames under the same cursors, also
//! after a restart. What depends on time (live output is shown now and then, a call that is not asked about begins
//! after a moment) goes by the times that stand in the log; the stage calls [`Projector::tick`] when such a time comes
//! and nothing happened. Must not come in: channels, clocks, wire shapes.

#![warn(clippy::wildcard_enum_match_arm)]

mod kind;
mod tool;

use std::collections::BTreeSet;
use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_event::{
    AgentError, Event, EventKind, MessageId, PromptId, Reasoning, Role, SessionEnd, SessionStart, Severity, SystemNote,
    SystemSubtype, TextChunk, Timestamp, ToolId, TurnEnd, UserMessage,
};
use multitap_hub::State;
use serde_json::{Value, json};

use self::kind::{asked_about, end_state, is_quiet, mode_word, more, news, waiting};
use self::tool::Tools;
use super::cursor::Cursor;
use super::frame::{Body, Ends, Frame, Place, StateChange};
use super::name;

/// How many prompts may wait; no more are remembered.
const QUEUE: usize = 64;

/// Under our key: the messages whose text was retracted.
pub(super) const RETRACTED: &str = "discardedMessageIds";

/// More frames than one event makes: where a session is joined in its middle, it is not known how many were made.
const AMID: u32 = 1 << 16;

/// What a session is to A2A clients, and the frames that its next event makes.
#[derive(Debug, Clone)]
pub(crate) struct Projector {
    /// The last event that was taken in.
    seq: u64,
    /// The last frame that was made.
    last: Cursor,
    /// Where the frames that come belong.
    place: Arc<Place>,
    /// The prompt whose turn has not ended.
    in_flight: Option<PromptId>,
    /// Whether the last prompt was a task of its own.
    has_own_tasks: bool,
    /// Prompts that clients were told of while they waited.
    queued: BTreeSet<PromptId>,
    /// The folder of a session that has just begun: its first state says so.
    folder: Option<String>,
    thought: Option<Thought>,
    tools: Tools,
}

/// A thought that is not yet whole.
#[derive(Debug, Clone)]
struct Thought {
    cursor: Cursor,
    at: Timestamp,
    message: Option<MessageId>,
    parent: Option<ToolId>,
    text: String,
}

impl Projector {
    /// Before the first event of a session.
    pub(crate) fn new(session: &str) -> Self {
        Self {
            seq: 0,
            last: Cursor::default(),
            place: Arc::new(Place::first(session)),
            in_flight: None,
            has_own_tasks: false,
            queued: BTreeSet::new(),
            folder: None,
            thought: None,
            tools: Tools::default(),
        }
    }

    /// In the middle of a session, from what it is now.
    pub(crate) fn amid(session: &str, state: &State) -> Self {
        let mut projector = Self::new(session);
        projector.seq = state.seq;
        projector.last = Cursor::new(state.seq, AMID);
        projector.here_on().model = state.model.as_deref().map(Into::into);
        projector.in_flight.clone_from(&state.in_flight);
        projector.queued = state.queue.iter().filter_map(|queued| queued.prompt.prompt_id.clone()).collect();
        projector.tools = Tools::amid(state);
        match (&state.in_flight, &state.turn) {
            (Some(prompt), _) => projector.enter(prompt.as_str()),
            (None, Some(turn)) => projector.enter_unprompted(turn.turn_id.as_str()),
            (None, None) => {}
        }
        let is_asking = projector.tools.is_asking();
        projector.here_on().state = match state.last_turn {
            _ if is_asking => TaskState::InputRequired,
            _ if state.is_busy() => TaskState::Working,
            Some(status) => end_state(status),
            None => TaskState::Submitted,
        };
        projector
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// The last frame that was made.
    pub(crate) fn last(&self) -> Cursor {
        self.last
    }

    /// The task of the running turn, or of the last.
    pub(crate) fn task(&self) -> &Arc<str> {
        &self.place.task
    }

    /// Whether the last prompt was a task of its own.
    pub(crate) fn has_own_tasks(&self) -> bool {
        self.has_own_tasks
    }

    pub(crate) fn turn(&self) -> Option<&Arc<str>> {
        self.place.turn.as_ref()
    }

    pub(crate) fn state(&self) -> TaskState {
        self.place.state
    }

    /// Whether nothing is under way: a good place to go on from.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.place.turn.is_none() && self.thought.is_none()
    }

    /// Whether nothing is half shown: amid a turn as well a place to go on from, of which there is little to remember.
    pub(crate) fn is_clear(&self) -> bool {
        self.thought.is_none() && self.tools.is_clear()
    }

    /// Lets go of what makes no frames any more. Those that come are the same with it and without.
    pub(crate) fn forget(&mut self) {
        self.tools.forget();
    }

    /// When something is to be shown although nothing happened.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.tools.due()
    }

    /// Shows what is due by now.
    pub(crate) fn tick(&mut self, now: Timestamp, out: &mut Vec<Frame>) {
        for due in self.tools.take_due(now) {
            let cursor = due.cursor.unwrap_or_else(|| self.here());
            self.emit(cursor, due.at.unwrap_or(now), Body::Tool(due.view), out);
        }
    }

    /// Closes the calls that a log leaves open whose process is gone.
    pub(crate) fn abandon(&mut self, out: &mut Vec<Frame>) {
        for (at, view) in self.tools.abandon() {
            self.emit(self.here(), at, Body::Tool(view), out);
        }
    }

    /// Says where the task stands, for those who could not hear how it came there.
    pub(crate) fn tell_state(&mut self, at: Timestamp, out: &mut Vec<Frame>) {
        self.emit(self.last, at, Body::State(StateChange::default()), out);
    }

    /// Takes in the next event.
    pub(crate) fn apply(&mut self, event: &Event, out: &mut Vec<Frame>) {
        self.tick(event.timestamp, out);
        let (seq, at) = (event.seq, event.timestamp);
        self.seq = seq;
        // What waits to be shown comes first, but for events that show nothing themselves.
        if !is_quiet(&event.kind) {
            self.think(out);
            self.show_calls(asked_about(&event.kind), out);
        }
        self.tell(event, at, out);
    }

    fn tell(&mut self, event: &Event, at: Timestamp, out: &mut Vec<Frame>) {
        let first = Cursor::new(event.seq, 0);
        match &event.kind {
            EventKind::UserMessage(message) => self.prompted(message, first, at, out),
            EventKind::PromptQueued { prompt, from, .. } => {
                let message = waiting(prompt, from.clone());
                self.tell_prompt(&message, true, first, at, out);
            }
            EventKind::PromptWithdrawn { prompt_id, .. } => self.withdrawn(prompt_id, first, at, out),
            EventKind::TurnStarted { turn_id } => {
                match self.in_flight.clone() {
                    Some(prompt) => self.enter(prompt.as_str()),
                    None => self.enter_unprompted(turn_id.as_str()),
                }
                let is_asking = self.tools.is_asking();
                self.here_on().state = if is_asking { TaskState::InputRequired } else { TaskState::Working };
                let change = self.folder.take().map(|folder| more("workspacePath", folder.into())).unwrap_or_default();
                self.emit(first, at, Body::State(change), out);
            }
            EventKind::TextChunk(chunk) => self.said(chunk, first, at, out),
            EventKind::ToolProgress(progress) => {
                if let Some(begun) = self.tools.progressed(progress) {
                    self.emit(first, at, Body::Tool(begun), out);
                }
                self.tick(at, out);
            }
            EventKind::ToolCompleted(done) => {
                let views = self.tools.completed(done);
                // Some agents tell only afterwards that they no longer ask.
                self.answered();
                for (part, view) in views {
                    self.emit(Cursor::new(event.seq, part), at, Body::Tool(view), out);
                }
            }
            EventKind::PermissionAsked(question) => {
                let view = self.tools.asked(question);
                self.here_on().state = TaskState::InputRequired;
                self.emit(first, at, Body::Tool(view), out);
                let told = self.emit(Cursor::new(event.seq, 1), at, Body::State(StateChange::default()), out);
                told.question = Some(question.question_id.clone());
                told.ends = Some(Ends::Asked);
            }
            EventKind::PermissionSettled(ruling) => {
                let view = self.tools.settled(ruling, at);
                self.answered();
                let Some(view) = view else { return };
                self.emit(first, at, Body::Tool(view), out);
            }
            EventKind::PermissionWithdrawn(gone) => {
                let view = self.tools.withdrawn(&gone.question_id, at);
                self.answered();
                let Some(view) = view else { return };
                self.emit(first, at, Body::Tool(view), out);
            }
            EventKind::TurnCompleted(end) => self.turn_over(end, first, at, out),
            EventKind::SessionEnded(end) => self.ended(end, first, at, out),
            EventKind::Error(error) => self.went_wrong(error, first, at, out),
            EventKind::ModeChanged { mode, native_mode, .. } => {
                let mode = mode.map(mode_word).or(native_mode.clone().map(Value::from)).unwrap_or_default();
                self.emit(first, at, Body::State(more("mode", mode)), out);
            }
            EventKind::ModelChanged { model, .. } => {
                self.here_on().model = Some(model.as_str().into());
                self.emit(first, at, Body::State(StateChange::default()), out);
            }
            EventKind::Reasoning(piece) => self.reasoned(piece, first, at, out),
            EventKind::ToolStarted(call) => {
                // A thought that came before a call ends where the call begins.
                self.think(out);
                self.tools.started(call, event.seq, at);
            }
            EventKind::FileChanged(change) => self.tools.changed(change),
            EventKind::SessionStarted(start) => self.began(start),
            EventKind::System(note) => {
                self.noted(note);
                if let Some(change) = news(note) {
                    self.emit(first, at, Body::State(change), out);
                }
            }
            EventKind::TextRetracted(text) => {
                self.emit(first, at, Body::State(more(RETRACTED, json!(text.message_ids))), out);
            }
            EventKind::Capabilities(capabilities) => {
                if let Some(model) = &capabilities.model {
                    self.here_on().model = Some(model.as_str().into());
                }
            }
            EventKind::NativeSessionChanged { .. }
            | EventKind::McpServerStatus(_)
            | EventKind::RuleAdded(_)
            | EventKind::RuleRevoked(_)
            | EventKind::RawDelta { .. }
            | EventKind::TodoList(_)
            | EventKind::Retry(_)
            | EventKind::AuthStatus(_)
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. }
            | EventKind::Unrecognized { .. } => {}
        }
    }

    fn began(&mut self, start: &SessionStart) {
        let config = start.config.as_ref();
        let model = config.and_then(|config| config.model.as_deref());
        if let Some(model) = model {
            self.here_on().model = Some(model.into());
        }
        self.folder = config.and_then(|config| config.working_directory.clone());
    }

    fn noted(&mut self, note: &SystemNote) {
        let text = |key: &str| note.data.get(key).and_then(Value::as_str).map(Arc::<str>::from);
        if note.subtype == SystemSubtype::ACCOUNT {
            let tier = ["tier", "subscriptionType", "planType", "plan"].into_iter().find_map(text);
            if tier.is_some() {
                self.here_on().tier = tier;
            }
        }
    }

    fn prompted(&mut self, message: &UserMessage, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let Some(id) = message.prompt_id.as_ref().filter(|_| !message.steering) else {
            self.emit(cursor, at, Body::Said(message.clone()), out);
            return;
        };
        self.enter(id.as_str());
        self.in_flight = Some(id.clone());
        self.tools.clear();
        let was_queued = self.queued.remove(id);
        // No frame says that a queued prompt of a lasting task was handed over: its state changes with the turn's start.
        // While a question is open, it says so.
        if name::is_own_task(id.as_str()) || !(was_queued || self.tools.is_asking()) {
            self.here_on().state = TaskState::Submitted;
        }
        if !was_queued {
            self.tell_prompt(message, false, cursor, at, out);
        }
    }

    fn tell_prompt(&mut self, message: &UserMessage, queued: bool, at: Cursor, when: Timestamp, out: &mut Vec<Frame>) {
        let body = Body::Prompted { message: message.clone(), queued };
        let turn = message.prompt_id.as_ref().map_or("", PromptId::as_str);
        let (task, turn) = (name::task_of(&self.place.context, turn), Some(turn.into()));
        let is_asking = self.tools.is_asking();
        let place = Place::leave(&mut self.emit(at, when, body, out).place);
        (place.task, place.turn) = (task, turn);
        if queued || !is_asking {
            place.state = TaskState::Submitted;
        }
        if queued && self.queued.len() < QUEUE {
            self.queued.extend(message.prompt_id.clone());
        }
    }

    fn withdrawn(&mut self, prompt: &PromptId, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        self.queued.remove(prompt);
        let (task, own) = (name::task_of(&self.place.context, prompt.as_str()), name::is_own_task(prompt.as_str()));
        let frame = self.emit(cursor, at, Body::State(more("withdrawnPromptId", prompt.as_str().into())), out);
        frame.ends = Some(Ends::Turn);
        let place = Place::leave(&mut frame.place);
        (place.task, place.turn) = (task, Some(prompt.as_str().into()));
        if own {
            place.state = TaskState::Canceled;
        }
    }

    fn said(&mut self, chunk: &TextChunk, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let message_id = self.message_id(chunk.message_id.as_ref(), cursor);
        let by_user = chunk.role == Some(Role::User);
        let parent = chunk.parent_tool_id.as_ref().map(|tool| tool.as_str().into());
        self.emit(cursor, at, Body::Text { message_id, text: chunk.content.clone(), by_user, parent }, out);
    }

    /// A thought is shown when it is whole.
    fn reasoned(&mut self, piece: &Reasoning, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let goes_on = self.thought.as_ref().is_some_and(|thought| {
            thought.message == piece.message_id && thought.parent == piece.parent_tool_id && piece.is_partial
        });
        if !goes_on {
            self.think(out);
            self.show_calls(None, out);
        }
        let (message, parent) = (piece.message_id.clone(), piece.parent_tool_id.clone());
        let thought = self.thought.get_or_insert_with(|| Thought { cursor, at, message, parent, text: String::new() });
        thought.cursor = cursor;
        thought.text.push_str(&piece.content);
        if !piece.is_partial {
            self.think(out);
        }
    }

    /// Shows the thought that was being thought.
    fn think(&mut self, out: &mut Vec<Frame>) {
        let Some(thought) = self.thought.take().filter(|thought| !thought.text.trim().is_empty()) else { return };
        // The words that follow may be of the same message to the agent; to clients they are another.
        let message_id = self.message_id(None, thought.cursor);
        let parent = thought.parent.map(|tool| tool.as_str().into());
        self.emit(thought.cursor, thought.at, Body::Thought { message_id, text: thought.text, parent }, out);
    }

    /// Shows the calls that nobody has seen yet, but the one that is asked about now: that is shown with its question.
    fn show_calls(&mut self, asked: Option<&ToolId>, out: &mut Vec<Frame>) {
        for (cursor, at, view) in self.tools.take_pending(asked) {
            self.emit(cursor, at, Body::Tool(view), out);
        }
    }

    fn answered(&mut self) {
        if self.place.state == TaskState::InputRequired && !self.tools.is_asking() {
            self.here_on().state = TaskState::Working;
        }
    }

    fn turn_over(&mut self, end: &TurnEnd, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        // A turn that something else began does not answer the prompt.
        if end.origin.is_some() && self.in_flight.is_some() {
            return;
        }
        self.close_questions(cursor, at, out);
        self.here_on().state = end_state(end.status);
        let mut change = StateChange { error: end.error.clone(), usage: end.usage, ..StateChange::default() };
        change.message = end.error.clone();
        change.more.extend(end.cost_usd.map(|cost| ("costUsd", json!(cost))));
        change.more.extend(end.structured_output.clone().map(|output| ("structuredOutput", output)));
        self.emit(cursor, at, Body::State(change), out).ends = Some(Ends::Turn);
        self.in_flight = None;
        self.here_on().turn = None;
    }

    fn ended(&mut self, end: &SessionEnd, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let Some(error) = &end.error else { return };
        self.close_questions(cursor, at, out);
        if !self.place.state.is_terminal() {
            self.here_on().state = TaskState::Failed;
        }
        let change = StateChange { error: Some(error.clone()), ..StateChange::default() };
        self.emit(cursor, at, Body::State(change), out).ends = Some(Ends::Turn);
        self.in_flight = None;
        self.here_on().turn = None;
    }

    fn went_wrong(&mut self, error: &AgentError, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let change = match error.severity {
            Severity::Error => StateChange { error: Some(error.message.clone()), ..StateChange::default() },
            // Nothing ends because of it, and nobody should think so.
            Severity::Warning => more("warning", error.message.as_str().into()),
        };
        self.emit(cursor, at, Body::State(change), out);
    }

    /// Nobody can answer any more what a turn that is over asked.
    fn close_questions(&mut self, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        for view in self.tools.close_questions() {
            self.emit(cursor, at, Body::Tool(view), out);
        }
    }

    /// Enters the turn of a prompt, which may be a task of its own.
    fn enter(&mut self, prompt: &str) {
        self.has_own_tasks = name::is_own_task(prompt);
        let place = self.here_on();
        place.task = name::task_of(&place.context, prompt);
        place.turn = Some(prompt.into());
    }

    /// Enters a turn that the agent began. The agent chose its name, which names no task.
    fn enter_unprompted(&mut self, turn: &str) {
        let place = self.here_on();
        place.task = name::lasting(&place.context).into();
        place.turn = Some(turn.into());
    }

    /// The next place that no event has taken.
    fn here(&self) -> Cursor {
        let part = if self.last.seq == self.seq { self.last.part.saturating_add(1) } else { 0 };
        Cursor::new(self.seq, part)
    }

    /// The place as it will be for the frames that come.
    fn here_on(&mut self) -> &mut Place {
        Place::leave(&mut self.place)
    }

    fn message_id(&self, given: Option<&MessageId>, cursor: Cursor) -> MessageId {
        given.cloned().unwrap_or_else(|| format!("{}-{cursor}", self.place.context).into())
    }

    fn emit<'a>(&mut self, cursor: Cursor, at: Timestamp, body: Body, out: &'a mut Vec<Frame>) -> &'a mut Frame {
        // What was due while it waited to be shown may have been told meanwhile.
        let next = Cursor::new(self.last.seq, self.last.part + 1);
        self.last = if cursor > self.last { cursor } else { next };
        let mut frame = Frame::new(self.last, at, self.place.clone(), body);
        frame.question = self.tools.question_of(&frame.body);
        out.push(frame);
        let last = out.len() - 1;
        &mut out[last]
    }
}
