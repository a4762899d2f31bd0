//! The same things in both dialects, letter by letter, and read back.

use multitap_a2a::{
    Artifact, ArtifactUpdate, Content, Dialect, Encoding, ErrorKind, Map, Message, Part, Role, Sent, StatusUpdate,
    Task, TaskList, TaskState, TaskStatus, Update,
};
use serde_json::{Value, json};

fn metadata() -> Map {
    Map::from_iter([("z".to_owned(), json!(1)), ("a".to_owned(), json!({ "y": null, "b": [] }))])
}

fn message() -> Message {
    Message {
        message_id: "m1".to_owned(),
        role: Role::Agent,
        parts: vec![
            Part::text("hello"),
            Part {
                filename: Some("a.png".to_owned()),
                media_type: Some("image/png".to_owned()),
                ..Part::of(Content::Raw("AAEC".to_owned()))
            },
            Part::of(Content::Url("https://example.org/b".to_owned())),
            Part { metadata: metadata(), ..Part::data(json!({ "tool_call_id": "t" })) },
        ],
        context_id: Some("c1".to_owned()),
        task_id: Some("t1".to_owned()),
        reference_task_ids: vec!["t0".to_owned()],
        extensions: vec!["https://example.org/x/v1".to_owned()],
        metadata: metadata(),
    }
}

fn status(state: TaskState) -> TaskStatus {
    TaskStatus { state, message: None, timestamp: Some("2026-11-15T10:00:00.000Z".to_owned()) }
}

/// Written exactly so, and read back to the same.
#[track_caller]
fn check(dialect: Dialect, update: &Update, text: &str) {
    assert_eq!(Encoding::from(dialect).write_update(update), text);
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(&dialect.read_update(&value).unwrap(), update);
}

#[test]
fn a_message_with_every_kind_of_part() {
    check(
        Dialect::V0_3,
        &Update::Message(message()),
        concat!(
            r#"{"kind":"message","messageId":"m1","role":"agent","parts":[{"kind":"text","text":"hello"},"#,
            r#"{"kind":"file","file":{"bytes":"AAEC","name":"a.png","mimeType":"image/png"}},"#,
            r#"{"kind":"file","file":{"uri":"https://example.org/b"}},"#,
            r#"{"kind":"data","data":{"tool_call_id":"t"},"metadata":{"z":1,"a":{"y":null,"b":[]}}}],"#,
            r#""contextId":"c1","taskId":"t1","referenceTaskIds":["t0"],"extensions":["https://example.org/x/v1"],"#,
            r#""metadata":{"z":1,"a":{"y":null,"b":[]}}}"#
        ),
    );
    check(
        Dialect::V1_0,
        &Update::Message(message()),
        concat!(
            r#"{"message":{"messageId":"m1","role":"ROLE_AGENT","parts":[{"text":"hello"},"#,
            r#"{"raw":"AAEC","filename":"a.png","mediaType":"image/png"},"#,
            r#"{"url":"https://example.org/b"},"#,
            r#"{"data":{"tool_call_id":"t"},"metadata":{"z":1,"a":{"y":null,"b":[]}}}],"#,
            r#""contextId":"c1","taskId":"t1","referenceTaskIds":["t0"],"extensions":["https://example.org/x/v1"],"#,
            r#""metadata":{"z":1,"a":{"y":null,"b":[]}}}}"#
        ),
    );
}

#[test]
fn a_status_update_says_in_0_3_whether_it_is_the_last() {
    let update = |is_final| {
        Update::Status(StatusUpdate {
            task_id: "t1".to_owned(),
            context_id: "c1".to_owned(),
            status: status(TaskState::InputRequired),
            is_final,
            metadata: Map::new(),
        })
    };
    check(
        Dialect::V0_3,
        &update(true),
        concat!(
            r#"{"kind":"status-update","taskId":"t1","contextId":"c1","#,
            r#""status":{"state":"input-required","timestamp":"2026-11-15T10:00:00.000Z"},"final":true}"#
        ),
    );
    let in_1_0 = concat!(
        r#"{"statusUpdate":{"taskId":"t1","contextId":"c1","#,
        r#""status":{"state":"TASK_STATE_INPUT_REQUIRED","timestamp":"2026-11-15T10:00:00.000Z"}}}"#
    );
    check(Dialect::V1_0, &update(false), in_1_0);
    assert_eq!(Encoding::V1_0.write_update(&update(true)), in_1_0);
}

#[test]
fn an_artifact_update_says_how_it_joins() {
    let update = Update::Artifact(ArtifactUpdate {
        task_id: "t1".to_owned(),
        context_id: "c1".to_owned(),
        artifact: Artifact {
            artifact_id: "a1".to_owned(),
            name: Some("out".to_owned()),
            parts: vec![Part::text("x")],
            ..Artifact::default()
        },
        append: true,
        last_chunk: false,
        metadata: Map::new(),
    });
    check(
        Dialect::V0_3,
        &update,
        concat!(
            r#"{"kind":"artifact-update","taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","name":"out","#,
            r#""parts":[{"kind":"text","text":"x"}]},"append":true,"lastChunk":false}"#
        ),
    );
    check(
        Dialect::V1_0,
        &update,
        concat!(
            r#"{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"a1","name":"out","#,
            r#""parts":[{"text":"x"}]},"append":true}}"#
        ),
    );
}

