//! Events in a form that people can read and compare: one a line.

use multitap_event::Event;
use serde_json::Value;

/// No envelope, and what is long in notes cut short.
pub(crate) fn shown(events: &[Event]) -> String {
    let lines = events.iter().map(|event| {
        let mut event = serde_json::to_value(event).unwrap();
        for key in ["id", "sessionId", "timestamp", "seq"] {
            event.as_object_mut().unwrap().shift_remove(key);
        }
        if matches!(event["type"].as_str(), Some("system" | "capabilities"))
            && let Some(data) = event.get_mut("data")
        {
            shorten(data);
        }
        event.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Cuts lists and maps to how many entries they have, and texts to how long they are.
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
