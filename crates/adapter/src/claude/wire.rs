//! Claude's JSON, as far as we read it. Everything is optional that a version of Claude has ever left out.

use std::fmt;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::glance::{Glance, Plain};
use crate::line::{Word, soft};

/// Which session a line belongs to.
#[derive(Deserialize)]
pub(super) struct SessionHead {
    pub(super) session_id: Option<String>,
}

/// `assistant`: one content block of the model's message, in older versions the whole message.
#[derive(Deserialize)]
pub(super) struct Assistant {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    /// The word for what went wrong.
    pub(super) error: Option<String>,
    /// The message is not the model's: it reports an error.
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
    /// The result once more, with more to it. Only some tools' are looked at, and it may be long.
    #[serde(borrow, alias = "toolUseResult")]
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "soft")]
    pub(super) tool_result_meta: Option<Vec<ResultMeta>>,
    pub(super) uuid: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ResultMeta {
    pub(super) id: String,
    pub(super) non_execution_kind: Option<String>,
    pub(super) permission_decision: Option<PermissionDecision>,
}

#[derive(Deserialize)]
pub(super) struct PermissionDecision {
    pub(super) decision: Option<String>,
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

/// A content block of any type.
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

/// Content is a list of blocks, or plain text, which stands for one text block.
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

        fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
            Ok(vec![Block::text(text)])
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut blocks = Vec::new();
            while let Some(block) = list.next_element()? {
                blocks.push(block);
            }
            Ok(blocks)
        }
    }

    deserializer.deserialize_any(Blocks)
}

/// `stream_event`: a piece of the model's message as the API sends it.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Stream<'a> {
    #[serde(borrow)]
    pub(super) event: StreamEvent<'a>,
    #[serde(borrow)]
    pub(super) parent_tool_use_id: Option<Word<'a>>,
}

