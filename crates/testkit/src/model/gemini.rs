//! The Gemini `generateContent` API, as Gemini CLI speaks it.

use serde_json::{Value, json};

use super::play::{Dialect, data};
use super::request::{Image, Seen, ToolResult, Turn, text_of};
use super::script::{Refusal, Reply, Step, Stop, Usage};
use super::tool::{self, NativeCall, Tool};
use super::{Api, fresh_id};

/// Placeholder for the signature of a call after a thought.
const SIGNATURE: &str = "c2NyaXB0ZWQtdGhvdWdodA==";

/// Reads a request. The path contains the model's name.
pub(super) fn see(body: &Value, model: Option<&str>) -> Seen {
    let config = body.get("generationConfig");
    let declared = body["tools"].as_array().into_iter().flatten();
    let declared = declared.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
    let schema = config.and_then(|config| config.get("responseJsonSchema").or_else(|| config.get("responseSchema")));
    let wants_json = config.is_some_and(|config| config["responseMimeType"] == "application/json");
    let tools: Vec<String> = declared.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect();
    Seen {
        model: model.map(str::to_owned),
        system: body.pointer("/systemInstruction/parts").map(text_of).unwrap_or_default(),
        aside: tools.is_empty(),
        tools,
        turns: body["contents"].as_array().into_iter().flatten().map(turn).collect(),
        thinking_budget: config.and_then(|config| config.pointer("/thinkingConfig/thinkingBudget")?.as_u64()),
        wants_proof: true,
        schema: schema.cloned().or_else(|| wants_json.then(|| json!({"type": "object"}))),
    }
}

fn turn(content: &Value) -> Turn {
    let mut turn = Turn { from_model: content["role"] == "model", ..Turn::default() };
    for part in content["parts"].as_array().into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str).filter(|_| part["thought"] != true) {
            turn.texts.push(text.to_owned());
        }
        turn.images.extend(part.get("inlineData").or_else(|| part.get("inline_data")).and_then(image));
        turn.results.extend(part.get("functionResponse").map(result));
    }
    turn
}

fn result(response: &Value) -> ToolResult {
    let body = &response["response"];
    let error = body.get("error").filter(|error| !error.is_null());
    let text = error.or_else(|| body.get("output")).or_else(|| body.get("content")).unwrap_or(body);
    ToolResult {
        call: response["name"].as_str().unwrap_or_default().to_owned(),
        text: text.as_str().map_or_else(|| text.to_string(), str::to_owned),
        is_error: error.is_some(),
    }
}

fn image(inline: &Value) -> Option<Image> {
    Some(Image {
        media_type: inline.get("mimeType").or_else(|| inline.get("mime_type"))?.as_str()?.to_owned(),
        base64_len: inline.get("data")?.as_str()?.len(),
    })
}

/// An answer being streamed: each event is a whole response with the next parts.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    seen: &'a Seen,
    usage: Usage,
    response: String,
    thought: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(seen: &'a Seen, usage: Usage) -> Self {
        Self { seen, usage, response: fresh_id("resp"), thought: false }
    }

    fn part(&self, part: &Value) -> String {
        data(&json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
            "modelVersion": self.seen.model, "responseId": self.response,
        }))
    }
}

impl Dialect for Stream<'_> {
    fn begin(&mut self) -> String {
        String::new()
    }

    fn text(&mut self, chunk: &str) -> String {
        self.part(&json!({"text": chunk}))
    }

    fn think(&mut self, chunk: &str) -> String {
        self.thought = true;
        self.part(&json!({"text": chunk, "thought": true}))
    }

    fn call(&mut self, tool: &Tool) -> String {
        let mut part = call(tool, &self.seen.tools);
        if std::mem::take(&mut self.thought) {
            part["thoughtSignature"] = SIGNATURE.into();
        }
        self.part(&part)
    }

    fn end_block(&mut self) -> String {
        String::new()
    }

    fn fail(&mut self, kind: &str, message: &str) -> String {
        data(&json!({"error": {"code": 500, "message": message, "status": kind}}))
    }

    fn end(&mut self, stop: Stop) -> String {
        let content = json!({"role": "model", "parts": [{"text": ""}]});
        data(&json!({
            "candidates": [{"content": content, "finishReason": reason(stop), "index": 0}],
            "usageMetadata": usage(self.usage), "modelVersion": self.seen.model, "responseId": self.response,
        }))
    }
}

fn reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Done => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Filtered => "SAFETY",
    }
}

fn call(tool: &Tool, offered: &[String]) -> Value {
    let NativeCall { name, args, .. } = tool::native(tool, Api::Gemini, offered);
    json!({"functionCall": {"id": fresh_id("call"), "name": name, "args": args}})
}

fn usage(usage: Usage) -> Value {
    json!({"promptTokenCount": usage.input, "candidatesTokenCount": usage.output,
           "totalTokenCount": usage.input + usage.output})
}

/// The same answer in one piece.
pub(super) fn whole(reply: &Reply, seen: &Seen) -> Value {
    let parts = reply.steps.iter().filter_map(|step| match step {
        Step::Text(chunks) => Some(json!({"text": chunks.concat()})),
        Step::Think(chunks) => Some(json!({"text": chunks.concat(), "thought": true})),
        Step::Call(tool) => Some(call(tool, &seen.tools)),
        Step::EndBlock | Step::Pause(_) | Step::Hang | Step::Cut | Step::Fail { .. } => None,
    });
    let parts: Vec<Value> = parts.collect();
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason(reply.stop), "index": 0}],
        "usageMetadata": usage(reply.usage), "modelVersion": seen.model, "responseId": fresh_id("resp"),
    })
}

pub(super) fn error(refusal: &Refusal) -> Value {
    let Refusal { status, message, .. } = refusal;
    let kind = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}
