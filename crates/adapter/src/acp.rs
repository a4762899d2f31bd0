//! Starts any agent that speaks the Agent Client Protocol. The modules below have its dialect.

mod block;
mod content;
mod decode;
mod elicitation;
mod encode;
mod flavor;
mod info;
mod message;
mod open;
mod question;
mod reply;
mod rpc;
mod session;
#[cfg(test)]
mod tests;
mod tools;
mod turn;
mod wire;

use std::path::PathBuf;

use multitap_event::{
    AgentError, AgentErrorKind, AgentKind, AgentLink, AgentProgram, AgentType, LaunchError, PermissionPath, Resume,
    SessionConfig, Transport, Unsupported,
};

pub use decode::AcpCodec;
pub(crate) use flavor::Flavor;
pub(crate) use info::INFO;
pub(crate) use session::Wishes;

use crate::codec::{DiskFiles, Files};
use crate::spec::{Plan, Start, folder_text};

pub(crate) async fn launch(mut start: Start<'_>) -> Result<AgentLink, LaunchError> {
    let config = &mut start.spec.config;
    if config.transport == Transport::OneShot {
        let why = "ACP needs one process for all turns";
        return Err(Unsupported::new(AgentType::Acp, "one-shot transport", why).into());
    }
    if let AgentKind::Acp { command } = &config.agent {
        config.program = Some(program(command)?);
    }
    let plan = plan(config, Box::new(DiskFiles))?;
    start.by(plan).await
}

/// The codec for one session. Every setting is sent by the protocol itself, none as an argument.
fn plan(config: &SessionConfig, files: Box<dyn Files>) -> Result<Plan<AcpCodec>, LaunchError> {
    check(config)?;
    let folder = |folder: &PathBuf| folder_text(AgentType::Acp, "added directories", folder);
    let wishes = Wishes {
        add_dirs: config.add_dirs.iter().map(folder).collect::<Result<_, _>>()?,
        mode: config.mode.clone(),
        model: config.model.clone(),
        ..wishes(config)?
    };
    let codec = AcpCodec::live(Flavor::Plain, wishes, files);
    Ok(Plan { args: config.agent_args.clone(), ..Plan::new(codec) })
}

pub(crate) fn wishes(config: &SessionConfig) -> Result<Wishes, LaunchError> {
    let cwd = match &config.working_directory {
        Some(folder) => std::path::absolute(folder),
        None => std::env::current_dir(),
    };
    let agent = config.agent.agent_type();
    let cwd = cwd.map_err(|error| {
        AgentError::new(AgentErrorKind::ProcessSpawnFailed, format!("cannot find the folder for {agent}: {error}"))
            .of(agent)
    })?;
    Ok(Wishes {
        stated: config.stated(),
        cwd: folder_text(agent, "working directory", &cwd)?,
        resume: config.resume.clone(),
        fork: config.fork,
        add_dirs: Vec::new(),
        mcp_servers: config.mcp_servers.clone(),
        mode: None,
        model: None,
    })
}

/// Refuses a setting that the protocol has no word for.
fn check(config: &SessionConfig) -> Result<(), Unsupported> {
    let rules = "ACP does not support it; set it in the agent's own settings, or pass its option with --agent-arg";
    let given = [
        ("allowed tools", !config.allowed_tools.is_empty()),
        ("blocked tools", !config.blocked_tools.is_empty()),
        ("max turns", config.max_turns.is_some()),
        ("sandbox", config.sandbox.is_some()),
        ("system prompt", config.system_prompt.is_some()),
        ("append system prompt", config.append_system_prompt.is_some()),
        ("output schema", config.output_schema.is_some()),
        ("resume at a message", matches!(config.resume, Resume::Session { at: Some(_), .. })),
        ("permission by MCP tool", config.permission_path == PermissionPath::Mcp),
        ("checkpointing", config.checkpointing),
    ];
    Unsupported::first(AgentType::Acp, given.map(|(setting, given)| (setting, given, rules)))
}

/// The program of a command line, with its arguments.
pub fn program(command: &str) -> Result<AgentProgram, AgentError> {
    let failed = |why: String| AgentError::new(AgentErrorKind::ProcessSpawnFailed, why).of(AgentType::Acp);
    let words = shell_words::split(command).map_err(|error| failed(format!("acp:{command}: {error}")))?;
    let mut words = words.into_iter();
    let name = words.next().ok_or_else(|| failed("acp: needs a command".to_owned()))?;
    let found =
        which::which(&name).and_then(|path| std::path::absolute(path).map_err(|_| which::Error::CannotFindBinaryPath));
    let command: PathBuf =
        found.map_err(|_| failed(format!("no program '{name}' for acp:{command}: it is not on PATH")))?;
    Ok(AgentProgram { command, args: words.collect(), ..AgentProgram::default() })
}
