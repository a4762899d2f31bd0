//! Requests of CLIs to the model, stored for assertions and read alike for all APIs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Api, anthropic, chat, gemini, openai};

/// Placeholder for a header that carries a key.
const HIDDEN: &str = "<hidden>";

/// The header in which Claude Code names the sub-agent that asks.
const SUB_AGENT: &str = "x-claude-code-agent-id";

/// The relation of a request to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A step of the conversation.
    Conversation,
    /// A step of a sub-agent's own conversation. Recognised for Claude Code only.
    SubAgent,
    /// A request outside the conversation: a title, a summary, a probe.
    Side,
    /// Not a model call at all.
    Other,
}

/// One request, as received.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Lower-case names; keys and tokens are hidden.
    pub headers: BTreeMap<String, String>,
    /// The JSON body, or null.
    pub body: Value,
    /// The API of the request, if it is a model call.
    pub api: Option<Api>,
    pub role: Role,
    pub(super) seen: Seen,
}

/// The parts of a body that all APIs have, each under its own name.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) model: Option<String>,
    pub(super) system: String,
    pub(super) tools: Vec<String>,
    pub(super) turns: Vec<Turn>,
    pub(super) thinking_budget: Option<u64>,
    /// Set if the answer must be JSON of this shape.
    pub(super) schema: Option<Value>,
    /// Whether it is a request outside the conversation: requests of the conversation offer tools.
    pub(super) aside: bool,
    /// Whether thoughts must have signatures.
    pub(super) wants_proof: bool,
}

/// One message of the conversation so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) from_model: bool,
    pub(super) texts: Vec<String>,
    pub(super) results: Vec<ToolResult>,
    pub(super) images: Vec<Image>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The call's id, as the model gave it; Gemini has none and names the tool.
    pub call: String,
    pub text: String,
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub media_type: String,
    /// Length of its base64 text.
    pub base64_len: usize,
}

impl Request {
    pub(super) fn new(method: &str, path: &str, headers: BTreeMap<String, String>, body: Value) -> Self {
        let mut request = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers.into_iter().map(hide).collect(),
            body,
            api: None,
            role: Role::Other,
            seen: Seen::default(),
        };
        let call = match method {
            "POST" => Call::of(path),
            _ => None,
        };
        if let Some(call) = call {
            request.api = Some(call.api);
            request.seen = match call.api {
                Api::Anthropic => anthropic::see(&request.body),
                Api::OpenAi => openai::see(&request.body),
                Api::OpenAiChat => chat::see(&request.body),
                Api::Gemini => gemini::see(&request.body, call.model),
            };
            if call.answers {
                request.role = match request.seen.aside {
                    true => Role::Side,
                    false if request.headers.contains_key(SUB_AGENT) => Role::SubAgent,
                    false => Role::Conversation,
                };
            }
        }
        request
    }

    pub fn model(&self) -> Option<&str> {
        self.seen.model.as_deref()
    }

    pub fn system(&self) -> &str {
        &self.seen.system
    }

    pub fn tools(&self) -> &[String] {
        &self.seen.tools
    }

    /// The user's last message, without text that the CLI put around it.
    pub fn last_user_text(&self) -> String {
        self.seen.last_user_text()
    }

    /// Everything the user said, message by message.
    pub fn user_texts(&self) -> Vec<String> {
        self.seen.turns.iter().filter(|turn| !turn.from_model).map(Turn::text).filter(|text| !text.is_empty()).collect()
    }

    /// The tool results since the model's last reply.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.seen.fresh().iter().flat_map(|turn| turn.results.iter().cloned()).collect()
    }

    pub fn images(&self) -> Vec<Image> {
        self.seen.turns.iter().flat_map(|turn| turn.images.iter().cloned()).collect()
    }

    /// How many tokens the model may think, if the request says so.
    pub fn thinking_budget(&self) -> Option<u64> {
        self.seen.thinking_budget
    }
}

