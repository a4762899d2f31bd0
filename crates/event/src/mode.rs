//! Approval modes: one set of words for all agents, and the table of the agents' own words.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentType, SandboxMode, SessionStart};

/// How much an agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalMode {
    /// Ask before every tool that changes something.
    Ask,
    /// Ask only before calls that look dangerous.
    AskDangerous,
    /// File edits run without asking.
    AutoEdit,
    /// Everything runs unasked.
    AutoAll,
    /// Read and plan; change nothing.
    Plan,
    /// Never ask: calls that no rule allows are denied.
    DontAsk,
}

/// An agent's form of a unified mode: its own word, and a sandbox if the mode implies one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeMode {
    pub word: &'static str,
    pub sandbox: Option<SandboxMode>,
}

impl ApprovalMode {
    pub const ALL: [Self; 6] =
        [Self::Ask, Self::AskDangerous, Self::AutoEdit, Self::AutoAll, Self::Plan, Self::DontAsk];

    /// All modes by how much they let run without asking, strictest first. `dontAsk` denies calls that no rule allows,
    /// so it is stricter than `ask`.
    pub const STRICTEST_FIRST: [Self; 6] =
        [Self::Plan, Self::DontAsk, Self::Ask, Self::AskDangerous, Self::AutoEdit, Self::AutoAll];

    /// Whether this mode lets no more run without asking than `most` does, with that agent.
    pub fn is_within(self, most: Self, agent: AgentType) -> bool {
        self.looseness(agent) <= most.looseness(agent)
    }

    fn looseness(self, agent: AgentType) -> usize {
        let mode = match (agent, self) {
            // Codex has no rules: in this mode it does everything that its sandbox allows in the workspace.
            (AgentType::Codex, Self::DontAsk) => Self::AutoEdit,
            (_, mode) => mode,
        };
        Self::STRICTEST_FIRST.iter().position(|known| *known == mode).unwrap_or(Self::STRICTEST_FIRST.len())
    }

    /// The word in events and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AskDangerous => "askDangerous",
            Self::AutoEdit => "autoEdit",
            Self::AutoAll => "autoAll",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
        }
    }

    /// The word on the command line.
    pub fn option_word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AskDangerous => "ask-dangerous",
            Self::AutoEdit => "auto-edit",
            Self::AutoAll => "auto-all",
            Self::Plan => "plan",
            Self::DontAsk => "dont-ask",
        }
    }

    /// Whether the three-CLI schema of events knows this word.
    pub fn in_printed_schema(self) -> bool {
        match self {
            Self::Ask | Self::AskDangerous | Self::AutoEdit | Self::AutoAll => true,
            Self::Plan | Self::DontAsk => false,
        }
    }

    /// The native word for this mode, if the agent has such a mode. An ACP agent has its own modes, so it has no row.
    pub fn native(self, agent: AgentType) -> Option<NativeMode> {
        let word = |word| Some(NativeMode { word, sandbox: None });
        match (agent, self) {
            (AgentType::Claude, Self::Ask) => word("default"),
            (AgentType::Claude, Self::AskDangerous) => None,
            (AgentType::Claude, Self::AutoEdit) => word("acceptEdits"),
            (AgentType::Claude, Self::AutoAll) => word("bypassPermissions"),
            (AgentType::Claude, Self::Plan) => word("plan"),
            (AgentType::Claude, Self::DontAsk) => word("dontAsk"),
            (AgentType::Codex, Self::Ask) => word("untrusted"),
            (AgentType::Codex, Self::AskDangerous) => word("on-request"),
            (AgentType::Codex, Self::AutoEdit) => None,
            (AgentType::Codex, Self::AutoAll) => word("never"),
            (AgentType::Codex, Self::Plan) => Some(NativeMode { word: "never", sandbox: Some(SandboxMode::ReadOnly) }),
            (AgentType::Codex, Self::DontAsk) => {
                Some(NativeMode { word: "never", sandbox: Some(SandboxMode::WorkspaceWrite) })
            }
            (AgentType::Gemini, Self::Ask) => word("default"),
            (AgentType::Gemini, Self::AskDangerous | Self::DontAsk) => None,
            (AgentType::Gemini, Self::AutoEdit) => word("autoEdit"),
            (AgentType::Gemini, Self::AutoAll) => word("yolo"),
            (AgentType::Gemini, Self::Plan) => word("plan"),
            (AgentType::Builtin, Self::Ask) => word("default"),
            (AgentType::Builtin, Self::AskDangerous) => word("askDangerous"),
            (AgentType::Builtin, Self::AutoEdit) => word("auto_edit"),
            (AgentType::Builtin, Self::AutoAll) => word("yolo"),
            (AgentType::Builtin, Self::Plan) => word("plan"),
            (AgentType::Builtin, Self::DontAsk) => word("dontAsk"),
            (AgentType::Acp, _) => None,
        }
    }

    /// Usual words of ACP agents for this mode; the first one that an agent offers is used. `auto` is not among them:
    /// for one agent it is a sandbox, for another a model that answers in the user's place.
    pub fn usual_words(self) -> &'static [&'static str] {
        match self {
            Self::Ask => &["ask", "default", "manual", "normal"],
            Self::AskDangerous => &["askDangerous", "on-request"],
            Self::AutoEdit => &["autoEdit", "acceptEdits", "auto_edit", "auto-edit", "accept-edits"],
            Self::AutoAll => &["autoAll", "bypassPermissions", "yolo", "full-access", "agent-full-access"],
            Self::Plan => &["plan", "read-only"],
            Self::DontAsk => &["dontAsk", "dont-ask"],
        }
    }

    /// Whether the running agent can switch to this mode, judged by how it was started and which modes it offers.
    pub fn works_for(self, start: &SessionStart, offered: Option<&[String]>) -> bool {
        let is_offered = |word: &str| offered.is_none_or(|all| all.iter().any(|one| one.eq_ignore_ascii_case(word)));
        if start.agent_type == AgentType::Acp {
            return self.usual_words().iter().any(|word| is_offered(word));
        }
        let Some(native) = self.native(start.agent_type) else { return false };
        match (start.agent_type, start.transport.as_deref()) {
            // Claude Code refuses this mode unless it was started in it.
            (AgentType::Claude, _) if self == Self::AutoAll => start.native_mode.as_deref() == Some(native.word),
            // With one process per turn, questions cannot be asked.
            (AgentType::Codex, Some("exec")) => native.word == "never",
            (AgentType::Gemini, Some("stream-json")) => native.word != "default",
            (AgentType::Gemini, _) => is_offered(native.word),
            (AgentType::Claude | AgentType::Codex | AgentType::Builtin | AgentType::Acp, _) => true,
        }
    }

    /// The modes that an agent has, as a list for people.
    pub fn known_to(agent: AgentType) -> String {
        let known = Self::ALL.into_iter().filter(|mode| mode.native(agent).is_some());
        known.map(Self::option_word).collect::<Vec<_>>().join(", ")
    }

    /// The unified word for an agent's own word. If two modes share a word, the plain one.
    pub fn from_native(agent: AgentType, native: &str) -> Option<Self> {
        match (agent, native) {
            (AgentType::Claude, "manual") => Some(Self::Ask),
            (AgentType::Codex, "never") => Some(Self::AutoAll),
            (AgentType::Gemini, "auto_edit") | (AgentType::Builtin, "autoEdit") => Some(Self::AutoEdit),
            _ => Self::ALL.into_iter().find(|mode| mode.native(agent).is_some_and(|own| own.word == native)),
        }
    }
}

