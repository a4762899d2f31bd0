//! The model's replies, in words that fit all model APIs.
//!
//! A test writes a script of [`Reply`] values. How each API spells them is the business of its own
//! module; nothing of a wire format belongs here.

use std::time::Duration;

use serde_json::Value;

use super::tool::Tool;

/// Length of the pieces that [`Reply::text`] is streamed in.
const PIECE_CHARS: usize = 12;

/// One thing that happens in a reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Text(Vec<String>),
    Think(Vec<String>),
    Call(Tool),
    /// The next piece begins a new block.
    EndBlock,
    Pause(Duration),
    /// Send nothing more until the test releases the server.
    Hang,
    /// The connection breaks.
    Cut,
    /// The stream ends with an error event of the API.
    Fail {
        kind: String,
        message: String,
    },
}

/// Why a reply ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stop {
    #[default]
    Done,
    /// The reply reached the limit on its length.
    Length,
    /// The provider filtered the answer.
    Filtered,
}

/// An answer that is no stream but an HTTP error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    pub(super) retry_after: Option<u64>,
}

impl Refusal {
    pub(super) fn new(status: u16) -> Self {
        Self { status, message: format!("scripted error {status}"), retry_after: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 10 }
    }
}

/// One answer of the model: steps in order, built by chaining.
///
/// Text before and after a pause or a hang stays one block of text. Several tool calls in one reply are
/// parallel calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub(super) steps: Vec<Step>,
    pub(super) refusal: Option<Refusal>,
    pub(super) usage: Usage,
    pub(super) stop: Stop,
    pub(super) chunk_delay: Duration,
    pub(super) asked: Option<String>,
}

impl Reply {
    pub fn new() -> Self {
        Self::default()
    }

    /// A reply with this text, streamed in small pieces.
    pub fn text(text: &str) -> Self {
        Self::new().then_text(text)
    }

    /// A reply with these pieces, each one delta on the wire.
    pub fn chunks<S: Into<String>>(chunks: impl IntoIterator<Item = S>) -> Self {
        Self::new().then_chunks(chunks)
    }

    pub fn think(text: &str) -> Self {
        Self::new().then_think(text)
    }

    pub fn call(tool: Tool) -> Self {
        Self::new().then_call(tool)
    }

    pub fn status(status: u16) -> Self {
        Self { refusal: Some(Refusal::new(status)), ..Self::default() }
    }

    pub fn refuse(status: u16, message: &str) -> Self {
        let message = message.to_owned();
        Self { refusal: Some(Refusal { message, ..Refusal::new(status) }), ..Self::default() }
    }

    /// A reply that begins, and then sends nothing until `ModelServer::release`.
    pub fn hang() -> Self {
        Self::new().then_hang()
    }

    /// Adds text, streamed in small pieces.
    #[must_use]
    pub fn then_text(self, text: &str) -> Self {
        self.step(Step::Text(pieces(text)))
    }

    /// Adds text in exactly these pieces.
    #[must_use]
    pub fn then_chunks<S: Into<String>>(self, chunks: impl IntoIterator<Item = S>) -> Self {
        self.step(Step::Text(chunks.into_iter().map(Into::into).collect()))
    }

    /// Adds a thought, streamed in small pieces.
    #[must_use]
    pub fn then_think(self, text: &str) -> Self {
        self.step(Step::Think(pieces(text)))
    }

    /// Adds a tool call. Several in one reply are parallel calls.
    #[must_use]
    pub fn then_call(self, tool: Tool) -> Self {
        self.step(Step::Call(tool))
    }

    /// Sends nothing more until `ModelServer::release`.
    #[must_use]
    pub fn then_hang(self) -> Self {
        self.step(Step::Hang)
    }

    #[must_use]
    pub fn then_cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Ends the stream here with the API's own error event. `kind` is the API's word for it, such as
    /// `overloaded_error`. An answer that is not streamed is an HTTP error instead.
    #[must_use]
    pub fn then_fail(self, kind: &str, message: &str) -> Self {
        self.step(Step::Fail { kind: kind.to_owned(), message: message.to_owned() })
    }

    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// With [`Reply::status`]: asks the client to come back after this many seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Some(refusal) = &mut self.refusal {
            refusal.retry_after = Some(seconds);
        }
        self
    }

    /// Waits so long before each piece of text or thought.
    #[must_use]
    pub fn chunk_delay(mut self, delay: Duration) -> Self {
        self.chunk_delay = delay;
        self
    }

    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Usage { input, output };
        self
    }

    /// Reserves this reply for a request whose last user text contains `needle`; other requests get a later reply. A
    /// sub-agent takes replies from the queue only if they are reserved.
    #[must_use]
    pub fn when_asked(mut self, needle: &str) -> Self {
        self.asked = Some(needle.to_owned());
        self
    }

    pub(super) fn fails(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Fail { .. }))
    }

    pub(super) fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

/// A script of this reply alone.
impl IntoIterator for Reply {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

/// The smallest JSON value that a schema accepts, for requests that want structured output.
pub(super) fn instance_of(schema: &Value) -> Value {
    if let Some(first) = schema.pointer("/enum/0").or_else(|| schema.get("const")) {
        return first.clone();
    }
    if let Some(first) = schema.pointer("/anyOf/0").or_else(|| schema.pointer("/oneOf/0")) {
        return instance_of(first);
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    match kind.unwrap_or("object").to_ascii_lowercase().as_str() {
        "string" => "scripted".into(),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        "boolean" => false.into(),
        "array" => Value::Array(Vec::new()),
        "null" => Value::Null,
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            properties.into_iter().flatten().map(|(name, schema)| (name.clone(), instance_of(schema))).collect()
        }
    }
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_streamed_in_pieces_that_add_up() {
        let reply = Reply::text("Grüße an alle, die das hier lesen").then_text("!");
        let Step::Text(pieces) = &reply.steps[0] else { panic!("no text: {reply:?}") };
        assert_eq!((pieces.len(), pieces.concat().as_str()), (3, "Grüße an alle, die das hier lesen"));
    }

    #[test]
    fn structured_output_gets_every_property() {
        let schema = json!({"type": "object", "properties": {
            "title": {"type": "string"}, "choice": {"enum": ["flash", "pro"]}, "sure": {"type": ["boolean", "null"]}
        }});
        assert_eq!(instance_of(&schema), json!({"title": "scripted", "choice": "flash", "sure": false}));
    }
}