impl<'a> Stream<'a> {
    /// A piece of text, a thought or a call's input, at a glance.
    pub(super) fn glance(line: &'a str) -> Option<Self> {
        const DELTA: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":"#;
        let mut line = Glance::after(line, DELTA)?;
        let index = line.number()?;
        line.skip(r#","delta":{"type":"#)?;
        let mut delta = Delta { text: None, thinking: None };
        match line.value()?.word()? {
            "text_delta" => {
                line.skip(r#","text":"#)?;
                delta.text = Some(line.value()?.into_text()?);
            }
            "thinking_delta" => {
                line.skip(r#","thinking":"#)?;
                delta.thinking = Some(line.value()?.into_text()?);
            }
            "input_json_delta" => {
                line.skip(r#","partial_json":"#)?;
                line.value()?.is_sound().then_some(())?;
            }
            _ => return None,
        }
        line.skip("}},")?;
        let mut parent_tool_use_id = None;
        line.members(|key, value| {
            match key {
                "event" => return None,
                "parent_tool_use_id" if value == Plain::Null => {}
                "parent_tool_use_id" => parent_tool_use_id = Some(value.word()?.into()),
                _ if !value.is_sound() => return None,
                _ => {}
            }
            Some(())
        })?;
        let kind = "content_block_delta".into();
        let event = StreamEvent { kind, index, delta: Some(delta), message: None };
        line.ends("").then_some(Self { event, parent_tool_use_id })
    }
}

#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct StreamEvent<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Word<'a>,
    #[serde(default)]
    pub(super) index: u64,
    pub(super) delta: Option<Delta>,
    pub(super) message: Option<StreamMessage>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct Delta {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct StreamMessage {
    pub(super) id: Option<String>,
}

/// `result`: the end of a turn.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnResult {
    pub(super) subtype: Option<String>,
    /// What the subtype was called before.
    pub(super) status: Option<String>,
    pub(super) is_error: Option<bool>,
    pub(super) terminal_reason: Option<String>,
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) duration_ms: Option<f64>,
    pub(super) num_turns: Option<u64>,
    #[serde(deserialize_with = "soft")]
    pub(super) result: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) errors: Option<Vec<String>>,
    #[serde(deserialize_with = "soft")]
    pub(super) error: Option<Value>,
    pub(super) total_cost_usd: Option<f64>,
    #[serde(deserialize_with = "soft")]
    pub(super) usage: Option<Usage>,
    #[serde(rename = "modelUsage", deserialize_with = "soft")]
    pub(super) model_usage: Option<Map<String, Value>>,
    #[serde(deserialize_with = "soft")]
    pub(super) model_usage_since_last_result: Option<Map<String, Value>>,
    #[serde(deserialize_with = "soft")]
    pub(super) permission_denials: Option<Vec<Denied>>,
    pub(super) structured_output: Option<Value>,
    #[serde(deserialize_with = "soft")]
    pub(super) origin: Option<Origin>,
    pub(super) api_error_type: Option<String>,
    pub(super) queued_turn_count: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Origin {
    pub(super) kind: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Deserialize)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OneModelUsage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) thinking_tokens: Option<u64>,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Option<f64>,
    pub(super) context_window: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Denied {
    #[serde(default)]
    pub(super) tool_name: String,
    pub(super) tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) tool_input: Map<String, Value>,
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

/// The question that `can_use_tool` brings, and the arguments of the permission tool, in both known spellings.
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

/// What a shell reports of its work (`tool_use_result`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ShellResult {
    pub(super) stdout: Option<IgnoredAny>,
    pub(super) return_code_interpretation: Option<Value>,
    pub(super) background_task_id: Option<Value>,
    pub(super) interrupted: Option<Value>,
}

/// What a file tool reports of its work (`tool_use_result`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FileResult {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(alias = "notebook_path")]
    pub(super) file_path: Option<String>,
    #[serde(alias = "updated_file")]
    pub(super) content: Option<String>,
    #[serde(alias = "original_file")]
    pub(super) original_file: Option<String>,
    pub(super) old_string: Option<String>,
    pub(super) new_string: Option<String>,
    pub(super) replace_all: Option<bool>,
    pub(super) edits: Option<Vec<EditStep>>,
    pub(super) structured_patch: Option<Vec<Hunk>>,
}

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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Hunk {
    pub(super) old_start: u64,
    pub(super) old_lines: u64,
    pub(super) new_start: u64,
    pub(super) new_lines: u64,
    pub(super) lines: Vec<String>,
}

#[cfg(test)]
mod tests {
    use multitap_testkit::fixture;

    use super::*;

    #[test]
    fn a_glance_gives_what_reading_gives() {
        let mut glanced = 0;
        for recording in fixture::all("claude").unwrap() {
            for line in recording.stdout() {
                if let Some(piece) = Stream::glance(line) {
                    assert_eq!(piece, serde_json::from_str(line).unwrap(), "{line}");
                    glanced += 1;
                }
            }
        }
        assert!(glanced > 50, "only {glanced} lines look as expected: has Claude's form changed?");
    }

    #[test]
    fn a_piece_of_another_form_is_read_all_the_same() {
        let usual = concat!(
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"#,
            r#""delta":{"type":"text_delta","text":"x"}},"uuid":"u"}"#
        );
        assert!(Stream::glance(usual).is_some());
        for line in [
            usual.replace(':', ": "),
            usual.replace(r#""index":0,"#, ""),
            usual.replace(r#""text":"x""#, r#""text":"x","more":[]"#),
            usual.replace(r#","uuid":"u""#, ""),
        ] {
            assert_eq!(Stream::glance(&line), None, "{line}");
            let read: Stream<'_> = serde_json::from_str(&line).unwrap();
            assert_eq!(read.event.delta.unwrap().text.as_deref(), Some("x"));
        }
        assert_eq!(Stream::glance(&usual[..usual.len() - 1]), None);
    }
}
