//! Decodes a reply from the provider's events. Holds no connection: events come in one by one.

use std::collections::BTreeSet;

use genai::chat::{ChatStreamEvent, StopReason, StreamEnd, ToolCall, Usage};
use multitap_event::TokenUsage;
use serde_json::{Map, Value};

use super::Mark;
use super::tap::{RawReport, Tap};
use crate::conversation::Call;
use crate::model::choice::Target;
use crate::model::vendor::Api;
use crate::model::{Delta, Reply};

/// The part of a reply that is still open.
#[derive(Debug)]
pub(super) struct Decoder {
    api: Api,
    vendor: &'static str,
    mark: Mark,
    tap: Tap,
    /// The signature of the current thought, as far as it arrived.
    signature: String,
    /// Whether the current thought has no signature: its text is then the only proof.
    unsigned: bool,
    ids: BTreeSet<String>,
    failed: Option<Value>,
    cut: Option<String>,
}

impl Decoder {
    pub(super) fn new(target: &Target, tap: Tap) -> Self {
        Self {
            api: target.api,
            vendor: target.vendor.name(),
            mark: Mark::of(target),
            tap,
            signature: String::new(),
            unsigned: false,
            ids: BTreeSet::new(),
            failed: None,
            cut: None,
        }
    }

    pub(super) fn take(&mut self, event: ChatStreamEvent) -> Vec<Delta> {
        let mut out = self.asides();
        match event {
            ChatStreamEvent::Chunk(chunk) => {
                self.end_thought(&mut out);
                out.push(Delta::Text(chunk.content));
            }
            ChatStreamEvent::ReasoningChunk(chunk) => {
                if self.api == Api::Messages {
                    // The previous block is complete.
                    self.end_thought(&mut out);
                }
                self.unsigned = self.api == Api::Chat;
                out.push(Delta::Thought(chunk.content));
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => self.signature.push_str(&chunk.content),
            ChatStreamEvent::ToolCallChunk(chunk) if self.api == Api::GenerateContent => {
                self.gemini_call(chunk.tool_call, &mut out);
            }
            // Calls of other providers arrive in pieces, and are complete at the end.
            ChatStreamEvent::ToolCallChunk(_) => self.end_thought(&mut out),
            ChatStreamEvent::Start | ChatStreamEvent::Heartbeat | ChatStreamEvent::End(_) => {}
        }
        out
    }

    /// The last pieces, and the reply unless it was interrupted.
    pub(super) fn end(&mut self, end: StreamEnd) -> (Vec<Delta>, Option<Reply>) {
        let mut out = self.asides();
        self.end_thought(&mut out);
        let (usage, stop) = (end.captured_usage.clone(), end.captured_stop_reason.clone());
        if self.api != Api::GenerateContent {
            for call in end.captured_into_tool_calls().unwrap_or_default() {
                out.push(Delta::Call(self.call(call, None)));
            }
        }
        // For these two APIs the library reports an end even when the connection was lost.
        if stop.is_none() && matches!(self.api, Api::Responses | Api::GenerateContent) {
            return (out, None);
        }
        let cut_short = stop.and_then(|stop| self.cut_short(&stop));
        (out, Some(Reply { usage: usage.and_then(tokens), cut_short }))
    }

    /// The provider's own error report, if the library does not pass it on.
    pub(super) fn failed(&mut self) -> Option<Value> {
        self.asides();
        self.failed.take()
    }

    /// A reply that was refused before it began.
    pub(super) fn refused(&mut self) -> Option<Reply> {
        self.asides();
        let why = self.cut.take()?;
        Some(Reply { usage: None, cut_short: Some(format!("{} does not answer this: {why}", self.vendor)) })
    }

    fn asides(&mut self) -> Vec<Delta> {
        let mut out = Vec::new();
        for aside in self.tap.drain() {
            match aside {
                RawReport::Signature(signature) => {
                    self.end_thought(&mut out);
                    out.push(Delta::Signature(self.mark.put(&signature)));
                }
                RawReport::Failed(why) => self.failed = Some(why),
                RawReport::Cut(why) => self.cut = Some(why),
            }
        }
        out
    }

    fn end_thought(&mut self, out: &mut Vec<Delta>) {
        let unsigned = std::mem::take(&mut self.unsigned);
        if !self.signature.is_empty() || unsigned {
            out.push(Delta::Signature(self.mark.put(&std::mem::take(&mut self.signature))));
        }
    }

    /// A call of Gemini arrives whole, with a signature of its own, which also precedes it.
    fn gemini_call(&mut self, call: ToolCall, out: &mut Vec<Delta>) {
        let own = call.thought_signatures.as_ref().and_then(|all| all.first()).cloned();
        if let Some(own) = &own
            && let Some(before) = self.signature.strip_suffix(own.as_str())
        {
            self.signature = before.to_owned();
        }
        self.end_thought(out);
        out.push(Delta::Call(self.call(call, own)));
    }

    fn call(&mut self, call: ToolCall, signature: Option<String>) -> Call {
        Call {
            id: self.id(&call),
            arguments: match call.fn_arguments {
                Value::Null => Value::Object(Map::new()),
                Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
                other => other,
            },
            name: call.fn_name,
            signature: signature.map(|signature| self.mark.put(&signature)),
        }
    }

    /// The call's own id, unless another call of this reply has it.
    fn id(&mut self, call: &ToolCall) -> String {
        let mut id = call.call_id.clone();
        while id.is_empty() || !self.ids.insert(id.clone()) {
            let count = self.ids.len();
            // The library recognises by this form that the id is not Gemini's own.
            id = match self.api {
                Api::GenerateContent => format!("call#{}#{count}", call.fn_name),
                Api::Messages | Api::Responses | Api::Chat => format!("call_{count}"),
            };
        }
        id
    }

    fn cut_short(&mut self, stop: &StopReason) -> Option<String> {
        let vendor = self.vendor;
        let filtered = |word: &str| format!("{vendor} broke the reply off: {word}");
        match stop {
            StopReason::MaxTokens(_) if self.cut.as_deref() == Some("content_filter") => {
                Some(filtered("content_filter"))
            }
            StopReason::MaxTokens(word) if word == "model_context_window_exceeded" => {
                Some("the reply did not fit into the context: /compress the conversation or begin a new one".to_owned())
            }
            StopReason::MaxTokens(_) => Some("the reply reached the limit on its length".to_owned()),
            StopReason::ContentFilter(word) => Some(filtered(word)),
            // Only Gemini has stop reasons that are neither an end nor a limit.
            StopReason::Other(word) if self.api == Api::GenerateContent => Some(filtered(word)),
            StopReason::Completed(_) | StopReason::ToolCall(_) | StopReason::StopSequence(_) | StopReason::Other(_) => {
                None
            }
        }
    }
}

/// `None` if nothing was counted.
pub(super) fn tokens(usage: Usage) -> Option<TokenUsage> {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let (input, output) = (count(usage.prompt_tokens), count(usage.completion_tokens));
    if input.is_none() && output.is_none() {
        return None;
    }
    let sum = TokenUsage::of(input.unwrap_or(0), output.unwrap_or(0));
    let input_details = usage.prompt_tokens_details.unwrap_or_default();
    let output_details = usage.completion_tokens_details.unwrap_or_default();
    Some(TokenUsage {
        cached_tokens: count(input_details.cached_tokens),
        cache_creation_tokens: count(input_details.cache_creation_tokens),
        reasoning_tokens: count(output_details.reasoning_tokens),
        total_tokens: count(usage.total_tokens).unwrap_or(sum.total_tokens),
        ..sum
    })
}
