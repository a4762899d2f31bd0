//! Translates a session's configuration for Codex, and refuses what Codex does not support.

use std::path::Path;

use multitap_event::{
    AgentType, ApprovalMode, McpReach, McpServer, Mode, PermissionPath, Resume, SandboxMode, SessionConfig, Unsupported,
};
use serde_json::{Map, Value, json};

use crate::spec::folder_text;

#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) cwd: Option<String>,
    pub(super) model: Option<String>,
    pub(super) rules: Rules,
    pub(super) add_dirs: Vec<String>,
    pub(super) system_prompt: Option<String>,
    pub(super) append_system_prompt: Option<String>,
    pub(super) output_schema: Option<Value>,
    pub(super) mcp_servers: Map<String, Value>,
    pub(super) resume: Resume,
    pub(super) fork: bool,
}

/// Rules for when Codex asks, and for what its tools may access.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rules {
    /// The unified mode that was chosen.
    pub(super) mode: Option<ApprovalMode>,
    pub(super) policy: Option<String>,
    pub(super) sandbox: Option<SandboxMode>,
    /// Whether the sandbox is part of the mode.
    pub(super) sandbox_implied: bool,
}

impl Rules {
    /// The rules of a mode, with a sandbox that was chosen separately.
    pub(super) fn of(mode: Option<&Mode>, sandbox: Option<SandboxMode>) -> Result<Self, Unsupported> {
        let (mode, word, implied) = match mode {
            None => return Ok(Self { sandbox, ..Self::default() }),
            Some(Mode::Native(word)) => (None, native_policy(word)?, None),
            Some(Mode::Unified(mode)) => {
                let native = mode.native(AgentType::Codex).ok_or_else(|| {
                    let why = format!("it knows {}", ApprovalMode::known_to(AgentType::Codex));
                    unsupported(format!("approval mode {}", mode.option_word()), why)
                })?;
                (Some(*mode), native.word.to_owned(), native.sandbox)
            }
        };
        if let (Some(mode), Some(implied), Some(chosen)) = (mode, implied, sandbox)
            && chosen != implied
            && chosen != SandboxMode::ReadOnly
        {
            let why = format!("approval mode {} requires the sandbox {}", mode.option_word(), implied.option_word());
            return Err(unsupported(format!("sandbox {}", chosen.option_word()), why));
        }
        let policy = Some(word);
        Ok(Self { mode, policy, sandbox: sandbox.or(implied), sandbox_implied: sandbox.is_none() && implied.is_some() })
    }

    /// The mode in Codex's own words, as events report it.
    pub(super) fn native_mode(&self) -> Option<String> {
        let policy = self.policy.clone()?;
        Some(match self.sandbox.filter(|_| self.sandbox_implied) {
            Some(sandbox) => format!("{policy}/{}", sandbox_word(sandbox)),
            None => policy,
        })
    }
}

fn native_policy(word: &str) -> Result<String, Unsupported> {
    match word {
        "untrusted" | "on-request" | "never" => Ok(word.to_owned()),
        "on-failure" => Err(unsupported("approval mode on-failure", "newer versions no longer have this policy")),
        _ => Err(unsupported(format!("approval mode {word}"), "it knows untrusted, on-request and never")),
    }
}

pub(super) fn sandbox_word(sandbox: SandboxMode) -> &'static str {
    match sandbox {
        SandboxMode::None | SandboxMode::FullAccess => "danger-full-access",
        SandboxMode::ReadOnly => "read-only",
        SandboxMode::WorkspaceWrite => "workspace-write",
    }
}

/// A sandbox in the app-server's format for a turn.
pub(super) fn sandbox_policy(sandbox: SandboxMode, add_dirs: &[String]) -> Value {
    match sandbox {
        SandboxMode::None | SandboxMode::FullAccess => json!({ "type": "dangerFullAccess" }),
        SandboxMode::ReadOnly => json!({ "type": "readOnly" }),
        SandboxMode::WorkspaceWrite => json!({ "type": "workspaceWrite", "writableRoots": add_dirs }),
    }
}

pub(super) fn unsupported(setting: impl Into<String>, why: impl Into<String>) -> Unsupported {
    Unsupported::new(AgentType::Codex, setting, why)
}

fn whole(setting: &str, path: &Path) -> Result<String, Unsupported> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    folder_text(AgentType::Codex, setting, &path)
}

