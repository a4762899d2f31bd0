//! HTTP+JSON: what a method and a path name, and what their parameters are read as.

use multitap_a2a::{
    Content, Dialect, Encoding, ErrorKind, ListTasks, Map, Message, NoRestCall, Part, PushConfig, Request, RestCall,
    Role, SendMessage, Sent, StatusUpdate, Task, TaskState, TaskStatus, Update,
};
use serde_json::{Value, json};

fn find(line: &str) -> Result<RestCall, NoRestCall> {
    let (verb, path) = line.split_once(" /").unwrap();
    RestCall::find(verb, &path.split('/').collect::<Vec<_>>())
}

#[track_caller]
fn read(line: &str, query: &[(&str, &str)], body: Option<Value>) -> Request {
    let query = query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    find(line).unwrap().read(query, body).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn hi() -> SendMessage {
    let message = Message { message_id: "m".to_owned(), parts: vec![Part::text("hi")], ..Message::default() };
    SendMessage { message, ..SendMessage::default() }
}

#[test]
fn every_operation_has_its_path_in_both_dialects_and_below_a_tenant() {
    let id = || "t".to_owned();
    let hook = || PushConfig { url: "https://e.org".to_owned(), ..PushConfig::default() };
    let in_0_3 = json!({ "request": { "message_id": "m", "role": "ROLE_USER", "content": [{ "text": "hi" }] } });
    let in_1_0 = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hi" }] } });
    let pushed = json!({ "url": "https://e.org" });
    for (line, sent, request) in [
        ("POST /message:send", Some((&in_0_3, &in_1_0)), Request::SendMessage(hi())),
        ("POST /message:stream", Some((&in_0_3, &in_1_0)), Request::StreamMessage(hi())),
        ("GET /tasks", None, Request::ListTasks(ListTasks::default())),
        ("GET /tasks/t", None, Request::GetTask { id: id(), history_length: None }),
        ("POST /tasks/t:cancel", None, Request::CancelTask { id: id(), metadata: Map::new() }),
        ("POST /tasks/t:subscribe", None, Request::Subscribe { id: id() }),
        ("GET /tasks/t:subscribe", None, Request::Subscribe { id: id() }),
        (
            "POST /tasks/t/pushNotificationConfigs",
            Some((&pushed, &pushed)),
            Request::CreatePushConfig { task_id: id(), config: hook() },
        ),
        ("GET /tasks/t/pushNotificationConfigs", None, Request::ListPushConfigs { task_id: id() }),
        (
            "GET /tasks/t/pushNotificationConfigs/p",
            None,
            Request::GetPushConfig { task_id: id(), config_id: Some("p".to_owned()) },
        ),
        (
            "DELETE /tasks/t/pushNotificationConfigs/p",
            None,
            Request::DeletePushConfig { task_id: id(), config_id: "p".to_owned() },
        ),
    ] {
        let old = line.replacen('/', "/v1/", 1);
        assert_eq!(find(&old).unwrap().dialect(), Dialect::V0_3);
        assert_eq!(read(&old, &[], sent.map(|(old, _)| old.clone())), request, "{old}");
        for new in [line.to_owned(), line.replacen('/', "/acme/", 1)] {
            assert_eq!(find(&new).unwrap().dialect(), Dialect::V1_0, "{new}");
            assert_eq!(read(&new, &[], sent.map(|(_, new)| new.clone())), request, "{new}");
        }
    }
    for card in ["GET /v1/card", "GET /extendedAgentCard", "GET /acme/extendedAgentCard"] {
        assert_eq!(read(card, &[], None), Request::GetExtendedCard);
    }
}

#[test]
fn any_other_path_is_none_and_a_wrong_method_is_told_the_right_ones() {
    for line in [
        "GET /",
        "GET /card",
        "GET /v1",
        "GET /v1/extendedAgentCard",
        "POST /message",
        "POST /message:frobnicate",
        "GET /a/b/tasks",
        "GET /tasks/",
        "GET /tasks/t/pushNotificationConfigs/p/q",
        "GET /tasks/t/pushNotificationConfigs/",
        "GET /tasks/t/metadata",
    ] {
        assert_eq!(find(line), Err(NoRestCall::Path), "{line}");
    }
    for (line, allowed) in [
        ("GET /message:send", &["POST"][..]),
        ("POST /tasks", &["GET"]),
        ("DELETE /v1/tasks/t", &["GET"]),
        ("GET /tasks/t:cancel", &["POST"]),
        ("PUT /tasks/t:subscribe", &["POST", "GET"]),
        ("PUT /acme/tasks/t/pushNotificationConfigs/p", &["GET", "DELETE"]),
        ("POST /v1/card", &["GET"]),
    ] {
        assert_eq!(find(line), Err(NoRestCall::Verb { allowed: allowed.to_vec() }), "{line}");
    }
}

#[test]
fn a_query_has_numbers_flags_and_words() {
    let query = [
        ("contextId", "7"),
        ("status", "TASK_STATE_CANCELED"),
        ("pageSize", "5"),
        ("pageToken", "9.x"),
        ("historyLength", "0"),
        ("includeArtifacts", "true"),
        ("statusTimestampAfter", "2026-01-31T12:00:00Z"),
        ("A2A-Version", "1.0"),
    ];
    let list = ListTasks {
        context_id: Some("7".to_owned()),
        state: Some(TaskState::Canceled),
        page_size: Some(5),
        page_token: Some("9.x".to_owned()),
        history_length: Some(0),
        status_timestamp_after: Some("2026-01-31T12:00:00Z".to_owned()),
        include_artifacts: true,
    };
    assert_eq!(read("GET /tasks", &query, None), Request::ListTasks(list));
    for status in ["TASK_STATE_CANCELLED", "TASK_STATE_CANCELED", "canceled"] {
        let wanted = ListTasks { state: Some(TaskState::Canceled), ..ListTasks::default() };
        assert_eq!(read("GET /v1/tasks", &[("status", status)], None), Request::ListTasks(wanted));
    }
    let refused = |line: &str, key: &str, value: &str| {
        let error = find(line).unwrap().read(vec![(key.to_owned(), value.to_owned())], None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams, "{line} {key}={value}");
        assert_eq!(error.data.get("field"), Some(&json!(key)), "{line} {key}={value}");
    };
    for (key, value) in
        [("pageSize", "0"), ("pageSize", "101"), ("pageSize", "x"), ("includeArtifacts", "1"), ("status", "done")]
    {
        refused("GET /tasks", key, value);
        refused("GET /v1/tasks", key, value);
    }
    for value in ["-1", "1.5", "99999999999999999999", ""] {
        refused("GET /tasks/t", "historyLength", value);
        refused("GET /v1/tasks/t", "historyLength", value);
    }
}

/// The Python SDK sends the field names of the gRPC messages, the JavaScript SDK their JSON names.
#[test]
fn a_message_of_0_3_is_read_in_the_form_of_every_sdk() {
    let part = json!({ "kind": "text", "text": "hi" });
    for (body, at_once) in [
        (json!({ "request": { "message_id": "m", "role": "ROLE_USER", "content": [{ "text": "hi" }] } }), false),
        (json!({ "message": { "messageId": "m", "role": "ROLE_USER", "content": [{ "text": "hi" }] } }), false),
        (json!({ "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [part] } }), false),
        // A flag that is not set is left out there, but not on JSON-RPC.
        (
            json!({ "message": { "messageId": "m", "role": "ROLE_USER", "content": [{ "text": "hi" }] },
                    "configuration": {} }),
            true,
        ),
        (
            json!({ "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [part] },
                    "configuration": {} }),
            false,
        ),
        (
            json!({ "request": { "message_id": "m", "role": "ROLE_USER", "content": [{ "text": "hi" }] },
                    "configuration": { "blocking": true } }),
            false,
        ),
    ] {
        let Request::SendMessage(send) = read("POST /v1/message:send", &[], Some(body.clone())) else { panic!() };
        assert_eq!((send.message, send.configuration.return_immediately), (hi().message, at_once), "{body}");
    }
    let body = json!({
        "request": {
            "message_id": "m", "context_id": "c", "task_id": "t", "role": "ROLE_USER",
            "content": [
                { "file": { "file_with_bytes": "AAEC", "mime_type": "image/png" } },
                { "file": { "fileWithUri": "https://e.org", "name": "a" } },
                { "data": { "data": { "tool_call_id": "x" } }, "metadata": { "k_k": 1 } },
            ],
        },
        "configuration": { "history_length": 2, "push_notification": { "url": "https://e.org" } },
        "metadata": { "a_b": 1 },
    });
    let Request::StreamMessage(send) = read("POST /v1/message:stream", &[], Some(body)) else { panic!() };
    assert_eq!((send.message.context_id.as_deref(), send.message.task_id.as_deref()), (Some("c"), Some("t")));
    assert_eq!((send.message.role, send.configuration.history_length), (Role::User, Some(2)));
    assert_eq!(send.configuration.push.unwrap().url, "https://e.org");
    assert!(send.metadata.contains_key("a_b"), "names of clients stay as they are");
    let [bytes, link, data] = send.message.parts.as_slice() else { panic!() };
    assert_eq!((&bytes.content, bytes.media_type.as_deref()), (&Content::Raw("AAEC".to_owned()), Some("image/png")));
    assert_eq!((&link.content, link.filename.as_deref()), (&Content::Url("https://e.org".to_owned()), Some("a")));
    assert_eq!(data.content, Content::Data(json!({ "tool_call_id": "x" })));
    assert!(data.metadata.contains_key("k_k"));
}

#[test]
fn a_wrong_body_is_refused_by_the_field() {
    let message = |part: Value| json!({ "message": { "messageId": "m", "role": "ROLE_USER", "content": [part] } });
    for (line, body, field) in [
        ("POST /v1/message:send", json!({}), "message"),
        ("POST /v1/message:send", message(json!({ "video": "x" })), "message.content[0]"),
        ("POST /v1/message:send", message(json!({ "text": 7 })), "message.parts[0].text"),
        ("POST /message:send", json!({ "message": { "messageId": "m" } }), "message.role"),
        ("POST /tasks/t/pushNotificationConfigs", json!({}), "url"),
        ("POST /v1/tasks/t/pushNotificationConfigs", json!({ "config": {} }), "pushNotificationConfig.url"),
    ] {
        let error = find(line).unwrap().read(Vec::new(), Some(body)).unwrap_err();
        assert_eq!((error.kind, error.data.get("field")), (ErrorKind::InvalidParams, Some(&json!(field))), "{error}");
    }
    for body in [json!([]), json!("x"), json!(7)] {
        let error = find("POST /message:send").unwrap().read(Vec::new(), Some(body)).unwrap_err();
        assert!(error.message.starts_with("body: must be an object"), "{error}");
    }
}

#[test]
fn push_configs_of_0_3_are_named_by_their_path() {
    let config = json!({ "id": "p", "url": "https://e.org" });
    for body in [
        json!({ "parent": "tasks/t", "config_id": "p",
                "config": { "name": "x", "push_notification_config": { "url": "https://e.org" } } }),
        json!({ "name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": config }),
        config.clone(),
    ] {
        let line = "POST /v1/tasks/t/pushNotificationConfigs";
        let Request::CreatePushConfig { task_id, config } = read(line, &[], Some(body)) else { panic!() };
        assert_eq!((task_id.as_str(), config.id.as_deref(), config.url.as_str()), ("t", Some("p"), "https://e.org"));
    }
    let call = find("GET /v1/tasks/t/pushNotificationConfigs").unwrap();
    let result = json!({ "taskId": "t", "pushNotificationConfig": config });
    let named = json!({ "name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": config });
    let body = |result: &Value| serde_json::from_str::<Value>(&call.body(result.to_string())).unwrap();
    assert_eq!(body(&result), named);
    assert_eq!(body(&json!([result])), json!({ "configs": [named], "nextPageToken": "" }));
    assert_eq!(body(&Value::Null), json!({}));
}

#[test]
fn answers_of_0_3_are_in_the_form_of_its_grpc_messages() {
    let status = TaskStatus {
        state: TaskState::Canceled,
        message: Some(Message {
            message_id: "m".to_owned(),
            role: Role::Agent,
            parts: vec![Part::text("no"), Part::data(json!({ "a": 1 })), Part::data(json!([1]))],
            reference_task_ids: vec!["x".to_owned()],
            ..Message::default()
        }),
        timestamp: None,
    };
    let written = concat!(
        r#"{"state":"TASK_STATE_CANCELLED","message":{"messageId":"m","role":"ROLE_AGENT","content":[{"text":"no"},"#,
        r#"{"data":{"data":{"a":1}}},{"data":{"data":{"value":[1]}},"metadata":{"data_part_compat":true}}]}}"#
    );
    let task = Task { id: "t".to_owned(), context_id: "c".to_owned(), status: status.clone(), ..Task::default() };
    let bare = format!(r#"{{"id":"t","contextId":"c","status":{written}}}"#);
    let rest = Encoding::of_rest(Dialect::V0_3);
    assert_eq!(rest.write_task(&task), bare);
    assert_eq!(rest.write_sent(&Sent::Task(task)), format!(r#"{{"task":{bare}}}"#));
    let update = StatusUpdate {
        task_id: "t".to_owned(),
        context_id: "c".to_owned(),
        status,
        is_final: true,
        metadata: Map::new(),
    };
    let written = format!(r#"{{"statusUpdate":{{"taskId":"t","contextId":"c","status":{written},"final":true}}}}"#);
    assert_eq!(rest.write_update(&Update::Status(update)), written);
    let file = Part { media_type: Some("image/png".to_owned()), ..Part::of(Content::Raw("AA==".to_owned())) };
    let message = Message { message_id: "m".to_owned(), parts: vec![file], ..Message::default() };
    assert_eq!(
        rest.write_sent(&Sent::Message(message)),
        concat!(
            r#"{"msg":{"messageId":"m","role":"ROLE_USER","content":"#,
            r#"[{"file":{"fileWithBytes":"AA==","mimeType":"image/png"}}]}}"#
        )
    );
}