/// A model call, recognised by its path.
struct Call<'a> {
    api: Api,
    model: Option<&'a str>,
    /// `false` if only tokens are counted.
    answers: bool,
}

impl<'a> Call<'a> {
    fn of(path: &'a str) -> Option<Self> {
        if let Some((_, rest)) = path.split_once("/models/") {
            let (model, verb) = rest.split_once(':')?;
            let answers = matches!(verb, "streamGenerateContent" | "generateContent");
            return (answers || verb == "countTokens").then_some(Self {
                api: Api::Gemini,
                model: Some(model),
                answers,
            });
        }
        match path {
            "/v1/messages" => Some(Self { api: Api::Anthropic, model: None, answers: true }),
            "/v1/messages/count_tokens" => Some(Self { api: Api::Anthropic, model: None, answers: false }),
            "/v1/responses" => Some(Self { api: Api::OpenAi, model: None, answers: true }),
            "/v1/chat/completions" => Some(Self { api: Api::OpenAiChat, model: None, answers: true }),
            _ => None,
        }
    }
}

impl Seen {
    pub(super) fn last_user_text(&self) -> String {
        self.last_user_turn().map(|(_, turn)| turn.text()).unwrap_or_default()
    }

    /// Number of replies of the model since the user's last message.
    pub(super) fn model_turns_since_user(&self) -> usize {
        let from = self.last_user_turn().map_or(0, |(index, _)| index);
        // One reply may be several messages in a row, for example each of Codex's tool calls.
        self.turns[from..].chunk_by(|a, b| a.from_model == b.from_model).filter(|run| run[0].from_model).count()
    }

    /// The messages since the model's last reply.
    pub(super) fn fresh(&self) -> &[Turn] {
        let from = self.turns.iter().rposition(|turn| turn.from_model).map_or(0, |index| index + 1);
        &self.turns[from..]
    }

    fn last_user_turn(&self) -> Option<(usize, &Turn)> {
        let mut turns = self.turns.iter().enumerate().rev();
        turns.find(|(_, turn)| !turn.from_model && !turn.text().is_empty())
    }
}

impl Turn {
    /// A message of OpenAI's APIs: a text, or parts with a text or the address of an image.
    pub(super) fn said(from_model: bool, content: &Value, image: fn(&Value) -> Option<&Value>) -> Self {
        let mut turn = Self { from_model, ..Self::default() };
        turn.texts.extend(content.as_str().map(str::to_owned));
        for part in content.as_array().into_iter().flatten() {
            turn.texts.extend(part.get("text").and_then(Value::as_str).map(str::to_owned));
            turn.images.extend(image(part).and_then(Value::as_str).and_then(image_of_url));
        }
        turn
    }

    /// The text that the user wrote: CLIs wrap their own notes in tags.
    pub(super) fn text(&self) -> String {
        let said = self.texts.iter().map(|text| text.trim()).filter(|text| !is_note(text));
        said.collect::<Vec<_>>().join("\n")
    }
}

fn is_note(text: &str) -> bool {
    const NOTES: [&str; 5] =
        ["<system-reminder>", "<environment_context>", "<session_context>", "<user_instructions>", "<INSTRUCTIONS>"];
    text.is_empty() || NOTES.iter().any(|note| text.starts_with(note))
}

fn hide((name, value): (String, String)) -> (String, String) {
    const SECRETS: [&str; 5] = ["authorization", "x-api-key", "x-goog-api-key", "cookie", "proxy-authorization"];
    let secret = SECRETS.contains(&name.as_str());
    (name, if secret { HIDDEN.to_owned() } else { value })
}

/// Joins the texts of a value that is a string, or a list of blocks with a `text`.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(object) => object.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

/// Reads `data:MEDIA;base64,DATA`.
fn image_of_url(url: &str) -> Option<Image> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Image { media_type: media_type.to_owned(), base64_len: data.len() })
}
