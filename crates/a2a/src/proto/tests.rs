//! Compares with what Google's library made of the official definition (`tests/fixtures/proto.json`, written by
//! `proto.py`), and reads bytes that nobody would send.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::decode::MAX_DEPTH;
use super::*;
use crate::json::MAX_VALUES;
use crate::model::Map;

/// A message of every type, with every field.
#[derive(Debug, Deserialize)]
struct Fixture {
    message: String,
    json: Map,
    bytes: String,
}

impl Fixture {
    fn all() -> Vec<(&'static MessageType, Value, Vec<u8>)> {
        let all: Vec<Self> = serde_json::from_str(include_str!("../../tests/fixtures/proto.json")).unwrap();
        let read =
            |it: Self| (message(&it.message), whole(Value::Object(it.json)), BASE64_STANDARD.decode(it.bytes).unwrap());
        all.into_iter().map(read).collect()
    }
}

fn message(name: &str) -> &'static MessageType {
    match name {
        "SendMessageRequest" => &messages::SEND_MESSAGE_REQUEST,
        "SendMessageResponse" => &messages::SEND_MESSAGE_RESPONSE,
        "StreamResponse" => &messages::STREAM_RESPONSE,
        "GetTaskRequest" => &messages::GET_TASK_REQUEST,
        "ListTasksRequest" => &messages::LIST_TASKS_REQUEST,
        "ListTasksResponse" => &messages::LIST_TASKS_RESPONSE,
        "CancelTaskRequest" => &messages::CANCEL_TASK_REQUEST,
        "SubscribeToTaskRequest" => &messages::SUBSCRIBE_REQUEST,
        "Task" => &messages::TASK,
        "TaskPushNotificationConfig" => &messages::PUSH_CONFIG,
        "GetTaskPushNotificationConfigRequest" | "DeleteTaskPushNotificationConfigRequest" => {
            &messages::PUSH_CONFIG_REQUEST
        }
        "ListTaskPushNotificationConfigsRequest" => &messages::LIST_PUSH_CONFIGS_REQUEST,
        "ListTaskPushNotificationConfigsResponse" => &messages::LIST_PUSH_CONFIGS_RESPONSE,
        "GetExtendedAgentCardRequest" => &messages::CARD_REQUEST,
        "AgentCard" => &messages::CARD,
        other => panic!("{other}"),
    }
}

/// Whole numbers without a fraction, as we write them.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 1e15 => json!(float as i64),
            _ => number.into(),
        },
        Value::Array(items) => items.into_iter().map(whole).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, whole(value))).collect(),
        other => other,
    }
}

#[test]
fn every_field_is_read_and_written_as_the_official_library_does() {
    for (message, json, bytes) in Fixture::all() {
        let read = decode(message, &bytes).unwrap();
        assert_eq!(Value::Object(read.clone()), json);
        assert_eq!(encode(message, &read).unwrap(), bytes, "{json:#}");
        let written = encode(message, json.as_object().unwrap()).unwrap();
        assert_eq!(Value::Object(decode(message, &written).unwrap()), json);
    }
}

#[test]
fn unknown_fields_of_any_shape_are_skipped() {
    let unknown: [&[u8]; 6] = [
        &[0xa0, 0x06, 0xff, 0x01],
        &[0xa1, 0x06, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0xa2, 0x06, 2, 0xff, 0xff],
        // A group with a group and a text in it.
        &[0xa3, 0x06, 0x0b, 0x12, 1, b'x', 0x0c, 0xa4, 0x06],
        &[0xa5, 0x06, 1, 2, 3, 4],
        // A known field of another shape.
        &[0x08, 0x01],
    ];
    for bytes in unknown {
        let around = [&[0x0a, 1, b'a'], bytes, &[0x12, 1, b'b']].concat();
        let read = decode(&messages::TASK, &around).unwrap();
        assert_eq!(Value::Object(read), json!({ "id": "a", "contextId": "b" }), "{bytes:x?}");
    }
}

#[test]
fn the_last_value_counts_and_messages_are_merged() {
    // Twice the id, then none; twice a status, with a state and with a time.
    let bytes =
        [&[0x0a, 1, b'a', 0x0a, 1, b'b', 0x12, 1, b'c', 0x12, 0][..], &[0x1a, 2, 8, 2, 0x1a, 2, 0x1a, 0]].concat();
    let read = decode(&messages::TASK, &bytes).unwrap();
    let status = json!({ "state": "TASK_STATE_WORKING", "timestamp": "1970-01-01T00:00:00Z" });
    assert_eq!(Value::Object(read), json!({ "id": "b", "status": status }));
    // Of several contents of a part, the last.
    let message = [0x12, 9, 0x2a, 7, 0x0a, 1, b'a', 0x1a, 2, b'b', b'c'];
    let read = decode(&messages::SEND_MESSAGE_REQUEST, &message).unwrap();
    assert_eq!(Value::Object(read), json!({ "message": { "parts": [{ "url": "bc" }] } }));
}

