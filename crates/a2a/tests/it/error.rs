//! Errors: their codes, and their shape in each dialect and on each transport.

use multitap_a2a::{Dialect, Error, ErrorKind};
use serde_json::json;

#[test]
fn codes_and_statuses_are_those_of_the_protocol() {
    let table = [
        (ErrorKind::Parse, -32700, 400, None),
        (ErrorKind::InvalidRequest, -32600, 400, None),
        (ErrorKind::MethodNotFound, -32601, 404, None),
        (ErrorKind::InvalidParams, -32602, 400, None),
        (ErrorKind::Internal, -32603, 500, None),
        (ErrorKind::TaskNotFound, -32001, 404, Some("TASK_NOT_FOUND")),
        (ErrorKind::TaskNotCancelable, -32002, 400, Some("TASK_NOT_CANCELABLE")),
        (ErrorKind::PushNotSupported, -32003, 400, Some("PUSH_NOTIFICATION_NOT_SUPPORTED")),
        (ErrorKind::UnsupportedOperation, -32004, 400, Some("UNSUPPORTED_OPERATION")),
        (ErrorKind::ContentTypeNotSupported, -32005, 400, Some("CONTENT_TYPE_NOT_SUPPORTED")),
        (ErrorKind::InvalidAgentResponse, -32006, 500, Some("INVALID_AGENT_RESPONSE")),
        (ErrorKind::ExtendedCardNotConfigured, -32007, 400, Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED")),
        (ErrorKind::ExtensionRequired, -32008, 400, Some("EXTENSION_SUPPORT_REQUIRED")),
        (ErrorKind::VersionNotSupported, -32009, 400, Some("VERSION_NOT_SUPPORTED")),
        (ErrorKind::QuestionSettled, -32011, 409, Some("QUESTION_SETTLED")),
        (ErrorKind::NotController, -32012, 403, Some("NOT_CONTROLLER")),
    ];
    assert_eq!(table.len(), ErrorKind::NAMED.len());
    for (kind, code, status, reason) in table {
        let error = Error::new(kind, "no");
        assert_eq!((error.code(), error.http_status(), error.reason()), (code, status, reason), "{kind:?}");
        assert_eq!(ErrorKind::of_code(code), kind);
    }
    assert_eq!(ErrorKind::of_code(-32050), ErrorKind::Other(-32050));
}

#[test]
fn v0_3_has_its_data_as_an_object_or_not_at_all() {
    let error = Error::new(ErrorKind::TaskNotFound, "no task t1");
    assert_eq!(Dialect::V0_3.write_error(&error), json!({ "code": -32001, "message": "no task t1" }));
    let error = error.with("taskId", "t1");
    assert_eq!(
        Dialect::V0_3.write_error(&error),
        json!({ "code": -32001, "message": "no task t1", "data": { "taskId": "t1" } })
    );
}

#[test]
fn v1_0_has_a_list_of_typed_details() {
    let error = Error::new(ErrorKind::QuestionSettled, "too late")
        .with("questionId", "q1")
        .with("settledBy", json!({ "client": "c2", "door": "a2a" }));
    assert_eq!(
        Dialect::V1_0.write_error(&error),
        json!({ "code": -32011, "message": "too late", "data": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "QUESTION_SETTLED",
                "domain": "multitap",
                "metadata": { "questionId": "q1", "settledBy": "{\"client\":\"c2\",\"door\":\"a2a\"}" },
            },
            {
                "@type": "type.googleapis.com/google.protobuf.Struct",
                "value": { "questionId": "q1", "settledBy": { "client": "c2", "door": "a2a" } },
            },
        ] })
    );
    let plain = Error::invalid_params("id: is missing");
    assert_eq!(Dialect::V1_0.write_error(&plain), json!({ "code": -32602, "message": "id: is missing" }));
}

#[test]
fn v1_0_on_rest_says_status_and_details() {
    let error = Error::new(ErrorKind::TaskNotFound, "no task t1");
    assert_eq!(
        Dialect::V1_0.write_rest_error(&error),
        json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "no task t1", "details": [{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND",
            "domain": "a2a-protocol.org",
            "metadata": {},
        }] } })
    );
}

#[test]
fn every_named_error_is_read_back_from_every_shape() {
    for kind in ErrorKind::NAMED {
        for error in [Error::new(kind, "why"), Error::new(kind, "why").with("n", 1).with("who", "me")] {
            assert_eq!(Dialect::read_error(Dialect::V0_3.write_error(&error)), error);
            assert_eq!(Dialect::read_error(Dialect::V1_0.write_error(&error)), error);
            if error.reason().is_some() {
                assert_eq!(Dialect::read_error(Dialect::V1_0.write_rest_error(&error)), error);
            }
        }
    }
}

#[test]
fn errors_of_strangers_are_read_as_far_as_they_go() {
    let check = |value, kind, message: &str| {
        let error = Dialect::read_error(value);
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    };
    check(json!({ "code": -32099, "message": "own" }), ErrorKind::Other(-32099), "own");
    check(json!({ "code": -32001 }), ErrorKind::TaskNotFound, "the agent gave no reason");
    check(json!({ "error": "Command not found" }), ErrorKind::Internal, "Command not found");
    check(json!("boom"), ErrorKind::Internal, "boom");
    check(json!(null), ErrorKind::Internal, "null");
    let free = Dialect::read_error(json!({ "code": -32603, "message": "m", "data": "stack" }));
    assert_eq!(free.data.get("data"), Some(&json!("stack")));
}
