//! One line of `--input-format stream-json` to what it asks for.

use multitap_client::WhenBusy;
use multitap_event::{AgentError, AgentErrorKind, Command, Decide, Image, Prompt, PromptId, Query};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::words::head;

/// How much of a bad line is quoted.
const QUOTED: usize = 2000;
const TYPES: &str = "prompt, decide, cancel, setMode, setModel, setThinking, query, withdraw, message or user";

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    Prompt { prompt: Prompt, when_busy: Option<WhenBusy> },
    Decide(Decide),
    Cancel,
    Withdraw(PromptId),
    SetMode(String),
    SetModel(String),
    SetThinking(Option<u32>),
    Query(Query),
}

/// A line that leads to nothing, and why.
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

    /// As an event shows it: nothing ends because of it, and the line is quoted.
    pub(super) fn into_error(self) -> AgentError {
        AgentError::new(self.kind, self.why).native(self.line).warning()
    }
}

/// Reads a line.
pub(super) fn parse(line: &str) -> Result<Request, BadLine> {
    let bad = |kind, why: String| BadLine::new(kind, why, line);
    let value: Value = serde_json::from_str(line)
        .map_err(|error| bad(AgentErrorKind::JsonParseError, format!("a line of the input is not JSON: {error}")))?;
    request(value).map_err(|why| bad(AgentErrorKind::ProtocolError, why))
}

