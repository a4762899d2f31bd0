//! What holds of every script's frames, whatever they tell: the rules of the `development-tool` specification and ours.

use std::collections::{BTreeMap, HashSet};

use multitap_a2a::devtool::{URI, coder};
use multitap_a2a::{Dialect, Update};
use multitap_event::{Event, EventKind, SystemNote, SystemSubtype, TextRetraction};
use multitap_testkit::script;
use serde_json::{Value, json};

use super::{FORMS, frames, script_frames, written};
use crate::a2a::encode::OURS;
use crate::a2a::frame::Frame;

const TERMINAL: [&str; 3] = ["SUCCEEDED", "FAILED", "CANCELLED"];

/// Every script with its frames, as 0.3 in the specification's spelling.
fn all() -> Vec<(String, Vec<Frame>, Vec<Value>)> {
    let names = script::names().unwrap().into_iter();
    let read = |name: String| {
        let frames = script_frames(&name);
        let json = written(&frames, FORMS[0].1);
        (name, frames, json)
    };
    names.map(read).collect()
}

fn about(frame: &Value) -> &Value {
    &frame["metadata"][URI]
}

/// The tool call that a frame carries.
fn tool(frame: &Value) -> Option<&Value> {
    let data = &frame["status"]["message"]["parts"][0]["data"];
    data.get("tool_call_id").map(|_| data)
}

/// A frame in a few words.
fn word(frame: &Value) -> String {
    let state = frame["status"]["state"].as_str().unwrap();
    if frame["kind"] == "task" {
        return format!("Task {state}");
    }
    let mut words = vec![about(frame)["kind"].as_str().unwrap()];
    match tool(frame) {
        Some(tool) => words.push(tool["status"].as_str().unwrap()),
        None if words[0] == "STATE_CHANGE" => words.push(state),
        None => {}
    }
    words.extend(tool(frame).and_then(|tool| tool.get("confirmation_request")).map(|_| "asked"));
    words.extend((frame["final"] == true).then_some("final"));
    words.join(" ")
}

/// R000-54 to R000-60: the example at the end of the specification, event by event.
#[test]
fn the_example_of_the_specification() {
    let frames = written(&script_frames("gemini_write"), FORMS[0].1);
    let words: Vec<String> = frames.iter().map(word).collect();
    let expected = [
        "Task submitted",
        "STATE_CHANGE working",
        "TOOL_CALL_UPDATE PENDING asked",
        "STATE_CHANGE input-required final",
        "TOOL_CALL_UPDATE EXECUTING",
        "TOOL_CALL_UPDATE SUCCEEDED",
        "TEXT_CONTENT",
        "TEXT_CONTENT",
        "STATE_CHANGE completed final",
    ];
    assert_eq!(words, expected);
}

#[test]
fn every_frame_says_where_it_belongs_and_what_it_is() {
    for (name, frames, json) in all() {
        let context = frames[0].scope.context.to_string();
        assert!(frames.windows(2).all(|pair| pair[0].cursor < pair[1].cursor), "{name}");
        for (frame, json) in frames.iter().zip(&json) {
            assert_eq!(json["contextId"], context, "{name}: {json}");
            let task = json.get("taskId").or(json.get("id")).unwrap();
            assert_eq!(task, &format!("task-{context}"), "{name}: {json}");
            assert_eq!(json["metadata"][OURS]["cursor"], frame.cursor.to_string(), "{name}");
            let shipped = match about(json)["kind"].as_str().unwrap() {
                "TOOL_CALL_UPDATE" if word(json).ends_with("asked") => "tool-call-confirmation",
                "TOOL_CALL_UPDATE" => "tool-call-update",
                "TEXT_CONTENT" => "text-content",
                "STATE_CHANGE" => "state-change",
                "THOUGHT" => "thought",
                other => panic!("{name}: {other}"),
            };
            assert_eq!(json["metadata"][coder::KEY]["kind"], shipped, "{name}");
        }
        // Once the model is known, every frame names it.
        let models: Vec<bool> = json.iter().map(|frame| about(frame).get("model").is_some()).collect();
        assert!(models.is_sorted() && models.last() == Some(&true), "{name}: {models:?}");
    }
}

