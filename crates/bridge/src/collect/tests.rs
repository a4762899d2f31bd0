use multitap_a2a::{ArtifactUpdate, StatusUpdate};
use serde_json::json;

use super::*;

fn status(task: &str, state: TaskState, message: Option<Message>) -> Update {
    let status = TaskStatus { state, message, timestamp: None };
    let (task_id, context_id) = (task.to_owned(), "c".to_owned());
    Update::Status(StatusUpdate { task_id, context_id, status, ..StatusUpdate::default() })
}

fn said(text: &str, kind: Option<&str>) -> Option<Message> {
    let mut message = Message { role: Role::Agent, parts: vec![Part::text(text)], ..Message::default() };
    if let Some(kind) = kind {
        message.metadata.insert(devtool::URI.to_owned(), json!({ "kind": kind }));
    }
    Some(message)
}

fn artifact(id: &str, text: &str, append: bool) -> Update {
    let artifact = Artifact { artifact_id: id.to_owned(), parts: vec![Part::text(text)], ..Artifact::default() };
    let (task_id, context_id) = ("t".to_owned(), "c".to_owned());
    Update::Artifact(ArtifactUpdate { task_id, context_id, artifact, append, ..ArtifactUpdate::default() })
}

fn collect(updates: impl IntoIterator<Item = Update>) -> Collected {
    let mut collected = Collected::default();
    for update in updates {
        collected.apply(update);
    }
    collected
}

#[test]
fn pieces_of_text_and_artifacts_are_put_together() {
    let collected = collect([
        status("t", TaskState::Working, said("looking", None)),
        status("t", TaskState::Working, said("Hel", Some("TEXT_CONTENT"))),
        status("t", TaskState::Working, said("lo", Some("TEXT_CONTENT"))),
        artifact("a", "one", false),
        artifact("a", " two", true),
        artifact("b", "old", false),
        artifact("b", "new", false),
        status("t", TaskState::Completed, None),
    ]);
    assert_eq!((collected.text().as_str(), collected.state), ("Hello", TaskState::Completed));
    assert_eq!(collected.artifacts[0].parts, [Part::text("one two")]);
    assert_eq!(collected.artifacts[1].parts, [Part::text("new")]);
    assert_eq!(collected.context_id.as_deref(), Some("c"));
}

#[test]
fn a_question_of_a_tool_call_stays_until_it_is_settled() {
    let call = |confirmation: Value| {
        let mut call =
            json!({ "tool_call_id": "1", "status": "PENDING", "tool_name": "shell", "input_parameters": {} });
        if !confirmation.is_null() {
            call["confirmation_request"] = confirmation;
        }
        Some(Message { role: Role::Agent, parts: vec![Part::data(call)], ..Message::default() })
    };
    let asked =
        call(json!({ "options": [{ "id": "proceed_once", "name": "Yes" }], "execute_details": { "command": "ls" } }));
    let mut collected = collect([status("t", TaskState::Working, asked), status("t", TaskState::InputRequired, None)]);
    let Some(Question::Confirmation { tool_call_id, about, options, .. }) = collected.question() else {
        panic!("{:?}", collected.question())
    };
    assert_eq!((tool_call_id.as_str(), about.as_str(), options.len()), ("1", "run this command: ls", 1));
    collected.apply(status("t", TaskState::Working, call(Value::Null)));
    assert_eq!(collected.question(), None);
    collected.apply(status("t", TaskState::InputRequired, said("Which one?", None)));
    assert_eq!(collected.question(), Some(Question::Text("Which one?".to_owned())));
}

#[test]
fn what_cannot_be_shown_whole_cannot_be_approved() {
    let ask = |id: &str, command: String, option: &str| {
        let call = json!({ "tool_call_id": id, "status": "PENDING", "tool_name": "shell", "input_parameters": {},
            "confirmation_request": { "options": [{ "id": "yes", "name": option }],
                "execute_details": { "command": command } } });
        let message = Message { role: Role::Agent, parts: vec![Part::data(call)], ..Message::default() };
        let asks =
            [status("t", TaskState::Working, Some(message)), status("t", TaskState::InputRequired, said("ok?", None))];
        let mut collected = collect(asks);
        let held = format!("{collected:?}").len();
        assert!(held < LONGEST_DECISION + 4096, "{held} bytes are held");
        let question = collected.question().unwrap();
        let settled =
            json!({ "tool_call_id": id, "status": "EXECUTING", "tool_name": "shell", "input_parameters": {} });
        let message = Message { role: Role::Agent, parts: vec![Part::data(settled)], ..Message::default() };
        collected.apply(status("t", TaskState::InputRequired, Some(message)));
        assert!(matches!(collected.question(), Some(Question::Text(_))), "it is settled");
        question
    };
    let hidden = |pad: usize| format!("echo hi{}; rm -rf ~", " ".repeat(pad));
    let Question::Confirmation { about, .. } = ask("1", hidden(15_000), "Yes") else { panic!("it fits") };
    assert!(about.ends_with("; rm -rf ~"), "all of it is there");
    let long = "x".repeat(1024 * 1024);
    for (id, command, option) in
        [("1", hidden(40_000), "Yes"), (long.as_str(), hidden(1), "Yes"), ("1", hidden(1), long.as_str())]
    {
        assert!(matches!(ask(id, command, option), Question::Oversized { .. }));
    }
}

