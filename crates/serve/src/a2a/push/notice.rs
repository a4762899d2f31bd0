//! Selects what a webhook is told: changes of the task's state, questions, errors, and whole messages of the agent. Not
//! the pieces of a message, thoughts, live output, or the progress of tool calls. Pure.

#![warn(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_event::MessageId;
use multitap_hub::{PushConfigRecord, PushKey};

use super::super::cursor::Cursor;
use super::super::frame::{Body, Ends, Frame};
use super::super::name;
use super::body::{MOST_BYTES, PushForm};

/// Something to tell a webhook.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) frame: Arc<Frame>,
    /// The state is that of the notice before it.
    pub(super) is_same_state: bool,
    /// Its text is not complete.
    pub(super) is_cut: bool,
    /// The task cannot change any more.
    pub(super) last: bool,
}

/// The way of one config through the frames of its session.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) key: PushKey,
    pub(super) task: String,
    pub(super) form: PushForm,
    /// First event of the task.
    pub(super) first: u64,
    /// The last frame that was read.
    pub(super) seen: Cursor,
    /// The state in the last notice.
    pub(super) state: Option<TaskState>,
    /// Its task is over: nothing is told any more.
    is_over: bool,
    message: Option<OpenMessage>,
}

/// A message of which more may come.
#[derive(Debug)]
struct OpenMessage {
    id: MessageId,
    /// Its latest piece.
    frame: Arc<Frame>,
    text: String,
    is_cut: bool,
}

impl Watcher {
    /// Begins after that frame; the task begins with event `first`.
    pub(super) fn new(config: &PushConfigRecord, first: u64, seen: Cursor) -> Self {
        Self {
            key: config.key,
            task: config.task.clone(),
            form: PushForm::read(&config.form),
            first,
            seen,
            state: config.state.as_deref().and_then(TaskState::of_word),
            is_over: false,
            message: None,
        }
    }

    /// The frame up to which everything was passed on.
    pub(super) fn passed(&self) -> Option<Cursor> {
        self.message.is_none().then_some(self.seen)
    }

    /// Reads the next frame of the session.
    pub(super) fn take(&mut self, frame: &Arc<Frame>, out: &mut Vec<Notice>) {
        if frame.cursor <= self.seen || self.is_over {
            return;
        }
        self.seen = frame.cursor;
        if *frame.scope.task != self.task {
            return;
        }
        match &frame.body {
            Body::Text { message_id, text, by_user: false, parent: None } => {
                return self.collect(message_id, text, frame, out);
            }
            // A subagent's text and what users say are not the agent's messages.
            Body::Text { .. } | Body::Said(_) | Body::Thought { .. } => return,
            // A prompt that waits does not change a task that runs.
            Body::Prompted { queued: true, .. } if !name::is_own_task(&self.task) => return,
            Body::Prompted { .. } | Body::Tool(_) | Body::State(_) => {}
        }
        let is_news = match &frame.body {
            Body::Prompted { .. } => true,
            Body::Tool(tool) => tool.asked.is_some(),
            // When a session ends with its turn, the failure is in two frames.
            Body::State(_) if self.state == Some(TaskState::Failed) => false,
            Body::State(change) => change.error.is_some() || change.message.is_some(),
            Body::Text { .. } | Body::Said(_) | Body::Thought { .. } => false,
        };
        self.close_message(out);
        let state = frame.scope.state;
        let is_same_state = self.state.replace(state) == Some(state);
        if is_same_state && !is_news {
            return;
        }
        let last = state.is_terminal() && frame.ends == Some(Ends::Turn) && name::is_own_task(&self.task);
        self.is_over = last;
        out.push(Notice { frame: frame.clone(), is_same_state, is_cut: false, last });
    }

    /// Adds a piece to its message.
    fn collect(&mut self, id: &MessageId, text: &str, frame: &Arc<Frame>, out: &mut Vec<Notice>) {
        // Pieces without an id got one of their own each.
        let is_unnamed = |id: &MessageId| id.as_str().starts_with(&*frame.scope.context);
        let goes_on = |message: &OpenMessage| message.id == *id || is_unnamed(&message.id) && is_unnamed(id);
        if self.message.as_ref().is_some_and(|message| !goes_on(message)) {
            self.close_message(out);
        }
        let new = || OpenMessage { id: id.clone(), frame: frame.clone(), text: String::new(), is_cut: false };
        let message = self.message.get_or_insert_with(new);
        message.frame = frame.clone();
        message.is_cut |= message.text.len() + text.len() > MOST_BYTES;
        if !message.is_cut {
            message.text.push_str(text);
        }
    }