fn request(value: Value) -> Result<Request, String> {
    let Value::Object(object) = value else { return Err("a line of the input is not a JSON object".to_owned()) };
    let Some(Value::String(kind)) = object.get("type") else {
        return Err(format!("a line of the input has no type: use {TYPES}"));
    };
    let kind = kind.clone();
    match kind.as_str() {
        "message" => message(&object),
        "user" => match object.get("message") {
            Some(Value::Object(inner)) => message(inner),
            _ => Err("'user' needs a 'message' object".to_owned()),
        },
        "withdraw" => read::<Withdraw>(object, &kind).map(|line| Request::Withdraw(line.prompt_id)),
        "prompt" => {
            let when_busy = object.get("whenBusy").map(when_busy).transpose()?;
            let prompt = read::<Prompt>(object, &kind)?;
            checked(prompt, when_busy)
        }
        "decide" | "cancel" | "setMode" | "setModel" | "setThinking" | "query" => {
            read::<Command>(object, &kind).map(|command| match command {
                Command::Prompt(prompt) => Request::Prompt { prompt, when_busy: None },
                Command::Steer(prompt) => Request::Prompt { prompt, when_busy: Some(WhenBusy::Steer) },
                Command::Decide(decide) => Request::Decide(decide),
                Command::Cancel => Request::Cancel,
                Command::SetMode { mode } => Request::SetMode(mode),
                Command::SetModel { model } => Request::SetModel(model),
                Command::SetThinking { tokens } => Request::SetThinking(tokens),
                Command::Query { what } => Request::Query(what),
            })
        }
        other => Err(format!("'{other}' is not known: use {TYPES}")),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Withdraw {
    prompt_id: PromptId,
}

fn read<T: for<'de> Deserialize<'de>>(object: Map<String, Value>, kind: &str) -> Result<T, String> {
    serde_json::from_value(Value::Object(object)).map_err(|error| format!("'{kind}' is not complete: {error}"))
}

fn when_busy(value: &Value) -> Result<WhenBusy, String> {
    match value.as_str() {
        Some("queue") => Ok(WhenBusy::Queue),
        Some("interrupt") => Ok(WhenBusy::Interrupt),
        Some("steer") => Ok(WhenBusy::Steer),
        _ => Err("'whenBusy' must be queue, steer or interrupt".to_owned()),
    }
}

/// A prompt with something in it. Its id is ours to give.
fn checked(prompt: Prompt, when_busy: Option<WhenBusy>) -> Result<Request, String> {
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err("the prompt is empty".to_owned());
    }
    Ok(Request::Prompt { prompt: Prompt { prompt_id: None, ..prompt }, when_busy })
}

/// `{role, content}`, where content is text or a list of text and picture blocks.
fn message(object: &Map<String, Value>) -> Result<Request, String> {
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
    checked(prompt, None)
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
    use proptest::prelude::*;

    use super::*;

    fn prompt(text: &str) -> Request {
        Request::Prompt { prompt: Prompt::text(text), when_busy: None }
    }

    #[test]
    fn every_kind_of_line_is_read() {
        let decide = Decide { new_content: Some("n".into()), ..Decide::new(&"q".into(), "cancel").with_feedback("no") };
        for (line, expected) in [
            (r#"{"type":"prompt","text":"hi"}"#, prompt("hi")),
            (r#"{"type":"prompt","text":"hi","promptId":"mine"}"#, prompt("hi")),
            (
                r#"{"type":"prompt","text":"hi","whenBusy":"interrupt"}"#,
                Request::Prompt { prompt: Prompt::text("hi"), when_busy: Some(WhenBusy::Interrupt) },
            ),
            (
                r#"{"type":"prompt","text":"hi","whenBusy":"steer"}"#,
                Request::Prompt { prompt: Prompt::text("hi"), when_busy: Some(WhenBusy::Steer) },
            ),
            (r#"{"type":"message","role":"user","content":[{"type":"text","text":"hi"}]}"#, prompt("hi")),
            (r#"{"type":"message","role":"user","content":"hi"}"#, prompt("hi")),
            (r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}"#, prompt("hi")),
            (
                r#"{"type":"decide","questionId":"q","optionId":"cancel","newContent":"n","feedback":"no"}"#,
                Request::Decide(decide),
            ),
            (r#"{"type":"cancel"}"#, Request::Cancel),
            (r#"{"type":"setMode","mode":"plan"}"#, Request::SetMode("plan".into())),
            (r#"{"type":"setModel","model":"m"}"#, Request::SetModel("m".into())),
            (r#"{"type":"setThinking","tokens":5}"#, Request::SetThinking(Some(5))),
            (r#"{"type":"setThinking"}"#, Request::SetThinking(None)),
            (r#"{"type":"query","what":"mcpStatus"}"#, Request::Query(Query::McpStatus)),
            (r#"{"type":"withdraw","promptId":"p"}"#, Request::Withdraw("p".into())),
        ] {
            assert_eq!(parse(line).expect(line), expected, "{line}");
        }
    }

    #[test]
    fn pictures_come_in_blocks() {
        let line = r#"{"type":"user","message":{"role":"user","content":[
            {"type":"text","text":"look"},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}}"#;
        let Ok(Request::Prompt { prompt, .. }) = parse(line) else { panic!("no prompt") };
        assert_eq!(prompt.images.len(), 1);
        assert_eq!(prompt.images[0].media_type, "image/png");
    }

    #[test]
    fn a_bad_line_says_why_and_is_quoted() {
        for (line, kind, why) in [
            ("hello", AgentErrorKind::JsonParseError, "is not JSON"),
            ("[1]", AgentErrorKind::ProtocolError, "not a JSON object"),
            ("{}", AgentErrorKind::ProtocolError, "has no type"),
            (r#"{"type":"frobnicate"}"#, AgentErrorKind::ProtocolError, "'frobnicate' is not known"),
            (r#"{"type":"prompt"}"#, AgentErrorKind::ProtocolError, "missing field `text`"),
            (r#"{"type":"prompt","text":" "}"#, AgentErrorKind::ProtocolError, "empty"),
            (r#"{"type":"decide","questionId":"q"}"#, AgentErrorKind::ProtocolError, "missing field `optionId`"),
            (r#"{"type":"message","role":"assistant","content":"x"}"#, AgentErrorKind::ProtocolError, "role 'user'"),
            (r#"{"type":"prompt","text":"x","whenBusy":"later"}"#, AgentErrorKind::ProtocolError, "queue, steer"),
            (r#"{"type":"query","what":"weather"}"#, AgentErrorKind::ProtocolError, "weather"),
        ] {
            let bad = parse(line).expect_err(line);
            assert_eq!(bad.kind, kind, "{line}");
            assert!(bad.why.contains(why), "{line}: {}", bad.why);
            assert_eq!(bad.line, line);
        }
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
