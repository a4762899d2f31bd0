//! HTTP+JSON of 0.3: bodies in the JSON form of its gRPC messages (`content` for `parts`, no `kind`, enum names in
//! capitals), while JSON-RPC has the shapes of the parent module. Servers answer in that form, some with its original
//! field names (`msg`, `task_id`); some answer as on JSON-RPC. All are read.

use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::model::{Content, Map, Message, Part, TaskState};
use crate::params;
use crate::request::{PushConfig, SendMessage};
use crate::write::{filled, present};

/// The body of `message:send` and `message:stream`.
pub(crate) fn send(send: &SendMessage) -> Value {
    let asked = &send.configuration;
    let configuration = present(json!({
        "blocking": !asked.return_immediately,
        "historyLength": asked.history_length,
        "acceptedOutputModes": filled(&asked.accepted_output_modes),
        "pushNotification": asked.push.as_ref().map(write_push_config),
    }));
    Value::Object(present(json!({
        "message": message(&send.message),
        "configuration": configuration,
        "metadata": filled(&send.metadata),
    })))
}

/// The body that creates a push config.
pub(crate) fn create_push_config(task_id: &str, config: &PushConfig) -> Value {
    let parent = format!("tasks/{task_id}");
    let id = config.id.clone().unwrap_or_default();
    let name = format!("{parent}/pushNotificationConfigs/{id}");
    let config = json!({ "name": name, "pushNotificationConfig": write_push_config(config) });
    json!({ "parent": parent, "configId": id, "config": config })
}

fn write_push_config(config: &PushConfig) -> Value {
    params::write_push_config(Dialect::V0_3, None, config)
}

fn message(message: &Message) -> Value {
    Value::Object(present(json!({
        "messageId": message.message_id,
        "role": Dialect::V1_0.role_word(message.role),
        "content": message.parts.iter().map(part).collect::<Vec<_>>(),
        "contextId": message.context_id,
        "taskId": message.task_id,
        "extensions": filled(&message.extensions),
        "metadata": filled(&message.metadata),
    })))
}

fn part(part: &Part) -> Value {
    let file = |key: &str, content: &str| json!({ "file": present(json!({ key: content, "mimeType": part.media_type, "name": part.filename })) });
    let mut body = match &part.content {
        Content::Text(text) => json!({ "text": text }),
        Content::Raw(bytes) => file("fileWithBytes", bytes),
        Content::Url(url) => file("fileWithUri", url),
        Content::Data(data) if data.is_object() => json!({ "data": { "data": data } }),
        // As on JSON-RPC: the dialect has only objects.
        Content::Data(data) => json!({ "data": { "data": { "value": data } }, "metadata": { super::WRAPPED: true } }),
    };
    for (key, value) in &part.metadata {
        body["metadata"][key] = value.clone();
    }
    body
}

/// Converts an answer or an update to the shapes of JSON-RPC.
pub(crate) fn result(value: Value) -> Value {
    let Value::Object(mut map) = value else { return value };
    for (names, kind) in [
        (["task", "task"], "task"),
        (["message", "msg"], "message"),
        (["statusUpdate", "status_update"], "status-update"),
        (["artifactUpdate", "artifact_update"], "artifact-update"),
    ] {
        let inner = names.iter().find_map(|name| map.get(*name)).and_then(Value::as_object);
        if let Some(inner) = inner.filter(|_| !map.contains_key("kind") && !map.contains_key("id")) {
            return whole(inner.clone(), kind);
        }
    }
    if let Some(Value::Array(tasks)) = map.get_mut("tasks") {
        for task in tasks {
            *task = whole(task.as_object().cloned().unwrap_or_default(), "task");
        }
        return Value::Object(camel(map));
    }
    if let Some(Value::Array(configs)) = map.shift_remove("configs") {
        return configs.into_iter().map(push_config).collect();
    }
    let map = camel(map);
    if map.contains_key("pushNotificationConfig") {
        return push_config(Value::Object(map));
    }
    let is_task = map.contains_key("status") && map.contains_key("id");
    if is_task { whole(map, "task") } else { Value::Object(map) }
}

/// A list of configs may come without its wrapping.
pub(crate) fn push_configs(value: Value) -> Value {
    match value {
        Value::Array(configs) => configs.into_iter().map(push_config).collect(),
        // An empty list is left out.
        Value::Object(map) if map.is_empty() => json!([]),
        other => result(other),
    }
}

