//! From a session's configuration to an agent that runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use multitap_event::{
    AgentError, AgentErrorKind, AgentLink, AgentType, ApprovalMode, Mode, PermissionPath, Resume, SessionConfig,
    Timestamp, Transport, Unsupported, link,
};
use multitap_process::Keeper;
use tokio_util::task::TaskTracker;

use crate::chat::{ChatError, Shelf};
use crate::conversation::Conversation;
use crate::mcp::{Place, Servers};
use crate::model::{Model, rehearsal};
use crate::policy::Policy;
use crate::run::{Parts, Runner};
use crate::slash;
use crate::tools::Toolbox;

/// What the agent needs beside the session's own configuration.
#[derive(Clone)]
pub struct Setup {
    /// Who keeps the programs that tools start.
    pub keeper: Keeper,
    /// Variables that no tool may see.
    pub hidden_env: Vec<String>,
    /// Where conversations are kept; nothing is kept without it.
    pub data: Option<PathBuf>,
    /// The user's settings folder: memory and commands of their own.
    pub config: Option<PathBuf>,
    /// Variables that name keys and addresses of models.
    pub env: BTreeMap<String, String>,
}

impl fmt::Debug for Setup {
    /// Variables may be keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("keeper", &self.keeper)
            .field("data", &self.data)
            .field("config", &self.config)
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

/// The agent did not start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LaunchError {
    /// It was asked for something it cannot do; nothing was started.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Agent(Box<AgentError>),
}

/// Starts the agent. It ends when its commands end, and is then gone from `tasks`.
pub async fn launch(config: SessionConfig, setup: Setup, tasks: &TaskTracker) -> Result<AgentLink, LaunchError> {
    check(&config)?;
    let folder = folder(&config)?;
    let shelf = Shelf::new(setup.data.clone());
    let (chat, talk) = take_up(&shelf, &config, &folder).await?;
    let mode = match &config.mode {
        Some(Mode::Unified(mode)) => *mode,
        Some(Mode::Native(word)) => ApprovalMode::from_native(AgentType::Builtin, word).unwrap_or(ApprovalMode::Ask),
        None => ApprovalMode::Ask,
    };
    let model = choose(config.model.as_deref())?;
    let (mut agent_link, end) = link();
    agent_link.steers = true;
    let place = Place {
        keeper: setup.keeper.clone(),
        hidden_env: setup.hidden_env.clone(),
        folder: folder.clone(),
        env: config.environment.clone(),
    };
    let (mcp, servers) = Servers::start(&config.mcp_servers, &place);
    let own = slash::load(setup.config.as_deref(), &folder);
    let parts = Parts {
        end,
        policy: Policy::new(mode, Vec::new(), Vec::new()),
        toolbox: Toolbox { mcp },
        servers,
        folder,
        config,
        setup,
        shelf,
        chat,
        talk,
        model,
        own,
    };
    tasks.spawn(Runner::new(parts).run());
    Ok(agent_link)
}

/// The model of that name.
pub(crate) fn choose(name: Option<&str>) -> Result<Model, LaunchError> {
    match name {
        None | Some(rehearsal::NAME) => Ok(Model::Rehearsal),
        Some(other) => Err(unsupported("--model", &format!("it knows no model '{other}'; there is rehearsal")).into()),
    }
}

fn unsupported(setting: &str, why: &str) -> Unsupported {
    Unsupported { agent: AgentType::Builtin, setting: setting.to_owned(), why: why.to_owned() }
}

/// What it cannot honour is refused by name before anything starts.
fn check(config: &SessionConfig) -> Result<(), Unsupported> {
    let at_a_message = matches!(&config.resume, Resume::Session { at: Some(_), .. });
    for (asked, setting, why) in [
        (!config.agent_args.is_empty(), "--agent-arg", "it runs inside Multitap and takes no arguments"),
        (config.program.is_some(), "agents.builtin.command", "it runs inside Multitap and has no program"),
        (config.permission_path == PermissionPath::Mcp, "permission by MCP tool", "it asks in its own stream"),
        (config.transport == Transport::OneShot, "transport oneShot", "it runs inside Multitap"),
        (config.checkpointing, "checkpointing", "it has no checkpoints"),
        (at_a_message, "--at", "it can only go on from the end of a conversation"),
    ] {
        if asked {
            return Err(unsupported(setting, why));
        }
    }
    Ok(())
}

fn folder(config: &SessionConfig) -> Result<PathBuf, LaunchError> {
    let chosen = config.working_directory.as_deref().unwrap_or(Path::new("."));
    chosen.canonicalize().map_err(|error| failed(format!("{}: {error}", chosen.display())))
}

fn failed(message: String) -> LaunchError {
    LaunchError::Agent(Box::new(AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(AgentType::Builtin)))
}

async fn take_up(
    shelf: &Shelf,
    config: &SessionConfig,
    folder: &Path,
) -> Result<(crate::chat::Chat, Conversation), LaunchError> {
    let wrong = |error: ChatError| match error {
        ChatError::NotFound(_) => {
            let error = AgentError::new(AgentErrorKind::SessionNotFound, error.to_string()).of(AgentType::Builtin);
            LaunchError::Agent(Box::new(error))
        }
        other => failed(other.to_string()),
    };
    let id = match &config.resume {
        Resume::New => None,
        Resume::Latest => shelf.latest(folder).await.map_err(wrong)?,
        Resume::Session { native_id, .. } => Some(native_id.clone()),
    };
    let now = Timestamp::now();
    let Some(id) = id else { return Ok((shelf.begin(folder, now), Conversation::default())) };
    let (chat, talk) = shelf.open(&id).await.map_err(wrong)?;
    if !config.fork {
        return Ok((chat, talk));
    }
    let mut copy = shelf.begin(folder, now);
    copy.replace(&talk).await.map_err(wrong)?;
    Ok((copy, talk))
}