/// R000-18 to R000-30.
#[test]
fn a_tool_call_is_whole_in_every_update_and_ends_once() {
    for (name, _, json) in all() {
        let mut lives: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for tool in json.iter().filter_map(tool) {
            lives.entry(tool["tool_call_id"].as_str().unwrap()).or_default().push(tool);
        }
        for (id, life) in lives {
            let status: Vec<&str> = life.iter().map(|tool| tool["status"].as_str().unwrap()).collect();
            let place = format!("{name}, {id}: {status:?}");
            assert_eq!(status[0], "PENDING", "{place}");
            let (last, before) = status.split_last().unwrap();
            assert!(TERMINAL.contains(last) && !before.iter().any(|one| TERMINAL.contains(one)), "{place}");
            assert!(*last == "CANCELLED" || before.last() == Some(&"EXECUTING"), "{place}");
            for tool in &life {
                assert!(tool["tool_name"].is_string() && tool["input_parameters"].is_object(), "{place}");
                assert_eq!(tool["tool_name"], life[0]["tool_name"], "{place}");
                assert_eq!(tool["input_parameters"], life[0]["input_parameters"], "{place}");
                check_parts(tool, &place);
            }
            let live: Vec<&str> = life.iter().filter_map(|tool| tool["live_content"].as_str()).collect();
            assert!(live.windows(2).all(|pair| pair[1].starts_with(pair[0])), "{place}: {live:?}");
        }
    }
}

/// R000-18: whoever sees only the frame of a running edit sees what it changes.
#[test]
fn an_edit_shows_its_change_while_it_runs() {
    let mut shown = 0;
    for (name, _, json) in all() {
        let log: Vec<Event> = script::events(&name).unwrap();
        for event in &log {
            let EventKind::FileChanged(change) = &event.kind else { continue };
            let id = change.tool_id.as_ref().unwrap().as_str();
            let is_running = |frame: &&Value| {
                tool(frame).is_some_and(|tool| tool["tool_call_id"] == id && tool["status"] == "EXECUTING")
            };
            let edited = log.iter().any(|event| matches!(&event.kind, EventKind::PermissionSettled(it) if it.edited));
            for frame in json.iter().filter(is_running).filter(|_| !edited) {
                let told = &frame["metadata"][OURS]["changes"][0];
                assert_eq!(told["file_path"], change.file_path, "{name}: {frame:#}");
                assert_eq!(told["formatted_diff"].as_str(), change.diff.as_deref(), "{name}: {frame:#}");
                shown += 1;
            }
        }
    }
    assert!(shown > 3, "{shown}");
}

fn check_parts(tool: &Value, place: &str) {
    let status = tool["status"].as_str().unwrap();
    let has = |key: &str| tool.get(key).is_some();
    assert_eq!(has("output"), status == "SUCCEEDED", "{place}");
    assert_eq!(has("error"), status == "FAILED" || status == "CANCELLED", "{place}");
    assert!(!has("live_content") || status == "EXECUTING", "{place}");
    assert!(!has("confirmation_request") || status == "PENDING", "{place}");
    if let Some(output) = tool.get("output") {
        let kinds: Vec<&String> = output.as_object().unwrap().keys().collect();
        assert!(kinds.len() == 1 && ["text", "diff", "structured_data"].contains(&kinds[0].as_str()), "{place}");
    }
    if let Some(error) = tool.get("error") {
        assert!(!error["message"].as_str().unwrap().is_empty(), "{place}");
    }
}

