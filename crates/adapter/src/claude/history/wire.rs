//! The entries of Claude's store: the fields that describe an entry. The messages in them are those of the stream.

use multitap_event::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json::JsonFields;

/// Placeholder model name in messages that Claude Code writes itself.
const NO_MODEL: &str = "<synthetic>";

#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Entry(pub(super) Map<String, Value>);

impl<'a> JsonFields<'a> for &'a Entry {
    fn field(self, key: &str) -> Option<&'a Value> {
        self.0.field(key)
    }
}

impl Entry {
    pub(super) fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    /// The message of the entry. Messages of the model have more fields.
    pub(super) fn message(&self) -> Option<&Value> {
        self.field("message").filter(|message| message.is_object())
    }

    /// All text of the entry. `system` entries, and messages of older formats, have `content` directly.
    pub(super) fn words(&self) -> String {
        text_of(self.message().map_or(self.field("content"), |message| message.field("content")))
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        Timestamp::parse(self.text("timestamp")?)
    }

    pub(super) fn model(&self) -> Option<String> {
        self.message().string("model").or(self.string("model")).filter(|model| model != NO_MODEL)
    }

    pub(super) fn is_sidechain(&self) -> bool {
        self.flag("isSidechain")
    }

    /// Whether Claude wrote it in the user's name.
    pub(super) fn is_meta(&self) -> bool {
        self.flag("isMeta")
    }
}

/// The speaker, if it was not the user.
pub(super) fn other_speaker<'a>(fields: impl JsonFields<'a>) -> Option<&'a str> {
    let kind = fields.field("origin").text("kind")?;
    (!matches!(kind, "" | "user" | "human" | "unclassified")).then_some(kind)
}

/// The text of content, which is text or a list of blocks.
pub(super) fn text_of(content: Option<&Value>) -> String {
    let text = |block: &'_ Value| block.string("text").filter(|_| block.text("type") == Some("text"));
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}
