//! Starts Gemini CLI. It speaks ACP, with peculiarities that `acp` handles; the modules below have its other format.

mod decode;
mod history;
mod info;
pub(crate) mod name;
pub(crate) mod project;
mod recorded;
mod run;
mod settings;
mod stored;
#[cfg(test)]
mod tests;
mod tools;
mod turn;
mod wire;

use multitap_event::{
    AgentLink, AgentType, ApprovalMode, LaunchError, Mode, PermissionPath, Resume, SandboxMode, SessionConfig,
    Transport, Unsupported,
};

pub use decode::StreamCodec;
pub(crate) use info::INFO;
pub use recorded::GeminiCodec;
use stored::{find, prepare_resume};

use crate::acp::{self, AcpCodec, Flavor};
use crate::codec::{DiskFiles, Files};
use crate::spec::{Plan, Start, add_options, folder_text};

pub(crate) async fn launch(mut start: Start<'_>) -> Result<AgentLink, LaunchError> {
    let config = &mut start.spec.config;
    // Unsupported settings are refused before the conversation is looked for.
    shared_arguments(config, &mut Vec::new())?;
    match config.transport {
        Transport::Default => {
            // Held until Gemini is up, or until nobody waits for it any more.
            let _resumed = prepare_resume(config)?;
            let plan = plan(config, Box::new(DiskFiles))?;
            start.by(plan).await
        }
        Transport::OneShot => {
            find(config)?;
            let plan = run::plan(config, Box::new(DiskFiles))?;
            start.by(plan).await
        }
    }
}

/// The arguments, private settings and codec for one session.
fn plan(config: &SessionConfig, files: Box<dyn Files>) -> Result<Plan<AcpCodec>, LaunchError> {
    let mut args = arguments(config)?;
    let private = settings::private(config)?;
    // Before the caller's own arguments, which come last.
    let at = args.len() - config.agent_args.len();
    args.splice(at..at, private.args);
    let codec = AcpCodec::live(Flavor::Gemini, acp::wishes(config)?, files);
    Ok(Plan { args, env: private.env, files: private.files, ..Plan::new(codec) })
}

/// The arguments of a session over ACP.
fn arguments(config: &SessionConfig) -> Result<Vec<String>, Unsupported> {
    let mut args = vec!["--acp".to_owned()];
    shared_arguments(config, &mut args)?;
    args.extend(config.agent_args.iter().cloned());
    Ok(args)
}

/// The options that both transports share.
fn shared_arguments(config: &SessionConfig, args: &mut Vec<String>) -> Result<(), Unsupported> {
    check(config)?;
    if !project::is_left_out(&config.environment) {
        args.push("--skip-trust".to_owned());
    }
    add_options(args, "--approval-mode", config.mode.as_ref().map(mode_option).transpose()?);
    add_options(args, "--model", &config.model);
    for folder in &config.add_dirs {
        add_options(args, "--include-directories", [folder_text(AgentType::Gemini, "added directories", folder)?]);
    }
    match config.sandbox {
        None => {}
        Some(SandboxMode::None | SandboxMode::FullAccess) => args.push("--sandbox=false".to_owned()),
        Some(SandboxMode::WorkspaceWrite) => args.push("--sandbox=true".to_owned()),
        Some(SandboxMode::ReadOnly) => {
            let why = "its sandbox lets it write; `--approval-mode plan` reads only";
            return Err(unsupported("sandbox read-only", why));
        }
    }
    Ok(())
}

/// Refuses a setting that Gemini does not support.
fn check(config: &SessionConfig) -> Result<(), Unsupported> {
    let given = [
        ("append system prompt", config.append_system_prompt.is_some(), "it can only replace its whole prompt"),
        ("max turns", config.max_turns.is_some(), "it has this limit only in its own settings (model.maxSessionTurns)"),
        ("output schema", config.output_schema.is_some(), "it has no such thing"),
        (
            "blocked tools by command",
            config.blocked_tools.iter().any(|tool| settings::command_rule(tool).1.is_some()),
            "it would ask instead; it can block whole tools",
        ),
        ("fork", config.fork, "it cannot fork a conversation"),
        (
            "resume at a message",
            matches!(config.resume, Resume::Session { at: Some(_), .. }),
            "it resumes a conversation only where it ended",
        ),
        ("permission by MCP tool", config.permission_path == PermissionPath::Mcp, "it asks in its own stream"),
        (
            "checkpointing",
            config.checkpointing && !settings::takes_checkpoints(config),
            "only your own Gemini settings can enable it (general.checkpointing.enabled)",
        ),
        (
            "sandbox workspace-write with resume",
            config.sandbox == Some(SandboxMode::WorkspaceWrite) && config.resume != Resume::New,
            "in the sandbox it cannot see the settings that protect a resumed conversation",
        ),
    ];
    Unsupported::first(AgentType::Gemini, given)
}

fn unsupported(setting: impl Into<String>, why: impl Into<String>) -> Unsupported {
    Unsupported::new(AgentType::Gemini, setting, why)
}

/// The mode as the command line spells it.
fn mode_option(mode: &Mode) -> Result<&str, Unsupported> {
    let word = match mode {
        Mode::Native(word) => Some(word.as_str()),
        Mode::Unified(mode) => mode.native(AgentType::Gemini).map(|native| native.word),
    };
    match word {
        Some("autoEdit") => Ok("auto_edit"),
        Some(word) => Ok(word),
        None => {
            let why = format!("it knows {}", ApprovalMode::known_to(AgentType::Gemini));
            Err(unsupported(format!("approval mode {}", mode.option_word()), why))
        }
    }
}
