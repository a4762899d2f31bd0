//! Converts entries of older versions to the entries of today: the bare lines of the first stored sessions, and logs of
//! the protocol before threads (`newConversation`, `sendUserMessage`, `codex/event/…`; earlier still `createThread`,
//! `createTurn`).

use serde_json::{Map, Value, json};

use crate::codex::wire::Fields;
use crate::json::JsonFields as _;

/// An entry, and whether the file contains it in this form.
pub(super) struct Entry {
    pub(super) fields: Fields,
    pub(super) as_written: bool,
}

/// Parses a line; a line that is not an object has no fields.
pub(super) fn entry(line: &str) -> Entry {
    let written: Fields = serde_json::from_str(line).unwrap_or_default();
    let older = match (written.text("type"), written.text("method")) {
        (Some(kind), None) if is_response_item(kind) && written.get("payload").is_none() => {
            Some(of("response_item", &written, written.0.clone()))
        }
        (None, Some(method)) => of_call(method, &written),
        (None, None) if written.get("recordType").is_some() => Some(of("world_state", &written, written.0.clone())),
        // The head of the oldest files: id and time, but no type.
        (None, None) if written.get("id").is_some() && written.get("timestamp").is_some() => {
            Some(of("session_meta", &written, written.0.clone()))
        }
        (None, None) => of_reply(&written),
        _ => None,
    };
    match older {
        Some(fields) => Entry { fields, as_written: false },
        None => Entry { fields: written, as_written: true },
    }
}

fn of(kind: &str, written: &Fields, payload: Map<String, Value>) -> Fields {
    let mut entry = Map::from_iter([("type".to_owned(), kind.into()), ("payload".to_owned(), payload.into())]);
    entry.extend(written.get("timestamp").map(|at| ("timestamp".to_owned(), at.clone())));
    Fields(entry)
}

fn is_response_item(kind: &str) -> bool {
    matches!(
        kind,
        "message"
            | "reasoning"
            | "function_call"
            | "function_call_output"
            | "custom_tool_call"
            | "custom_tool_call_output"
            | "local_shell_call"
            | "web_search_call"
    )
}

/// An event, or a request of the client, as an entry.
fn of_call(method: &str, written: &Fields) -> Option<Fields> {
    let params = written.fields("params");
    if method.starts_with("codex/event/") {
        let message = params.fields("msg");
        return Some(of("event_msg", written, if message.is_empty() { params.0 } else { message.0 }));
    }
    match method {
        "newConversation" | "resumeConversation" | "createThread" | "resumeThread" => {
            let mut about = params.0;
            // For a resumed conversation: it keeps its id.
            let id = ["conversationId", "conversation_id", "threadId", "thread_id"].into_iter();
            let id = id.filter_map(|key| about.shift_remove(key)).next();
            about.extend(id.map(|id| ("id".to_owned(), id)));
            Some(of("session_meta", written, about))
        }
        "sendUserMessage" | "sendUserTurn" | "createTurn" => {
            let given = ["items", "input", "message", "prompt"].into_iter().find_map(|key| params.get(key))?;
            let text = |part: &Value| {
                let text = part.text("text").or(part.field("data").text("text"));
                text.map(|text| json!({ "type": "input_text", "text": text }))
            };
            let content: Vec<Value> = match given {
                Value::String(text) => vec![json!({ "type": "input_text", "text": text })],
                Value::Array(parts) => parts.iter().filter_map(text).collect(),
                _ => return None,
            };
            let message = json!({ "type": "message", "role": "user", "content": content });
            Some(of("response_item", written, Fields::of(Some(&message)).0))
        }
        // These are requests to the client.
        "execCommandApproval" | "applyPatchApproval" => None,
        _ if method.contains('/') => None,
        other => {
            let mut emitted = Map::from_iter([("type".to_owned(), other.into())]);
            emitted.extend(params.0);
            Some(of("event_msg", written, emitted))
        }
    }
}

/// The reply to a client that a conversation is open, as an entry.
fn of_reply(written: &Fields) -> Option<Fields> {
    let mut about = written.fields("result").0;
    let id = ["conversationId", "threadId", "thread_id"].into_iter().find_map(|key| about.shift_remove(key))?;
    about.insert("id".to_owned(), id);
    Some(of("session_meta", written, about))
}

/// The folder, from Codex's description of the environment for the model; some files report it only there.
pub(super) fn folder_told(entry: &Fields) -> Option<String> {
    let payload = entry.fields("payload");
    let mut parts = payload.list("content").iter().filter_map(|part| part.text("text"));
    let text = parts.rfind(|text| text.contains("<environment_context>"))?.to_owned();
    let line = |line: &str| line.trim().strip_prefix("Current working directory: ").map(str::to_owned);
    let tag = || Some(text.split_once("<cwd>")?.1.split_once("</cwd>")?.0.to_owned());
    tag().or_else(|| text.lines().find_map(line))
}
