//! The Anthropic Messages API, as Claude Code speaks it.

use serde_json::{Value, json};

use super::play::{Dialect, event, halves};
use super::request::{Image, Seen, ToolResult, Turn, text_of};
use super::script::{Refusal, Reply, Step, Stop, Usage};
use super::tool::{self, NativeCall, Tool};
use super::{Api, fresh_id};

/// Placeholder for the signature of a real thought.
const SIGNATURE: &str = "c2NyaXB0ZWQtc2lnbmF0dXJl";

/// The beginning of the last message in a request for suggestions of what the user might type next.
const SUGGESTION: &str = "[SUGGESTION MODE:";

pub(super) fn see(body: &Value) -> Seen {
    let names = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    // Claude Code also puts notes of its own between the messages.
    let (notes, messages): (Vec<_>, Vec<_>) = messages.partition(|message| message["role"] == "system");
    let mut system = vec![body.get("system").map(text_of).unwrap_or_default()];
    system.extend(notes.iter().map(|note| text_of(&note["content"])));
    let tools: Vec<String> = names.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect();
    let turns: Vec<Turn> = messages.into_iter().map(turn).collect();
    let suggests = turns.last().is_some_and(|last| last.texts.iter().any(|text| text.starts_with(SUGGESTION)));
    Seen {
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        system: system.join("\n"),
        // Without any tools, notes still identify a conversation.
        aside: suggests || (tools.is_empty() && notes.is_empty()),
        tools,
        turns,
        thinking_budget: body.pointer("/thinking/budget_tokens").and_then(Value::as_u64),
        wants_proof: true,
        schema: body.pointer("/output_config/format/schema").or_else(|| body.pointer("/output_format/schema")).cloned(),
    }
}

fn turn(message: &Value) -> Turn {
    let mut turn = Turn { from_model: message["role"] == "assistant", ..Turn::default() };
    match &message["content"] {
        Value::String(text) => turn.texts.push(text.clone()),
        Value::Array(blocks) => blocks.iter().for_each(|block| read_block(block, &mut turn)),
        _ => {}
    }
    turn
}

fn read_block(block: &Value, turn: &mut Turn) {
    match block["type"].as_str() {
        Some("text") => turn.texts.push(text_of(block)),
        Some("image") => turn.images.extend(image(block)),
        Some("tool_result") => {
            let content = &block["content"];
            turn.images.extend(content.as_array().into_iter().flatten().filter_map(image));
            turn.results.push(ToolResult {
                call: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
                text: text_of(content),
                is_error: block["is_error"] == true,
            });
        }
        _ => {}
    }
}

fn image(block: &Value) -> Option<Image> {
    let source = block.get("source")?;
    Some(Image {
        media_type: source.get("media_type")?.as_str()?.to_owned(),
        base64_len: source.get("data")?.as_str()?.len(),
    })
}

#[derive(Debug)]
pub(super) struct Stream<'a> {
    seen: &'a Seen,
    usage: Usage,
    blocks: usize,
    open: Option<Block>,
    called: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
}

impl<'a> Stream<'a> {
    pub(super) fn new(seen: &'a Seen, usage: Usage) -> Self {
        Self { seen, usage, blocks: 0, open: None, called: false }
    }

    fn open(&mut self, block: Block) -> String {
        if self.open == Some(block) {
            return String::new();
        }
        let closed = self.close();
        self.open = Some(block);
        let empty = match block {
            Block::Text => json!({"type": "text", "text": ""}),
            Block::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        };
        closed + &self.start(&empty)
    }

    fn close(&mut self) -> String {
        let Some(block) = self.open.take() else { return String::new() };
        let signature = match block {
            Block::Text => String::new(),
            Block::Thinking => self.delta(&json!({"type": "signature_delta", "signature": SIGNATURE})),
        };
        signature + &self.stop()
    }

    fn start(&self, block: &Value) -> String {
        event(
            "content_block_start",
            &json!({"type": "content_block_start", "index": self.blocks, "content_block": block}),
        )
    }

    fn delta(&self, delta: &Value) -> String {
        event("content_block_delta", &json!({"type": "content_block_delta", "index": self.blocks, "delta": delta}))
    }

    fn stop(&mut self) -> String {
        let index = self.blocks;
        self.blocks += 1;
        event("content_block_stop", &json!({"type": "content_block_stop", "index": index}))
    }
}

impl Dialect for Stream<'_> {
    fn begin(&mut self) -> String {
        let message = json!({
            "id": fresh_id("msg"), "type": "message", "role": "assistant", "model": self.seen.model, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": self.usage.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                      "output_tokens": 1},
        });
        event("message_start", &json!({"type": "message_start", "message": message}))
            + &event("ping", &json!({"type": "ping"}))
    }

    fn text(&mut self, chunk: &str) -> String {
        self.open(Block::Text) + &self.delta(&json!({"type": "text_delta", "text": chunk}))
    }

    fn think(&mut self, chunk: &str) -> String {
        self.open(Block::Thinking) + &self.delta(&json!({"type": "thinking_delta", "thinking": chunk}))
    }

    fn call(&mut self, tool: &Tool) -> String {
        self.called = true;
        let closed = self.close();
        let NativeCall { name, args, .. } = tool::native(tool, Api::Anthropic, &self.seen.tools);
        let block = self.start(&json!({"type": "tool_use", "id": fresh_id("toolu"), "name": name, "input": {}}));
        let deltas = halves(&args.to_string())
            .map(|half| self.delta(&json!({"type": "input_json_delta", "partial_json": half})));
        closed + &block + &deltas.concat() + &self.stop()
    }

    fn end_block(&mut self) -> String {
        self.close()
    }

    fn fail(&mut self, kind: &str, message: &str) -> String {
        event("error", &json!({"type": "error", "error": {"type": kind, "message": message}}))
    }

    fn end(&mut self, stop: Stop) -> String {
        let closed = self.close();
        let reason = reason(stop, self.called);
        let delta = json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": self.usage.output},
        });
        closed + &event("message_delta", &delta) + &event("message_stop", &json!({"type": "message_stop"}))
    }
}

fn reason(stop: Stop, called: bool) -> &'static str {
    match stop {
        Stop::Done if called => "tool_use",
        Stop::Done => "end_turn",
        Stop::Length => "max_tokens",
        Stop::Filtered => "refusal",
    }
}

/// The same answer in one piece.
pub(super) fn whole(reply: &Reply, seen: &Seen) -> Value {
    let mut called = false;
    let content = reply.steps.iter().filter_map(|step| match step {
        Step::Text(chunks) => Some(json!({"type": "text", "text": chunks.concat()})),
        Step::Think(chunks) => Some(json!({"type": "thinking", "thinking": chunks.concat(), "signature": SIGNATURE})),
        Step::Call(tool) => {
            called = true;
            let NativeCall { name, args, .. } = tool::native(tool, Api::Anthropic, &seen.tools);
            Some(json!({"type": "tool_use", "id": fresh_id("toolu"), "name": name, "input": args}))
        }
        Step::EndBlock | Step::Pause(_) | Step::Hang | Step::Cut | Step::Fail { .. } => None,
    });
    let content: Vec<Value> = content.collect();
    json!({
        "id": fresh_id("msg"), "type": "message", "role": "assistant", "model": seen.model, "content": content,
        "stop_reason": reason(reply.stop, called), "stop_sequence": null,
        "usage": {"input_tokens": reply.usage.input, "output_tokens": reply.usage.output},
    })
}

pub(super) fn error(refusal: &Refusal) -> Value {
    let Refusal { status, message, .. } = refusal;
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message},
           "request_id": fresh_id("req")})
}
