//! The records of Gemini's stored conversations: a head, a message, or a change to either. Older files are one head
//! with all messages in it.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A value that is left out when it has another shape than we know.
fn soft<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Record {
    #[serde(deserialize_with = "soft")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) start_time: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) last_updated: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) messages: Option<Vec<Record>>,
    #[serde(rename = "$set", deserialize_with = "soft")]
    pub(super) set: Option<Box<Record>>,
    /// That message and what follows it is taken back.
    #[serde(rename = "$rewindTo", deserialize_with = "soft")]
    pub(super) rewind_to: Option<String>,
    /// Of a message: who speaks.
    #[serde(rename = "type", deserialize_with = "soft")]
    pub(super) speaker: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) timestamp: Option<String>,
    pub(super) content: Value,
    /// The same as the user saw it, where that is something else.
    pub(super) display_content: Value,
    #[serde(deserialize_with = "soft")]
    pub(super) thoughts: Vec<Thought>,
    #[serde(deserialize_with = "soft")]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(deserialize_with = "soft")]
    pub(super) tokens: Option<Tokens>,
    #[serde(deserialize_with = "soft")]
    pub(super) model: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Thought {
    pub(super) subject: String,
    pub(super) description: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(deserialize_with = "soft")]
    pub(super) args: Map<String, Value>,
    pub(super) result: Value,
    #[serde(deserialize_with = "soft")]
    pub(super) status: String,
    #[serde(deserialize_with = "soft")]
    pub(super) timestamp: Option<String>,
    pub(super) result_display: Value,
    #[serde(deserialize_with = "soft")]
    pub(super) description: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cached: u64,
    pub(super) thoughts: u64,
    pub(super) total: Option<u64>,
}

/// What a file tool shows of its work.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FileDisplay {
    pub(super) file_diff: Option<String>,
    pub(super) file_path: Option<String>,
    pub(super) file_name: Option<String>,
    pub(super) original_content: Option<String>,
    pub(super) new_content: Option<String>,
}

impl Record {
    /// All of its text.
    pub(super) fn text(&self) -> String {
        if self.display_content.is_null() { text_of(&self.content) } else { text_of(&self.display_content) }
    }

    /// The parts of its content that are not plain text.
    pub(super) fn parts(&self, key: &str) -> Vec<&Map<String, Value>> {
        let parts = self.content.as_array().into_iter().flatten();
        parts.filter_map(|part| part.get(key)?.as_object()).collect()
    }

    /// Whether it is something that the user said: not what Gemini put there, nor what a tool answered.
    pub(super) fn is_prompt(&self) -> bool {
        let text = text_of(&self.content);
        let first = text.trim().lines().next().unwrap_or_default();
        let own = ["", "<session_context>", "<hook_context>"].contains(&first);
        self.speaker.as_deref() == Some("user") && (!own || !self.parts("inlineData").is_empty())
    }

    /// Whether it is something that somebody said.
    pub(super) fn is_said(&self) -> bool {
        self.is_prompt() || self.speaker.as_deref() == Some("gemini")
    }
}

/// The text of content: plain, one part, or a list of them.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(part) if part.get("thought").and_then(Value::as_bool) != Some(true) => {
            part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}
