//! HTTP+JSON of 0.3: bodies in the JSON form of its gRPC messages (`content` for `parts`, no `kind`, enum names in
//! capitals), while JSON-RPC has the shapes of the parent module. Both sides send that form, some with its original field
//! names (`request`, `msg`, `task_id`), or as on JSON-RPC. All are read, by conversion to the shapes of JSON-RPC.

#[cfg(feature = "client")]
pub(crate) mod client;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::error::Error;
use crate::model::{Content, Map, Part, TaskState};
use crate::params::Method;
use crate::write::Fields as _;

fn push_name(task_id: &str, config_id: &str) -> String {
    format!("tasks/{task_id}/pushNotificationConfigs/{config_id}")
}

/// The answer about push configs that JSON-RPC has as this.
pub(crate) fn push_answer(result: Value) -> Value {
    match result {
        Value::Array(configs) => {
            json!({ "configs": configs.into_iter().map(push_answer).collect::<Vec<_>>(), "nextPageToken": "" })
        }
        Value::Object(mut map) => {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
            let config = map.shift_remove("pushNotificationConfig").unwrap_or_default();
            json!({ "name": push_name(&text(map.get("taskId")), &text(config.get("id"))), "pushNotificationConfig": config })
        }
        // A config was deleted.
        _ => json!({}),
    }
}

pub(crate) fn write_part<S: Serializer>(part: &Part, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    match &part.content {
        Content::Text(text) => map.serialize_entry("text", text)?,
        Content::Raw(_) | Content::Url(_) => map.serialize_entry("file", &File(part))?,
        Content::Data(data) if data.is_object() => map.serialize_entry("data", &Data { data })?,
        // As on JSON-RPC: the dialect has only objects.
        Content::Data(data) => {
            map.serialize_entry("data", &Data { data: &Value::from_iter([("value", data.clone())]) })?;
            map.serialize_entry("metadata", &super::wrapped(&part.metadata))?;
            return map.end();
        }
    }
    map.metadata(&part.metadata)?;
    map.end()
}

/// The `data` of a part that holds some.
#[derive(Serialize)]
struct Data<'a> {
    data: &'a Value,
}

/// The `file` of a part that holds one.
struct File<'a>(&'a Part);

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.content {
            Content::Raw(bytes) => map.serialize_entry("fileWithBytes", bytes)?,
            Content::Url(uri) => map.serialize_entry("fileWithUri", uri)?,
            Content::Text(_) | Content::Data(_) => {}
        }
        map.optional("mimeType", self.0.media_type.as_ref())?;
        map.optional("name", self.0.filename.as_ref())?;
        map.end()
    }
}

/// Converts the parameters of a request to those of JSON-RPC.
pub(crate) fn params(method: Method, given: Map) -> Result<Map, Error> {
    let mut map = camel(given);
    match method {
        Method::Send | Method::Stream => {
            let message = map.shift_remove("request").or_else(|| map.shift_remove("message"));
            let is_grpc = message.as_ref().is_some_and(|message| message.get("kind").is_none());
            check_parts(message.as_ref())?;
            map.extend(message.map(|message| ("message".to_owned(), message)));
            inside(&mut map, "message", spoken);
            inside(&mut map, "configuration", if is_grpc { grpc_configuration } else { camel });
        }
        Method::CreatePush => {
            let config_id = map.shift_remove("configId").filter(|id| id != "");
            let mut config = ["config", "pushNotificationConfig"].iter().fold(map, |map, key| match map.get(*key) {
                Some(Value::Object(inner)) => camel(inner.clone()),
                _ => map,
            });
            if config.get("id").is_none_or(|id| id == "") {
                config.shift_remove("id");
                config.extend(config_id.map(|id| ("id".to_owned(), id)));
            }
            map = Map::from_iter([("pushNotificationConfig".to_owned(), Value::Object(config))]);
        }
        Method::ListTasks => {
            if let Some(word) = map.get("status").and_then(Value::as_str).map(state_word) {
                map.insert("status".to_owned(), json!(word));
            }
        }
        _ => {}
    }
    Ok(map)
}

/// A message of a client must not lose a part that is not understood.
fn check_parts(message: Option<&Value>) -> Result<(), Error> {
    let parts = message.and_then(|message| message.get("content")).and_then(Value::as_array);
    for (index, part) in parts.into_iter().flatten().enumerate() {
        if !["kind", "text", "file", "data"].iter().any(|key| part.get(key).is_some()) {
            let field = format!("message.content[{index}]");
            return Err(Error::invalid_params(format!("{field}: must hold text, file or data")).with("field", field));
        }
    }
    Ok(())
}

/// A flag that is not set is left out, so without `blocking` the client does not wait.
fn grpc_configuration(map: Map) -> Map {
    let mut map = camel(map);
    map.entry("blocking").or_insert(json!(false));
    let push = map.shift_remove("pushNotification");
    map.extend(push.map(|push| ("pushNotificationConfig".to_owned(), push)));
    map
}

/// The word of JSON-RPC for a state.
fn state_word(word: &str) -> String {
    match word.strip_prefix("TASK_STATE_") {
        // The gRPC message spells it with two l, and unspecified is unknown.
        Some("UNSPECIFIED") => TaskState::Unknown.word().to_owned(),
        Some(word) => word.replace("CANCELLED", "CANCELED").replace('_', "-").to_ascii_lowercase(),
        None => word.to_owned(),
    }
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
