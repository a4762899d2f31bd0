//! Requests: what they are read as, and a table of what is wrong with those that are refused.

use multitap_a2a::{
    Authentication, CommandExecute, Dialect, ErrorKind, ListTasks, Map, Message, Part, PushConfig, Request, Role,
    SendConfiguration, SendMessage, TaskState,
};
use serde_json::{Value, json};

fn read(method: &str, params: Value) -> (Dialect, Request) {
    Request::read(method, Some(params)).unwrap_or_else(|error| panic!("{method}: {error}"))
}

fn send() -> SendMessage {
    SendMessage {
        message: Message {
            message_id: "m1".to_owned(),
            role: Role::User,
            parts: vec![Part::text("hi")],
            ..Message::default()
        },
        configuration: SendConfiguration {
            return_immediately: true,
            history_length: Some(3),
            accepted_output_modes: vec!["text/plain".to_owned()],
            push: Some(push()),
        },
        metadata: Map::from_iter([("k".to_owned(), json!([1, { "b": 1, "a": 2 }]))]),
    }
}

fn push() -> PushConfig {
    PushConfig {
        id: Some("p1".to_owned()),
        url: "https://example.org/hook".to_owned(),
        token: Some("secret".to_owned()),
        authentication: Some(Authentication { schemes: vec!["Bearer".to_owned()], credentials: Some("x".to_owned()) }),
    }
}

/// One of each, as both dialects can say it.
fn requests() -> Vec<Request> {
    let id = || "t1".to_owned();
    vec![
        Request::SendMessage(send()),
        Request::StreamMessage(SendMessage { configuration: SendConfiguration::default(), ..send() }),
        Request::GetTask { id: id(), history_length: Some(0) },
        Request::GetTask { id: id(), history_length: None },
        Request::CancelTask { id: id(), metadata: Map::from_iter([("why".to_owned(), json!("bored"))]) },
        Request::Subscribe { id: id() },
        Request::CreatePushConfig { task_id: id(), config: push() },
        Request::GetPushConfig { task_id: id(), config_id: Some("p1".to_owned()) },
        Request::GetPushConfig { task_id: id(), config_id: None },
        Request::ListPushConfigs { task_id: id() },
        Request::DeletePushConfig { task_id: id(), config_id: "p1".to_owned() },
        Request::GetExtendedCard,
        Request::GetCommands { context_id: Some("c1".to_owned()) },
        Request::ExecuteCommand(CommandExecute {
            command_path: vec!["memory".to_owned(), "add".to_owned()],
            args: "x y".to_owned(),
            context_id: None,
        }),
    ]
}

#[test]
fn every_request_is_written_and_read_back_in_both_dialects() {
    for dialect in [Dialect::V0_3, Dialect::V1_0] {
        for request in requests() {
            let (method, params) = dialect.write_request(&request).unwrap();
            let (read_in, read) = read(method, params);
            assert_eq!(read, request);
            assert_eq!(read_in, Request::dialect_of(method).unwrap_or(Dialect::V0_3));
            let of_extension = matches!(request, Request::GetCommands { .. } | Request::ExecuteCommand(_));
            assert_eq!(Request::dialect_of(method), (!of_extension).then_some(dialect), "{method}");
        }
    }
}

