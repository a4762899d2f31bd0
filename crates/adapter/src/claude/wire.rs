//! Claude's JSON, as far as we read it. A field is optional if any version of Claude has ever left it out.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::line::{Word, soft};

/// `assistant`: one content block of the model's message, in older versions the whole message.
#[derive(Deserialize)]
pub(super) struct Assistant {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    /// Claude's word for the error.
    pub(super) error: Option<String>,
    /// Whether the message reports an error and does not come from the model.
    #[serde(default, alias = "isApiErrorMessage")]
    pub(super) is_api_error_message: Option<bool>,
    pub(super) uuid: Option<String>,
}

/// `user`: tool results, prompts, and messages that Claude writes to itself.
#[derive(Deserialize)]
pub(super) struct User<'a> {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(rename = "isSynthetic")]
    pub(super) is_synthetic: Option<bool>,
    #[serde(rename = "isReplay")]
    pub(super) is_replay: Option<bool>,
    /// The result with more details. It may be long, and is read for some tools only.
    #[serde(borrow, alias = "toolUseResult")]
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) tool_result_meta: Value,
    pub(super) uuid: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "blocks")]
    pub(super) content: Vec<Block>,
}

/// `message`: how text came in older versions.
#[derive(Deserialize)]
pub(super) struct PlainMessage {
    pub(super) id: Option<String>,
    pub(super) role: Option<String>,
    pub(super) partial: Option<bool>,
    #[serde(default, deserialize_with = "blocks")]
    pub(super) content: Vec<Block>,
}

#[derive(Default, Deserialize)]
pub(super) struct Block {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) input: Option<Value>,
    pub(super) tool_use_id: Option<String>,
    pub(super) content: Option<Value>,
    pub(super) is_error: Option<bool>,
    pub(super) source: Option<Value>,
}

impl Block {
    pub(super) fn text(text: String) -> Self {
        Self { kind: "text".to_owned(), text: Some(text), ..Self::default() }
    }
}

/// Content is a list of blocks, or plain text, which means one text block.
fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Block>, D::Error> {
    struct Blocks;

    impl<'de> Visitor<'de> for Blocks {
        type Value = Vec<Block>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text or a list of content blocks")
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(vec![Block::text(text.to_owned())])
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    deserializer.deserialize_any(Blocks)
}

/// `stream_event`: a piece of the model's message as the API sends it.
#[derive(Deserialize)]
pub(super) struct Stream<'a> {
    #[serde(borrow)]
    pub(super) event: StreamEvent<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Option<Word<'a>>,
}

#[derive(Deserialize)]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Word<'a>,
    #[serde(default)]
    pub(super) index: u64,
    pub(super) delta: Option<Delta>,
    pub(super) message: Option<StreamMessage>,
}

#[derive(Deserialize)]
pub(super) struct Delta {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct StreamMessage {
    pub(super) id: Option<String>,
}

/// `control_request`: Claude asks us.
#[derive(Deserialize)]
pub(super) struct ControlRequest {
    pub(super) request_id: String,
    pub(super) request: Map<String, Value>,
}

/// `control_cancel_request`: Claude no longer asks.
#[derive(Deserialize)]
pub(super) struct ControlCancel {
    pub(super) request_id: String,
}

/// `control_response`: Claude answers us.
#[derive(Deserialize)]
pub(super) struct ControlResponse {
    pub(super) response: Reply,
}

#[derive(Deserialize)]
pub(super) struct Reply {
    #[serde(default)]
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) request_id: String,
    #[serde(default, deserialize_with = "soft")]
    pub(super) response: Option<Map<String, Value>>,
    pub(super) error: Option<String>,
    pub(super) error_code: Option<String>,
}

/// The content of `can_use_tool`, and the arguments of the permission tool, in both known spellings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct AskedTool {
    pub(super) tool_name: String,
    #[serde(alias = "tool_input")]
    pub(super) input: Map<String, Value>,
    pub(super) tool_use_id: Option<String>,
    pub(super) description: Option<String>,
    pub(super) decision_reason: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) permission_suggestions: Option<Vec<Value>>,
}

/// One step of an edit, in the arguments of a call or in its result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct EditStep {
    #[serde(alias = "oldString")]
    pub(super) old_string: String,
    #[serde(alias = "newString")]
    pub(super) new_string: String,
    #[serde(alias = "replaceAll")]
    pub(super) replace_all: bool,
}
