//! What a client asks of an agent. Also one JSON line each, on `--input-format stream-json` and at the doors.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentError, ApprovalMode, Decide, PromptId};

/// Something to do, for the agent of a session.
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
    /// The account it uses.
    Account,
    /// How full its context is.
    Context,
}

/// A message to the agent.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Set by the session when it accepts the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<PromptId>,
    /// The id that its sender gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_as: Option<String>,
    /// How many agents it has passed through; 0 if a person wrote it. Messages that the agent sends to other agents for
    /// this prompt carry one more, which stops circles of agents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    /// The limit of its sender: nothing in the prompt may let more run without asking than this mode. Set by the
    /// session, never by the sender; absent if the sender owns the session.
    #[serde(skip)]
    pub within: Option<ApprovalMode>,
    /// The name of its sender's token. Set with `within`.
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

    /// The shell command, if it begins with `!`. Whether it runs depends on `within`.
    pub fn shell_line(&self) -> Option<&str> {
        shell_line(&self.text)
    }
}

/// The shell command of a text that begins with `!`.
pub fn shell_line(text: &str) -> Option<&str> {
    text.strip_prefix('!').map(str::trim).filter(|line| !line.is_empty())
}

impl fmt::Debug for Prompt {
    /// Leaves out the text, which must not be logged.
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

/// The bytes are not an image that agents accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a PNG, JPEG, GIF or WebP picture")]
pub struct ImageError;

impl Image {
    /// Detects the media type of an image by its first bytes.
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
