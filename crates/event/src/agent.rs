//! The agent of a session.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// The kind of agent, as events name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentType {
    Claude,
    Codex,
    Gemini,
    /// Any other agent that speaks ACP.
    Acp,
    /// Multitap's own.
    Builtin,
}

impl AgentType {
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Gemini, Self::Acp, Self::Builtin];

    /// The word used on the command line and in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Acp => "acp",
            Self::Builtin => "builtin",
        }
    }
}

impl fmt::Display for AgentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A chosen agent: `claude`, `codex`, `gemini`, `builtin` or `acp:COMMAND`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, SerializeDisplay, DeserializeFromStr)]
pub enum AgentKind {
    Claude,
    Codex,
    Gemini,
    Builtin,
    /// An ACP agent, started by this command line.
    Acp {
        command: String,
    },
}

impl AgentKind {
    pub fn agent_type(&self) -> AgentType {
        match self {
            Self::Claude => AgentType::Claude,
            Self::Codex => AgentType::Codex,
            Self::Gemini => AgentType::Gemini,
            Self::Builtin => AgentType::Builtin,
            Self::Acp { .. } => AgentType::Acp,
        }
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acp { command } => write!(f, "acp:{command}"),
            other => f.write_str(other.agent_type().as_str()),
        }
    }
}

/// No agent has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown agent '{0}': use claude, codex, gemini, builtin or acp:COMMAND")]
pub struct UnknownAgent(pub String);

impl FromStr for AgentKind {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "claude" => Ok(Self::Claude),
            "codex" => Ok(Self::Codex),
            "gemini" => Ok(Self::Gemini),
            "builtin" => Ok(Self::Builtin),
            other => match other.strip_prefix("acp:").map(str::trim) {
                Some(command) if !command.is_empty() => Ok(Self::Acp { command: command.to_owned() }),
                _ => Err(UnknownAgent(other.to_owned())),
            },
        }
    }
}
