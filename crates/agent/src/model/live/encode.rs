//! Encodes the conversation and the tools for a provider.
//!
//! Must not come in: other request options (`options`), the network.

use std::collections::BTreeSet;

use genai::chat::{
    Binary, CacheControl, ChatMessage, ChatRequest, ChatRole, ContentPart, CustomPart, Tool, ToolCall, ToolResponse,
};
use multitap_event::Image;
use serde_json::{Value, json};

use super::{Mark, ThoughtReplay};
use crate::conversation::{Answer, Call, Message, Part, UserText};
use crate::model::Request;
use crate::model::catalog::{self, Thinking};
use crate::model::choice::Target;
use crate::model::vendor::Api;
use crate::tool::Spec;

/// Replaces an empty message, which no provider accepts.
const NOTHING_SAID: &str = "(no words)";

/// The value that Gemini accepts in place of a signature, so that calls of another model pass.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// Number of our latest messages that mark a cacheable prefix.
const KEPT: usize = 2;

pub(super) fn request(target: &Target, request: &Request, recall: ThoughtReplay) -> ChatRequest {
    let encoder = Encoder { target, mark: Mark::of(target), recall };
    let mut messages = encoder.messages(&request.messages);
    let mut chat = ChatRequest::default();
    if target.api == Api::Messages {
        // As a message, because only messages can be marked as cacheable.
        if !request.system.is_empty() {
            messages.insert(0, ChatMessage::system(request.system.clone()).with_options(CacheControl::Ephemeral));
        }
        keep(&mut messages);
    } else if !request.system.is_empty() {
        chat = chat.with_system(request.system.clone());
    }
    chat.messages = messages;
    let tools: Vec<_> = match request.tools.as_slice() {
        [] => called_before(target.api, &request.messages),
        tools => tools.iter().map(|spec| tool(target.api, spec)).collect(),
    };
    if !tools.is_empty() {
        chat = chat.with_tools(tools);
    }
    chat
}

/// Tools that must be declared because the conversation contains calls of them, though they may not be called now.
pub(super) fn called_before(api: Api, messages: &[Message]) -> Vec<Tool> {
    if api != Api::Messages {
        return Vec::new();
    }
    let names: BTreeSet<&str> = messages.iter().flat_map(Message::calls).map(|call| call.name.as_str()).collect();
    names.into_iter().map(|name| Tool::new(name).with_schema(json!({ "type": "object" }))).collect()
}

/// Marks the end of the prefix that the next request will repeat.
fn keep(messages: &mut [ChatMessage]) {
    let ours = messages.iter_mut().rev().filter(|message| matches!(message.role, ChatRole::User | ChatRole::Tool));
    for message in ours.take(KEPT) {
        message.options = Some(CacheControl::Ephemeral.into());
    }
}

fn tool(api: Api, spec: &Spec) -> Tool {
    let tool =
        Tool::new(spec.name.as_str()).with_description(spec.description.clone()).with_schema(spec.parameters.clone());
    match api {
        // Strict mode would require every argument, even optional ones.
        Api::Responses | Api::Chat => tool.with_strict(false),
        Api::Messages | Api::GenerateContent => tool,
    }
}

struct Encoder<'a> {
    target: &'a Target,
    mark: Mark,
    recall: ThoughtReplay,
}

