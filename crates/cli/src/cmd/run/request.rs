//! Parses a line of `--input-format stream-json`.

use multitap_client::{Refusal, SessionCall};
use multitap_event::{AgentError, AgentErrorKind, Image, MAX_JSON_VALUES, Prompt, has_more_values};
use serde_json::{Map, Value};

use crate::words::head;

/// Most characters of a bad line that are quoted.
const QUOTED: usize = 2000;
/// Most characters of an unknown type that are quoted.
const QUOTED_TYPE: usize = 100;

/// A line without effect, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadLine {
    kind: AgentErrorKind,
    why: String,
    line: String,
}

impl BadLine {
    pub(super) fn new(kind: AgentErrorKind, why: String, line: &str) -> Self {
        let head = head(line, QUOTED);
        let more = if head.len() < line.len() { "…" } else { "" };
        Self { kind, why, line: format!("{head}{more}") }
    }

    /// The error event for it: a warning that quotes the line.
    pub(super) fn into_error(self) -> AgentError {
        AgentError::new(self.kind, self.why).native(self.line).warning()
    }
}

pub(super) fn parse(line: &str) -> Result<SessionCall, BadLine> {
    let bad = |kind, why: String| BadLine::new(kind, why, line);
    if has_more_values(line, MAX_JSON_VALUES) {
        let why = format!("a line of the input has more than {MAX_JSON_VALUES} values");
        return Err(bad(AgentErrorKind::ProtocolError, why));
    }
    let value: Value = serde_json::from_str(line)
        .map_err(|error| bad(AgentErrorKind::JsonParseError, format!("a line of the input is not JSON: {error}")))?;
    call(value).map_err(|why| bad(AgentErrorKind::ProtocolError, why))
}

fn call(value: Value) -> Result<SessionCall, String> {
    let Value::Object(mut fields) = value else { return Err("a line of the input is not a JSON object".to_owned()) };
    match fields.get("type").and_then(Value::as_str) {
        None => return Err(format!("a line of the input has no type: use {}", types())),
        Some("message") => fields = message(&fields)?,
        Some("user") => match fields.get("message") {
            Some(Value::Object(inner)) => fields = message(inner)?,
            _ => return Err("'user' needs a 'message' object".to_owned()),
        },
        Some(_) => {}
    }
    let kind = head(fields.get("type").and_then(Value::as_str).unwrap_or_default(), QUOTED_TYPE).to_owned();
    match SessionCall::read(fields) {
        Ok(call) if call.has_answer() => {
            Err("lines get no replies: the result of this call is in the events on stdout".to_owned())
        }
        Ok(call) => Ok(call),
        Err(Refusal::UnknownMethod { .. }) => Err(format!("unknown type '{kind}': use {}", types())),
        Err(refusal) => Err(refusal.to_string()),
    }
}

fn types() -> String {
    let others = SessionCall::TYPES.iter().filter(|name| !matches!(**name, "clients" | "rules" | "snapshot"));
    others.copied().chain(["message", "user"]).collect::<Vec<_>>().join(", ")
}

/// A prompt from `{role, content}`, where content is text or a list of text and picture blocks.
fn message(object: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    match object.get("role").map(Value::as_str) {
        None | Some(Some("user")) => {}
        Some(_) => return Err("only messages of role 'user' can be sent".to_owned()),
    }
    let mut prompt = Prompt::default();
    match object.get("content") {
        Some(Value::String(text)) => prompt.text.clone_from(text),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                match block_of(block)? {
                    Block::Text(text) if prompt.text.is_empty() => prompt.text = text,
                    Block::Text(text) => {
                        prompt.text.push('\n');
                        prompt.text.push_str(&text);
                    }
                    Block::Image(image) => prompt.images.push(image),
                }
            }
        }
        _ => return Err("a message needs 'content': text, or a list of blocks".to_owned()),
    }
    match serde_json::to_value(SessionCall::Prompt { prompt, when_busy: None }) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) | Err(_) => Err("the message cannot be read".to_owned()),
    }
}

enum Block {
    Text(String),
    Image(Image),
}

