//! Commands: what a session asks of its agent, such as a prompt with its images. Clients do not send commands.
//! They make calls on the session (`protocol` in the crate `hub`), some of which have the same JSON form.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{AgentError, ApprovalMode, Decide, PromptId, SystemSubtype};

/// Something to do, for the agent of a session.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Command {
    /// Begin a turn. Whoever owns the session sends it only while the agent rests.
    Prompt(Prompt),
    /// Join the running turn. Sent only to an agent whose link says that it can; a turn that ended meanwhile makes it
    /// the prompt of the next.
    Steer(Prompt),
    /// Answer a question.
    Decide(Decide),
    /// End the running turn; the session goes on.
    Cancel,
    /// A unified mode, or a word of the agent's own. The agent answers with `modeChanged`, also if it is in that mode
    /// already, or with an `error` whose `refusedSetting` is `mode`. The same holds for the model (`modelChanged`).
    SetMode {
        mode: String,
    },
    SetModel {
        model: String,
    },
    /// How many tokens the agent may think; absent gives it back its own choice. The agent answers with a `system` event
    /// `thinkingLimit`, or with an `error` whose `refusedSetting` is `thinking`.
    SetThinking {
        tokens: Option<u32>,
    },
    /// Ask the agent about itself; the answer is a `system` event of that subtype.
    Query {
        what: Query,
    },
}

/// What an agent can be asked about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Query {
    /// Its slash commands.
    Commands,
    /// The models it can use.
    Models,
    /// Its MCP servers and how they are.
    McpStatus,
    /// Whose account it runs on.
    Account,
    /// How full its context is.
    Context,
}

impl Query {
    /// Its word in JSON, which is also the subtype of a `system` event that answers it.
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
    /// Given by the owner of the session when it accepts the prompt.
    pub prompt_id: Option<PromptId>,
    /// The id that its sender gave it.
    pub sent_as: Option<String>,
    /// How many agents it has passed through; 0 if a person wrote it. What the agent sends to other agents while it works
    /// on this prompt carries one more, so that a circle of agents ends.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// Its sender may let no more run unasked than this mode does, by whatever the prompt says to the agent itself. Set by
    /// the owner of the session when it hands the prompt over, never by who sends it; absent where that is one and the same.
    #[serde(skip)]
    pub within: Option<ApprovalMode>,
    /// The name of the token that its sender came with. Set with `within`.
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

    /// The command for the shell that it is, if it begins with `!`. Whether it is run is not said by that: see `within`.
    pub fn shell_line(&self) -> Option<&str> {
        shell_line(&self.text)
    }
}

/// The command for the shell that a text is, if it begins with `!`.
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

/// These bytes are no picture an agent takes.
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
