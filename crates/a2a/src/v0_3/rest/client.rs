//! The client's side: bodies of requests, and answers.

use serde_json::{Value, json};

use super::{camel, each, inside, piece, push_name, spoken, state_word};
use crate::dialect::Dialect;
use crate::encoding::Encoding;
use crate::model::{Map, TaskState};
use crate::params;
use crate::request::{PushConfig, SendMessage};
use crate::write::{Wire, filled, present, tree};

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
        "message": tree(&Wire(Encoding::V0_3Rest, &send.message)),
        "configuration": configuration,
        "metadata": filled(&send.metadata),
    })))
}

/// The body that creates a push config.
pub(crate) fn create_push_config(task_id: &str, config: &PushConfig) -> Value {
    let parent = format!("tasks/{task_id}");
    let id = config.id.clone().unwrap_or_default();
    let config = json!({ "name": push_name(task_id, &id), "pushNotificationConfig": write_push_config(config) });
    json!({ "parent": parent, "configId": id, "config": config })
}

fn write_push_config(config: &PushConfig) -> Value {
    params::write_push_config(Dialect::V0_3, None, config)
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
    let word = map.get("state").and_then(Value::as_str).map(state_word);
    let word = word.unwrap_or_else(|| TaskState::Unknown.word().to_owned());
    map.insert("state".to_owned(), json!(word));
    map
}

fn artifact(map: Map) -> Map {
    let mut map = camel(map);
    each(&mut map, "parts", piece);
    map
}