impl fmt::Display for ApprovalMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ApprovalMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| text == mode.as_str() || text == mode.option_word()).ok_or(())
    }
}

/// A chosen mode of an agent: a unified one, or a word that only that agent knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    Unified(ApprovalMode),
    Native(String),
}

/// The agent has no mode of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{agent} has no approval mode '{word}': it knows {known}")]
pub struct UnknownMode {
    pub agent: AgentType,
    pub word: String,
    pub known: String,
}

impl Mode {
    /// The loosest mode for clients that must stay within the owner's mode. A native word says nothing about its
    /// strictness, so it counts as `ask`; so does no mode at all.
    pub fn bound(own: Option<&Self>) -> ApprovalMode {
        match own {
            Some(Self::Unified(mode)) => *mode,
            Some(Self::Native(_)) | None => ApprovalMode::Ask,
        }
    }

    /// The word on the command line.
    pub fn option_word(&self) -> &str {
        match self {
            Self::Unified(mode) => mode.option_word(),
            Self::Native(word) => word,
        }
    }

    /// Reads a mode for that agent: unified words first, then the agent's own.
    pub fn parse(agent: AgentType, word: &str) -> Result<Self, UnknownMode> {
        if let Ok(mode) = word.parse::<ApprovalMode>() {
            return Ok(Self::Unified(mode));
        }
        if let Some(mode) = ApprovalMode::from_native(agent, word) {
            return Ok(Self::Unified(mode));
        }
        match agent {
            AgentType::Acp => Ok(Self::Native(word.to_owned())),
            AgentType::Claude if word == "auto" => Ok(Self::Native(word.to_owned())),
            // Older versions had this mode: the adapter explains that it is gone.
            AgentType::Codex if word == "on-failure" => Ok(Self::Native(word.to_owned())),
            AgentType::Claude | AgentType::Codex | AgentType::Gemini | AgentType::Builtin => {
                Err(UnknownMode { agent, word: word.to_owned(), known: ApprovalMode::known_to(agent) })
            }
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unified(mode) => f.write_str(mode.as_str()),
            Self::Native(word) => f.write_str(word),
        }
    }
}
