//! Request options other than the conversation: thinking, output format, caching. Written here in the provider's own
//! fields where the library's would be wrong for newer models.

use std::time::Duration;

use genai::chat::{
    ChatOptions, ChatResponseFormat, JsonSchemaDialect, JsonSpec, ReasoningEffort, ToolChoice, sanitize_json_schema,
};
use serde_json::{Map, Value, json};

use super::Summaries;
use super::encode::called_before;
use crate::model::Request;
use crate::model::catalog::{self, Off, Thinking};
use crate::model::choice::Target;
use crate::model::vendor::Api;

/// How long a provider may be silent before its reply is abandoned. Models think for minutes.
const SILENCE: Duration = Duration::from_secs(600);

/// Anthropic's minimum, and a maximum below the length of any reply.
const BUDGETS: (u32, u32) = (1024, 31_999);

pub(super) fn options(target: &Target, request: &Request, summaries: Summaries, cache_key: &str) -> ChatOptions {
    let options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_stream_header_timeout(SILENCE)
        .with_stream_read_timeout(SILENCE);
    let model = target.model.as_str();
    match target.api {
        Api::Messages if request.tools.is_empty() && !called_before(target.api, &request.messages).is_empty() => {
            options.with_tool_choice(ToolChoice::None).with_extra_body(anthropic(model, request))
        }
        Api::Messages => options.with_extra_body(anthropic(model, request)),
        Api::GenerateContent => options.with_extra_body(gemini(model, request)),
        Api::Responses => with_schema(openai(options, model, cache_key), request).with_extra_body(responses(
            model,
            request.thinking,
            summaries,
        )),
        Api::Chat => with_schema(openai(options, model, cache_key), request).with_extra_body(chat(model, request)),
    }
}

/// For both APIs of OpenAI.
fn openai(options: ChatOptions, model: &str, cache_key: &str) -> ChatOptions {
    // No budget is sent. Without an explicit effort, the library would read one from the end of the model's name, and
    // remove it there.
    let options = options.with_reasoning_effort(ReasoningEffort::Budget(0));
    // Without a key the library disables the cache of newer models.
    if catalog::openai_thinks(model) { options.with_prompt_cache_key(cache_key) } else { options }
}

fn with_schema(options: ChatOptions, request: &Request) -> ChatOptions {
    match &request.output_schema {
        Some(schema) => {
            options.with_response_format(ChatResponseFormat::JsonSpec(JsonSpec::new("answer", schema.clone())))
        }
        None => options,
    }
}

/// Effort for models that do not accept a number of tokens.
fn effort(tokens: u32) -> &'static str {
    match tokens {
        0..=4_000 => "low",
        4_001..=16_000 => "medium",
        _ => "high",
    }
}

fn anthropic(model: &str, request: &Request) -> Value {
    let mut body = Map::new();
    let mut output = Map::new();
    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    match (catalog::claude_thinking(model), request.thinking) {
        (Thinking::Adaptive { .. }, None) => {
            body.insert("thinking".to_owned(), adaptive);
        }
        (Thinking::Adaptive { off: Off::Explicit }, Some(0)) => {
            body.insert("thinking".to_owned(), json!({ "type": "disabled" }));
        }
        (Thinking::Adaptive { off: Off::Omitted }, Some(0)) => {}
        (Thinking::Adaptive { .. }, Some(tokens)) => {
            body.insert("thinking".to_owned(), adaptive);
            output.insert("effort".to_owned(), effort(tokens).into());
        }
        (Thinking::Budget, Some(tokens)) if tokens > 0 => {
            let tokens = tokens.clamp(BUDGETS.0, BUDGETS.1);
            body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": tokens }));
        }
        (Thinking::Budget | Thinking::None, _) => {}
    }
    if let Some(schema) = &request.output_schema {
        let schema = sanitize_json_schema(schema, JsonSchemaDialect::AnthropicStructured);
        output.insert("format".to_owned(), json!({ "type": "json_schema", "schema": schema }));
    }
    if !output.is_empty() {
        body.insert("output_config".to_owned(), output.into());
    }
    body.into()
}

fn gemini(model: &str, request: &Request) -> Value {
    let mut config = Map::new();
    let thinking = match (catalog::gemini_thinking(model), request.thinking) {
        (Thinking::None, _) => None,
        (_, None) => Some(json!({ "includeThoughts": true })),
        (Thinking::Budget, Some(tokens)) => Some(json!({ "includeThoughts": tokens > 0, "thinkingBudget": tokens })),
        (Thinking::Adaptive { .. }, Some(tokens)) => {
            Some(json!({ "includeThoughts": true, "thinkingLevel": effort(tokens) }))
        }
    };
    config.extend(thinking.map(|thinking| ("thinkingConfig".to_owned(), thinking)));
    if let Some(schema) = &request.output_schema {
        config.insert("responseMimeType".to_owned(), "application/json".into());
        config.insert("responseJsonSchema".to_owned(), schema.clone());
    }
    if config.is_empty() { json!({}) } else { json!({ "generationConfig": config }) }
}

fn responses(model: &str, thinking: Option<u32>, summaries: Summaries) -> Value {
    if !catalog::openai_thinks(model) {
        return json!({});
    }
    let mut reasoning = Map::new();
    reasoning.extend(thinking.map(|tokens| ("effort".to_owned(), effort(tokens).into())));
    if summaries == Summaries::Wanted {
        reasoning.insert("summary".to_owned(), "auto".into());
    }
    // The server stores nothing, so encrypted reasoning travels with the conversation.
    let mut body = json!({ "include": ["reasoning.encrypted_content"] });
    if !reasoning.is_empty() {
        body["reasoning"] = reasoning.into();
    }
    body
}

fn chat(model: &str, request: &Request) -> Value {
    match request.thinking {
        Some(tokens) if catalog::openai_thinks(model) => json!({ "reasoning_effort": effort(tokens) }),
        _ => json!({}),
    }
}
