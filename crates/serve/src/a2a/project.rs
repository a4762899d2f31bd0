//! Events to frames.
//!
//! Pure: frames depend on the log alone, so a returning client gets the same frames with the same cursors, even after a
//! restart. Time-dependent frames (throttled live output, the start of a call without a question) follow the timestamps
//! in the log; the stage calls [`Projector::tick`] when such a time passes without an event. Must not come in: channels,
//! clocks, wire formats.

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

use self::kind::{asked_about, end_state, is_quiet, more, news, waiting};
use self::tool::Tools;
use super::cursor::Cursor;
use super::frame::{Body, Ends, Frame, FrameScope, StateChange};
use super::name;

/// Maximum number of queued prompts to remember.
const QUEUE: usize = 64;

/// Under our key: the messages whose text was retracted.
pub(super) const RETRACTED: &str = "discardedMessageIds";
/// Under our key: the agent's output in the form that was asked for.
pub(super) const STRUCTURED_OUTPUT: &str = "structuredOutput";

/// Upper bound on frames per event, used as the sub-index when joining mid-session.
const AMID: u32 = 1 << 16;

/// The state of a session as A2A clients know it; makes the frames of its next events.
#[derive(Debug, Clone)]
pub(crate) struct Projector {
    /// The last event that was applied.
    seq: u64,
    /// The last frame that was made.
    last: Cursor,
    /// Scope of the next frames.
    scope: Arc<FrameScope>,
    /// The prompt whose turn has not ended.
    in_flight: Option<PromptId>,
    /// Whether the last prompt was a task of its own.
    has_own_tasks: bool,
    /// Queued prompts that clients have seen.
    queued: BTreeSet<PromptId>,
    /// Folder of a session that has just started: reported with its first state.
    folder: Option<String>,
    thought: Option<Thought>,
    tools: Tools,
}