impl Encoder<'_> {
    fn messages(&self, messages: &[Message]) -> Vec<ChatMessage> {
        // The user's last message: a thought before it is finished.
        let turn = messages.iter().rposition(|message| matches!(message, Message::User(_))).unwrap_or(0);
        let mut out = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            match message {
                Message::User(said) => out.push(user(said)),
                Message::Assistant { parts } => out.extend(self.assistant(parts, index > turn)),
                Message::Results { answers } => out.extend(self.results(answers)),
            }
        }
        out
    }

    /// The model's message; several messages if the provider expects the thoughts between them.
    fn assistant(&self, parts: &[Part], in_turn: bool) -> Vec<ChatMessage> {
        let mut runs: Vec<Vec<ContentPart>> = vec![Vec::new()];
        // Newer Google models require a signature on the first call, from the thought before it or its own.
        let wanted = self.target.api == Api::GenerateContent
            && matches!(catalog::gemini_thinking(&self.target.model), Thinking::Adaptive { .. });
        let (mut unsigned, mut called) = (wanted, false);
        for part in parts {
            match part {
                Part::Text { text } if text.trim().is_empty() => {}
                Part::Text { text } => {
                    push(&mut runs, ContentPart::from_text(text));
                    unsigned = wanted && !called;
                }
                Part::Thought { text, signature } => {
                    if self.target.api == Api::Responses {
                        runs.push(Vec::new());
                    }
                    for part in self.thought(text, signature.as_deref(), in_turn) {
                        push(&mut runs, part);
                        unsigned = false;
                    }
                }
                Part::Call(call) => {
                    push(&mut runs, ContentPart::ToolCall(self.call(call, unsigned)));
                    (unsigned, called) = (false, true);
                }
            }
        }
        runs.into_iter().filter(|run| !run.is_empty()).map(ChatMessage::assistant).collect()
    }

    /// A thought in the form that its own model recognises; empty for any other model.
    fn thought(&self, text: &str, signature: Option<&str>, in_turn: bool) -> Vec<ContentPart> {
        let Some(signature) = signature.and_then(|signature| self.mark.own(signature)) else { return Vec::new() };
        if self.recall == ThoughtReplay::Nothing {
            return Vec::new();
        }
        match self.target.api {
            Api::Messages => match serde_json::from_str::<Value>(signature) {
                // Encrypted reasoning, sent back unchanged.
                Ok(data @ Value::Object(_)) => vec![ContentPart::Custom(CustomPart { model_iden: None, data })],
                _ if signature.is_empty() => Vec::new(),
                _ => vec![
                    ContentPart::ThoughtSignature(signature.to_owned()),
                    ContentPart::ReasoningContent(text.to_owned()),
                ],
            },
            Api::Responses | Api::GenerateContent if signature.is_empty() => Vec::new(),
            Api::Responses | Api::GenerateContent => vec![ContentPart::ThoughtSignature(signature.to_owned())],
            // Required while the model works on the same task, and only then.
            Api::Chat if in_turn && !text.is_empty() => vec![ContentPart::ReasoningContent(text.to_owned())],
            Api::Chat => Vec::new(),
        }
    }

    fn call(&self, call: &Call, unsigned: bool) -> ToolCall {
        let own = call.signature.as_deref().and_then(|signature| self.mark.own(signature));
        let own = own.filter(|_| self.recall == ThoughtReplay::Thoughts).map(str::to_owned);
        let signature = own.or_else(|| unsigned.then(|| NOT_SIGNED.to_owned()));
        ToolCall {
            call_id: call.id.clone(),
            fn_name: call.name.clone(),
            // Providers refuse arguments that are not an object, even if their model sent them.
            fn_arguments: match &call.arguments {
                Value::Object(_) => call.arguments.clone(),
                Value::String(text) => json!({ "unreadable": text }),
                other => json!({ "unreadable": other.to_string() }),
            },
            thought_signatures: signature.map(|signature| vec![signature]),
        }
    }

    fn results(&self, answers: &[Answer]) -> Vec<ChatMessage> {
        if self.target.api == Api::Messages {
            let results = answers
                .iter()
                .map(|answer| ContentPart::Custom(CustomPart { model_iden: None, data: tool_result(answer) }));
            return vec![ChatMessage::tool(results.collect::<Vec<_>>())];
        }
        let response = |answer: &Answer| {
            ContentPart::ToolResponse(ToolResponse::new(&answer.id, reported(answer)).with_fn_name(&answer.name))
        };
        let mut messages = vec![ChatMessage::tool(answers.iter().map(response).collect::<Vec<_>>())];
        // These APIs accept no images in a tool result: send them after it.
        let pictures: Vec<_> = answers.iter().filter(|answer| !answer.images.is_empty()).collect();
        if !pictures.is_empty() {
            let shown = pictures.into_iter().flat_map(|answer| {
                let caption = ContentPart::from_text(format!("Pictures that {} gave:", answer.name));
                std::iter::once(caption).chain(answer.images.iter().map(image))
            });
            messages.push(ChatMessage::user(shown.collect::<Vec<_>>()));
        }
        messages
    }
}

fn push(runs: &mut [Vec<ContentPart>], part: ContentPart) {
    if let Some(run) = runs.last_mut() {
        run.push(part);
    }
}

fn user(said: &UserText) -> ChatMessage {
    if said.images.is_empty() {
        let words = if said.text.trim().is_empty() { NOTHING_SAID } else { &said.text };
        return ChatMessage::user(words);
    }
    let mut parts = Vec::new();
    if !said.text.trim().is_empty() {
        parts.push(ContentPart::from_text(&said.text));
    }
    parts.extend(said.images.iter().map(image));
    ChatMessage::user(parts)
}

fn image(image: &Image) -> ContentPart {
    ContentPart::Binary(Binary::from_base64(&image.media_type, image.data.as_str(), None))
}

/// A result for a provider that cannot mark a failure.
fn reported(answer: &Answer) -> String {
    match (answer.failed, answer.text.is_empty()) {
        (true, _) => format!("Error: {}", answer.text),
        (false, true) => "(no output)".to_owned(),
        (false, false) => answer.text.clone(),
    }
}

/// A result for Anthropic, which takes failures and pictures.
fn tool_result(answer: &Answer) -> Value {
    let mut content = Vec::new();
    if !answer.text.trim().is_empty() {
        content.push(json!({ "type": "text", "text": answer.text }));
    }
    content.extend(answer.images.iter().map(|image| {
        let source = json!({ "type": "base64", "media_type": image.media_type, "data": image.data });
        json!({ "type": "image", "source": source })
    }));
    let mut result = json!({ "type": "tool_result", "tool_use_id": answer.id, "content": content });
    if answer.failed {
        result["is_error"] = true.into();
    }
    result
}
