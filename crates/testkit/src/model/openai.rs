//! The OpenAI Responses API, as Codex speaks it.

use serde_json::{Value, json};

use super::play::{Dialect, event};
use super::request::{Seen, ToolResult, Turn, text_of};
use super::script::{Refusal, Stop, Usage};
use super::tool::{self, Tool};
use super::{Api, fresh_id};

/// Placeholder for the model's encrypted reasoning.
const HIDDEN_THOUGHT: &str = "c2NyaXB0ZWQtcmVhc29uaW5n";

pub(super) fn see(body: &Value) -> Seen {
    let input = body.get("input");
    let turns = match input {
        Some(Value::String(text)) => vec![Turn { texts: vec![text.clone()], ..Turn::default() }],
        Some(Value::Array(items)) => items.iter().filter_map(turn).collect(),
        _ => Vec::new(),
    };
    let is_system = |item: &&Value| matches!(item["role"].as_str(), Some("developer" | "system"));
    let developer = input.and_then(Value::as_array).into_iter().flatten().filter(is_system);
    let mut system = vec![body.get("instructions").map(text_of).unwrap_or_default()];
    system.extend(developer.map(|item| text_of(&item["content"])));
    // Newer models get their tools as an item of the input.
    let items = input.and_then(Value::as_array).into_iter().flatten();
    let lists = [body].into_iter().chain(items.filter(|item| item["type"] == "additional_tools"));
    let tools = lists.flat_map(|list| list["tools"].as_array().into_iter().flatten());
    let tools: Vec<String> = tools.flat_map(tool_names).collect();
    Seen {
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        system: system.join("\n"),
        aside: tools.is_empty(),
        tools,
        turns,
        thinking_budget: None,
        schema: body.pointer("/text/format/schema").cloned(),
        wants_proof: body["include"].as_array().is_some_and(|all| all.contains(&"reasoning.encrypted_content".into())),
    }
}

/// The name of a tool, or the names of a namespace's tools with its prefix, unless it is the namespace of all plain
/// tools.
fn tool_names(tool: &Value) -> Vec<String> {
    let name = tool.get("name").or_else(|| tool.get("type")).and_then(Value::as_str).unwrap_or_default();
    if tool["type"] != "namespace" {
        return vec![name.to_owned()];
    }
    let inner = tool["tools"].as_array().into_iter().flatten();
    let inner = inner.filter_map(|inner| inner.get("name")?.as_str());
    inner.map(|inner| if name == "functions" { inner.to_owned() } else { format!("{name}__{inner}") }).collect()
}

fn turn(item: &Value) -> Option<Turn> {
    let kind = item["type"].as_str().unwrap_or("message");
    match kind {
        "message" => message(item),
        "function_call_output" | "custom_tool_call_output" => {
            let output = &item["output"];
            let text = if output.is_object() { text_of(&output["content"]) } else { text_of(output) };
            let call = item["call_id"].as_str().unwrap_or_default().to_owned();
            let result = ToolResult { call, text, is_error: output["success"] == false };
            Some(Turn { results: vec![result], ..Turn::default() })
        }
        "function_call" | "custom_tool_call" | "reasoning" => Some(Turn { from_model: true, ..Turn::default() }),
        _ => None,
    }
}

fn message(item: &Value) -> Option<Turn> {
    let from_model = match item["role"].as_str() {
        Some("user") => false,
        Some("assistant") => true,
        _ => return None,
    };
    Some(Turn::said(from_model, &item["content"], |part| part.get("image_url")))
}

#[derive(Debug)]
pub(super) struct Stream<'a> {
    seen: &'a Seen,
    usage: Usage,
    response: String,
    sequence: u64,
    open: Option<Open>,
    output: Vec<Value>,
}

/// The item that deltas go to.
#[derive(Debug)]
struct Open {
    kind: Kind,
    id: String,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
}

impl Kind {
    /// The events that begin the item's only part, continue it and complete it.
    fn events(self) -> [&'static str; 3] {
        match self {
            Self::Message => ["response.content_part.added", "response.output_text.delta", "response.output_text.done"],
            Self::Reasoning => [
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.done",
            ],
        }
    }

    /// The part, with this text.
    fn part(self, text: &str) -> Value {
        match self {
            Self::Message => json!({"type": "output_text", "text": text, "annotations": []}),
            Self::Reasoning => json!({"type": "summary_text", "text": text}),
        }
    }

    /// The item, with these parts.
    fn item(self, id: &str, parts: &[Value]) -> Value {
        match self {
            Self::Message => json!({"id": id, "type": "message", "role": "assistant", "content": parts}),
            Self::Reasoning => json!({"id": id, "type": "reasoning", "summary": parts}),
        }
    }
}

impl<'a> Stream<'a> {
    pub(super) fn new(seen: &'a Seen, usage: Usage) -> Self {
        Self { seen, usage, response: fresh_id("resp"), sequence: 0, open: None, output: Vec::new() }
    }

