//! Converts events of version 0.1: `system` events whose subtype had a meaning for programs. Each became a kind of its
//! own. Only this module knows those subtypes; every reader of an event gets the new kind.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::{AgentCapabilities, Event, EventKind, McpServerStatus, MessageId, SystemNote, TextRetraction};

/// The beginning of a `system` event after its envelope, as we wrote it.
const SYSTEM: &str = r#"system","subtype":""#;

/// Subtypes that became kinds. An agent's own `system` event with such a subtype must not be read as one of them.
const SUBTYPES: [&str; 7] =
    ["discarded", "nativeSession", "ruleAdded", "ruleRevoked", "mcpServer", "capabilities", "init"];

/// Whether a `system` event with this subtype would be read as another kind.
pub(crate) fn is_reserved(subtype: &str) -> bool {
    SUBTYPES.contains(&subtype)
}

/// Reads the kind of an event, whichever version wrote it.
pub(crate) fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EventKind, D::Error> {
    let kind = EventKind::deserialize(deserializer)?;
    let EventKind::System(note) = kind else { return Ok(kind) };
    Ok(converted(&note).unwrap_or(EventKind::System(note)))
}

/// The event, if version 0.1 wrote it and it has another kind today. Cheap for all other lines: reads only their
/// beginning.
pub fn upgraded(json: &str) -> Option<Event> {
    let (_, kind) = json.split_once(r#","type":""#)?;
    if !kind.strip_prefix(SYSTEM).and_then(|rest| rest.split_once('"')).is_some_and(|(word, _)| is_reserved(word)) {
        return None;
    }
    let event: Event = serde_json::from_str(json).ok()?;
    (!matches!(event.kind, EventKind::System(_))).then_some(event)
}

fn converted(note: &SystemNote) -> Option<EventKind> {
    let data = || Value::Object(note.data.clone());
    let text = |key: &str| note.data.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(match note.subtype.as_str() {
        "discarded" => {
            let ids = note.data.get("messageIds")?.as_array()?.iter();
            let message_ids = ids.filter_map(Value::as_str).map(MessageId::from).collect();
            EventKind::TextRetracted(TextRetraction { message_ids, message: note.message.clone() })
        }
        "nativeSession" => EventKind::NativeSessionChanged { native_session_id: text("nativeSessionId")? },
        "ruleAdded" => EventKind::RuleAdded(serde_json::from_value(data()).ok()?),
        "ruleRevoked" => EventKind::RuleRevoked(serde_json::from_value(data()).ok()?),
        "mcpServer" => {
            let tools = note.data.get("tools").and_then(Value::as_array);
            let tools = tools.map(|tools| tools.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            EventKind::McpServerStatus(McpServerStatus {
                name: text("name")?,
                status: text("status")?,
                error: text("error"),
                tools,
            })
        }
        "init" | "capabilities" => EventKind::Capabilities(AgentCapabilities {
            model: text("model"),
            images: images(&note.data),
            modes: modes(&note.data),
            // Only the built-in agent wrote these.
            stores_empty_conversations: ["tools", "model", "cwd"]
                .into_iter()
                .eq(note.data.keys().map(String::as_str))
                .then_some(true),
            data: note.data.clone(),
            ..AgentCapabilities::default()
        }),
        _ => return None,
    })
}

/// Whether the agent accepts images: agents that list their abilities include this one if they do.
fn images(data: &Map<String, Value>) -> Option<bool> {
    let abilities = data.get("agentCapabilities")?;
    Some(abilities.pointer("/promptCapabilities/image").and_then(Value::as_bool).unwrap_or(false))
}

/// The modes that an ACP agent lists at its start, as modes or as an option.
fn modes(data: &Map<String, Value>) -> Option<Vec<String>> {
    let words = |list: &Value, key: &str| -> Option<Vec<String>> {
        Some(list.as_array()?.iter().filter_map(|one| one.get(key)?.as_str().map(str::to_owned)).collect())
    };
    let listed = data.get("modes").and_then(|modes| words(modes.get("availableModes")?, "id"));
    listed.or_else(|| {
        let options = data.get("configOptions")?.as_array()?;
        let option = options.iter().find(|option| option.get("category").is_some_and(|category| category == "mode"))?;
        words(option.get("options")?, "value")
    })
}
