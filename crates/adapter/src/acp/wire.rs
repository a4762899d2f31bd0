//! The parts of ACP's JSON that are read often or have a shape of their own; replies are read field by field where they
//! are used. Unknown fields are ignored, and a field of an unexpected shape counts as absent.
//!
//! Written by hand: the types of `agent-client-protocol-schema` (1.15) are stricter. They refuse a whole message for a
//! content block of an unknown type or as plain text, a call without a title, a permission option of an unknown kind or
//! without a name, a reply with a stop reason that is new, or one without the protocol's version or the session's id; they
//! drop plan entries with an unknown status or without a priority, conversations without a folder, and all models. They
//! sort the fields of a form by name, while people read them in the agent's order. They also take 2.5 times as long as a
//! plain derive for a piece of text.

use multitap_event::{Image, ToolId};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::block::Content;
use crate::json::JsonFields as _;
use crate::line::{Word, soft};

/// The kind of a line: a request, a notification or a reply. Its content is parsed when the kind is known.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(default)]
    pub(super) id: Option<Value>,
    #[serde(borrow)]
    pub(super) method: Option<Word<'a>>,
    /// Present even if it is null: some agents report success that way.
    #[serde(default, deserialize_with = "present")]
    pub(super) result: Option<Value>,
    pub(super) error: Option<RpcError>,
    #[serde(borrow)]
    pub(super) params: Option<HeadParams<'a>>,
}

/// Only what identifies a request, whatever its parameters are.
#[derive(Deserialize)]
pub(super) struct Request {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl<'a> Head<'a> {
    /// Parses a piece of text in the exact form that Gemini writes. Such lines are frequent, and this takes half the
    /// time.
    pub(super) fn piece(line: &'a str) -> Option<Self> {
        let rest = line.strip_prefix(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#)?;
        let (session_id, rest) = word(rest)?;
        let (session_update, rest) = word(rest.strip_prefix(r#","update":{"sessionUpdate":"#)?)?;
        let (piece, rest) = word(rest.strip_prefix(r#","content":{"type":"text","text":"#)?)?;
        let update = Update { session_update: Some(session_update), piece: Some(piece), ..Update::default() };
        let params = HeadParams { session_id: Some(session_id), update: Some(update) };
        let method = Some("session/update".into());
        (rest == "}}}}").then_some(Self { id: None, method, result: None, error: None, params: Some(params) })
    }
}

/// The JSON string at the beginning of the text, and the rest.
fn word(text: &str) -> Option<(Word<'_>, &str)> {
    let mut words = serde_json::Deserializer::from_str(text).into_iter();
    let word = words.next()?.ok()?;
    Some((word, &text[words.byte_offset()..]))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeadParams<'a> {
    #[serde(borrow)]
    pub(super) session_id: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) update: Option<Update<'a>>,
}

/// The kind of an update, with all fields of the frequent ones: `agent_message_chunk`, `agent_thought_chunk`,
/// `user_message_chunk`. Other updates are parsed a second time, as their own type.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Update<'a> {
    #[serde(borrow)]
    pub(super) session_update: Option<Word<'a>>,
    #[serde(borrow)]
    content: Content<'a>,
    /// The content, if it was parsed as text already.
    #[serde(skip)]
    piece: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) message_id: Option<Word<'a>>,
    #[serde(rename = "_meta")]
    meta: Value,
}

impl Update<'_> {
    pub(super) fn text(&self) -> String {
        self.piece.as_deref().map_or_else(|| self.content.text(), str::to_owned)
    }

    pub(super) fn image(&self) -> Option<Image> {
        self.content.image()
    }

    /// The call of the sub-agent that wrote this.
    pub(super) fn parent(&self) -> Option<ToolId> {
        self.meta.field("claudeCode").text("parentToolUseId").map(Into::into)
    }
}

/// A request or notification whose parameters we read as `P`.
#[derive(Deserialize)]
pub(super) struct Call<P> {
    pub(super) params: P,
}

/// `session/update`, read as one sort of update.
#[derive(Deserialize)]
pub(super) struct Updated<U> {
    pub(super) update: U,
}

#[derive(Debug, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

/// `tool_call`, `tool_call_update`, and the call in a permission request. Absent fields have not changed.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolCall {
    pub(super) tool_call_id: String,
    pub(super) title: Option<String>,
    pub(super) name: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) content: Option<Vec<ToolContent>>,
    #[serde(deserialize_with = "soft")]
    pub(super) locations: Option<Vec<Location>>,
    pub(super) raw_input: Option<Value>,
    pub(super) raw_output: Option<Value>,
    /// Fields outside the protocol, such as `claudeCode`, `terminal_output` and `terminal_exit`.
    #[serde(rename = "_meta")]
    pub(super) meta: Value,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Location {
    pub(super) path: String,
}

/// The content of a tool call: a content block, a diff, or a terminal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolContent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) content: Option<Value>,
    pub(super) path: Option<String>,
    pub(super) old_text: Option<String>,
    pub(super) new_text: Option<String>,
    #[serde(rename = "_meta")]
    pub(super) meta: Value,
}

/// `session/request_permission`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskPermission {
    pub(super) tool_call: ToolCall,
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: String,
}

/// `elicitation/complete`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Completed {
    pub(super) elicitation_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelRequest {
    pub(super) request_id: Value,
}

#[cfg(test)]
mod tests {
    use multitap_testkit::fixture;

    use super::*;

    #[test]
    fn a_piece_reads_as_any_other_line() {
        fn said(head: Head<'_>) -> (Option<Value>, String, Option<String>, Option<String>, String) {
            let word = |word: Option<Word<'_>>| word.map(|word| word.0.into_owned());
            let params = head.params.unwrap();
            let update = params.update.unwrap();
            let text = update.text();
            (head.id, head.method.unwrap().0.into_owned(), word(params.session_id), word(update.session_update), text)
        }

        let mut pieces = 0;
        for recording in fixture::all("gemini").unwrap() {
            for line in recording.stdout() {
                if let Some(piece) = Head::piece(line) {
                    assert_eq!(said(piece), said(serde_json::from_str(line).unwrap()), "{line}");
                    pieces += 1;
                }
            }
        }
        assert!(pieces > 200, "only {pieces} lines look as expected: has Gemini's form changed?");
    }
}