#[test]
fn broken_bytes_are_refused() {
    let overlong = [&[0x18][..], &[0xff; 10], &[1]].concat();
    let cases: [(&[u8], DecodeError); 8] = [
        (&[0x12], DecodeError::Truncated),
        (&[0x12, 5, b'a'], DecodeError::Truncated),
        (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], DecodeError::Truncated),
        (&[0x00, 1], DecodeError::Malformed),
        (&[0x16, 1], DecodeError::Malformed),
        (&[0x14], DecodeError::Malformed),
        (&[0x12, 2, 0xff, 0xff], DecodeError::Text("id")),
        (&overlong, DecodeError::Malformed),
    ];
    for (bytes, error) in cases {
        assert_eq!(decode(&messages::GET_TASK_REQUEST, bytes), Err(error), "{bytes:x?}");
    }
    let nan = [&[0x1a, 15, 0x0a, 13, 0x0a, 0, 0x12, 9, 0x11][..], &f64::NAN.to_le_bytes()].concat();
    assert_eq!(decode(&messages::CANCEL_TASK_REQUEST, &nan), Err(DecodeError::NotFinite));
    let late = [&[0x3a, 11, 8][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x10]].concat();
    let late = [&late[..], &[1]].concat();
    assert_eq!(decode(&messages::LIST_TASKS_REQUEST, &late[..]), Err(DecodeError::Time("statusTimestampAfter")));
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
}

#[test]
fn depth_is_bounded() {
    let at = |depth| json!({ "metadata": { "m": nested(depth) } });
    let bytes = |depth| encode(&messages::CANCEL_TASK_REQUEST, at(depth).as_object().unwrap()).unwrap();
    let read = decode(&messages::CANCEL_TASK_REQUEST, &bytes(MAX_DEPTH - 1)).unwrap();
    assert_eq!(Value::Object(read), at(MAX_DEPTH - 1));
    assert_eq!(decode(&messages::CANCEL_TASK_REQUEST, &bytes(MAX_DEPTH)), Err(DecodeError::TooDeep));
    let groups = [0x0b; 100_000];
    assert_eq!(decode(&messages::CANCEL_TASK_REQUEST, &groups), Err(DecodeError::Truncated));
}

#[test]
fn the_number_of_values_is_bounded() {
    let list = json!({ "metadata": { "m": vec![Value::Null; MAX_VALUES] } });
    let texts = json!({ "message": { "extensions": vec![""; MAX_VALUES] } });
    let parts = json!({ "message": { "parts": vec![json!({}); MAX_VALUES] } });
    for many in [list, texts, parts] {
        let bytes = encode(&messages::SEND_MESSAGE_REQUEST, many.as_object().unwrap()).unwrap();
        assert_eq!(decode(&messages::SEND_MESSAGE_REQUEST, &bytes), Err(DecodeError::TooManyValues));
    }
    let few = json!({ "metadata": { "m": vec![Value::Null; MAX_VALUES - 10] } });
    let bytes = encode(&messages::SEND_MESSAGE_REQUEST, few.as_object().unwrap()).unwrap();
    assert_eq!(Value::Object(decode(&messages::SEND_MESSAGE_REQUEST, &bytes).unwrap()), few);
}

#[test]
fn values_of_another_kind_are_not_written() {
    for wrong in [
        json!({ "id": 1 }),
        json!({ "status": [] }),
        json!({ "status": { "state": "WORKING" } }),
        json!({ "status": { "timestamp": "today" } }),
        json!({ "history": {} }),
        json!({ "history": [{ "parts": [{ "raw": "?" }] }] }),
        json!({ "metadata": "a" }),
    ] {
        assert!(encode(&messages::TASK, wrong.as_object().unwrap()).is_err(), "{wrong}");
    }
    let url_safe = json!({ "history": [{ "parts": [{ "raw": "_-8" }] }] });
    let bytes = encode(&messages::TASK, url_safe.as_object().unwrap()).unwrap();
    assert_eq!(decode(&messages::TASK, &bytes).unwrap()["history"][0]["parts"][0]["raw"], "/+8=");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) + 0.5)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_comes_back_the_same(data in any_json(), text in ".{0,200}", metadata in any_json()) {
        let json = json!({ "message": { "messageId": "m", "parts": [
            { "data": data, "metadata": { "m": metadata } }, { "text": text },
        ] } });
        let bytes = encode(&messages::STREAM_RESPONSE, json.as_object().unwrap()).unwrap();
        prop_assert_eq!(Value::Object(decode(&messages::STREAM_RESPONSE, &bytes).unwrap()), json);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for message in [&messages::SEND_MESSAGE_REQUEST, &messages::LIST_TASKS_REQUEST, &messages::CARD] {
            decode(message, &bytes).ok();
        }
    }

    #[test]
    fn damaged_messages_do_not_panic(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8) {
        let all = Fixture::all();
        let (message, _, bytes) = which.get(&all);
        let mut bytes = bytes.clone();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(read) = decode(message, &bytes) {
                // What was read can be written, but for names of enums that only a number has.
                encode(message, &read).ok();
            }
        }
    }
}