    fn send(&mut self, kind: &str, mut fields: Value) -> String {
        fields["type"] = kind.into();
        fields["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        event(kind, &fields)
    }

    fn response(&self, status: &str) -> Value {
        json!({"id": self.response, "object": "response", "status": status, "model": self.seen.model, "output": self.output})
    }

    fn open(&mut self, kind: Kind) -> String {
        if self.open.as_ref().is_some_and(|open| open.kind == kind) {
            return String::new();
        }
        let closed = self.close();
        let index = self.output.len();
        let id = fresh_id(if kind == Kind::Message { "msg" } else { "rs" });
        let mut item = kind.item(&id, &[]);
        if kind == Kind::Message {
            item["status"] = "in_progress".into();
        }
        let added = self.send("response.output_item.added", json!({"output_index": index, "item": item}));
        let [begins, ..] = kind.events();
        let begun = self.about_part(begins, kind, &id, "part", kind.part(""));
        self.open = Some(Open { kind, id, text: String::new() });
        closed + &added + &begun
    }

    /// An event about the only part of the open item.
    fn about_part(&mut self, event: &str, kind: Kind, id: &str, key: &str, value: impl Into<Value>) -> String {
        let part = if kind == Kind::Message { "content_index" } else { "summary_index" };
        self.send(event, json!({"item_id": id, "output_index": self.output.len(), (part): 0, (key): value.into()}))
    }

    fn delta(&mut self, kind: Kind, chunk: &str) -> String {
        let opened = self.open(kind);
        let id = match &mut self.open {
            Some(open) => {
                open.text.push_str(chunk);
                open.id.clone()
            }
            None => String::new(),
        };
        let [_, continues, _] = kind.events();
        opened + &self.about_part(continues, kind, &id, "delta", chunk)
    }

    fn close(&mut self) -> String {
        let Some(Open { kind, id, text }) = self.open.take() else { return String::new() };
        let [.., completes] = kind.events();
        let done = self.about_part(completes, kind, &id, "text", text.as_str());
        let mut item = kind.item(&id, &[kind.part(&text)]);
        match kind {
            Kind::Message => item["status"] = "completed".into(),
            Kind::Reasoning => item["encrypted_content"] = self.seen.wants_proof.then_some(HIDDEN_THOUGHT).into(),
        }
        done + &self.done(&item)
    }

    fn done(&mut self, item: &Value) -> String {
        let index = self.output.len();
        self.output.push(item.clone());
        self.send("response.output_item.done", json!({"output_index": index, "item": item}))
    }
}

impl Dialect for Stream<'_> {
    fn begin(&mut self) -> String {
        let response = self.response("in_progress");
        self.send("response.created", json!({"response": response}))
    }

    fn text(&mut self, chunk: &str) -> String {
        self.delta(Kind::Message, chunk)
    }

    fn think(&mut self, chunk: &str) -> String {
        self.delta(Kind::Reasoning, chunk)
    }

    fn call(&mut self, tool: &Tool) -> String {
        let mut text = self.close();
        let index = self.output.len();
        let native = tool::native(tool, Api::OpenAi, &self.seen.tools);
        let (kind, field, delta, args) = match native.args {
            Value::String(input) => ("custom_tool_call", "input", "response.custom_tool_call_input.delta", input),
            args => ("function_call", "arguments", "response.function_call_arguments.delta", args.to_string()),
        };
        let id = fresh_id(if kind == "function_call" { "fc" } else { "ctc" });
        let mut item =
            json!({"id": id, "type": kind, "status": "in_progress", "call_id": fresh_id("call"), "name": native.name});
        if let Some(namespace) = native.namespace {
            item["namespace"] = namespace.into();
        }
        item[field] = "".into();
        text += &self.send("response.output_item.added", json!({"output_index": index, "item": item}));
        text += &self.send(delta, json!({"item_id": id, "output_index": index, "delta": args}));
        item[field] = args.into();
        item["status"] = "completed".into();
        text + &self.done(&item)
    }

    fn end_block(&mut self) -> String {
        self.close()
    }

    fn fail(&mut self, kind: &str, message: &str) -> String {
        let mut response = self.response("failed");
        response["error"] = json!({"code": kind, "message": message});
        self.send("response.failed", json!({"response": response}))
    }

    fn end(&mut self, stop: Stop) -> String {
        let closed = self.close();
        let (status, reason) = match stop {
            Stop::Done => ("completed", None),
            Stop::Length => ("incomplete", Some("max_output_tokens")),
            Stop::Filtered => ("incomplete", Some("content_filter")),
        };
        let mut response = self.response(status);
        response["usage"] = usage(self.usage);
        if let Some(reason) = reason {
            response["incomplete_details"] = json!({"reason": reason});
        }
        closed + &self.send(&format!("response.{status}"), json!({"response": response}))
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    })
}

pub(super) fn error(refusal: &Refusal) -> Value {
    let Refusal { status, message, .. } = refusal;
    let kind = match status {
        400 => "invalid_request_error",
        401 => "invalid_api_key",
        429 => "rate_limit_exceeded",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
}
