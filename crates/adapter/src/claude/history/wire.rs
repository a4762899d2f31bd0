//! The entries of Claude's store, as far as they say something about themselves. The messages in them are those of
//! its stream.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::claude::wire::{Message, Usage};

/// A value that is left out when it has another shape than we know.
fn soft<'de, D: Deserializer<'de>, T: serde::de::DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Entry {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(deserialize_with = "soft")]
    pub(super) subtype: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) timestamp: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) cwd: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) version: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) uuid: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) parent_uuid: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) permission_mode: Option<String>,
    /// What a sub-agent said and did.
    #[serde(deserialize_with = "soft")]
    pub(super) is_sidechain: bool,
    /// Claude's own words in the user's name.
    #[serde(deserialize_with = "soft")]
    pub(super) is_meta: bool,
    #[serde(deserialize_with = "soft")]
    pub(super) is_compact_summary: bool,
    #[serde(deserialize_with = "soft")]
    pub(super) is_aborted_mid_stream: bool,
    #[serde(deserialize_with = "soft")]
    pub(super) message: Option<StoredMessage>,
    #[serde(deserialize_with = "soft")]
    pub(super) model: Option<String>,
    /// Of messages that stand on their own, as in older descriptions.
    #[serde(deserialize_with = "soft")]
    pub(super) role: Option<String>,
    /// Of those, and of `system` entries.
    pub(super) content: Value,
    #[serde(deserialize_with = "soft")]
    pub(super) duration_ms: Option<u64>,
    #[serde(deserialize_with = "soft")]
    pub(super) attachment: Option<Attachment>,
    #[serde(deserialize_with = "soft")]
    pub(super) permission_decision: Option<Decision>,
    #[serde(deserialize_with = "soft")]
    pub(super) tool_use_result: Option<StartedAgent>,
    /// Who spoke, when it was not the user.
    #[serde(deserialize_with = "soft")]
    pub(super) origin: Option<Origin>,
    #[serde(rename = "totalCostUSD", deserialize_with = "soft")]
    pub(super) total_cost_usd: Option<f64>,
    /// What the conversation was named: by Claude, by the user, and in older versions.
    #[serde(deserialize_with = "soft")]
    pub(super) ai_title: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) custom_title: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) summary: Option<String>,
}

/// A message, of which the model's carry more.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StoredMessage {
    #[serde(deserialize_with = "soft")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) usage: Option<Usage>,
    pub(super) content: Value,
}

impl Entry {
    /// All of its text.
    pub(super) fn text(&self) -> String {
        text_of(self.message.as_ref().map_or(&self.content, |message| &message.content))
    }
}

/// The text of content, which is text or a list of blocks.
pub(super) fn text_of(content: &Value) -> String {
    let message: Message = serde_json::from_value(Map::from_iter([("content".to_owned(), content.clone())]).into())
        .unwrap_or(Message { id: None, content: Vec::new() });
    crate::claude::message::plain_text(&message.content)
}

/// What Claude put beside a message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Of a prompt that came in the middle of a turn.
    pub(super) prompt: Value,
    #[serde(deserialize_with = "soft")]
    pub(super) is_meta: bool,
    #[serde(deserialize_with = "soft")]
    pub(super) origin: Option<Origin>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Decision {
    pub(super) decision: String,
}

/// What a call reports that began a sub-agent and went on without it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StartedAgent {
    #[serde(deserialize_with = "soft")]
    pub(super) is_async: bool,
    #[serde(deserialize_with = "soft")]
    pub(super) agent_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Origin {
    pub(super) kind: String,
}

impl Origin {
    pub(super) fn is_user(&self) -> bool {
        matches!(self.kind.as_str(), "" | "user" | "human" | "unclassified")
    }
}

/// Beside a sub-agent's file: which call began it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AgentMeta {
    pub(super) tool_use_id: Option<String>,
}
