//! Anything at all in the place of Claude's lines: the codec neither panics nor loses a line.

use std::sync::LazyLock;

use multitap_process::{Line, LineBuffer};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::invariants::check;
use crate::recording::{play, recordings};

static REAL: LazyLock<Vec<String>> =
    LazyLock::new(|| recordings("claude").into_iter().flat_map(|recording| recording.lines).collect());

pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,12}".prop_map(Value::from),
        Just(json!("toolu_1")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

const TYPES: [&str; 18] = [
    "assistant",
    "user",
    "system",
    "result",
    "stream_event",
    "tool_progress",
    "control_request",
    "control_response",
    "control_cancel_request",
    "auth_status",
    "init",
    "message",
    "tool_use",
    "tool_result",
    "error",
    "keep_alive",
    "rate_limit_event",
    "something_new",
];

const FIELDS: [&str; 26] = [
    "subtype",
    "message",
    "content",
    "id",
    "name",
    "input",
    "tool_use_id",
    "is_error",
    "session_id",
    "uuid",
    "event",
    "delta",
    "index",
    "request",
    "request_id",
    "response",
    "error",
    "usage",
    "modelUsage",
    "parent_tool_use_id",
    "permissionMode",
    "result",
    "status",
    "tool_use_result",
    "total_cost_usd",
    "errors",
];

/// An object of a known type with known fields, and anything in them.
fn odd_line() -> impl Strategy<Value = String> {
    let fields = prop::collection::vec((prop::sample::select(&FIELDS[..]), value()), 0..6);
    (prop::sample::select(&TYPES[..]), fields).prop_map(|(kind, fields)| {
        let mut line = json!({ "type": kind });
        for (name, value) in fields {
            line[name] = value;
        }
        line.to_string()
    })
}

/// A real line, with one of its values replaced.
pub(crate) fn bent_line(real: &'static [String]) -> impl Strategy<Value = String> {
    (0..real.len(), any::<prop::sample::Index>(), value()).prop_map(|(at, place, value)| {
        let mut line: Value = serde_json::from_str(&real[at]).unwrap();
        let mut paths = Vec::new();
        walk(&line, String::new(), &mut paths);
        if let Some(spot) = paths.get(place.index(paths.len().max(1))).and_then(|path| line.pointer_mut(path)) {
            *spot = value;
        }
        line.to_string()
    })
}

fn walk(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                walk(value, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), paths);
            }
        }
        Value::Array(list) => {
            for (at, value) in list.iter().enumerate() {
                walk(value, format!("{path}/{at}"), paths);
            }
        }
        _ => {}
    }
    if !path.is_empty() {
        paths.push(path);
    }
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[^\n]{0,60}",
        1 => value().prop_map(|value| value.to_string()),
        4 => odd_line(),
        4 => bent_line(&REAL),
        6 => (0..REAL.len()).prop_map(|at| REAL[at].clone()),
        1 => (0..REAL.len(), any::<prop::sample::Index>()).prop_map(|(at, cut)| {
            REAL[at].chars().take(cut.index(REAL[at].len())).collect()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_lost_and_everything_ends(lines in prop::collection::vec(any_line(), 0..40)) {
        let told = play(lines.iter().map(String::as_str), true);
        check("anything", &lines, &told);
    }

    #[test]
    fn bytes_may_be_cut_anywhere(
        bytes in prop::collection::vec(prop_oneof![9 => any::<u8>(), 2 => Just(b'\n'), 4 => Just(b'{')], 0..400),
        cuts in prop::collection::vec(1_usize..40, 1..20),
    ) {
        let lines = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut buffer = LineBuffer::new(1024);
            pieces.for_each(|piece| buffer.push(piece));
            buffer.finish();
            let text = |line| if let Line::Text(text) = line { text } else { String::new() };
            std::iter::from_fn(|| buffer.pop()).map(text).collect::<Vec<String>>()
        };
        let mut rest = bytes.as_slice();
        let mut sizes = cuts.iter().cycle();
        let mut pieces = std::iter::from_fn(|| {
            let size = rest.len().min(*sizes.next()?);
            let (piece, after) = rest.split_at(size);
            rest = after;
            (!piece.is_empty()).then_some(piece)
        });
        let cut = lines(&mut pieces);
        let whole = lines(&mut std::iter::once(bytes.as_slice()));
        let told = |lines: &[String]| play(lines.iter().map(String::as_str), true);
        prop_assert_eq!(told(&cut), told(&whole));
        check("bytes", &cut, &told(&cut));
    }
}
