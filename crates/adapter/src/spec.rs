//! Starting an agent: which program, which codec, and the wait until it has shown that it is up.

use std::io;
use std::path::PathBuf;

use multitap_event::{
    AgentError, AgentErrorKind, AgentKind, AgentLink, AgentType, SessionConfig, Timestamp, Unsupported, link,
};
use multitap_process::{Keeper, Program, SpawnError, StdinMode, spawn};
use tempfile::TempPath;
use tokio_util::task::TaskTracker;

use crate::acp::{self, AcpCodec, Flavor};
use crate::claude;
use crate::codec::{Codec, DiskFiles};
use crate::gemini;
use crate::pump::Pump;

/// What it takes to start an agent.
#[derive(Debug)]
pub struct LaunchSpec {
    pub config: SessionConfig,
    pub keeper: Keeper,
    /// Variables of ours that the agent must not see.
    pub hidden_env: Vec<String>,
}

/// The agent did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// It was asked for something it cannot do; nothing was started.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Agent(Box<AgentError>),
}

impl LaunchError {
    /// A file that the agent is to read could not be written.
    pub(crate) fn private_file(agent: AgentType, error: &io::Error) -> Self {
        let message = format!("cannot write a file for {agent}: {error}");
        AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent).into()
    }
}

impl From<AgentError> for LaunchError {
    fn from(error: AgentError) -> Self {
        Self::Agent(Box::new(error))
    }
}

/// How one agent is run: its arguments and environment, and the codec that speaks with it.
pub(crate) struct Plan<C> {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stdin: StdinMode,
    pub(crate) codec: C,
    /// Files that the agent reads; they are gone when the agent is.
    pub(crate) files: Vec<TempPath>,
}

/// The agents this version can drive.
pub fn drivable(agent: AgentType) -> bool {
    match agent {
        AgentType::Claude | AgentType::Gemini | AgentType::Acp => true,
        AgentType::Codex | AgentType::Builtin => false,
    }
}

/// The name of an agent's program, as it stands on `PATH`.
pub fn program_name(agent: AgentType) -> Option<&'static str> {
    match agent {
        AgentType::Claude => Some("claude"),
        AgentType::Codex => Some("codex"),
        AgentType::Gemini => Some("gemini"),
        AgentType::Acp | AgentType::Builtin => None,
    }
}

/// Where an agent's program is on this machine.
pub fn find_program(agent: AgentType) -> Option<PathBuf> {
    which::which(program_name(agent)?).ok()
}

/// The codec that reads a recorded stream of that agent.
pub fn recorded(agent: AgentType) -> Option<Box<dyn Codec>> {
    match agent {
        AgentType::Claude => Some(Box::new(claude::ClaudeCodec::recorded())),
        AgentType::Gemini => Some(Box::new(AcpCodec::recorded(Flavor::Gemini))),
        AgentType::Acp => Some(Box::new(AcpCodec::recorded(Flavor::Plain))),
        AgentType::Codex | AgentType::Builtin => None,
    }
}

/// Starts an agent and waits until it is up. Its work is carried on `tasks`; when the link's command end is dropped
/// the agent is asked to go, and when `tasks` has finished nothing of it is left.
pub async fn launch(spec: LaunchSpec, tasks: &TaskTracker) -> Result<AgentLink, LaunchError> {
    let agent = spec.config.agent.agent_type();
    match spec.config.agent {
        AgentKind::Claude => {
            let plan = claude::plan(&spec.config, Box::new(DiskFiles))?;
            start(spec, agent, plan, tasks).await
        }
        AgentKind::Gemini => {
            let mut spec = spec;
            let stored = gemini::take_up(&mut spec.config, Timestamp::now())?;
            let plan = gemini::plan(&spec.config, Box::new(DiskFiles))?;
            let started = start(spec, agent, plan, tasks).await;
            if let Some(stored) = stored {
                stored.tidy();
            }
            started
        }
        AgentKind::Acp { ref command } => {
            let program = acp::program(command)?;
            let plan = acp::plan(&spec.config, Box::new(DiskFiles))?;
            let config = SessionConfig { program: Some(program), ..spec.config };
            start(LaunchSpec { config, ..spec }, agent, plan, tasks).await
        }
        AgentKind::Codex | AgentKind::Builtin => {
            let message = format!("this version of multitap cannot drive {agent} yet");
            Err(AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent).into())
        }
    }
}

async fn start<C: Codec>(
    spec: LaunchSpec,
    agent: AgentType,
    plan: Plan<C>,
    tasks: &TaskTracker,
) -> Result<AgentLink, LaunchError> {
    let LaunchSpec { config, keeper, hidden_env } = spec;
    let own = config.program.clone().unwrap_or_default();
    let program = if own.command.as_os_str().is_empty() {
        find_program(agent).ok_or_else(|| missing(agent))?
    } else {
        own.command
    };
    // What the plan needs wins, or the agent could not be driven.
    let env = own.env.into_iter().chain(config.environment.clone()).chain(plan.env);
    let program = Program {
        program,
        args: own.args.into_iter().chain(plan.args).map(Into::into).collect(),
        env: env.map(|(name, value)| (name.into(), value.into())).collect(),
        env_remove: hidden_env.into_iter().map(Into::into).collect(),
        cwd: config.working_directory.clone(),
        stdin: plan.stdin,
    };
    let child = spawn(program, &keeper).await.map_err(|error| spawn_failed(agent, &error))?;
    let (link, end) = link();
    let mut pump = Pump::new(agent, child, plan.codec, end, config.keep_raw, plan.files);
    pump.wait_until_up(config.start_timeout).await?;
    tasks.spawn(pump.run());
    Ok(link)
}

fn missing(agent: AgentType) -> AgentError {
    let name = program_name(agent).unwrap_or_default();
    let message =
        format!("{agent} is not installed: no program '{name}' on PATH (`multitap doctor` says how to get it)");
    AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent)
}

fn spawn_failed(agent: AgentType, error: &SpawnError) -> AgentError {
    let mut failed =
        AgentError::new(AgentErrorKind::ProcessSpawnFailed, format!("cannot start {agent}: {error}")).of(agent);
    if let SpawnError::Other { source, .. } = error {
        failed = failed.native(source.to_string());
    }
    failed
}