/// An incomplete thought.
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
            scope: Arc::new(FrameScope::first(session)),
            in_flight: None,
            has_own_tasks: false,
            queued: BTreeSet::new(),
            folder: None,
            thought: None,
            tools: Tools::default(),
        }
    }

    /// Joins a session in its middle, from its current state.
    pub(crate) fn amid(session: &str, state: &State) -> Self {
        let mut projector = Self::new(session);
        projector.seq = state.seq;
        projector.last = Cursor::new(state.seq, AMID);
        projector.scope_mut().model = state.model.as_deref().map(Into::into);
        projector.in_flight.clone_from(&state.in_flight);
        projector.queued = state.queue.iter().filter_map(|queued| queued.prompt.prompt_id.clone()).collect();
        projector.tools = Tools::amid(state);
        match (&state.in_flight, &state.turn) {
            (Some(prompt), _) => projector.enter(prompt.as_str()),
            (None, Some(turn)) => projector.enter_unprompted(turn.turn_id.as_str()),
            (None, None) => {}
        }
        let is_asking = projector.tools.is_asking();
        projector.scope_mut().state = match state.last_turn {
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
        &self.scope.task
    }

    /// Whether the last prompt was a task of its own.
    pub(crate) fn has_own_tasks(&self) -> bool {
        self.has_own_tasks
    }

    pub(crate) fn turn(&self) -> Option<&Arc<str>> {
        self.scope.turn.as_ref()
    }

    pub(crate) fn state(&self) -> TaskState {
        self.scope.state
    }

    /// Whether the session is idle: a good point to resume from.
    pub(crate) fn is_idle(&self) -> bool {
        self.scope.turn.is_none() && self.thought.is_none()
    }

    /// Whether nothing is shown in part. Within a turn, such a point needs little memory to resume from.
    pub(crate) fn is_clear(&self) -> bool {
        self.thought.is_none() && self.tools.is_clear()
    }

    /// Drops state that no later frame needs.
    pub(crate) fn forget(&mut self) {
        self.tools.forget();
    }

    /// The time at which a frame is due even if no event comes.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.tools.due()
    }

    /// Makes the frames that are due by now.
    pub(crate) fn tick(&mut self, now: Timestamp, out: &mut Vec<Frame>) {
        for due in self.tools.take_due(now) {
            let cursor = due.cursor.unwrap_or_else(|| self.next_cursor());
            self.emit(cursor, due.at.unwrap_or(now), Body::Tool(due.view), out);
        }
    }

    /// Closes the calls that the log of a dead process leaves open.
    pub(crate) fn abandon(&mut self, out: &mut Vec<Frame>) {
        for (at, view) in self.tools.abandon() {
            self.emit(self.next_cursor(), at, Body::Tool(view), out);
        }
    }

    /// Reports the state of the task to clients that missed the frames before it.
    pub(crate) fn tell_state(&mut self, at: Timestamp, out: &mut Vec<Frame>) {
        self.emit(self.last, at, Body::State(StateChange::default()), out);
    }

    /// Applies the next event.
    pub(crate) fn apply(&mut self, event: &Event, out: &mut Vec<Frame>) {
        self.tick(event.timestamp, out);
        let (seq, at) = (event.seq, event.timestamp);
        self.seq = seq;
        // Pending frames come first, except before events that make none.
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
                self.scope_mut().state = if is_asking { TaskState::InputRequired } else { TaskState::Working };
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
                // Some agents withdraw the question only afterwards.
                self.answered();
                for (part, view) in views {
                    self.emit(Cursor::new(event.seq, part), at, Body::Tool(view), out);
                }
            }
            EventKind::PermissionAsked(question) => {
                let view = self.tools.asked(question);
                self.scope_mut().state = TaskState::InputRequired;
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
                let mode = mode.map(|mode| json!(mode)).or(native_mode.clone().map(Value::from)).unwrap_or_default();
                self.emit(first, at, Body::State(more("mode", mode)), out);
            }
            EventKind::ModelChanged { model, .. } => {
                self.scope_mut().model = Some(model.as_str().into());
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
                    self.scope_mut().model = Some(model.as_str().into());
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
            self.scope_mut().model = Some(model.into());
        }
        self.folder = config.and_then(|config| config.working_directory.clone());
    }

    fn noted(&mut self, note: &SystemNote) {
        let text = |key: &str| note.data.get(key).and_then(Value::as_str).map(Arc::<str>::from);
        if note.subtype == SystemSubtype::ACCOUNT {
            let tier = ["tier", "subscriptionType", "planType", "plan"].into_iter().find_map(text);
            if tier.is_some() {
                self.scope_mut().tier = tier;
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
        // No frame reports the start of a queued prompt of a lasting task: the state changes when the turn starts.
        // While a question is open, the state stays input-required.
        if name::is_own_task(id.as_str()) || !(was_queued || self.tools.is_asking()) {
            self.scope_mut().state = TaskState::Submitted;
        }
        if !was_queued {
            self.tell_prompt(message, false, cursor, at, out);
        }
    }

    fn tell_prompt(&mut self, message: &UserMessage, queued: bool, at: Cursor, when: Timestamp, out: &mut Vec<Frame>) {
        let body = Body::Prompted { message: message.clone(), queued };
        let turn = message.prompt_id.as_ref().map_or("", PromptId::as_str);
        let (task, turn) = (name::task_of(&self.scope.context, turn), Some(turn.into()));
        let is_asking = self.tools.is_asking();
        let scope = FrameScope::make_mut(&mut self.emit(at, when, body, out).scope);
        (scope.task, scope.turn) = (task, turn);
        if queued || !is_asking {
            scope.state = TaskState::Submitted;
        }
        if queued && self.queued.len() < QUEUE {
            self.queued.extend(message.prompt_id.clone());
        }
    }

    fn withdrawn(&mut self, prompt: &PromptId, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        self.queued.remove(prompt);
        let (task, own) = (name::task_of(&self.scope.context, prompt.as_str()), name::is_own_task(prompt.as_str()));
        let frame = self.emit(cursor, at, Body::State(more("withdrawnPromptId", prompt.as_str().into())), out);
        frame.ends = Some(Ends::Turn);
        let scope = FrameScope::make_mut(&mut frame.scope);
        (scope.task, scope.turn) = (task, Some(prompt.as_str().into()));
        if own {
            scope.state = TaskState::Canceled;
        }
    }

    fn said(&mut self, chunk: &TextChunk, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let message_id = self.message_id(chunk.message_id.as_ref(), cursor);
        let by_user = chunk.role == Some(Role::User);
        let parent = chunk.parent_tool_id.as_ref().map(|tool| tool.as_str().into());
        self.emit(cursor, at, Body::Text { message_id, text: chunk.content.clone(), by_user, parent }, out);
    }

    /// A thought is shown when it is complete.
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

    /// Shows the pending thought.
    fn think(&mut self, out: &mut Vec<Frame>) {
        let Some(thought) = self.thought.take().filter(|thought| !thought.text.trim().is_empty()) else { return };
        // For the agent, the following text may belong to the same message; for clients it is another one.
        let message_id = self.message_id(None, thought.cursor);
        let parent = thought.parent.map(|tool| tool.as_str().into());
        self.emit(thought.cursor, thought.at, Body::Thought { message_id, text: thought.text, parent }, out);
    }

    /// Shows the pending calls, except the one that is asked about now, which is shown with its question.
    fn show_calls(&mut self, asked: Option<&ToolId>, out: &mut Vec<Frame>) {
        for (cursor, at, view) in self.tools.take_pending(asked) {
            self.emit(cursor, at, Body::Tool(view), out);
        }
    }

    fn answered(&mut self) {
        if self.scope.state == TaskState::InputRequired && !self.tools.is_asking() {
            self.scope_mut().state = TaskState::Working;
        }
    }

    fn turn_over(&mut self, end: &TurnEnd, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        // A turn with another cause does not answer the prompt.
        if end.origin.is_some() && self.in_flight.is_some() {
            return;
        }
        self.close_questions(cursor, at, out);
        self.scope_mut().state = end_state(end.status);
        let mut change = StateChange { error: end.error.clone(), usage: end.usage, ..StateChange::default() };
        change.message = end.error.clone();
        change.more.extend(end.cost_usd.map(|cost| ("costUsd", json!(cost))));
        change.more.extend(end.structured_output.clone().map(|output| (STRUCTURED_OUTPUT, output)));
        self.emit(cursor, at, Body::State(change), out).ends = Some(Ends::Turn);
        self.in_flight = None;
        self.scope_mut().turn = None;
    }

    fn ended(&mut self, end: &SessionEnd, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let Some(error) = &end.error else { return };
        self.close_questions(cursor, at, out);
        if !self.scope.state.is_terminal() {
            self.scope_mut().state = TaskState::Failed;
        }
        let change = StateChange { error: Some(error.clone()), ..StateChange::default() };
        self.emit(cursor, at, Body::State(change), out).ends = Some(Ends::Turn);
        self.in_flight = None;
        self.scope_mut().turn = None;
    }

    fn went_wrong(&mut self, error: &AgentError, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        let change = match error.severity {
            Severity::Error => StateChange { error: Some(error.message.clone()), ..StateChange::default() },
            // A warning ends nothing.
            Severity::Warning => more("warning", error.message.as_str().into()),
        };
        self.emit(cursor, at, Body::State(change), out);
    }

    /// Questions end with their turn.
    fn close_questions(&mut self, cursor: Cursor, at: Timestamp, out: &mut Vec<Frame>) {
        for view in self.tools.close_questions() {
            self.emit(cursor, at, Body::Tool(view), out);
        }
    }

    /// Enters the turn of a prompt, which may be a task of its own.
    fn enter(&mut self, prompt: &str) {
        self.has_own_tasks = name::is_own_task(prompt);
        let scope = self.scope_mut();
        scope.task = name::task_of(&scope.context, prompt);
        scope.turn = Some(prompt.into());
    }

    /// Enters a turn that the agent began. It has the agent's own id, and is no task.
    fn enter_unprompted(&mut self, turn: &str) {
        let scope = self.scope_mut();
        scope.task = name::lasting(&scope.context).into();
        scope.turn = Some(turn.into());
    }

    fn next_cursor(&self) -> Cursor {
        let part = if self.last.seq == self.seq { self.last.part.saturating_add(1) } else { 0 };
        Cursor::new(self.seq, part)
    }

    /// Scope of the next frames, for a change.
    fn scope_mut(&mut self) -> &mut FrameScope {
        FrameScope::make_mut(&mut self.scope)
    }

    fn message_id(&self, given: Option<&MessageId>, cursor: Cursor) -> MessageId {
        given.cloned().unwrap_or_else(|| format!("{}-{cursor}", self.scope.context).into())
    }

    fn emit<'a>(&mut self, cursor: Cursor, at: Timestamp, body: Body, out: &'a mut Vec<Frame>) -> &'a mut Frame {
        // A frame that was due earlier may have taken a later cursor.
        let next = Cursor::new(self.last.seq, self.last.part + 1);
        self.last = if cursor > self.last { cursor } else { next };
        let mut frame = Frame::new(self.last, at, self.scope.clone(), body);
        frame.question = self.tools.question_of(&frame.body);
        out.push(frame);
        let last = out.len() - 1;
        &mut out[last]
    }
}