/// `name` has the task's id: `tasks/ID/pushNotificationConfigs/ID`.
fn push_config(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    let mut map = camel(map);
    if !map.contains_key("taskId") {
        let name = map.get("name").and_then(Value::as_str).unwrap_or_default();
        let task = name.split('/').nth(1).map(str::to_owned);
        map.extend(task.map(|task| ("taskId".to_owned(), json!(task))));
    }
    Value::Object(map)
}

/// A task, a message or an update, with everything in it.
fn whole(map: Map, kind: &str) -> Value {
    if kind == "message" {
        return Value::Object(spoken(map));
    }
    let mut map = camel(map);
    map.insert("kind".to_owned(), json!(kind));
    inside(&mut map, "status", status);
    inside(&mut map, "artifact", artifact);
    each(&mut map, "artifacts", artifact);
    each(&mut map, "history", spoken);
    Value::Object(map)
}

fn status(map: Map) -> Map {
    let mut map = camel(map);
    if let Some(update) = map.shift_remove("update") {
        map.insert("message".to_owned(), update);
    }
    inside(&mut map, "message", spoken);
    let word = map.get("state").and_then(Value::as_str).map(|word| match word.strip_prefix("TASK_STATE_") {
        // The gRPC message spells it with two l.
        Some(word) => word.replace("CANCELLED", "CANCELED").replace('_', "-").to_ascii_lowercase(),
        None => word.to_owned(),
    });
    let word = word.unwrap_or_else(|| TaskState::Unknown.word().to_owned());
    map.insert("state".to_owned(), json!(word));
    map
}

fn artifact(map: Map) -> Map {
    let mut map = camel(map);
    each(&mut map, "parts", piece);
    map
}

fn spoken(map: Map) -> Map {
    let mut map = camel(map);
    map.insert("kind".to_owned(), json!("message"));
    if let Some(content) = map.shift_remove("content") {
        map.insert("parts".to_owned(), content);
    }
    each(&mut map, "parts", piece);
    let word = map.get("role").and_then(Value::as_str).and_then(|word| word.strip_prefix("ROLE_"));
    if let Some(word) = word.map(str::to_ascii_lowercase) {
        map.shift_remove("role");
        map.extend((word != "unspecified").then(|| ("role".to_owned(), json!(word))));
    }
    map
}

fn piece(mut map: Map) -> Map {
    if map.contains_key("kind") {
        return map;
    }
    let metadata = map.shift_remove("metadata").filter(|metadata| !metadata.is_null());
    let (kind, content) = if let Some(Value::Object(file)) = map.shift_remove("file") {
        let mut file = camel(file);
        for (theirs, ours) in [("fileWithBytes", "bytes"), ("fileWithUri", "uri")] {
            let content = file.shift_remove(theirs);
            file.extend(content.map(|content| (ours.to_owned(), content)));
        }
        ("file", Value::Object(file))
    } else if let Some(data) = map.shift_remove("data") {
        ("data", data.get("data").cloned().unwrap_or(data))
    } else {
        // An empty text is left out.
        ("text", map.shift_remove("text").unwrap_or_else(|| json!("")))
    };
    let mut part = Map::from_iter([("kind".to_owned(), json!(kind)), (kind.to_owned(), content)]);
    part.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
    part
}

/// Converts the object in a field, if there is one.
fn inside(map: &mut Map, key: &str, read: fn(Map) -> Map) {
    if let Some(Value::Object(inner)) = map.get_mut(key) {
        *inner = read(std::mem::take(inner));
    }
}

/// Converts each object in a list, if there is one.
fn each(map: &mut Map, key: &str, read: fn(Map) -> Map) {
    let items = map.get_mut(key).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        if let Value::Object(inner) = item {
            *inner = read(std::mem::take(inner));
        }
    }
}

/// Converts field names to `camelCase`; the values stay.
fn camel(map: Map) -> Map {
    let name = |key: String| {
        let mut words = key.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let mut letters = word.chars();
            let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
            name + &capital.into_iter().chain(letters).collect::<String>()
        })
    };
    map.into_iter().map(|(key, value)| (name(key), value)).collect()
}
