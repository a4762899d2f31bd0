//! The OpenAI chat completions API, as local servers speak it.

use serde_json::{Value, json};

use super::play::{Dialect, data};
use super::request::{Seen, ToolResult, Turn, image_of_url, text_of};
use super::script::{Reply, Step, Stop, Usage};
use super::tool::{self, Args, Tool};
use super::{Api, fresh_id};

/// Reads a request.
pub(super) fn see(body: &Value) -> Seen {
    let messages = body["messages"].as_array().into_iter().flatten();
    let is_system = |message: &&Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    let (system, messages): (Vec<_>, Vec<_>) = messages.partition(is_system);
    let system: Vec<String> = system.iter().map(|message| text_of(&message["content"])).collect();
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools: Vec<String> =
        tools.filter_map(|tool| Some(tool.pointer("/function/name")?.as_str()?.to_owned())).collect();
    Seen {
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        system: system.join("\n"),
        aside: tools.is_empty(),
        tools,
        turns: messages.into_iter().map(turn).collect(),
        thinking_budget: None,
        schema: body.pointer("/response_format/json_schema/schema").cloned(),
        wants_proof: false,
    }
}

fn turn(message: &Value) -> Turn {
    let content = &message["content"];
    if message["role"] == "tool" {
        let call = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
        let result = ToolResult { call, text: text_of(content), is_error: false };
        return Turn { results: vec![result], ..Turn::default() };
    }
    let mut turn = Turn { from_model: message["role"] == "assistant", ..Turn::default() };
    match content {
        Value::String(text) => turn.texts.push(text.clone()),
        Value::Array(parts) => {
            turn.texts.extend(parts.iter().filter_map(|part| Some(part.get("text")?.as_str()?.to_owned())));
            let urls = parts.iter().filter_map(|part| part.pointer("/image_url/url")?.as_str());
            turn.images.extend(urls.filter_map(image_of_url));
        }
        _ => {}
    }
    turn
}

/// An answer being streamed.
#[derive(Debug)]
pub(super) struct Stream {
    id: String,
    model: String,
    offered: Vec<String>,
    usage: Usage,
    calls: usize,
}

impl Stream {
    pub(super) fn new(seen: &Seen, usage: Usage) -> Self {
        Self {
            id: fresh_id("chatcmpl"),
            model: seen.model.clone().unwrap_or_default(),
            offered: seen.tools.clone(),
            usage,
            calls: 0,
        }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        data(&json!({"id": self.id, "object": "chat.completion.chunk", "model": self.model, "choices": [choice]}))
    }
}

impl Dialect for Stream {
    fn begin(&mut self) -> String {
        self.chunk(&json!({"role": "assistant", "content": ""}), None)
    }

    fn text(&mut self, chunk: &str) -> String {
        self.chunk(&json!({"content": chunk}), None)
    }

    fn think(&mut self, chunk: &str) -> String {
        self.chunk(&json!({"reasoning_content": chunk}), None)
    }

    fn call(&mut self, tool: &Tool) -> String {
        let index = self.calls;
        self.calls += 1;
        let (name, arguments) = named(tool, &self.offered);
        let opened = json!([{"index": index, "id": fresh_id("call"), "type": "function",
                             "function": {"name": name, "arguments": ""}}]);
        // In two halves, as real models stream it.
        let middle =
            (arguments.len() / 2..=arguments.len()).find(|at| arguments.is_char_boundary(*at)).unwrap_or_default();
        let halves = [&arguments[..middle], &arguments[middle..]];
        let more = halves
            .map(|half| self.chunk(&json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]}), None));
        self.chunk(&json!({"tool_calls": opened}), None) + &more.concat()
    }

    fn end_block(&mut self) -> String {
        String::new()
    }

    fn fail(&mut self, kind: &str, message: &str) -> String {
        data(&json!({"error": {"message": message, "type": kind, "code": null}}))
    }

    fn end(&mut self, stop: Stop) -> String {
        let counted = json!({"id": self.id, "object": "chat.completion.chunk", "model": self.model, "choices": [],
                             "usage": usage(self.usage)});
        self.chunk(&json!({}), Some(finish(stop, self.calls > 0))) + &data(&counted) + "data: [DONE]\n\n"
    }
}

fn finish(stop: Stop, called: bool) -> &'static str {
    match stop {
        Stop::Done if called => "tool_calls",
        Stop::Done => "stop",
        Stop::Length => "length",
        Stop::Filtered => "content_filter",
    }
}

fn named(tool: &Tool, offered: &[String]) -> (String, String) {
    let call = tool::native(tool, Api::OpenAiChat, offered);
    match call.args {
        Args::Json(arguments) => (call.name, arguments.to_string()),
        Args::Text(text) => (call.name, text),
    }
}

fn usage(usage: Usage) -> Value {
    json!({"prompt_tokens": usage.input, "completion_tokens": usage.output,
           "total_tokens": usage.input + usage.output})
}

/// The same answer in one piece.
pub(super) fn whole(reply: &Reply, seen: &Seen) -> Value {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for step in &reply.steps {
        match step {
            Step::Text(chunks) => text += &chunks.concat(),
            Step::Call(tool) => {
                let (name, arguments) = named(tool, &seen.tools);
                let function = json!({"name": name, "arguments": arguments});
                calls.push(json!({"id": fresh_id("call"), "type": "function", "function": function}));
            }
            Step::Think(_) | Step::EndBlock | Step::Pause(_) | Step::Hang | Step::Cut | Step::Fail { .. } => {}
        }
    }
    let finish = finish(reply.stop, !calls.is_empty());
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({"id": fresh_id("chatcmpl"), "object": "chat.completion", "model": seen.model,
           "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage(reply.usage)})
}
