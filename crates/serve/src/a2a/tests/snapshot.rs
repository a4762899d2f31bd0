//! A task as it is asked for is what a client makes of the frames that it saw until then.

use std::collections::BTreeMap;

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Content, Message, Task, TaskState, Update, devtool};
use multitap_event::Event;
use multitap_testkit::script;
use proptest::prelude::*;
use serde_json::Value;

use super::FORMS;
use super::property::logs;
use crate::a2a::encode::{self, OURS};
use crate::a2a::frame::{Form, Frame};
use crate::a2a::history::{TaskHistory, TaskView, last_state};
use crate::a2a::name;
use crate::a2a::project::Projector;

/// What a client knows that folds the frames of one task, each as it comes.
#[derive(Debug, Default)]
struct Folded {
    state: TaskState,
    /// When the task came into its state.
    since: Option<String>,
    history: Vec<Message>,
    /// The calls that wait for an answer, oldest question first.
    asking: Vec<(String, Value)>,
    /// Why the last turn ended as it did, where the agent said so.
    why: Option<Message>,
    /// The last of each call.
    calls: BTreeMap<String, Value>,
}

/// The tool call that a message carries, and its id.
fn call(message: &Message) -> Option<(String, &Value)> {
    let Content::Data(data) = &message.parts.first()?.content else { return None };
    let id = data.get("tool_call_id").or_else(|| data.pointer("/request/callId"))?;
    Some((id.as_str()?.to_owned(), data))
}

fn is_text(message: &Message) -> bool {
    matches!(message.parts.last(), Some(part) if matches!(part.content, Content::Text(_)))
}

fn asks(call: &Value) -> bool {
    call.get("confirmation_request").is_some() || call["status"] == "awaiting_approval"
}

fn is_over(call: &Value) -> bool {
    ["SUCCEEDED", "FAILED", "CANCELLED", "success", "error", "cancelled"].iter().any(|word| call["status"] == *word)
}

impl Folded {
    fn take(&mut self, update: Update, is_own: bool) {
        match update {
            Update::Task(task) => {
                let waits = task.metadata[OURS].get("queued").is_some();
                if !waits || is_own {
                    self.stands(task.status.state, task.status.timestamp);
                }
                self.history.extend(task.history);
            }
            Update::Status(update) => {
                self.stands(update.status.state, update.status.timestamp);
                if let Some(void) = update.metadata[OURS].get("discardedMessageIds") {
                    let void = void.as_array().unwrap();
                    self.history.retain(|message| !void.contains(&message.message_id.as_str().into()));
                }
                let is_state = update.metadata[devtool::URI]["kind"] == "STATE_CHANGE";
                let Some(message) = update.status.message else { return };
                match call(&message) {
                    Some((id, data)) => self.called(id, data.clone(), message.clone()),
                    // Why the turn ended as it did is no part of the conversation.
                    None if is_state => self.why = Some(message),
                    None => self.said(message),
                }
            }
            // Live output.
            Update::Artifact(_) | Update::Message(_) => {}
        }
    }

    fn stands(&mut self, state: TaskState, at: Option<String>) {
        if self.since.is_none() || self.state != state {
            self.why = None;
            (self.state, self.since) = (state, at);
        }
    }

    fn called(&mut self, id: String, data: Value, message: Message) {
        self.why = None;
        self.asking.retain(|(asked, _)| *asked != id);
        if asks(&data) {
            self.asking.push((id.clone(), data.clone()));
        }
        if is_over(&data) {
            self.history.push(message);
        }
        self.calls.insert(id, data);
    }

    fn said(&mut self, message: Message) {
        let is_thought = matches!(message.parts[0].content, Content::Data(_));
        if is_thought {
            return;
        }
        self.why = None;
        let is_same = |last: &&mut Message| last.message_id == message.message_id && last.role == message.role;
        match self.history.last_mut().filter(is_same) {
            Some(last) if is_text(last) => {
                let (Content::Text(before), Content::Text(more)) =
                    (&mut last.parts.last_mut().unwrap().content, &message.parts[0].content)
                else {
                    panic!("texts")
                };
                before.push_str(more);
            }
            _ => self.history.push(message),
        }
    }

    /// What is wrong with a task that was asked for now.
    fn differs(&self, task: &Task, spelling: Spelling) -> Result<(), String> {
        let status = &task.status;
        let same = |what: &str, is: &dyn std::fmt::Debug, seen: &dyn std::fmt::Debug| {
            let (is, seen) = (format!("{is:#?}"), format!("{seen:#?}"));
            if is == seen { Ok(()) } else { Err(format!("{what} is {is}\nbut its frames said {seen}")) }
        };
        same("the state", &status.state, &self.state)?;
        // To clients of the shipped spelling a turn that is over and one that asks look alike.
        if spelling == Spelling::Specified {
            same("its time", &status.timestamp, &self.since)?;
        }
        let shown = status.message.as_ref().and_then(call);
        let asked = shown.clone().filter(|(_, call)| asks(call));
        let waits = status.state == TaskState::InputRequired;
        let open = self.asking.last().filter(|_| waits).map(|(id, call)| (id.clone(), call));
        same("what is asked", &asked, &open)?;
        if let Some((id, call)) = shown {
            let seen = &self.calls[&id];
            same("the status of the call that is shown", &call["status"], &seen["status"])?;
            // In the shipped spelling live output is an artifact.
            if spelling == Spelling::Specified {
                same("the call that is shown", &call, &seen)?;
            }
        }
        if let Some(why) = self.why.as_ref().filter(|_| status.state == TaskState::Failed) {
            same("why it failed", &status.message.as_ref(), &Some(why))?;
        }
        same("the history", &task.history, &self.history)
    }
}

