//! Claude Code: how it is started. Its dialect is in the files beside this one.

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

use std::io::{self, Write as _};

use multitap_event::{
    AgentLink, AgentType, ApprovalMode, LaunchError, McpReach, McpServer, Mode, PermissionPath, Resume, SandboxMode,
    SessionConfig, Transport, Unsupported,
};
use serde_json::{Map, Value, json};
use tempfile::TempPath;
use uuid::Uuid;

pub use decode::ClaudeCodec;
pub(crate) use info::INFO;

use crate::codec::{DiskFiles, Files};
use crate::mcp;
use crate::spec::{Plan, Start, folder_text, private_file_failed};

/// What every session is started with: one long-lived process, JSON lines both ways, text as it comes.
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
        return Err(unsupported("one-shot transport", "it runs as one process for all turns").into());
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
        let file = mcp_file(config).map_err(|error| private_file_failed(AgentType::Claude, &error))?;
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

/// The id we give a new conversation, so that it is known at once. One that goes on under its own id gets none, nor
/// one that the user's own arguments choose.
fn native_id(config: &SessionConfig) -> Option<String> {
    let own = config.program.iter().flat_map(|program| &program.args).chain(&config.agent_args);
    let chosen = ["--session-id", "--resume", "--continue", "--fork-session", "-r", "-c"];
    let mut named = own.map(|arg| arg.split_once('=').map_or(arg.as_str(), |(name, _)| name));
    let new = (config.resume == Resume::New || config.fork) && !named.any(|name| chosen.contains(&name));
    new.then(|| Uuid::new_v4().to_string())
}

/// Everything but the MCP servers, whose settings may hold secrets and go into a file.
fn arguments(config: &SessionConfig, native_id: Option<&str>) -> Result<Vec<String>, Unsupported> {
    let mut args: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    let mut option = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
    option(
        "--permission-prompt-tool",
        match config.permission_path {
            PermissionPath::Stream => "stdio",
            PermissionPath::Mcp => approve::TOOL,
        },
    );
    if let Some(mode) = &config.mode {
        option("--permission-mode", &native_mode(mode)?);
    }
    if let Some(model) = &config.model {
        option("--model", model);
    }
    if let Some(turns) = config.max_turns {
        option("--max-turns", &turns.to_string());
    }
    for tool in &config.allowed_tools {
        option("--allowedTools", tool);
    }
    for tool in &config.blocked_tools {
        option("--disallowedTools", tool);
    }
    for (name, server) in &config.mcp_servers {
        if server.trust {
            option("--allowedTools", &server_rule(name));
        }
        for tool in &server.exclude_tools {
            option("--disallowedTools", &format!("{}__{}", server_rule(name), plain(tool)));
        }
    }
    for folder in &config.add_dirs {
        option("--add-dir", &folder_text(AgentType::Claude, "added directories", folder)?);
    }
    if let Some(prompt) = &config.system_prompt {
        option("--system-prompt", prompt);
    }
    if let Some(prompt) = &config.append_system_prompt {
        option("--append-system-prompt", prompt);
    }
    if let Some(schema) = &config.output_schema {
        option("--json-schema", &schema.to_string());
    }
    match config.sandbox {
        None => {}
        Some(SandboxMode::None | SandboxMode::FullAccess) => option("--settings", r#"{"sandbox":{"enabled":false}}"#),
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
            args.extend(["--resume".to_owned(), native_id.clone()]);
            if let Some(at) = at {
                args.extend(["--resume-session-at".to_owned(), at.clone()]);
            }
        }
    }
    if config.fork {
        args.push("--fork-session".to_owned());
    }
    if let Some(id) = native_id {
        args.extend(["--session-id".to_owned(), id.to_owned()]);
    }
    args.extend(config.agent_args.iter().cloned());
    Ok(args)
}

fn unsupported(setting: impl Into<String>, why: &str) -> Unsupported {
    Unsupported { agent: AgentType::Claude, setting: setting.into(), why: why.to_owned() }
}

/// Claude's word for a mode.
fn native_mode(mode: &Mode) -> Result<String, Unsupported> {
    match mode {
        Mode::Native(word) => Ok(word.clone()),
        Mode::Unified(mode) => mode.native(AgentType::Claude).map(|native| native.word.to_owned()).ok_or_else(|| {
            let known = ApprovalMode::ALL.into_iter().filter(|mode| mode.native(AgentType::Claude).is_some());
            let known = known.map(ApprovalMode::option_word).collect::<Vec<_>>().join(", ");
            unsupported(format!("approval mode {}", mode.option_word()), &format!("it knows {known} and auto"))
        }),
    }
}

/// A file only the user can read, with the MCP servers as Claude wants them.
fn mcp_file(config: &SessionConfig) -> io::Result<TempPath> {
    let servers: Map<String, Value> =
        config.mcp_servers.iter().map(|(name, server)| (name.clone(), mcp_server(server))).collect();
    let mut file =
        tempfile::Builder::new().prefix(&format!("multitap-mcp-{}-", std::process::id())).suffix(".json").tempfile()?;
    file.write_all(json!({ "mcpServers": servers }).to_string().as_bytes())?;
    file.flush()?;
    Ok(file.into_temp_path())
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

/// The rule for all tools of a server.
fn server_rule(name: &str) -> String {
    format!("mcp__{}", plain(name))
}

/// A name as Claude makes it part of a tool's name.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().map(plain).collect()
}
