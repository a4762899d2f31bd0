//! The configuration of a session.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::{A2aServer, AgentKind, AgentType, ApprovalMode, McpServer, Mode, Prompt};

/// All settings of a session. For absent settings the agent's own apply.
#[derive(Clone, PartialEq)]
pub struct SessionConfig {
    pub agent: AgentKind,
    /// The first turn; without it the session starts idle.
    pub prompt: Option<Prompt>,
    pub resume: Resume,
    /// Resume into a new session and leave the old one unchanged.
    pub fork: bool,
    pub working_directory: Option<PathBuf>,
    pub add_dirs: Vec<PathBuf>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub sandbox: Option<SandboxMode>,
    /// Start even if parts of the sandbox cannot be enforced (the built-in agent).
    pub sandbox_best_effort: bool,
    pub allowed_tools: Vec<String>,
    pub blocked_tools: Vec<String>,
    /// Block rules of our own settings for edited answers and `!command` with other agents.
    pub edit_blocks: Vec<String>,
    /// Whether the user trusts the folder. If not, a CLI starts without the project's active settings, and the built-in
    /// agent does not use git's configuration there.
    pub trusted: bool,
    /// The folders among `add_dirs` that the user trusts. Claude Code loads skills, agents and plugins of added
    /// folders.
    pub trusted_dirs: Vec<PathBuf>,
    /// Whether tools may fetch from this machine and its network (the built-in agent).
    pub private_addresses: bool,
    pub max_turns: Option<u32>,
    /// Added to the agent's environment.
    pub environment: BTreeMap<String, String>,
    pub system_prompt: Option<String>,
    pub append_system_prompt: Option<String>,
    /// A JSON Schema that the final answer must match.
    pub output_schema: Option<Value>,
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Remote agents, offered to the agent as tools of one MCP server.
    pub a2a_servers: Vec<A2aServer>,
    /// Additional arguments for the agent's program.
    pub agent_args: Vec<String>,
    /// The program to run instead of the one on `PATH`.
    pub program: Option<AgentProgram>,
    pub permission_path: PermissionPath,
    pub transport: Transport,
    /// Require copies of files before the agent changes them.
    pub checkpointing: bool,
    /// Include every native line in the `raw` field of an event.
    pub keep_raw: bool,
    /// Time limit for the agent's start.
    pub start_timeout: Duration,
}

impl SessionConfig {
    /// Default time limit for the agent's start.
    pub const START_TIMEOUT: Duration = Duration::from_secs(30);

    /// A session with that agent and default settings.
    pub fn new(agent: AgentKind) -> Self {
        Self {
            agent,
            prompt: None,
            resume: Resume::New,
            fork: false,
            working_directory: None,
            add_dirs: Vec::new(),
            model: None,
            mode: None,
            sandbox: None,
            sandbox_best_effort: false,
            allowed_tools: Vec::new(),
            blocked_tools: Vec::new(),
            edit_blocks: Vec::new(),
            trusted: false,
            trusted_dirs: Vec::new(),
            private_addresses: false,
            max_turns: None,
            environment: BTreeMap::new(),
            system_prompt: None,
            append_system_prompt: None,
            output_schema: None,
            mcp_servers: BTreeMap::new(),
            a2a_servers: Vec::new(),
            agent_args: Vec::new(),
            program: None,
            permission_path: PermissionPath::Stream,
            transport: Transport::Default,
            checkpointing: false,
            keep_raw: false,
            start_timeout: Self::START_TIMEOUT,
        }
    }

    #[must_use]
    pub fn with_prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = Some(Prompt::text(text));
        self
    }

    /// The part that `sessionStarted` shows: no prompt, no environment, no secret.
    pub fn stated(&self) -> StatedConfig {
        let agent = self.agent.agent_type();
        let strict = matches!(agent, AgentType::Claude | AgentType::Codex | AgentType::Gemini);
        let approval_mode = match &self.mode {
            Some(Mode::Unified(mode)) if !strict || mode.in_printed_schema() => Some(*mode),
            _ => None,
        };
        StatedConfig {
            agent_type: Some(agent),
            working_directory: self.working_directory.as_ref().map(|path| path.display().to_string()),
            model: self.model.clone(),
            approval_mode,
            sandbox_mode: self.sandbox,
            allowed_tools: self.allowed_tools.clone(),
            blocked_tools: self.blocked_tools.clone(),
            max_turns: self.max_turns,
        }
    }
}

impl fmt::Debug for SessionConfig {
    /// Shows the structure, never a value that could be secret: values of the environment, prompts, server settings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionConfig")
            .field("agent", &self.agent)
            .field("resume", &self.resume)
            .field("fork", &self.fork)
            .field("working_directory", &self.working_directory)
            .field("model", &self.model)
            .field("mode", &self.mode)
            .field("sandbox", &self.sandbox)
            .field("trusted", &self.trusted)
            .field("environment", &self.environment.keys())
            .field("mcp_servers", &self.mcp_servers.keys())
            .field("a2a_servers", &self.a2a_servers)
            .finish_non_exhaustive()
    }
}

/// The configuration as events show it.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SessionConfig")]
pub struct StatedConfig {
    pub agent_type: Option<AgentType>,
    pub working_directory: Option<String>,
    pub model: Option<String>,
    pub approval_mode: Option<ApprovalMode>,
    pub sandbox_mode: Option<SandboxMode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_tools: Vec<String>,
    pub max_turns: Option<u32>,
}

/// The conversation that a session resumes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Resume {
    /// None: begin a new conversation.
    #[default]
    New,
    /// The agent's newest conversation in this folder.
    Latest,
    /// The agent's conversation with this id; `at` goes back to a message in it.
    Session { native_id: String, at: Option<String> },
}

/// What the agent's tools may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SandboxMode {
    None,
    ReadOnly,
    WorkspaceWrite,
    FullAccess,
}

impl SandboxMode {
    pub const ALL: [Self; 4] = [Self::None, Self::ReadOnly, Self::WorkspaceWrite, Self::FullAccess];

    /// The word on the command line.
    pub fn option_word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::FullAccess => "full-access",
        }
    }
}

/// How the agent asks for permission, if it has several ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PermissionPath {
    /// With messages in its own stream.
    #[default]
    Stream,
    /// By calling an MCP tool that Multitap serves (Claude).
    Mcp,
}

/// How the agent is driven, if it has several ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Transport {
    /// One long-lived process, with the most features.
    #[default]
    Default,
    /// One process per turn, which cannot ask questions.
    OneShot,
}

/// An agent's program, if it is not the one on `PATH`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct AgentProgram {
    pub command: PathBuf,
    /// Arguments before those of Multitap.
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

impl fmt::Debug for AgentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentProgram")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

/// A setting that the agent does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{agent} cannot honour {setting}: {why}")]
pub struct Unsupported {
    pub agent: AgentType,
    pub setting: String,
    pub why: String,
}

impl Unsupported {
    pub fn new(agent: AgentType, setting: impl Into<String>, why: impl Into<String>) -> Self {
        Self { agent, setting: setting.into(), why: why.into() }
    }

    /// Refuses the first of these settings that was given.
    pub fn first<'a>(
        agent: AgentType,
        settings: impl IntoIterator<Item = (&'a str, bool, &'a str)>,
    ) -> Result<(), Self> {
        match settings.into_iter().find(|(_, is_given, _)| *is_given) {
            Some((setting, _, why)) => Err(Self::new(agent, setting, why)),
            None => Ok(()),
        }
    }
}