/// The tasks that a log has frames of.
fn tasks(frames: &[Frame]) -> Vec<String> {
    let mut tasks: Vec<String> = frames.iter().map(|frame| frame.scope.task.to_string()).collect();
    tasks.sort();
    tasks.dedup();
    tasks
}

fn fold(frames: &[Frame], task: &str, form: Form) -> Folded {
    let mut folded = Folded::default();
    for frame in frames.iter().filter(|frame| *frame.scope.task == *task) {
        let json: Value = serde_json::from_str(frame.json(form)).unwrap();
        folded.take(form.dialect().read_update(&json).unwrap(), name::is_own_task(task));
    }
    folded
}

/// Compares after each event what was streamed with what is asked for: of a live session, and from its log alone.
fn check(log: &[Event], form: Form) -> Result<(), String> {
    let session = &log[0].session_id;
    let mut projector = Projector::new(session.as_str());
    let mut frames = Vec::new();
    for (at, event) in log.iter().enumerate() {
        projector.apply(event, &mut frames);
        for id in tasks(&frames) {
            let folded = fold(&frames, &id, form);
            let told = TaskHistory::of(session.as_str(), log[..=at].iter(), &id, form.spelling, false);
            let Some(end) = told.end else { continue };
            if **projector.task() == *id && folded.since.is_some() {
                let (live, seen) = (encode::state(projector.state(), form.spelling), folded.state);
                if live != seen {
                    return Err(format!("after event {}: task {id} is {live:?}, its frames say {seen:?}", at + 1));
                }
            }
            let task = told.into_task(&id, session, end.state, Some(end.at), seen(form));
            folded.differs(&task, form.spelling).map_err(|why| format!("after event {}: {why}", at + 1))?;
        }
    }
    Ok(())
}

/// R000-2: at every point of every script, in every form.
#[test]
fn a_task_is_what_its_frames_said() {
    let mut wrong = Vec::new();
    for name in script::names().unwrap() {
        let log: Vec<Event> = script::events(&name).unwrap();
        for (title, form) in FORMS {
            wrong.extend(check(&log, form).err().map(|why| format!("{name}, {title}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{}: {}", wrong.len(), wrong.join("\n\n"));
}

/// A host that is killed leaves its log in the middle of a turn: nothing of it waits for an answer after that.
#[test]
fn a_question_of_a_killed_host_is_cancelled() {
    let mut asked = 0;
    for name in script::names().unwrap() {
        let log: Vec<Event> = script::events(&name).unwrap();
        for at in 1..=log.len() {
            for (title, form) in FORMS {
                let id = name::lasting(log[0].session_id.as_str());
                let told = TaskHistory::of(log[0].session_id.as_str(), log[..at].iter(), &id, form.spelling, true);
                asked += usize::from(told.end.is_some_and(|end| end.state == TaskState::InputRequired));
                let task = told.into_task(&id, &log[0].session_id, TaskState::Failed, None, seen(form));
                let shown = task.status.message.iter().chain(&task.history).filter_map(call);
                let open: Vec<_> = shown.filter(|(_, call)| !is_over(call)).collect();
                assert!(open.is_empty(), "{name}, {title}, {at}: {open:#?}");
            }
        }
    }
    assert!(asked > 10, "{asked}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// Whatever order the events come in.
    #[test]
    fn a_task_is_what_its_frames_said_in_any_order(log in logs(), form in 0..FORMS.len()) {
        let checked = check(&log, FORMS[form].1);
        prop_assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }

    /// A row is written after the frames are shown. A session may end in between, and then its tasks are read from rows
    /// and logs alone.
    #[test]
    fn a_task_that_ended_is_not_shown_as_its_late_row_has_it(log in logs()) {
        let frames = super::frames(&log);
        for (at, last) in frames.iter().enumerate() {
            let task = &*last.scope.task;
            let is_last = frames[at + 1..].iter().all(|frame| *frame.scope.task != *task);
            if !is_last || !last.scope.state.is_terminal() {
                continue;
            }
            let session = log[0].session_id.as_str();
            let told = TaskHistory::of(session, log.iter(), task, Spelling::Specified, false);
            for late in frames[..=at].iter().filter(|frame| *frame.scope.task == *task) {
                let recorded = late.scope.state;
                let shown = last_state(recorded, told.end, false).map_or(recorded, |end| end.state);
                prop_assert_eq!(shown, last.scope.state, "the row has {:?}", recorded);
            }
        }
    }
}

fn seen(form: Form) -> TaskView {
    TaskView { spelling: form.spelling, history: None, artifacts: false }
}
