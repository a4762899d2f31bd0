//! The entries of Claude's store, as far as they say something about themselves. The messages in them are those of
//! its stream.

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

    /// A message, of which the model's carry more.
    pub(super) fn message(&self) -> Option<&Value> {
        self.field("message").filter(|message| message.is_object())
    }

    /// All of its text. Messages that stand on their own, as in older descriptions, and `system` entries have content.
    pub(super) fn words(&self) -> String {
        text_of(self.message().map_or(self.field("content"), |message| message.field("content")))
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        Timestamp::parse(self.text("timestamp")?)
    }

    pub(super) fn model(&self) -> Option<String> {
        self.message().string("model").or(self.string("model")).filter(|model| model != NO_MODEL)
    }

    /// What a sub-agent said and did.
    pub(super) fn is_sidechain(&self) -> bool {
        self.flag("isSidechain")
    }

    /// Claude's own words in the user's name.
    pub(super) fn is_meta(&self) -> bool {
        self.flag("isMeta")
    }
}

/// Who spoke, when it was not the user.
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
