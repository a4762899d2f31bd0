//! Commands: what a session asks of its agent, such as a prompt with its images. Clients do not send commands.
//! They make calls on the session (`protocol` in the crate `hub`), some of which have the same JSON form.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{AgentError, ApprovalMode, Decide, PromptId, SystemSubtype};

/// A command for the agent of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Command {
    /// Begin a turn. The owner of the session sends it only while the agent is idle.
    Prompt(Prompt),
    /// Join the running turn. Sent only to an agent whose link says that it can. If the turn has ended meanwhile, the
    /// prompt begins the next one.
    Steer(Prompt),
    /// Answer a question.
    Decide(Decide),
    /// End the running turn; the session goes on.
    Cancel,
    /// Change the mode: a unified mode, or a word of the agent's own. The agent answers with `modeChanged`, even if it
    /// is in that mode already, or with an `error` whose `refusedSetting` is `mode`. The same holds for the model
    /// (`modelChanged`).
    SetMode {
        mode: String,
    },
    SetModel {
        model: String,
    },
    /// Limit the agent's thinking to that many tokens; if absent, the agent chooses. It answers with a `system` event
    /// `thinkingLimit`, or with an `error` whose `refusedSetting` is `thinking`.
    SetThinking {
        tokens: Option<u32>,
    },
    /// Set how thoroughly the agent thinks, to one of the levels that it offers. It answers with `capabilities`, or with
    /// an `error` whose `refusedSetting` is `thinking`.
    SetThinkingLevel {
        level: String,
    },
    /// Ask the agent about itself; the answer is a `system` event of that subtype.
    Query {
        what: Query,
    },
}

/// A question to an agent about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Query {
    /// Its slash commands.
    Commands,
    /// The models it can use.
    Models,
    /// Its MCP servers and their status.
    McpStatus,
    /// The account that it uses.
    Account,
    /// How full its context is.
    Context,
}

impl Query {
    /// The word in JSON, which is also the subtype of a `system` event that answers the query.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Models => "models",
            Self::McpStatus => SystemSubtype::MCP_STATUS,
            Self::Account => SystemSubtype::ACCOUNT,
            Self::Context => SystemSubtype::CONTEXT,
        }
    }
}

/// A message to the agent.
#[skip_serializing_none]
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Assigned by the owner of the session when it accepts the prompt.
    pub prompt_id: Option<PromptId>,
    /// The id that its sender chose.
    pub sent_as: Option<String>,
    /// Number of agents that the prompt has passed through; 0 if a person wrote it. Messages that the agent sends to
    /// other agents during this prompt have a number higher by one, so that agents that call each other in a circle
    /// stop.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// The limit for this prompt: whatever it tells the agent to do, no more may run unasked than in this mode. Set by
    /// the owner of the session when it hands the prompt over, never by the sender; absent if the sender is the owner.
    #[serde(skip)]
    pub within: Option<ApprovalMode>,
    /// The name of the sender's token. Set with `within`.
    #[serde(skip)]
    pub account: Option<String>,
    /// Warnings for the sender of this prompt, such as wishes that were not granted. The session emits them right after
    /// the prompt's `userMessage`, so they belong to its turn however fast that ends.
    #[serde(skip)]
    pub notices: Vec<AgentError>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Prompt {
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The shell command, if the prompt begins with `!`. Whether it runs depends on its sender: see `within`.
    pub fn shell_line(&self) -> Option<&str> {
        shell_line(&self.text)
    }
}

/// The shell command, if the text begins with `!`.
pub fn shell_line(text: &str) -> Option<&str> {
    text.strip_prefix('!').map(str::trim).filter(|line| !line.is_empty())
}

impl fmt::Debug for Prompt {
    /// A prompt's words are not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("bytes", &self.text.len())
            .field("images", &self.images.len())
            .field("prompt_id", &self.prompt_id)
            .finish()
    }
}

/// A picture in a prompt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// Base64.
    pub data: String,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("media_type", &self.media_type).field("base64_bytes", &self.data.len()).finish()
    }
}

/// These bytes are not an image that agents accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a PNG, JPEG, GIF or WebP picture")]
pub struct ImageError;

impl Image {
    /// The media type that the first bytes of a picture show.
    pub fn media_type_of(bytes: &[u8]) -> Result<&'static str, ImageError> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Ok("image/png"),
            [0xff, 0xd8, 0xff, ..] => Ok("image/jpeg"),
            [b'G', b'I', b'F', b'8', ..] => Ok("image/gif"),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Ok("image/webp"),
            _ => Err(ImageError),
        }
    }
}