impl Settings {
    pub(super) fn of(config: &SessionConfig) -> Result<Self, Unsupported> {
        let goes_back = matches!(config.resume, Resume::Session { at: Some(_), .. });
        let given = [
            ("max turns", config.max_turns.is_some(), "it has no limit for the model's turns"),
            (
                "allowed tools",
                !config.allowed_tools.is_empty(),
                "it has no list of allowed tools; use an approval mode or its own rules",
            ),
            (
                "blocked tools",
                !config.blocked_tools.is_empty(),
                "it has no list of blocked tools; use a sandbox or its own rules",
            ),
            ("permission by MCP tool", config.permission_path == PermissionPath::Mcp, "it asks in its own stream"),
            ("checkpointing", config.checkpointing, "it keeps no copies of files"),
            ("fork", config.fork && config.resume == Resume::New, "fork needs a session to resume or continue"),
            (
                "resume at a message",
                goes_back && !config.fork,
                "it cannot go back in a session, only fork it at a turn; add --fork",
            ),
        ];
        Unsupported::first(AgentType::Codex, given)?;
        let rules = Rules::of(config.mode.as_ref(), config.sandbox)?;
        if !config.add_dirs.is_empty() && rules.sandbox == Some(SandboxMode::ReadOnly) {
            return Err(unsupported("added directories", "its read-only sandbox reads everywhere and writes nowhere"));
        }
        // A conversation belongs to a folder; by default to the current one.
        let cwd = config.working_directory.clone().or_else(|| std::env::current_dir().ok());
        Ok(Self {
            cwd: cwd.as_deref().map(|path| whole("working directory", path)).transpose()?,
            model: config.model.clone(),
            rules,
            add_dirs: config.add_dirs.iter().map(|path| whole("added directories", path)).collect::<Result<_, _>>()?,
            system_prompt: config.system_prompt.clone(),
            append_system_prompt: config.append_system_prompt.clone(),
            output_schema: config.output_schema.clone(),
            mcp_servers: config
                .mcp_servers
                .iter()
                .map(|(name, server)| (name.clone(), mcp_server(server, cwd.as_deref())))
                .collect(),
            resume: config.resume.clone(),
            fork: config.fork,
        })
    }

    /// The common parameters of `thread/start`, `thread/resume` and `thread/fork`: only the settings that were chosen.
    pub(super) fn thread(&self) -> Map<String, Value> {
        let mut config = Map::new();
        if !self.mcp_servers.is_empty() {
            config.insert("mcp_servers".to_owned(), self.mcp_servers.clone().into());
        }
        if !self.add_dirs.is_empty() {
            config.insert("sandbox_workspace_write".to_owned(), json!({ "writable_roots": self.add_dirs }));
        }
        let text = |text: &Option<String>| text.clone().map(Value::String);
        let chosen = [
            ("cwd", text(&self.cwd)),
            ("model", text(&self.model)),
            ("approvalPolicy", text(&self.rules.policy)),
            ("sandbox", self.rules.sandbox.map(|sandbox| sandbox_word(sandbox).into())),
            ("baseInstructions", text(&self.system_prompt)),
            ("developerInstructions", text(&self.append_system_prompt)),
            ("config", (!config.is_empty()).then_some(Value::Object(config))),
        ];
        chosen.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

fn mcp_server(server: &McpServer, folder: Option<&Path>) -> Value {
    let mut written = mcp_rules(server, folder);
    written.extend(match &server.reach {
        McpReach::Stdio { command, args, env, .. } => {
            [("command", json!(command)), ("args", json!(args)), ("env", json!(env))].map(owned).to_vec()
        }
        McpReach::Http { url, headers } => [("url", json!(url)), ("http_headers", json!(headers))].map(owned).to_vec(),
    });
    written.into()
}

/// The settings of a server without its secrets. Relative folders are relative to the session's.
pub(super) fn mcp_rules(server: &McpServer, folder: Option<&Path>) -> Map<String, Value> {
    let cwd = match &server.reach {
        McpReach::Stdio { cwd: Some(cwd), .. } => Some(folder.map_or_else(|| cwd.clone(), |folder| folder.join(cwd))),
        McpReach::Stdio { cwd: None, .. } | McpReach::Http { .. } => None,
    };
    let chosen = [
        ("cwd", cwd.map(|cwd| json!(cwd.display().to_string()))),
        ("tool_timeout_sec", server.timeout.map(|timeout| json!(timeout.as_secs_f64()))),
        ("enabled_tools", server.include_tools.as_ref().map(|tools| json!(tools))),
        ("disabled_tools", (!server.exclude_tools.is_empty()).then(|| json!(server.exclude_tools))),
        ("default_tools_approval_mode", server.trust.then(|| json!("approve"))),
    ];
    chosen.into_iter().filter_map(|(key, value)| Some(owned((key, value?)))).collect()
}

fn owned((key, value): (&str, Value)) -> (String, Value) {
    (key.to_owned(), value)
}