/// R000-31 to R000-36, R003-18 to R003-21.
#[test]
fn a_question_has_options_one_kind_of_details_and_an_id_and_ends_the_stream() {
    let mut kinds = HashSet::new();
    for (name, _, json) in all() {
        for (at, frame) in json.iter().enumerate() {
            let Some(request) = tool(frame).and_then(|tool| tool.get("confirmation_request")) else { continue };
            let options: Vec<&str> =
                request["options"].as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
            assert_eq!(options.iter().collect::<HashSet<_>>().len(), options.len(), "{name}");
            assert!(options.contains(&"cancel") && options.len() > 1, "{name}: {options:?}");
            let details: Vec<&String> = request.as_object().unwrap().keys().filter(|key| *key != "options").collect();
            assert_eq!(details.len(), 1, "{name}: {details:?}");
            kinds.insert(details[0].clone());
            assert_eq!(frame["status"]["state"], "input-required", "{name}");
            let correlation = about(frame)["correlationId"].as_str().unwrap();
            let next = &json[at + 1];
            assert_eq!(word(next), "STATE_CHANGE input-required final", "{name}");
            assert_eq!(about(next)["correlationId"], correlation, "{name}");
            // Every later frame of the call belongs to the question, and none of them asks it again.
            let id = &tool(frame).unwrap()["tool_call_id"];
            let of_call = |frame: &&Value| tool(frame).is_some_and(|tool| tool["tool_call_id"] == *id);
            let mut later = json[at + 1..].iter().filter(of_call).peekable();
            assert!(later.peek().is_some(), "{name}");
            assert!(later.all(|frame| about(frame)["correlationId"] == correlation), "{name}");
        }
    }
    let expected = ["execute_details", "file_edit_details", "generic_details", "mcp_details"];
    assert_eq!(kinds, expected.map(str::to_owned).into());
}

#[test]
fn both_dialects_tell_the_same() {
    for (name, frames, _) in all() {
        for (old, new) in [(0, 2), (1, 3)] {
            for frame in &frames {
                let read = |dialect: Dialect, form: usize| {
                    let json = serde_json::from_str(frame.json(FORMS[form].1)).unwrap();
                    dialect.read_update(&json).unwrap()
                };
                let (mut old, new) = (read(Dialect::V0_3, old), read(Dialect::V1_0, new));
                // Only 0.3 says which frame is the last; in 1.0 a state says it.
                if let (Update::Status(old), Update::Status(new)) = (&mut old, &new) {
                    assert_eq!(old.is_final, frame.ends.is_some(), "{name}");
                    old.is_final = new.is_final;
                }
                assert_eq!(old, new, "{name} {}", frame.cursor);
            }
        }
    }
}

/// R000-60: to clients of the shipped spelling a turn that is over waits for the next.
#[test]
fn the_shipped_spelling_never_completes() {
    for (name, frames, json) in all() {
        for (specified, shipped) in json.iter().zip(written(&frames, FORMS[1].1)) {
            let state = |frame: &Value| frame["status"]["state"].clone();
            let expected = if state(specified) == "completed" { "input-required".into() } else { state(specified) };
            if shipped["kind"] != "artifact-update" {
                assert_eq!(state(&shipped), expected, "{name}");
            }
            assert_eq!(
                shipped["final"],
                if shipped["kind"] == "status-update" { specified["final"].clone() } else { Value::Null }
            );
        }
    }
}

#[test]
fn what_is_not_kept_and_what_is_void_is_told() {
    let mut events: Vec<Event> = script::events("text").unwrap();
    let said = events.iter().position(|event| matches!(event.kind, EventKind::TextChunk(_))).unwrap();
    let notes = [
        (SystemSubtype::LOG, json!({ "durable": false }), "the disk is full"),
        (SystemSubtype::LOG, json!({ "durable": true }), "the log is stored again"),
    ];
    let retracted = EventKind::TextRetracted(TextRetraction::interrupted(vec!["m-1".into()]));
    events.insert(said + 1, Event { kind: retracted, ..events[said].clone() });
    for (subtype, data, message) in notes.into_iter().rev() {
        let Value::Object(data) = data else { panic!("an object") };
        let note = SystemNote { subtype: subtype.to_owned(), message: Some(message.to_owned()), data };
        let event = Event { kind: EventKind::System(note), ..events[said].clone() };
        events.insert(said + 1, event);
    }
    for (seq, event) in (1..).zip(&mut events) {
        event.seq = seq;
    }
    let frames = written(&frames(&events), FORMS[0].1);
    let told: Vec<Value> = frames
        .iter()
        .map(|frame| frame["metadata"][OURS].clone())
        .filter(|ours| ["durable", "warning", "discardedMessageIds"].iter().any(|key| ours.get(key).is_some()))
        .collect();
    let at = |next: usize| (said + 1 + next).to_string();
    let expected = json!([
        { "cursor": at(1), "durable": false, "warning": "the disk is full" },
        { "cursor": at(2), "durable": true },
        { "cursor": at(3), "discardedMessageIds": ["m-1"] },
    ]);
    assert_eq!(json!(told), expected);
}
