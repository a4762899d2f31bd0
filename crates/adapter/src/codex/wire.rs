//! Codex's JSON, as far as we read it. The same things come in three spellings: the app-server's camel case, the
//! underscores of `exec --json`, and the stored sessions'.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// A notification or a request of the app-server.
    Method(String),
    /// An answer to a request of ours.
    Reply,
    /// An event of `exec --json`, or an entry of a stored session.
    Type(String),
}

/// What a line is, found without reading the rest where it stands first; or why it is nothing.
pub(super) fn head(line: &str) -> Result<Head, String> {
    #[derive(Deserialize)]
    struct Probe {
        method: Option<String>,
        #[serde(rename = "type")]
        kind: Option<String>,
        id: Option<Value>,
    }

    let line = line.trim_start();
    if let Some(method) = quoted(line, r#"{"method":""#) {
        return Ok(Head::Method(method));
    }
    if let Some(kind) = quoted(line, r#"{"type":""#) {
        return Ok(Head::Type(kind));
    }
    if !line.starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    match serde_json::from_str(line) {
        Ok(Probe { method: Some(method), .. }) => Ok(Head::Method(method)),
        Ok(Probe { kind: Some(kind), .. }) => Ok(Head::Type(kind)),
        Ok(Probe { id: Some(_), .. }) => Ok(Head::Reply),
        Ok(_) => Err("a JSON object without a method, type or id".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The text after that beginning, up to its closing quote; nothing if it has escapes.
fn quoted(line: &str, beginning: &str) -> Option<String> {
    let rest = line.strip_prefix(beginning)?;
    let end = rest.find(['"', '\\'])?;
    (rest.as_bytes()[end] == b'"').then(|| rest[..end].to_owned())
}

/// A notification, or with an id a request, of the app-server.
#[derive(Deserialize)]
pub(super) struct Call<T> {
    pub(super) id: Option<Value>,
    pub(super) params: T,
}

/// An answer to a request of ours.
#[derive(Deserialize)]
pub(super) struct Reply {
    pub(super) id: Value,
    pub(super) result: Option<Value>,
    pub(super) error: Option<ReplyError>,
}

#[derive(Deserialize)]
pub(super) struct ReplyError {
    pub(super) code: Option<i64>,
    pub(super) message: Option<String>,
}

/// A piece of text that belongs to an item.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta {
    pub(super) thread_id: Option<String>,
    pub(super) item_id: String,
    pub(super) delta: String,
    /// Which part of a summary, or of the thoughts themselves.
    #[serde(alias = "contentIndex")]
    pub(super) summary_index: Option<u64>,
}

/// An object whose keys may be written in camel case or with underscores. What is null counts as absent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    /// The object in a value; anything else has no fields.
    pub(super) fn of(value: Option<&Value>) -> Self {
        Self(value.and_then(Value::as_object).cloned().unwrap_or_default())
    }

    /// The value of a key, which is asked for in camel case.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        let found = self.0.get(key).or_else(|| {
            key.contains(|c: char| c.is_ascii_uppercase()).then(|| self.0.get(&underscored(key))).flatten()
        });
        found.filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    pub(super) fn string(&self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        value.as_u64().or_else(|| value.as_f64().map(whole))
    }

    pub(super) fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn fields(&self, key: &str) -> Self {
        Self::of(self.get(key))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// `agentMessage` and `AgentMessage` as `agent_message`.
pub(super) fn underscored(word: &str) -> String {
    let mut text = String::with_capacity(word.len() + 4);
    for (at, letter) in word.char_indices() {
        if letter.is_ascii_uppercase() && at > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The same value without what is null.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(present(map)),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// The same object without what is null.
pub(super) fn present(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key, without_nulls(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_its_method_its_type_or_its_id() {
        assert_eq!(head(r#"{"method":"turn/started","params":{}}"#), Ok(Head::Method("turn/started".to_owned())));
        assert_eq!(head(r#" {"id":0,"method":"x","params":{}}"#), Ok(Head::Method("x".to_owned())));
        assert_eq!(head(r#"{"timestamp":"","type":"event_msg"}"#), Ok(Head::Type("event_msg".to_owned())));
        assert_eq!(head(r#"{"id":"a","result":{}}"#), Ok(Head::Reply));
        assert_eq!(head(r#"{"error":{"code":1},"id":7}"#), Ok(Head::Reply));
        assert!(head("{}").is_err() && head("[1]").is_err() && head("WARNING: no").is_err());
    }

    #[test]
    fn keys_are_found_in_either_spelling() {
        let fields = Fields::of(Some(&serde_json::json!({"exit_code": 3, "aggregatedOutput": "x", "cwd": null})));
        assert_eq!(fields.number("exitCode"), Some(3));
        assert_eq!(fields.text("aggregatedOutput"), Some("x"));
        assert_eq!(fields.get("cwd"), None);
        assert_eq!(underscored("mcpToolCall"), "mcp_tool_call");
        assert_eq!(underscored("UserMessage"), "user_message");
    }
}
