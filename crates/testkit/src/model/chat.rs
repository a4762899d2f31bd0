//! The OpenAI chat completions API, as local servers speak it.

use serde_json::{Value, json};

use super::play::{Dialect, data, halves};
use super::request::{Seen, ToolResult, Turn, text_of};
use super::script::{Stop, Usage};
use super::tool::{self, NativeCall, Tool};
use super::{Api, fresh_id};

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
    Turn::said(message["role"] == "assistant", content, |part| part.pointer("/image_url/url"))
}

#[derive(Debug)]
pub(super) struct Stream<'a> {
    seen: &'a Seen,
    usage: Usage,
    id: String,
    calls: usize,
}

impl<'a> Stream<'a> {
    pub(super) fn new(seen: &'a Seen, usage: Usage) -> Self {
        Self { seen, usage, id: fresh_id("chatcmpl"), calls: 0 }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> String {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        data(&json!({"id": self.id, "object": "chat.completion.chunk", "model": self.seen.model, "choices": [choice]}))
    }
}

impl Dialect for Stream<'_> {
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
        let NativeCall { name, args, .. } = tool::native(tool, Api::OpenAiChat, &self.seen.tools);
        let opened = json!([{"index": index, "id": fresh_id("call"), "type": "function",
                             "function": {"name": name, "arguments": ""}}]);
        let more = halves(&args.to_string())
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
        let counted = json!({"id": self.id, "object": "chat.completion.chunk", "model": self.seen.model, "choices": [],
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

fn usage(usage: Usage) -> Value {
    json!({"prompt_tokens": usage.input, "completion_tokens": usage.output,
           "total_tokens": usage.input + usage.output})
}