#[test]
fn a_task_is_bare_where_it_is_the_answer_and_wrapped_where_1_0_must_tell_it_apart() {
    let task = Task {
        id: "t1".to_owned(),
        context_id: "c1".to_owned(),
        status: status(TaskState::Submitted),
        ..Task::default()
    };
    let bare_0_3 = concat!(
        r#"{"kind":"task","id":"t1","contextId":"c1","#,
        r#""status":{"state":"submitted","timestamp":"2026-11-15T10:00:00.000Z"}}"#
    );
    let bare_1_0 = concat!(
        r#"{"id":"t1","contextId":"c1","#,
        r#""status":{"state":"TASK_STATE_SUBMITTED","timestamp":"2026-11-15T10:00:00.000Z"}}"#
    );
    assert_eq!(Encoding::V0_3.write_task(&task), bare_0_3);
    assert_eq!(Encoding::V1_0.write_task(&task), bare_1_0);
    let sent = Sent::Task(task.clone());
    assert_eq!(Encoding::V0_3.write_sent(&sent), bare_0_3);
    assert_eq!(Encoding::V1_0.write_sent(&sent), format!(r#"{{"task":{bare_1_0}}}"#));
    let list = TaskList { tasks: vec![task], next_page_token: String::new(), page_size: 50, total_size: 1 };
    for (dialect, bare) in [(Dialect::V0_3, bare_0_3), (Dialect::V1_0, bare_1_0)] {
        let text = Encoding::from(dialect).write_task_list(&list);
        assert_eq!(text, format!(r#"{{"tasks":[{bare}],"nextPageToken":"","pageSize":50,"totalSize":1}}"#));
        assert_eq!(dialect.read_task_list(&serde_json::from_str(&text).unwrap()).unwrap(), list);
    }
}

#[test]
fn data_that_is_no_object_is_wrapped_for_0_3_and_unwrapped_again() {
    for data in [json!(null), json!([1, 2]), json!("text"), json!(7)] {
        let part = Part { metadata: metadata(), ..Part::data(data.clone()) };
        let message = Message { parts: vec![part], ..message() };
        let written = Dialect::V0_3.write_message(&message);
        assert_eq!(written["parts"][0]["data"], json!({ "value": data }));
        assert_eq!(written["parts"][0]["metadata"]["data_part_compat"], true);
        assert_eq!(Dialect::V0_3.read_message(&written).unwrap(), message);
        let written = Dialect::V1_0.write_message(&message);
        assert_eq!(written["parts"][0]["data"], data);
        assert_eq!(Dialect::V1_0.read_message(&written).unwrap(), message);
    }
    let own = json!({ "kind": "data", "data": { "value": 1 } });
    let written = json!({ "kind": "message", "messageId": "m", "role": "agent", "parts": [own] });
    let read = Dialect::V0_3.read_message(&written).unwrap();
    assert_eq!(read.parts, [Part::data(json!({ "value": 1 }))], "an object that only looks wrapped stays");
}

#[test]
fn what_an_agent_leaves_out_is_forgiven_where_it_can_be() {
    let bare = json!({ "kind": "status-update", "taskId": "t", "status": { "state": "sleeping",
        "message": { "parts": [] } } });
    let Update::Status(update) = Dialect::V0_3.read_update(&bare).unwrap() else { panic!("not a status") };
    assert_eq!(update.status.state, TaskState::Unknown);
    assert_eq!(update.status.message, Some(Message { role: Role::Agent, ..Message::default() }));
    let nulls = json!({ "task": { "id": "t", "contextId": null, "status": { "state": null, "message": null },
        "history": null, "artifacts": null, "metadata": null, "new": 1 }, "message": null });
    let Sent::Task(task) = Dialect::V1_0.read_sent(&nulls).unwrap() else { panic!("not a task") };
    assert_eq!(task, Task { id: "t".to_owned(), ..Task::default() });
}

#[test]
fn what_an_agent_says_wrong_is_named() {
    let check = |dialect: Dialect, value: Value, message: &str| {
        let error = dialect.read_update(&value).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidAgentResponse, message));
    };
    check(Dialect::V0_3, json!([]), "update: must be an object, not a list");
    check(Dialect::V0_3, json!({}), "kind: is missing");
    let kinds = "kind: must be task, message, status-update or artifact-update, not \"event\"";
    check(Dialect::V0_3, json!({ "kind": "event" }), kinds);
    check(Dialect::V0_3, json!({ "kind": "task", "id": "t" }), "status: is missing");
    check(Dialect::V1_0, json!({}), "update: must hold one of task, message, statusUpdate, artifactUpdate");
    check(Dialect::V1_0, json!({ "task": {}, "message": {} }), "update: must hold only one of task, message");
    let history = json!({ "task": { "id": "t", "status": {}, "history": [{ "parts": [{ "text": 5 }] }] } });
    check(Dialect::V1_0, history, "task.history[0].parts[0].text: must be a string, not a number");
}
