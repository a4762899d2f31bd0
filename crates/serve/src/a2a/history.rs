//! Messages of a task, read from the log of a live or a stored session.

use std::collections::HashSet;
use std::sync::Arc;

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Content, Map, Message, Role, Task, TaskState, TaskStatus};
use multitap_event::{Event, EventKind, SessionId, Timestamp, ToolId};
use multitap_hub::{Edge, Entry, Journal, JournalError, Part, Session};
use serde_json::Value;

use super::artifact::Artifacts;
use super::frame::{Body, Frame, ToolView};
use super::project::{Projector, RETRACTED, STRUCTURED_OUTPUT};
use super::{encode, name};

/// Default and maximum number of messages.
const MESSAGES: usize = 1000;
/// Maximum number of events to search for them.
const EVENTS: usize = 50_000;
/// And the maximum size of the log to read: clients get the rest of a long task by following it from its start.
const BYTES: usize = 4 * 1024 * 1024;
/// Size of a page.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 1024 * 1024;

/// How a client sees a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskView {
    pub(crate) spelling: Spelling,
    /// Most messages of the history.
    pub(crate) history: Option<u32>,
    /// Whether results are artifacts too.
    pub(crate) artifacts: bool,
}

/// A log to read.
#[derive(Debug, Clone)]
pub(crate) enum Log {
    Live(Session),
    Kept { journal: Arc<dyn Journal>, session: SessionId },
}

/// The part of a log that belongs to one task.
#[derive(Debug, Clone)]
pub(crate) struct TaskRange {
    pub(crate) log: Log,
    pub(crate) task: Arc<str>,
    /// Its first event, and its last; `None` while the task runs.
    pub(crate) first: u64,
    pub(crate) last: Option<u64>,
    /// Whether the task ended although the log stops within a turn: its process was killed.
    pub(crate) is_over: bool,
}

/// Messages of a task, and its last state.
#[derive(Debug, Default)]
pub(crate) struct TaskHistory {
    pub(crate) history: Vec<Message>,
    /// The agent's latest text or question, or the outcome of that question.
    latest: Option<Latest>,
    /// Calls with an open question, and the question as a message, oldest first.
    asking: Vec<(ToolId, Message)>,
    /// Its last state.
    pub(crate) end: Option<LastState>,
    artifacts: Artifacts,
}

#[derive(Debug)]
enum Latest {
    /// Index in the history: the message is not copied while it grows.
    Said(usize),
    Message {
        message: Box<Message>,
        /// The call that the agent asked about. Its later updates replace the question.
        call: Option<ToolId>,
    },
}

impl Latest {
    fn of(message: Message, call: Option<ToolId>) -> Self {
        Self::Message { message: Box::new(message), call }
    }

    fn message<'a>(&'a self, history: &'a [Message]) -> Option<&'a Message> {
        match self {
            Self::Said(place) => history.get(*place),
            Self::Message { message, .. } => Some(message.as_ref()),
        }
    }

    fn is_about(&self, id: &ToolId) -> bool {
        matches!(self, Self::Message { call: Some(call), .. } if call == id)
    }
}

/// A state of a task, and the event and time of its begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastState {
    pub(crate) state: TaskState,
    pub(crate) seq: u64,
    pub(crate) at: Timestamp,
}

/// The state of a task by its log, unless its record is newer. The record is written after the frames, so it may lag;
/// but the log of a killed process does not say that the task ended.
pub(crate) fn last_state(recorded: TaskState, end: Option<LastState>, is_live: bool) -> Option<LastState> {
    let runs = |end: &LastState| matches!(end.state, TaskState::Working | TaskState::InputRequired);
    end.filter(|end| is_live || !(recorded.is_terminal() && runs(end)))
}

impl Log {
    pub(super) fn session(&self) -> &SessionId {
        match self {
            Self::Live(session) => session.id(),
            Self::Kept { session, .. } => session,
        }
    }

    pub(super) async fn page(&self, part: Part) -> Result<Vec<Entry>, JournalError> {
        let page = match self {
            Self::Live(session) => session.page(part).await?,
            Self::Kept { journal, session } => journal.page(session.clone(), part).await?,
        };
        Ok(page.entries)
    }
}

impl TaskRange {
    /// The last messages.
    pub(crate) async fn read(&self, messages: Option<u32>, spelling: Spelling) -> Result<TaskHistory, JournalError> {
        let limit = messages.map_or(MESSAGES, |limit| usize::try_from(limit).unwrap_or(MESSAGES).min(MESSAGES));
        let entries = self.entries(limit.max(1)).await?;
        let events = entries.iter().filter_map(Entry::event);
        let mut told = TaskHistory::of(self.log.session().as_str(), events, &self.task, spelling, self.is_over);
        told.keep_last(limit);
        Ok(told)
    }

