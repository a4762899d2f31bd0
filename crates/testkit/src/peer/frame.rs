//! The content of an event, in whichever dialect a peer read it.
//!
//! Only the few things that tests of every peer ask for; what is particular to a dialect is looked up in the event.

use serde_json::Value;

/// The event, the task or the message itself: in 1.0 it is in a field named after its kind.
pub fn body(event: &Value) -> &Value {
    let kinds = ["task", "message", "statusUpdate", "artifactUpdate"];
    kinds.iter().find_map(|kind| event.get(kind).filter(|inner| inner.is_object())).unwrap_or(event)
}

pub fn task_id(event: &Value) -> Option<&str> {
    let body = body(event);
    let id = body.get("taskId").or_else(|| body.get("status").and(body.get("id")));
    id.and_then(Value::as_str)
}

pub fn context_id(event: &Value) -> Option<&str> {
    body(event)["contextId"].as_str()
}

/// The state in the event, in the words of 0.3.
pub fn state(event: &Value) -> Option<String> {
    let state = body(event)["status"]["state"].as_str()?;
    Some(state.strip_prefix("TASK_STATE_").unwrap_or(state).to_lowercase().replace('_', "-"))
}

pub fn parts(event: &Value) -> &[Value] {
    let body = body(event);
    let parts = body["status"]["message"]["parts"].as_array().or_else(|| body["parts"].as_array());
    parts.map_or(&[], Vec::as_slice)
}

pub fn text(event: &Value) -> String {
    parts(event).iter().filter_map(|part| part["text"].as_str()).collect()
}

/// The data of its message that has this field.
pub fn data<'a>(event: &'a Value, field: &str) -> Option<&'a Value> {
    parts(event).iter().filter_map(|part| part.get("data")).find(|data| data.get(field).is_some_and(|it| !it.is_null()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_dialects_say_the_same() {
        let said = |part: Value, state: &str| json!({"state": state, "message": {"parts": [part]}});
        let old = json!({
            "kind": "status-update", "taskId": "t", "contextId": "c", "final": true,
            "status": said(json!({"kind": "data", "data": {"tool_call_id": "1"}}), "input-required"),
        });
        let new = json!({"statusUpdate": {
            "taskId": "t", "contextId": "c",
            "status": said(json!({"data": {"tool_call_id": "1"}}), "TASK_STATE_INPUT_REQUIRED"),
        }});
        for event in [&old, &new] {
            assert_eq!((task_id(event), context_id(event)), (Some("t"), Some("c")));
            assert_eq!(state(event).as_deref(), Some("input-required"));
            assert_eq!(data(event, "tool_call_id").unwrap()["tool_call_id"], "1");
        }
        let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
        assert_eq!((task_id(&task), state(&task).as_deref()), (Some("t"), Some("completed")));
        let message = json!({"kind": "message", "messageId": "m", "parts": [{"kind": "text", "text": "hi"}]});
        assert_eq!((task_id(&message), state(&message), text(&message).as_str()), (None, None, "hi"));
    }
}
