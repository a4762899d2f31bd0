//! Starts Claude Code. The modules below have its dialect.

mod answer;
mod approve;
mod change;
mod control;
mod decode;
mod encode;
mod history;
mod info;
mod message;
mod name;
mod plain;
mod project;
mod question;
mod session;
mod system;
#[cfg(test)]
mod tests;
mod todo;
mod tools;
mod turn;
mod wire;

use std::path::PathBuf;

use multitap_event::{
    AgentError, AgentLink, AgentType, ApprovalMode, LaunchError, McpReach, McpServer, Mode, PermissionPath, Resume,
    SandboxMode, SessionConfig, Transport, Unsupported,
};
use serde_json::{Map, Value, json};
use tempfile::TempPath;
use uuid::Uuid;

pub use decode::ClaudeCodec;
pub(crate) use info::INFO;

use crate::codec::{DiskFiles, Files};
use crate::mcp;
use crate::spec::{Plan, Start, add_options, folder_text, private_file};

/// The arguments of every session: one long-lived process, JSON lines in both directions, text as it streams.
const ALWAYS: [&str; 7] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
];

pub(crate) async fn launch(start: Start<'_>) -> Result<AgentLink, LaunchError> {
    if start.spec.config.transport == Transport::OneShot {
        let why = "it runs as one process for all turns";
        return Err(unsupported("one-shot transport", why).into());
    }
    let plan = plan(&start.spec.config, Box::new(DiskFiles))?;
    start.by(plan).await
}

/// The arguments and the codec for one session.
fn plan(config: &SessionConfig, files: Box<dyn Files>) -> Result<Plan<ClaudeCodec>, LaunchError> {
    let native_id = native_id(config);
    let mut args = arguments(config, native_id.as_deref())?;
    let mut kept = Vec::new();
    if !config.mcp_servers.is_empty() {
        let file = mcp_file(config)?;
        // Before the caller's own arguments, which come last.
        let at = args.len() - config.agent_args.len();
        args.splice(at..at, ["--mcp-config".to_owned(), file.display().to_string()]);
        kept.push(file);
    }
    // A conversation that is resumed keeps its id.
    let known = match &config.resume {
        Resume::Session { native_id, .. } if !config.fork => Some(native_id.clone()),
        _ => native_id,
    };
    let codec = ClaudeCodec::live(config, known.filter(|id| Uuid::parse_str(id).is_ok()), files);
    Ok(Plan { args, files: kept, ..Plan::new(codec) })
}

/// The id for a new conversation, chosen by us so that it is known at once. `None` if the conversation keeps its id, or
/// if the user's own arguments choose one.
fn native_id(config: &SessionConfig) -> Option<String> {
    let own = config.program.iter().flat_map(|program| &program.args).chain(&config.agent_args);
    let chosen = ["--session-id", "--resume", "--continue", "--fork-session", "-r", "-c"];
    let mut named = own.map(|arg| arg.split_once('=').map_or(arg.as_str(), |(name, _)| name));
    let new = (config.resume == Resume::New || config.fork) && !named.any(|name| chosen.contains(&name));
    new.then(|| Uuid::new_v4().to_string())
}

/// All arguments except for the MCP servers: their settings may contain secrets, so they go into a file.
fn arguments(config: &SessionConfig, native_id: Option<&str>) -> Result<Vec<String>, Unsupported> {
    let mut args: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    let prompt_tool = match config.permission_path {
        PermissionPath::Stream => "stdio",
        PermissionPath::Mcp => approve::TOOL,
    };
    add_options(&mut args, "--permission-prompt-tool", [prompt_tool]);
    add_options(&mut args, "--permission-mode", config.mode.as_ref().map(native_mode).transpose()?);
    add_options(&mut args, "--model", &config.model);
    add_options(&mut args, "--max-turns", config.max_turns.map(|turns| turns.to_string()));
    add_options(&mut args, "--allowedTools", &config.allowed_tools);
    add_options(&mut args, "--disallowedTools", &config.blocked_tools);
    for (name, server) in &config.mcp_servers {
        let rule = server_rule(name);
        add_options(&mut args, "--allowedTools", server.trust.then_some(&rule));
        let excluded = server.exclude_tools.iter().map(|tool| format!("{rule}__{}", plain(tool)));
        add_options(&mut args, "--disallowedTools", excluded);
    }
    let folder = |folder: &PathBuf| folder_text(AgentType::Claude, "added directories", folder);
    let folders: Vec<String> = config.add_dirs.iter().map(folder).collect::<Result<_, _>>()?;
    add_options(&mut args, "--add-dir", folders);
    add_options(&mut args, "--system-prompt", &config.system_prompt);
    add_options(&mut args, "--append-system-prompt", &config.append_system_prompt);
    add_options(&mut args, "--json-schema", config.output_schema.as_ref().map(Value::to_string));
    match config.sandbox {
        None => {}
        Some(SandboxMode::None | SandboxMode::FullAccess) => {
            add_options(&mut args, "--settings", [r#"{"sandbox":{"enabled":false}}"#]);
        }
        Some(mode @ (SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite)) => {
            let why =
                "it has no such sandbox; use `--approval-mode plan` to only read, or `ask` to ask before each change";
            return Err(unsupported(format!("sandbox {}", mode.option_word()), why));
        }
    }
    if config.checkpointing {
        return Err(unsupported("checkpointing", "it has no such setting"));
    }
    match &config.resume {
        Resume::New if config.fork => {
            return Err(unsupported("fork", "fork needs a session to resume or continue"));
        }
        Resume::New => {}
        Resume::Latest => args.push("--continue".to_owned()),
        Resume::Session { native_id, at } => {
            add_options(&mut args, "--resume", [native_id]);
            add_options(&mut args, "--resume-session-at", at);
        }
    }
    if config.fork {
        args.push("--fork-session".to_owned());
    }
    add_options(&mut args, "--session-id", native_id);
    args.extend(config.agent_args.iter().cloned());
    Ok(args)
}

fn unsupported(setting: impl Into<String>, why: impl Into<String>) -> Unsupported {
    Unsupported::new(AgentType::Claude, setting, why)
}

fn native_mode(mode: &Mode) -> Result<String, Unsupported> {
    match mode {
        Mode::Native(word) => Ok(word.clone()),
        Mode::Unified(mode) => mode.native(AgentType::Claude).map(|native| native.word.to_owned()).ok_or_else(|| {
            let why = format!("it knows {} and auto", ApprovalMode::known_to(AgentType::Claude));
            unsupported(format!("approval mode {}", mode.option_word()), why)
        }),
    }
}

/// A private file with the MCP servers in Claude's format.
fn mcp_file(config: &SessionConfig) -> Result<TempPath, AgentError> {
    let servers: Map<String, Value> =
        config.mcp_servers.iter().map(|(name, server)| (name.clone(), mcp_server(server))).collect();
    private_file(AgentType::Claude, ".json", json!({ "mcpServers": servers }).to_string())
}

fn mcp_server(server: &McpServer) -> Value {
    let mut written = match &server.reach {
        McpReach::Stdio { command, args, env, cwd } => {
            let (command, args) = mcp::in_folder(command, args, cwd.as_deref());
            json!({ "type": "stdio", "command": command, "args": args, "env": env })
        }
        McpReach::Http { url, headers } => json!({ "type": "http", "url": url, "headers": headers }),
    };
    if let Some(timeout) = server.timeout {
        written["timeout"] = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into();
    }
    written
}

fn server_rule(name: &str) -> String {
    format!("mcp__{}", plain(name))
}

/// A name as it appears in Claude's names of tools.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).collect()
}
