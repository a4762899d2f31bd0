//! Every recording of the real Claude Code, and what became of it.

use serde_json::Value;

use crate::recording::{events, play, recordings};

/// One event a line: no envelope, and long lists cut, so that a snapshot can be read.
fn shown(lines: &[String]) -> String {
    let events = events(play(lines.iter().map(String::as_str), false));
    let lines = events.iter().map(|event| {
        let mut event = serde_json::to_value(event).unwrap();
        for key in ["id", "sessionId", "timestamp", "seq"] {
            event.as_object_mut().unwrap().shift_remove(key);
        }
        if event["type"] == "system" {
            shorten(&mut event["data"]);
        }
        event.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Cuts lists to their first entry and maps to their keys.
fn shorten(data: &mut Value) {
    let Some(data) = data.as_object_mut() else { return };
    for value in data.values_mut() {
        match value {
            Value::Array(list) if list.len() > 1 => *value = format!("[{} entries]", list.len()).into(),
            Value::Object(map) if map.len() > 3 => *value = format!("{{{} fields}}", map.len()).into(),
            Value::String(text) if text.len() > 80 => *value = format!("[{} bytes]", text.len()).into(),
            _ => {}
        }
    }
}

#[test]
fn recordings_become_events() {
    for recording in recordings("claude") {
        insta::assert_snapshot!(recording.name.clone(), shown(&recording.lines));
    }
}
