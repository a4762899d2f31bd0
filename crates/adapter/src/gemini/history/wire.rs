//! The records of Gemini's stored conversations: a head, a message, or a change to either (`$set`, `$rewindTo`). Older
//! files are one head with all messages in it.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json::JsonFields;
use crate::line::soft;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(deserialize_with = "soft")]
    pub(super) args: Option<Map<String, Value>>,
    pub(super) result: Value,
    #[serde(deserialize_with = "soft")]
    pub(super) status: Option<String>,
    pub(super) result_display: Value,
    #[serde(deserialize_with = "soft")]
    pub(super) description: Option<String>,
}

/// The content of a record that is a message.
pub(super) trait StoredMessage<'a>: JsonFields<'a> {
    fn speaker(self) -> Option<&'a str> {
        self.text("type")
    }

    /// All text of the message, as the user saw it.
    fn words(self) -> String {
        text_of(self.field("displayContent").or(self.field("content")))
    }

    /// The parts of its content that are not plain text.
    fn parts(self, key: &str) -> Vec<&'a Map<String, Value>> {
        self.list("content").iter().filter_map(|part| part.object(key)).collect()
    }

    /// Whether it is a prompt of the user, not text that Gemini added or the result of a tool.
    fn is_prompt(self) -> bool {
        let text = text_of(self.field("content"));
        let first = text.trim().lines().next().unwrap_or_default();
        let own = ["", "<session_context>", "<hook_context>"].contains(&first);
        self.speaker() == Some("user") && (!own || !self.parts("inlineData").is_empty())
    }

    /// Whether the record is a message of the user or the model.
    fn is_said(self) -> bool {
        self.is_prompt() || self.speaker() == Some("gemini")
    }
}

impl<'a, T: JsonFields<'a>> StoredMessage<'a> for T {}

/// The text of content: plain, one part, or a list of them.
pub(super) fn text_of(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(|part| text_of(Some(part))).collect(),
        part if part.flag("thought") => String::new(),
        part => part.string("text").unwrap_or_default(),
    }
}
