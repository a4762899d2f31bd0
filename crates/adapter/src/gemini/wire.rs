//! The lines of `gemini -o stream-json`, as far as we read them, and those in other descriptions of that stream.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::line::soft;

/// `init`: a process begins its turn.
#[derive(Deserialize)]
pub(super) struct Init {
    pub(super) session_id: Option<String>,
    pub(super) model: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) role: Option<String>,
    #[serde(default)]
    pub(super) content: String,
    /// Only the new part; more of the same message may follow.
    #[serde(default)]
    pub(super) delta: bool,
}

/// `content`: how text came in older versions.
#[derive(Deserialize)]
pub(super) struct Content {
    #[serde(alias = "content", alias = "text")]
    pub(super) value: Value,
}

#[derive(Deserialize)]
pub(super) struct ToolUse {
    pub(super) tool_name: String,
    pub(super) tool_id: String,
    #[serde(default, deserialize_with = "soft")]
    pub(super) parameters: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
pub(super) struct ToolResult {
    pub(super) tool_id: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) output: Option<Value>,
    #[serde(default, deserialize_with = "soft")]
    pub(super) error: Option<Failure>,
}

/// `tool_call`: call and result in one, as in older versions.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCall {
    #[serde(alias = "tool_name", alias = "toolName")]
    pub(super) name: Option<String>,
    #[serde(alias = "tool_id", alias = "callId", alias = "call_id", alias = "toolId")]
    pub(super) id: Option<String>,
    #[serde(alias = "parameters", alias = "arguments", alias = "input", deserialize_with = "soft")]
    pub(super) args: Option<Map<String, Value>>,
    #[serde(alias = "output")]
    pub(super) result: Option<Value>,
    pub(super) status: Option<String>,
    pub(super) error: Option<Value>,
    /// Some versions put all fields in here.
    #[serde(deserialize_with = "soft")]
    pub(super) value: Option<Box<ToolCall>>,
}

/// An error; the message may be in either field.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    #[serde(rename = "type", alias = "code", deserialize_with = "soft")]
    pub(super) kind: Option<String>,
    pub(super) message: Option<String>,
}

/// `error`.
#[derive(Deserialize)]
pub(super) struct Trouble {
    pub(super) severity: Option<String>,
    #[serde(default, deserialize_with = "soft")]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) value: Option<Value>,
}

/// `retry`: of older versions.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Retried {
    pub(super) attempt: Option<u32>,
    #[serde(alias = "maxAttempts", alias = "max_retries")]
    pub(super) max_attempts: Option<u32>,
    #[serde(alias = "delayMs", alias = "retry_delay_ms")]
    pub(super) delay_ms: Option<u64>,
    #[serde(alias = "message", alias = "error", deserialize_with = "soft")]
    pub(super) reason: Option<String>,
}

/// `result`: the end of the turn.
#[derive(Deserialize)]
pub(super) struct Done {
    #[serde(default)]
    pub(super) status: String,
    #[serde(default, deserialize_with = "soft")]
    pub(super) stats: Option<Stats>,
    #[serde(default, deserialize_with = "soft")]
    pub(super) error: Option<Failure>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Stats {
    #[serde(flatten)]
    pub(super) tokens: Tokens,
    pub(super) duration_ms: Option<u64>,
    pub(super) models: BTreeMap<String, Tokens>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) total_tokens: Option<u64>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    #[serde(alias = "cache_tokens")]
    pub(super) cached: Option<u64>,
    pub(super) thought_tokens: Option<u64>,
}
