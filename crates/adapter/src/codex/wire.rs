//! Codex's JSON, as far as we read it. The same data come in three spellings: the app-server's camel case, the
//! underscores of `exec --json`, and those of stored sessions.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::json::JsonFields;
use crate::line::Word;

/// A notification, or with an id a request, of the app-server.
#[derive(Deserialize)]
pub(super) struct Call<T> {
    pub(super) id: Option<Value>,
    pub(super) params: T,
}

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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) thread_id: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) item_id: Word<'a>,
    pub(super) delta: String,
    /// The index of the part, in a summary or in the thoughts themselves.
    #[serde(alias = "contentIndex")]
    pub(super) summary_index: Option<u64>,
}

/// An object whose keys may be in camel case or with underscores. A null counts as absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields(pub(super) Map<String, Value>);

/// Number of fields that most objects do not exceed.
const USUAL_FIELDS: usize = 14;

impl<'de> Deserialize<'de> for Fields {
    /// Leaves out nulls: Codex writes every field, even those without a value.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Present;

        impl<'de> Visitor<'de> for Present {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
                let mut fields = Map::with_capacity(USUAL_FIELDS);
                while let Some(key) = entries.next_key::<Word<'_>>()? {
                    if let Some(value) = entries.next_value::<Option<Value>>()? {
                        fields.insert(key.0.into_owned(), value);
                    }
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Present)
    }
}

impl Fields {
    /// The object in a value; anything else has no fields.
    pub(super) fn of(value: Option<&Value>) -> Self {
        Self(value.and_then(Value::as_object).cloned().unwrap_or_default())
    }

    /// The value of a key, which is given in camel case.
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        // Objects have about a dozen keys: comparing all of them costs less than hashing.
        let named = |is: fn(&str, &str) -> bool| self.0.iter().find(|(name, _)| is(name, key)).map(|(_, value)| value);
        named(|name, key| name == key).or_else(|| named(is_underscored)).filter(|value| !value.is_null())
    }

    /// Removes the object under a key and returns it.
    pub(super) fn take(&mut self, key: &str) -> Self {
        match self.0.swap_remove(key) {
            Some(Value::Object(map)) => Self(map),
            Some(_) => Self::default(),
            None => self.fields(key),
        }
    }

    pub(super) fn fields(&self, key: &str) -> Self {
        Self::of(self.get(key))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> JsonFields<'a> for &'a Fields {
    fn field(self, key: &str) -> Option<&'a Value> {
        self.get(key)
    }

    fn number(self, key: &str) -> Option<u64> {
        let value = self.get(key)?;
        value.as_u64().or_else(|| value.as_f64().map(whole))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Whether `name` is the key with underscores in place of its capitals.
fn is_underscored(name: &str, key: &str) -> bool {
    let mut letters = name.bytes();
    let same = |letter: u8| match letter.is_ascii_uppercase() {
        true => letters.next() == Some(b'_') && letters.next() == Some(letter.to_ascii_lowercase()),
        false => letters.next() == Some(letter),
    };
    key.bytes().all(same) && letters.next().is_none()
}

/// Converts `agentMessage` and `AgentMessage` to `agent_message`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_either_spelling() {
        let fields = Fields::of(Some(&serde_json::json!({"exit_code": 3, "aggregatedOutput": "x", "cwd": null})));
        assert_eq!(fields.number("exitCode"), Some(3));
        assert_eq!(fields.text("aggregatedOutput"), Some("x"));
        assert_eq!(fields.get("cwd"), None);
        assert_eq!(fields.get("exit"), None);
        assert_eq!(fields.get("exitCodes"), None);
        assert_eq!(underscored("mcpToolCall"), "mcp_tool_call");
        assert_eq!(underscored("UserMessage"), "user_message");
    }
}