    /// Nothing follows that would complete its message.
    pub(super) fn close_message(&mut self, out: &mut Vec<Notice>) {
        let Some(OpenMessage { id, frame, text, is_cut }) = self.message.take() else { return };
        if text.trim().is_empty() && !is_cut {
            return;
        }
        let is_same_state = self.state.replace(frame.scope.state) == Some(frame.scope.state);
        let body = Body::Text { message_id: id, text, by_user: false, parent: None };
        let frame = Arc::new(Frame::new(frame.cursor, frame.at, frame.scope.clone(), body));
        out.push(Notice { frame, is_same_state, is_cut, last: false });
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{
        AgentError, AgentErrorKind, Draft, EventKind, PromptId, SessionEnd, SessionEndReason, TextChunk, Timestamp,
        ToolKind, ToolStarted, TurnEnd, TurnStatus, UserMessage,
    };
    use multitap_testkit::agent::{asked, turn_started};
    use multitap_testkit::script;

    use super::super::super::project::Projector;
    use super::*;

    fn config(task: &str, state: Option<&str>) -> PushConfigRecord {
        PushConfigRecord {
            key: PushKey(1),
            task: task.to_owned(),
            id: "p".to_owned(),
            session: "s".into(),
            client: "role:owner".to_owned(),
            url: "https://hooks.invalid/".to_owned(),
            secrets: None,
            form: "1.0".to_owned(),
            after: multitap_hub::PushPosition::default(),
            state: state.map(str::to_owned),
            finished: false,
        }
    }

    fn frames(kinds: Vec<EventKind>) -> Vec<Arc<Frame>> {
        let (mut projector, mut frames) = (Projector::new("s"), Vec::new());
        for (seq, kind) in (1..).zip(kinds) {
            projector.apply(&Draft::new(Timestamp::from_millis(0), kind).stamp("s".into(), seq), &mut frames);
        }
        frames.into_iter().map(Arc::new).collect()
    }

    fn told(watcher: &mut Watcher, frames: &[Arc<Frame>]) -> Vec<String> {
        let mut notices = Vec::new();
        frames.iter().for_each(|frame| watcher.take(frame, &mut notices));
        let word = |notice: &Notice| {
            let state = notice.frame.scope.state.word();
            let last = if notice.last { " last" } else { "" };
            match &notice.frame.body {
                Body::Text { text, .. } => format!("{state} \"{text}\"{last}"),
                Body::Tool(_) => format!("{state} tool{last}"),
                Body::Prompted { .. } => format!("{state} prompt{last}"),
                Body::Said(_) | Body::State(_) | Body::Thought { .. } => format!("{state}{last}"),
            }
        };
        notices.iter().map(word).collect()
    }

    fn prompt(id: &str) -> EventKind {
        EventKind::UserMessage(UserMessage {
            prompt_id: Some(PromptId::from(id)),
            content: "go".to_owned(),
            ..UserMessage::default()
        })
    }

    fn piece(id: Option<&str>, text: &str) -> EventKind {
        EventKind::TextChunk(TextChunk { message_id: id.map(Into::into), ..TextChunk::piece(text) })
    }

    fn ended(status: TurnStatus) -> EventKind {
        EventKind::TurnCompleted(TurnEnd::of(status))
    }

    fn call() -> EventKind {
        EventKind::ToolStarted(ToolStarted {
            tool_id: "t".into(),
            tool_name: "shell".to_owned(),
            tool_kind: ToolKind::Shell,
            title: None,
            arguments: serde_json::Map::new(),
            server: None,
            parent_tool_id: None,
        })
    }

    fn all(task: &str, kinds: Vec<EventKind>) -> Vec<String> {
        told(&mut Watcher::new(&config(task, None), 1, Cursor::default()), &frames(kinds))
    }

    #[test]
    fn pieces_come_as_messages_and_tool_calls_not_at_all() {
        let kinds = vec![
            prompt("p"),
            turn_started(),
            piece(Some("a"), "one "),
            piece(Some("a"), "message"),
            piece(Some("b"), "another"),
            call(),
            piece(None, "no "),
            piece(None, "name"),
            ended(TurnStatus::Completed),
        ];
        let expected = [
            "submitted prompt",
            "working",
            "working \"one message\"",
            "working \"another\"",
            "working \"no name\"",
            "completed",
        ];
        assert_eq!(all("task-s", kinds), expected);
    }

    #[test]
    fn questions_and_errors_are_told() {
        let error = AgentError::new(AgentErrorKind::Unknown, "oh no");
        let kinds = vec![turn_started(), asked("q"), EventKind::Error(error), ended(TurnStatus::Failed)];
        assert_eq!(all("task-s", kinds), ["working", "input-required tool", "input-required", "failed"]);
    }

    #[test]
    fn a_task_of_its_own_ends_with_its_turn_and_hears_nothing_of_others() {
        let kinds = vec![
            prompt("turn-1"),
            turn_started(),
            ended(TurnStatus::Cancelled),
            prompt("turn-2"),
            turn_started(),
            ended(TurnStatus::Completed),
        ];
        assert_eq!(all("turn-1", kinds.clone()), ["submitted prompt", "working", "canceled last"]);
        assert_eq!(all("turn-2", kinds), ["submitted prompt", "working", "completed last"]);
    }

    /// The next process writes so at the end of a log whose process was killed.
    #[test]
    fn a_failure_is_told_once() {
        let failed =
            EventKind::TurnCompleted(TurnEnd { error: Some("gone".to_owned()), ..TurnEnd::of(TurnStatus::Failed) });
        let end = SessionEnd { error: Some("gone".to_owned()), ..SessionEnd::of(SessionEndReason::Failed) };
        for (prompted, expected) in [("turn-1", "failed last"), ("p", "failed")] {
            let kinds = vec![prompt(prompted), turn_started(), failed.clone(), EventKind::SessionEnded(end.clone())];
            let task = name::task_of("s", prompted);
            assert_eq!(all(&task, kinds), ["submitted prompt", "working", expected]);
        }
    }

    /// Wherever an earlier process stopped, the next one tells the rest, and nothing twice.
    #[test]
    fn what_was_told_is_not_told_again_after_a_restart() {
        for name in script::names().unwrap() {
            let events: Vec<multitap_event::Event> = script::events(&name).unwrap();
            let session = events[0].session_id.to_string();
            let (mut projector, mut made) = (Projector::new(&session), Vec::new());
            events.iter().for_each(|event| projector.apply(event, &mut made));
            let frames: Vec<Arc<Frame>> = made.into_iter().map(Arc::new).collect();
            let task = frames[0].scope.task.to_string();
            let cursors = |watcher: &mut Watcher| {
                let mut notices = Vec::new();
                frames.iter().for_each(|frame| watcher.take(frame, &mut notices));
                notices.iter().map(|notice| (notice.frame.cursor, notice.frame.scope.state)).collect::<Vec<_>>()
            };
            let whole = cursors(&mut Watcher::new(&config(&task, None), 1, Cursor::default()));
            for (stored, (cursor, state)) in whole.iter().enumerate() {
                let rest = cursors(&mut Watcher::new(&config(&task, Some(state.word())), 1, *cursor));
                assert_eq!(rest, whole[stored + 1..], "{name} after {cursor}");
            }
        }
    }

    /// A message is bounded, however much an agent says.
    #[test]
    fn a_message_that_is_too_long_is_not_collected() {
        let text = "x".repeat(10_000);
        let kinds = (0..1000).map(|_| piece(Some("a"), &text)).chain([ended(TurnStatus::Completed)]).collect();
        let mut watcher = Watcher::new(&config("task-s", None), 1, Cursor::default());
        let mut notices = Vec::new();
        for frame in &frames(kinds) {
            watcher.take(frame, &mut notices);
            assert!(watcher.message.as_ref().is_none_or(|message| message.text.len() <= MOST_BYTES));
        }
        assert!(notices[0].is_cut);
    }
}