#[test]
fn only_1_0_lists_tasks() {
    let list = Request::ListTasks(ListTasks {
        context_id: Some("c1".to_owned()),
        state: Some(TaskState::InputRequired),
        page_size: Some(100),
        page_token: Some("next".to_owned()),
        history_length: Some(2),
        status_timestamp_after: Some("2026-11-15T00:00:00Z".to_owned()),
        include_artifacts: true,
    });
    assert_eq!(Dialect::V0_3.write_request(&list), None);
    let (_, params) = Dialect::V1_0.write_request(&list).unwrap();
    assert_eq!(params["status"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(read("ListTasks", params), (Dialect::V1_0, list));
    let loose = json!({ "pageSize": "7", "status": "TASK_STATE_UNSPECIFIED", "contextId": "", "pageToken": null });
    let expected = ListTasks { page_size: Some(7), ..ListTasks::default() };
    assert_eq!(read("ListTasks", loose).1, Request::ListTasks(expected), "ProtoJSON: digits, defaults, null");
}

#[test]
fn a_client_of_0_3_waits_unless_it_says_otherwise() {
    let message = json!({ "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "hi" }] });
    for (configuration, expected) in [
        (json!(null), false),
        (json!({}), false),
        (json!({ "blocking": true }), false),
        (json!({ "blocking": false }), true),
    ] {
        let (_, request) = read("message/send", json!({ "message": message, "configuration": configuration }));
        let Request::SendMessage(send) = request else { panic!("not a message") };
        assert_eq!(send.configuration.return_immediately, expected, "{configuration}");
    }
}

#[test]
fn commands_are_read_in_either_case_and_from_no_params() {
    let expected = Request::ExecuteCommand(CommandExecute {
        command_path: vec!["memory".to_owned(), "show".to_owned()],
        args: String::new(),
        context_id: Some("c".to_owned()),
    });
    assert_eq!(read("command/execute", json!({ "command_path": ["memory", "show"], "context_id": "c" })).1, expected);
    assert_eq!(read("command/execute", json!({ "commandPath": ["memory", "show"], "contextId": "c" })).1, expected);
    let none = (Dialect::V0_3, Request::GetCommands { context_id: None });
    assert_eq!(Request::read("commands/get", None).unwrap(), none);
    let confirmation = json!({ "tool_call_id": "x", "selected_option_id": "cancel", "task_id": "t" });
    let expected = Request::ConfirmToolCall {
        confirmation: confirmation.clone(),
        task_id: Some("t".to_owned()),
        context_id: None,
    };
    assert_eq!(read("toolCall/confirm", confirmation).1, expected);
    assert_eq!(Request::dialect_of("toolCall/confirm"), None);
}

#[test]
fn unknown_methods_are_named() {
    for method in ["tasks/send", "sendMessage", "SENDMESSAGE", "", "commands/get "] {
        let error = Request::read(method, None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MethodNotFound);
        assert_eq!(error.message, format!("there is no method \"{method}\""));
        assert_eq!(Request::dialect_of(method), None);
    }
}

#[track_caller]
fn refused(method: &str, params: Value, message: &str) {
    let error = Request::read(method, Some(params)).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (ErrorKind::InvalidParams, message));
    assert_eq!(error.data["field"], message.split(": ").next().unwrap());
}

#[test]
fn wrong_params_of_0_3_are_named() {
    let with = |key: &str, value: Value| {
        let mut message = json!({ "kind": "message", "messageId": "m", "role": "user",
            "parts": [{ "kind": "text", "text": "hi" }] });
        message[key] = value;
        json!({ "message": message })
    };
    let part = |part: Value| with("parts", json!([{ "kind": "text", "text": "hi" }, part]));
    let table = [
        (json!([]), "params: must be an object, not a list"),
        (json!("x"), "params: must be an object, not a string"),
        (json!({}), "message: is missing"),
        (json!({ "message": "hi" }), "message: must be an object, not a string"),
        (with("kind", json!("task")), "message.kind: must be message, not \"task\""),
        (with("messageId", json!(null)), "message.messageId: is missing"),
        (with("messageId", json!("")), "message.messageId: must not be empty"),
        (with("messageId", json!(5)), "message.messageId: must be a string, not a number"),
        (with("role", json!(null)), "message.role: is missing"),
        (with("role", json!("ROLE_USER")), "message.role: must be user or agent, not \"ROLE_USER\""),
        (with("parts", json!(null)), "message.parts: must hold at least one part"),
        (with("parts", json!([])), "message.parts: must hold at least one part"),
        (with("parts", json!({})), "message.parts: must be a list, not an object"),
        (with("contextId", json!(1)), "message.contextId: must be a string, not a number"),
        (with("metadata", json!([])), "message.metadata: must be an object, not a list"),
        (with("extensions", json!([1])), "message.extensions[0]: must be a string, not a number"),
        (part(json!("hi")), "message.parts[1]: must be an object, not a string"),
        (part(json!({ "text": "hi" })), "message.parts[1].kind: is missing"),
        (part(json!({ "kind": 1 })), "message.parts[1].kind: must be a string, not a number"),
        (part(json!({ "kind": "video" })), "message.parts[1].kind: must be text, file or data, not \"video\""),
        (part(json!({ "kind": "text" })), "message.parts[1].text: is missing"),
        (part(json!({ "kind": "file" })), "message.parts[1].file: is missing"),
        (part(json!({ "kind": "file", "file": {} })), "message.parts[1].file: must hold bytes or uri"),
        (
            part(json!({ "kind": "file", "file": { "bytes": "", "uri": "x" } })),
            "message.parts[1].file: must hold either bytes or uri, not both",
        ),
        (part(json!({ "kind": "data", "data": [1] })), "message.parts[1].data: must be an object, not a list"),
    ];
    for (params, message) in table {
        refused("message/send", params.clone(), message);
        refused("message/stream", params, message);
    }
    let configured = |configuration: Value| {
        let mut params = with("role", json!("user"));
        params["configuration"] = configuration;
        params
    };
    let blocking = configured(json!({ "blocking": "no" }));
    refused("message/send", blocking, "configuration.blocking: must be true or false, not a string");
    let length = configured(json!({ "historyLength": -1 }));
    let range = "must be a whole number from 0 to 2147483647, not";
    refused("message/send", length, &format!("configuration.historyLength: {range} -1"));
    let push = configured(json!({ "pushNotificationConfig": { "token": "x" } }));
    refused("message/send", push, "configuration.pushNotificationConfig.url: is missing");
    refused("tasks/get", json!({}), "id: is missing");
    refused("tasks/get", json!({ "id": ["t"] }), "id: must be a string, not a list");
    refused("tasks/get", json!({ "id": "t", "historyLength": 1.5 }), &format!("historyLength: {range} 1.5"));
    refused(
        "tasks/get",
        json!({ "id": "t", "historyLength": 4_294_967_296_u64 }),
        &format!("historyLength: {range} 4294967296"),
    );
    refused("tasks/get", json!({ "id": "t", "historyLength": "3" }), "historyLength: must be a number, not a string");
    refused("tasks/cancel", json!({ "id": "" }), "id: must not be empty");
    refused("tasks/resubscribe", json!({ "taskId": "t" }), "id: is missing");
    let set = json!({ "taskId": "t", "pushNotificationConfig": { "url": "" } });
    refused("tasks/pushNotificationConfig/set", set, "pushNotificationConfig.url: must not be empty");
    refused("tasks/pushNotificationConfig/delete", json!({ "id": "t" }), "pushNotificationConfigId: is missing");
}

#[test]
fn wrong_params_of_1_0_are_named() {
    let part = |part: Value| json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [part] } });
    let table = [
        (json!({ "message": { "role": "ROLE_USER", "parts": [{ "text": "" }] } }), "message.messageId: is missing"),
        (
            json!({ "message": { "messageId": "m", "role": "user", "parts": [] } }),
            "message.role: must be ROLE_USER or ROLE_AGENT, not \"user\"",
        ),
        (part(json!({})), "message.parts[0]: must hold one of text, raw, url, data"),
        (part(json!({ "kind": "text" })), "message.parts[0]: must hold one of text, raw, url, data"),
        (part(json!({ "text": "a", "url": "b" })), "message.parts[0]: must hold only one of text, url"),
        (part(json!({ "text": "a", "data": 1 })), "message.parts[0]: must hold only one of text, data"),
        (part(json!({ "raw": [1] })), "message.parts[0].raw: must be a string, not a list"),
        (part(json!({ "text": "a", "mediaType": 1 })), "message.parts[0].mediaType: must be a string, not a number"),
    ];
    for (params, message) in table {
        refused("SendMessage", params.clone(), message);
        refused("SendStreamingMessage", params, message);
    }
    let size = "pageSize: must be a whole number from 1 to 100, not";
    refused("ListTasks", json!({ "pageSize": 0 }), &format!("{size} 0"));
    refused("ListTasks", json!({ "pageSize": 101 }), &format!("{size} 101"));
    refused("ListTasks", json!({ "pageSize": "many" }), &format!("{size} \"many\""));
    refused("ListTasks", json!({ "includeArtifacts": 1 }), "includeArtifacts: must be true or false, not a number");
    let error = Request::read("ListTasks", Some(json!({ "status": "working" }))).unwrap_err();
    assert!(error.message.starts_with("status: must be one of TASK_STATE_UNSPECIFIED, "), "{error}");
    assert!(error.message.ends_with(", not \"working\""), "{error}");
    refused("GetTaskPushNotificationConfig", json!({ "id": "p" }), "taskId: is missing");
    refused("CreateTaskPushNotificationConfig", json!({ "taskId": "t" }), "url: is missing");
}

#[test]
fn wrong_params_of_commands_are_named() {
    let path = "must name a command, such as [\"memory\", \"show\"]";
    refused("command/execute", json!({}), &format!("command_path: {path}"));
    refused("command/execute", json!({ "commandPath": [] }), &format!("commandPath: {path}"));
    refused("command/execute", json!({ "command_path": "memory" }), "command_path: must be a list, not a string");
    refused("command/execute", json!({ "command_path": ["x"], "args": [] }), "args: must be a string, not a list");
    refused("toolCall/confirm", json!({ "taskId": 1 }), "taskId: must be a string, not a number");
}
