//! The published schemas: of unified events, and of the agents' own lines.

use std::fs;

use jsonschema::Validator;
use multitap_adapter::CodexCodec;
use multitap_event::{Draft, Event};
use serde_json::{Map, Value, json};

use crate::recording::{events, fixtures, play, play_as, recordings};

/// The eight types that the published schema knows.
const PUBLISHED: [&str; 8] = [
    "sessionStarted",
    "textChunk",
    "toolStarted",
    "toolProgress",
    "toolCompleted",
    "fileChanged",
    "turnCompleted",
    "sessionEnded",
];

pub(crate) fn schema(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(fixtures(name)).unwrap()).unwrap()
}

pub(crate) fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

/// Holds events against the published schema and our own.
pub(crate) struct Schemas {
    published: Validator,
    ours: Validator,
}

impl Schemas {
    pub(crate) fn new() -> Self {
        let published = validator(&schema("unified-event.schema.json"));
        Self { published, ours: validator(&multitap_event::schema()) }
    }

    pub(crate) fn check(&self, from: &str, events: &[Event]) {
        for event in events {
            let value = serde_json::to_value(event).unwrap();
            if let Err(error) = self.ours.validate(&value) {
                panic!("{from}: our schema: {error}\n{value:#}");
            }
            let known = PUBLISHED.iter().any(|kind| value["type"] == *kind);
            if let Err(error) = self.published.validate(&value).or_else(|error| if known { Err(error) } else { Ok(()) })
            {
                panic!("{from}: the published schema: {error}\n{value:#}");
            }
        }
    }
}

#[test]
fn every_recording_fits_both_schemas() {
    let schemas = Schemas::new();
    for recording in recordings("claude") {
        schemas.check(&recording.name, &events(play(recording.lines.iter().map(String::as_str), true)));
    }
    for recording in recordings("codex") {
        let lines = recording.lines.iter().map(String::as_str);
        schemas.check(&recording.name, &events(play_as(&mut CodexCodec::recorded(), lines, true)));
    }
}

/// Values that fit a schema: enough of them that every field is seen with every sort of value it may have.
pub(crate) fn instances(schema: &Value) -> Vec<Value> {
    if let Some(value) = schema.get("const") {
        return vec![value.clone()];
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.clone();
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        Value::String(kind) => vec![kind.as_str()],
        _ => vec!["object"],
    };
    kinds.into_iter().flat_map(|kind| of_kind(kind, schema)).collect()
}

fn of_kind(kind: &str, schema: &Value) -> Vec<Value> {
    match kind {
        "string" if schema["format"] == "date-time" => vec![json!("2025-12-03T10:00:00.000Z")],
        "string" => vec![json!("text"), json!("")],
        "integer" => vec![json!(3), json!(0)],
        "number" => vec![json!(1.5), json!(0), json!(7)],
        "boolean" => vec![json!(true), json!(false)],
        "null" => vec![Value::Null],
        "array" => {
            let items = schema.get("items").map(instances).unwrap_or_default();
            vec![json!([]), Value::Array(items)]
        }
        _ => match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => objects(properties, schema),
            None => vec![
                json!({}),
                json!({ "role": "user", "content": "text" }),
                json!({ "role": "assistant", "content": [{ "type": "text", "text": "a" }, { "type": "tool_use", "id": "t", "name": "Read", "input": {} }] }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "a" } }),
                json!({ "input_tokens": 1, "output_tokens": 2 }),
            ],
        },
    }
}

/// Only what must be there; then everything, with each field in each of its forms.
fn objects(properties: &Map<String, Value>, schema: &Value) -> Vec<Value> {
    let forms: Map<String, Value> =
        properties.iter().map(|(name, one)| (name.clone(), instances(one).into())).collect();
    let first = |name: &String| (name.clone(), forms[name][0].clone());
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let least = properties.keys().filter(|name| required.iter().any(|one| one == name.as_str())).map(first).collect();
    let most: Map<String, Value> = properties.keys().map(first).collect();
    let mut objects = vec![Value::Object(least), Value::Object(most.clone())];
    for (name, forms) in &forms {
        for form in forms.as_array().unwrap() {
            let mut object = most.clone();
            object.insert(name.clone(), form.clone());
            objects.push(object.into());
        }
    }
    objects
}

/// Lines that fit a published schema are understood, and what they become fits too.
fn check_lines(name: &str, least: usize, play: impl Fn(&str) -> Vec<Draft>) {
    let schema = schema(name);
    let fits = validator(&schema);
    let schemas = Schemas::new();
    let mut seen = 0;
    for variant in schema["oneOf"].as_array().unwrap() {
        let variant = resolved(variant, &schema);
        for line in instances(&variant).into_iter().filter(|line| fits.is_valid(line)) {
            let line = line.to_string();
            let events = events(play(&line));
            for event in &events {
                let kind = serde_json::to_value(&event.kind).unwrap();
                assert_ne!(kind["type"], "unrecognized", "{line}\n{kind:#}");
            }
            schemas.check(&line, &events);
            seen += 1;
        }
    }
    assert!(seen > least, "only {seen} lines were made");
}

/// A part of a schema with what it refers to put in its place.
fn resolved(part: &Value, schema: &Value) -> Value {
    match part {
        Value::Object(map) => match map.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix('#')) {
            Some(at) => resolved(schema.pointer(at).unwrap(), schema),
            None => map.iter().map(|(key, value)| (key.clone(), resolved(value, schema))).collect(),
        },
        other => other.clone(),
    }
}

#[test]
fn every_line_of_the_published_claude_schema_is_understood() {
    check_lines("claude-event.schema.json", 100, |line| play([line], false));
}

#[test]
fn every_line_of_the_published_codex_schema_is_understood() {
    check_lines("codex-event.schema.json", 50, |line| play_as(&mut CodexCodec::recorded(), [line], false));
}
