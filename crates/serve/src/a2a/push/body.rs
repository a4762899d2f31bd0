//! The body of a notification: in 0.3 the task, in 1.0 an item of its stream.

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, Map, Task, TaskStatus, Update};
use multitap_event::SessionId;
use multitap_hub::JournalError;
use serde_json::Value;

use super::super::encode::{self, OURS};
use super::super::frame::{Body, Form, Frame, StateChange};
use super::super::history::{Log, TaskRange, TaskView};

/// Most bytes of a notification. A larger one is sent without its content, and says so.
pub(super) const MOST_BYTES: usize = 256 * 1024;
/// Most messages of a task's history.
const HISTORY: u32 = 10;
/// Under our own key: the content is too large; the client has to get the task.
const TRUNCATED: &str = "truncated";

/// How the notifications of a config are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PushForm {
    pub(super) dialect: Dialect,
    pub(super) spelling: Spelling,
    /// Whether results are artifacts too.
    pub(super) artifacts: bool,
}

/// After the dialect in a stored form.
const CODER: &str = " coderAgent";
const ARTIFACTS: &str = " artifacts";

impl PushForm {
    /// As it is stored with a config.
    pub(super) fn write(self) -> String {
        let spelling = if self.spelling == Spelling::Coder { CODER } else { "" };
        let artifacts = if self.artifacts { ARTIFACTS } else { "" };
        format!("{}{spelling}{artifacts}", self.dialect.version())
    }

    pub(super) fn read(stored: &str) -> Self {
        Self {
            dialect: if stored.starts_with(Dialect::V0_3.version()) { Dialect::V0_3 } else { Dialect::V1_0 },
            spelling: if stored.contains(CODER) { Spelling::Coder } else { Spelling::Specified },
            artifacts: stored.ends_with(ARTIFACTS),
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self.dialect {
            Dialect::V0_3 => "application/json",
            Dialect::V1_0 => "application/a2a+json",
        }
    }

    /// How frames are written, as on JSON-RPC.
    fn frame(self) -> Form {
        Form::of(self.dialect, self.spelling)
    }
}

/// A frame as an item of a stream of 1.0.
pub(super) fn of_frame(frame: &Frame, form: PushForm, is_cut: bool) -> String {
    let form = form.frame();
    if !is_cut && frame.json(form).len() <= MOST_BYTES {
        return frame.json(form).to_owned();
    }
    let more = StateChange { more: vec![(TRUNCATED, true.into())], ..StateChange::default() };
    let mut bare = Frame::new(frame.cursor, frame.at, frame.scope.clone(), Body::State(more));
    bare.question.clone_from(&frame.question);
    bare.json(form).to_owned()
}

/// The task as it was at that frame.
pub(super) async fn of_task(log: &Log, frame: &Frame, first: u64, form: PushForm) -> Result<String, JournalError> {
    let (task, last) = (frame.scope.task.clone(), Some(frame.cursor.seq));
    let range = TaskRange { log: log.clone(), task, first, last, is_over: false };
    let told = range.read(Some(HISTORY), form.spelling).await?;
    let session = SessionId::from(&*frame.scope.context);
    let view = TaskView { spelling: form.spelling, history: Some(HISTORY), artifacts: form.artifacts };
    let task = told.into_task(&frame.scope.task, &session, frame.scope.state, Some(frame.at), view);
    Ok(task_body(task, frame.cursor.to_string(), form))
}

/// Only the state of a task.
pub(super) fn bare_task(frame: &Frame, form: PushForm) -> String {
    let status = TaskStatus {
        state: encode::state(frame.scope.state, form.spelling),
        message: None,
        timestamp: Some(frame.at.to_string()),
    };
    let (id, context_id) = (frame.scope.task.to_string(), frame.scope.context.to_string());
    task_body(Task { id, context_id, status, ..Task::default() }, frame.cursor.to_string(), form)
}

/// A task as a body, without its oldest messages if it would be too large.
pub(super) fn task_body(mut task: Task, cursor: String, form: PushForm) -> String {
    let mut ours = Map::from_iter([("cursor".to_owned(), Value::from(cursor))]);
    task.metadata.insert(OURS.to_owned(), ours.clone().into());
    let mut json = write_task(&task, form);
    while json.len() > MOST_BYTES && shrink(&mut task) {
        ours.insert(TRUNCATED.to_owned(), true.into());
        task.metadata.insert(OURS.to_owned(), ours.clone().into());
        json = write_task(&task, form);
    }
    json
}

fn write_task(task: &Task, form: PushForm) -> String {
    match form.dialect {
        Dialect::V0_3 => form.frame().encoding.write_task(task),
        Dialect::V1_0 => form.frame().encoding.write_update(&Update::Task(task.clone())),
    }
}

/// Drops the older half of the history; then the artifacts, and then the message of the status. False: all are gone.
fn shrink(task: &mut Task) -> bool {
    let half = task.history.len().div_ceil(2);
    if half > 0 {
        task.history.drain(..half);
    } else if !task.artifacts.is_empty() {
        task.artifacts.clear();
    } else {
        return task.status.message.take().is_some();
    }
    true
}

#[cfg(test)]
mod tests {
    use multitap_a2a::{Message, Part, TaskState, TaskStatus};

    use super::*;

    const FORM: PushForm = PushForm { dialect: Dialect::V0_3, spelling: Spelling::Specified, artifacts: true };

    fn message(bytes: usize) -> Message {
        Message { parts: vec![Part::text("x".repeat(bytes))], ..Message::default() }
    }

    fn body(history: Vec<Message>, status: Message) -> Value {
        let status = TaskStatus { state: TaskState::Completed, message: Some(status), timestamp: None };
        let task = Task { id: "t".to_owned(), context_id: "c".to_owned(), history, status, ..Task::default() };
        let body = task_body(task, "7.1".to_owned(), FORM);
        assert!(body.len() <= MOST_BYTES);
        serde_json::from_str(&body).unwrap()
    }

    #[test]
    fn a_task_that_is_too_large_loses_its_oldest_messages_first() {
        let small = body(vec![message(1)], message(1));
        assert_eq!(small["metadata"][OURS], serde_json::json!({ "cursor": "7.1" }));
        let long = body((0..8).map(|_| message(60_000)).collect(), message(9));
        assert_eq!((long["history"].as_array().unwrap().len(), &long["metadata"][OURS][TRUNCATED]), (4, &true.into()));
        assert!(long["status"]["message"].is_object());
        let huge = body(vec![message(9)], message(MOST_BYTES));
        assert_eq!((huge.get("history"), huge["status"].get("message")), (None, None));
        assert_eq!((&huge["status"]["state"], &huge["metadata"][OURS][TRUNCATED]), (&"completed".into(), &true.into()));
    }

    #[test]
    fn forms_are_read_as_they_are_written() {
        for dialect in [Dialect::V0_3, Dialect::V1_0] {
            for spelling in [Spelling::Specified, Spelling::Coder] {
                for artifacts in [false, true] {
                    let form = PushForm { dialect, spelling, artifacts };
                    assert_eq!(PushForm::read(&form.write()), form);
                }
            }
        }
    }
}