    /// Enough events for this many messages: reads back as many prompts.
    async fn entries(&self, messages: usize) -> Result<Vec<Entry>, JournalError> {
        let mut before = self.last.map_or(u64::MAX, |last| last.saturating_add(1));
        let mut pages: Vec<Vec<Entry>> = Vec::new();
        let (mut prompts, mut events, mut bytes) = (0, 0, 0);
        while prompts < messages && events < EVENTS && bytes < BYTES && before > self.first {
            let part = Part { edge: Edge::Before(before), limit: PAGE, bytes: PAGE_BYTES };
            let mut page = self.log.page(part).await?;
            page.retain(|entry| entry.seq() >= self.first);
            let Some(first) = page.first() else { break };
            before = first.seq();
            events += page.len();
            bytes += page.iter().map(|entry| entry.json().len()).sum::<usize>();
            prompts += page.iter().filter(|entry| is_prompt(entry)).count();
            pages.push(page);
        }
        Ok(pages.into_iter().rev().flatten().collect())
    }
}

fn is_prompt(entry: &Entry) -> bool {
    entry
        .event()
        .is_some_and(|event| matches!(&event.kind, EventKind::UserMessage(message) if message.prompt_id.is_some()))
}

impl TaskHistory {
    /// Reads the task from these events of its session. If it `is_over`, calls that the log leaves open are closed.
    pub(super) fn of<'a>(
        session: &str,
        events: impl Iterator<Item = &'a Event>,
        task: &str,
        spelling: Spelling,
        is_over: bool,
    ) -> Self {
        let mut projector = Projector::new(session);
        let mut frames = Vec::new();
        for event in events {
            projector.apply(event, &mut frames);
        }
        if is_over {
            projector.abandon(&mut frames);
        }
        let mut history = Self::default();
        for frame in frames.iter().filter(|frame| *frame.scope.task == *task) {
            history.add(frame, spelling);
        }
        history
    }

    /// Drops all messages but the last ones.
    fn keep_last(&mut self, limit: usize) {
        let latest = self.latest.take().and_then(|latest| latest.message(&self.history).cloned());
        self.latest = latest.map(|message| Latest::of(message, None));
        let surplus = self.history.len().saturating_sub(limit);
        self.history.drain(..surplus);
    }

    pub(super) fn into_task(
        self,
        id: &str,
        session: &SessionId,
        state: TaskState,
        since: Option<Timestamp>,
        view: TaskView,
    ) -> Task {
        let latest = self.latest.and_then(|latest| latest.message(&self.history).cloned());
        let artifacts = match state {
            _ if !view.artifacts => Vec::new(),
            TaskState::Completed => self.artifacts.finish(latest.as_ref()),
            _ => self.artifacts.finish(None),
        };
        let message = match state {
            TaskState::InputRequired => self.asking.into_iter().next_back().map(|(_, question)| question).or(latest),
            state if state.is_terminal() || state.is_interrupted() => latest,
            _ => None,
        };
        Task {
            id: id.to_owned(),
            context_id: session.to_string(),
            status: TaskStatus {
                state: encode::state(state, view.spelling),
                message,
                timestamp: since.map(|since| since.to_string()),
            },
            history: self.history,
            artifacts,
            metadata: Map::new(),
        }
    }

    fn add(&mut self, frame: &Frame, spelling: Spelling) {
        // A queued prompt does not change a lasting task.
        let waits = matches!(frame.body, Body::Prompted { queued: true, .. }) && !name::is_own_task(&frame.scope.task);
        if !waits && self.end.is_none_or(|end| end.state != frame.scope.state) {
            if self.end.is_some_and(|end| end.state.is_terminal()) {
                // Another turn begins.
                self.latest = None;
                self.artifacts.clear();
            }
            self.end = Some(LastState { state: frame.scope.state, seq: frame.cursor.seq, at: frame.at });
        }
        if let Body::State(change) = &frame.body {
            let output = change.more.iter().find(|(key, _)| *key == STRUCTURED_OUTPUT);
            output.iter().for_each(|(_, output)| self.artifacts.output(output));
        }
        match &frame.body {
            Body::Text { text, .. } => {
                let Some(message) = encode::message(frame, spelling) else { return };
                self.say(message, text);
            }
            Body::Prompted { .. } => {
                self.history.extend(encode::message(frame, spelling));
                self.latest = self.latest.take().filter(|_| waits);
                if !waits {
                    self.artifacts.clear();
                }
            }
            Body::Said(said) => {
                let Some(message) = encode::message(frame, spelling) else { return };
                self.say(message, &said.content);
            }
            Body::Tool(tool) => self.called(frame, tool, spelling),
            Body::State(change) if change.more.iter().any(|(key, _)| *key == RETRACTED) => self.discard(&change.more),
            Body::State(change) if change.message.is_some() => {
                self.latest = encode::message(frame, spelling).map(|message| Latest::of(message, None));
            }
            Body::State(_) | Body::Thought { .. } => {}
        }
    }

    fn called(&mut self, frame: &Frame, tool: &ToolView, spelling: Spelling) {
        let id = &tool.call.tool_id;
        let was_asked = self.latest.as_ref().is_some_and(|latest| latest.is_about(id));
        self.asking.retain(|(asked, _)| asked != id);
        if tool.asked.is_none() && !was_asked && !tool.status.is_over() {
            return;
        }
        let Some(message) = encode::message(frame, spelling) else { return };
        if tool.asked.is_some() {
            self.asking.push((id.clone(), message.clone()));
        }
        if tool.status.is_over() {
            self.history.push(message.clone());
            self.artifacts.add(tool);
        }
        if tool.asked.is_some() || was_asked {
            self.latest = Some(Latest::of(message, Some(id.clone())));
        }
    }

    /// Drops retracted messages.
    fn discard(&mut self, told: &[(&'static str, Value)]) {
        let ids = told.iter().filter(|(key, _)| *key == RETRACTED).filter_map(|(_, ids)| ids.as_array()).flatten();
        let ids: HashSet<&str> = ids.filter_map(Value::as_str).collect();
        let is_retracted = |message: &Message| ids.contains(message.message_id.as_str());
        self.latest = match self.latest.take() {
            Some(latest) if latest.message(&self.history).is_none_or(is_retracted) => None,
            Some(Latest::Said(place)) => {
                let before = self.history.iter().take(place);
                Some(Latest::Said(before.filter(|message| !is_retracted(message)).count()))
            }
            other => other,
        };
        self.history.retain(|message| !is_retracted(message));
    }

    /// Appends a piece to its message.
    fn say(&mut self, message: Message, text: &str) {
        let is_same = |last: &&mut Message| last.message_id == message.message_id && last.role == message.role;
        let goes_on = self.history.last_mut().filter(is_same);
        match goes_on.and_then(|last| last.parts.last_mut()).map(|part| &mut part.content) {
            Some(Content::Text(before)) => before.push_str(text),
            _ => self.history.push(message),
        }
        if self.history.last().is_some_and(|last| last.role == Role::Agent) {
            self.latest = Some(Latest::Said(self.history.len() - 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{Draft, TextChunk, TextRetraction};

    use super::*;

    fn piece(id: &str, content: &str) -> EventKind {
        EventKind::TextChunk(TextChunk { message_id: Some(id.into()), ..TextChunk::piece(content) })
    }

    fn frames(kinds: impl IntoIterator<Item = EventKind>) -> Vec<Frame> {
        let mut projector = Projector::new("session");
        let mut frames = Vec::new();
        for (seq, kind) in (1..).zip(kinds) {
            projector.apply(&Draft::new(Timestamp::from_millis(0), kind).stamp("session".into(), seq), &mut frames);
        }
        frames
    }

    /// The message was once copied for each of its pieces: 800 GB here.
    #[test]
    fn a_long_answer_in_many_pieces_is_read_in_linear_time() {
        const PIECES: usize = 200_000;
        let pieces = frames((0..PIECES).map(|_| piece("a", &"x".repeat(40))));
        let mut told = TaskHistory::default();
        pieces.iter().for_each(|frame| told.add(frame, Spelling::Specified));
        told.keep_last(0);
        let view = TaskView { spelling: Spelling::Specified, history: None, artifacts: false };
        let task = told.into_task("task", &"session".into(), TaskState::Completed, None, view);
        let Content::Text(text) = &task.status.message.unwrap().parts[0].content else { panic!("text") };
        assert_eq!((text.len(), task.history.len()), (PIECES * 40, 0));
    }

    #[test]
    fn retracted_text_is_not_in_the_history() {
        let retracted = EventKind::TextRetracted(TextRetraction::interrupted(vec!["b".into()]));
        let frames = frames([piece("a", "first"), piece("b", "sec"), retracted, piece("c", "second")]);
        let mut told = TaskHistory::default();
        frames.iter().for_each(|frame| told.add(frame, Spelling::Specified));
        let ids: Vec<&str> = told.history.iter().map(|message| message.message_id.as_str()).collect();
        let latest = told.latest.as_ref().and_then(|latest| latest.message(&told.history)).unwrap();
        assert_eq!((ids, latest.message_id.as_str()), (vec!["a", "c"], "c"));
    }
}