/// At a size at which a cost that grows with its square takes minutes.
#[test]
fn many_small_updates_after_much_text_cost_little() {
    let mut collected = Collected::default();
    for _ in 0..MOST_BYTES / 32 {
        collected.apply(status("t", TaskState::Working, said(&"x".repeat(31), Some("TEXT_CONTENT"))));
    }
    for _ in 0..50_000 {
        collected.apply(status("t", TaskState::InputRequired, None));
        collected.apply(Update::Task(Task { id: "t".to_owned(), ..Task::default() }));
    }
    assert_eq!(collected.text().len(), MOST_BYTES / 32 * 31);
}

#[test]
fn the_last_line_is_worth_telling() {
    let mut collected = Collected::default();
    let notes = ["one", " two", "\n", "thrée", "é\nfour\r\n", "", "\n", "five"].map(|piece| {
        collected.apply(status("t", TaskState::Working, said(piece, Some("TEXT_CONTENT"))));
        collected.note.clone().unwrap()
    });
    assert_eq!(notes, ["one", "one two", "one two", "thrée", "four", "four", "", "five"]);
}

#[test]
fn updates_of_another_task_do_not_count() {
    let collected = collect([
        status("t", TaskState::Working, None),
        status("other", TaskState::Completed, said("wrong", None)),
        Update::Task(Task { id: "other".to_owned(), ..Task::default() }),
    ]);
    assert_eq!((collected.task_id.as_deref(), collected.state), (Some("t"), TaskState::Working));
    assert_eq!(collected.text(), "");
}

#[test]
fn an_answer_in_the_history_is_found() {
    let history =
        vec![said("the answer", None).unwrap(), Message { parts: vec![Part::text("mine")], ..Message::default() }];
    let status = TaskStatus { state: TaskState::Completed, ..TaskStatus::default() };
    let collected = collect([Update::Task(Task { id: "t".to_owned(), status, history, ..Task::default() })]);
    assert_eq!(collected.text(), "the answer");
}

#[test]
fn what_an_agent_sends_is_bounded() {
    let piece = "x".repeat(1024 * 1024);
    let mut collected = Collected::default();
    for number in 0..50 {
        collected.apply(artifact("big", &piece, true));
        collected.apply(artifact(&format!("a{number}"), "", false));
        collected.apply(status("t", TaskState::Working, said(&piece, Some("TEXT_CONTENT"))));
    }
    for number in 0..1000 {
        collected.apply(artifact(&format!("b{number}"), "x", false));
    }
    let texts: usize = collected.artifacts.iter().flat_map(|artifact| &artifact.parts).map(size).sum();
    assert!(texts + collected.answer.len() <= MOST_BYTES && collected.artifacts.len() <= MOST_ARTIFACTS);
    assert!(collected.is_truncated);
}

#[test]
fn what_stands_beside_the_text_is_bounded_too() {
    let long = "x".repeat(1024 * 1024);
    let mut collected = Collected::default();
    for number in 0..64 {
        let mut part = Part::text("x");
        part.filename = Some(long.clone());
        part.metadata.insert("a".to_owned(), json!(long));
        let mut made = Artifact { artifact_id: number.to_string(), parts: vec![part], ..Artifact::default() };
        (made.name, made.description) = (Some(long.clone()), Some(long.clone()));
        made.metadata.insert("a".to_owned(), json!(long));
        let (task_id, context_id) = ("t".to_owned(), long.clone());
        collected.apply(Update::Artifact(ArtifactUpdate {
            task_id,
            context_id,
            artifact: made,
            ..ArtifactUpdate::default()
        }));
        collected.apply(status("t", TaskState::Working, said(&long, None)));
    }
    let held = format!("{collected:?}").len();
    assert!(held < 64 * 4096, "{held} bytes");
    let mut other = Collected::default();
    other.apply(status(&long, TaskState::Completed, None));
    assert!(other.missing().is_some() && other.task_id.is_none());
}

#[test]
fn pieces_that_a_server_stored_apart_are_one_text() {
    let parts = ["You ", "said ", "hello"].map(Part::text).to_vec();
    let artifacts = vec![Artifact { artifact_id: "a".to_owned(), parts, ..Artifact::default() }];
    let collected = collect([Update::Task(Task { id: "t".to_owned(), artifacts, ..Task::default() })]);
    assert_eq!(collected.artifacts[0].parts, [Part::text("You said hello")]);
}