fn block_of(block: &Value) -> Result<Block, String> {
    let word = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    match word(block, "type").as_deref() {
        Some("text") => word(block, "text").map(Block::Text).ok_or_else(|| "a text block needs 'text'".to_owned()),
        Some("image") => {
            let source = block.get("source").unwrap_or(block);
            let media_type = word(source, "media_type").or_else(|| word(source, "mediaType"));
            match (media_type, word(source, "data")) {
                (Some(media_type), Some(data)) => Ok(Block::Image(Image { media_type, data })),
                _ => Err("an image block needs base64 'data' and its 'media_type'".to_owned()),
            }
        }
        Some(other) => Err(format!("blocks of type '{other}' cannot be sent: use text or image")),
        None => Err("a block needs a 'type': text or image".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use multitap_client::WhenBusy;
    use proptest::prelude::*;

    use super::*;

    fn prompt(text: &str) -> SessionCall {
        SessionCall::Prompt { prompt: Prompt::text(text), when_busy: None }
    }

    #[test]
    fn every_kind_of_line_is_read() {
        for (line, expected) in [
            (r#"{"type":"prompt","text":"hi"}"#, prompt("hi")),
            (r#"{"type":"prompt","text":"hi","promptId":"mine"}"#, prompt("hi")),
            (
                r#"{"type":"prompt","text":"hi","whenBusy":"interrupt"}"#,
                SessionCall::Prompt { prompt: Prompt::text("hi"), when_busy: Some(WhenBusy::Interrupt) },
            ),
            (r#"{"type":"message","role":"user","content":[{"type":"text","text":"hi"}]}"#, prompt("hi")),
            (r#"{"type":"message","role":"user","content":"hi"}"#, prompt("hi")),
            (r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#, prompt("hi")),
            (r#"{"type":"cancel"}"#, SessionCall::Cancel),
            (r#"{"type":"setThinking"}"#, SessionCall::SetThinking { tokens: None }),
            (r#"{"type":"revoke","ruleId":"r"}"#, SessionCall::Revoke { rule_id: "r".into() }),
        ] {
            assert_eq!(parse(line).expect(line), expected, "{line}");
        }
    }

    #[test]
    fn pictures_come_in_blocks() {
        let line = r#"{"type":"user","message":{"role":"user","content":[
            {"type":"text","text":"look"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}}"#;
        let Ok(SessionCall::Prompt { prompt, .. }) = parse(line) else { panic!("no prompt") };
        assert_eq!(prompt.images.len(), 1);
        assert_eq!(prompt.images[0].media_type, "image/png");
    }

    #[test]
    fn a_bad_line_says_why_and_is_quoted() {
        for (line, kind, why) in [
            ("hello", AgentErrorKind::JsonParseError, "is not JSON"),
            ("[1]", AgentErrorKind::ProtocolError, "not a JSON object"),
            ("{}", AgentErrorKind::ProtocolError, "has no type"),
            (
                r#"{"type":"frobnicate"}"#,
                AgentErrorKind::ProtocolError,
                "unknown type 'frobnicate': use prompt, decide",
            ),
            (r#"{"type":"prompt"}"#, AgentErrorKind::ProtocolError, "missing field `text`"),
            (r#"{"type":"rules"}"#, AgentErrorKind::ProtocolError, "lines get no replies"),
            (r#"{"type":"prompt","text":" "}"#, AgentErrorKind::ProtocolError, "empty"),
            (r#"{"type":"decide","questionId":"q"}"#, AgentErrorKind::ProtocolError, "missing field `optionId`"),
            (r#"{"type":"message","role":"assistant","content":"x"}"#, AgentErrorKind::ProtocolError, "role 'user'"),
            (r#"{"type":"prompt","text":"x","whenBusy":"later"}"#, AgentErrorKind::ProtocolError, "`queue`, `steer`"),
            (r#"{"type":"query","what":"weather"}"#, AgentErrorKind::ProtocolError, "weather"),
        ] {
            let bad = parse(line).expect_err(line);
            assert_eq!(bad.kind, kind, "{line}");
            assert!(bad.why.contains(why), "{line}: {}", bad.why);
            assert_eq!(bad.line, line);
        }
        let many = format!("{{\"type\":\"prompt\",\"x\":[{}0]}}", "{},".repeat(MAX_JSON_VALUES));
        assert_eq!(parse(&many).expect_err("many").why, "a line of the input has more than 250000 values");
        let long = format!("{{\"type\":\"{}", "é".repeat(5000));
        let quoted = parse(&long).expect_err("long").line;
        assert!(quoted.len() < 2100 && quoted.ends_with('…'), "{}", quoted.len());
    }

    proptest! {
        /// Anything at all is either a request or an error that quotes it.
        #[test]
        fn any_line_is_understood_or_quoted(line in r#"\PC{0,200}|\{"type":"[a-zA-Z]{0,8}"(,"[a-z]{1,5}":(1|"x"|\[\]|null)){0,3}\}"#) {
            if let Err(bad) = parse(&line) {
                prop_assert_eq!(bad.into_error().native_error, Some(line));
            }
        }
    }
}
