//! Starts an agent from a session's configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use multitap_event::{
    AgentError, AgentErrorKind, AgentLink, AgentType, ApprovalMode, LaunchError, Mode, PermissionPath, Resume,
    SandboxMode, SessionConfig, Timestamp, Transport, Unsupported, link,
};
use multitap_outbound::Screen;
use multitap_process::Keeper;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::chat::{ChatError, ChatStore};
use crate::command::Trust;
use crate::conversation::Conversation;
use crate::mcp::{McpPipe, ServerContext, Servers};
use crate::memory::{self, Memory};
use crate::model::Model;
use crate::model::choice::{ChoiceError, Providers};
use crate::policy::{Policy, Rule};
use crate::run::{Runner, RunnerParts};
use crate::sandbox::{Enforcement, Sandbox};
use crate::slash;
use crate::tools::Toolbox;
use crate::tools::files::Files;
use crate::tools::shell::{Shell, Surroundings};
use crate::workspace::Workspace;

/// Maximum number of pending requests of MCP servers to the user; further ones are cancelled.
const ASKS: usize = 32;

/// The agent's dependencies besides the session's configuration.
#[derive(Clone)]
pub struct Setup {
    /// How the programs that tools start are supervised.
    pub keeper: Keeper,
    pub hidden_env: Vec<String>,
    /// Folders hidden from sandboxed commands, where the system can hide them.
    pub hidden_folders: Vec<PathBuf>,
    /// Folders that neither tools nor commands of a sandboxed session may change, even inside its workspace.
    pub protected_folders: Vec<PathBuf>,
    /// Where conversations are stored; without it, nothing is stored.
    pub data: Option<PathBuf>,
    /// The user's settings folder: memory and custom commands.
    pub config: Option<PathBuf>,
    /// Variables that name keys and addresses of models.
    pub env: BTreeMap<String, String>,
    /// Whether programs that the folder's Git configuration names may run without asking.
    pub trusted: bool,
    /// Whether `web_fetch` may reach this machine and its network.
    pub private_addresses: bool,
    /// Writes a rule to the user's settings; without it, rules last for the session.
    pub save: Option<Save>,
    /// MCP servers of this process, by their names in the session's configuration.
    pub pipes: BTreeMap<String, McpPipe>,
}

/// Stores a rule that allows something; on failure, says why.
pub type Save = Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>;

impl fmt::Debug for Setup {
    /// Values are omitted: variables may be keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("keeper", &self.keeper)
            .field("data", &self.data)
            .field("config", &self.config)
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

/// Starts the agent. It ends when its command channel closes, and then leaves `tasks`.
pub async fn launch(config: SessionConfig, setup: Setup, tasks: &TaskTracker) -> Result<AgentLink, LaunchError> {
    check(&config)?;
    let folder = folder(&config)?;
    let chat_store = ChatStore::new(setup.data.clone());
    let (chat, talk) = resume(&chat_store, &config, &folder).await?;
    let policy = policy(&config, &setup)?;
    // A resumed conversation keeps its model, unless another is given.
    let model = choose(config.model.as_deref().or(chat.model()), &setup)?;
    let home = setup.env.get("HOME").map(PathBuf::from);
    let workspace =
        Workspace::new(&folder, &config.add_dirs, home.clone()).map_err(|error| failed(error.to_string()))?;
    let private = tempfile::Builder::new().prefix("multitap-agent-").tempdir();
    let private = private.map_err(|error| failed(format!("no private folder can be made: {error}")))?;
    let folders: Vec<_> = workspace.folders().map(Path::to_owned).collect();
    let sandbox = sandbox(&config, &folders, &setup.keeper).await?;
    let sandbox =
        sandbox.map(|sandbox| sandbox.hiding(setup.hidden_folders.clone()).protecting(setup.protected_folders.clone()));
    let shell = Shell::new(Surroundings {
        folders,
        keeper: setup.keeper.clone(),
        environment: config.environment.clone().into_iter().collect(),
        hidden_env: setup.hidden_env.clone(),
        private: private.path().to_owned(),
        sandbox: sandbox.clone(),
    });
    let (to_user, asks) = mpsc::channel(ASKS);
    let place = ServerContext {
        keeper: setup.keeper.clone(),
        hidden_env: setup.hidden_env.clone(),
        folder: folder.clone(),
        env: config.environment.clone(),
        pipes: setup.pipes.clone(),
        asks: to_user,
    };
    let (mcp, servers) = Servers::start(&config.mcp_servers, &place);
    let toolbox = Toolbox {
        files: Files::new(workspace),
        shell,
        web: Screen::allowing_private(setup.private_addresses),
        memory: setup.config.as_ref().map(|config| config.join(memory::NAMES[0])),
        mcp,
    };
    let (memory, own) = read_files(setup.config.clone(), home, folder.clone()).await?;
    let (mut agent_link, end) = link();
    agent_link.steers = true;
    let parts = RunnerParts {
        memory,
        own,
        end,
        policy,
        toolbox,
        servers,
        asks,
        folder,
        config,
        setup,
        chat_store,
        chat,
        talk,
        model,
        _private: private,
        enforced: sandbox.map(|sandbox| sandbox.enforced()),
    };
    tasks.spawn(Runner::new(parts).run());
    Ok(agent_link)
}

/// Reads the memory files and the custom commands, on a thread that may block.
async fn read_files(
    config: Option<PathBuf>,
    home: Option<PathBuf>,
    folder: PathBuf,
) -> Result<(Memory, Vec<slash::CustomCommand>), LaunchError> {
    let read = move || {
        let memory = Memory::load(config.as_deref(), home.as_deref(), &folder);
        (memory, slash::load(config.as_deref(), &folder))
    };
    tokio::task::spawn_blocking(read).await.map_err(|error| failed(format!("cannot read its files: {error}")))
}

fn policy(config: &SessionConfig, setup: &Setup) -> Result<Policy, Unsupported> {
    let mode = match &config.mode {
        Some(Mode::Unified(mode)) => *mode,
        Some(Mode::Native(word)) => ApprovalMode::from_native(AgentType::Builtin, word)
            .ok_or_else(|| unsupported("--approval-mode", &format!("it has no mode '{word}'")))?,
        None => ApprovalMode::Ask,
    };
    let rules = |setting: &str, rules: &[String]| -> Result<Vec<Rule>, Unsupported> {
        rules.iter().map(|rule| rule.parse().map_err(|error| unsupported(setting, &format!("{error}")))).collect()
    };
    let (allow, block) = (rules("--allow-tool", &config.allowed_tools)?, rules("--block-tool", &config.blocked_tools)?);
    let trust = if setup.trusted { Trust::Trusted } else { Trust::Untrusted };
    let policy = Policy::new(mode, allow, block).in_folder(trust);
    Ok(match config.sandbox {
        Some(SandboxMode::ReadOnly) => policy.reading_only(),
        Some(SandboxMode::WorkspaceWrite) => policy.protecting(&setup.protected_folders),
        Some(SandboxMode::None | SandboxMode::FullAccess) | None => policy,
    })
}

/// The requested sandbox. What cannot be enforced fails the start, unless best effort is accepted.
async fn sandbox(config: &SessionConfig, folders: &[PathBuf], keeper: &Keeper) -> Result<Option<Sandbox>, LaunchError> {
    let Some(mode) = config.sandbox else { return Ok(None) };
    let effort = if config.sandbox_best_effort { Enforcement::Best } else { Enforcement::Full };
    Sandbox::set_up(mode, folders, effort, keeper).await.map_err(|error| {
        let why = format!("{error}. To start with less protection: --sandbox-best-effort");
        unsupported(&format!("--sandbox {}", mode.option_word()), &why).into()
    })
}

pub(crate) fn choose(name: Option<&str>, setup: &Setup) -> Result<Model, Unsupported> {
    let chosen = providers(&setup.env).and_then(|providers| providers.choose(name));
    chosen.map(Model::from).map_err(|error| unsupported("--model", &error.to_string()))
}

/// The default model for these variables, or what is wrong with them.
pub fn default_model(env: &BTreeMap<String, String>) -> Result<String, String> {
    providers(env)
        .and_then(|providers| providers.choose(None))
        .map(|choice| Model::from(choice).name().to_owned())
        .map_err(|error| error.to_string())
}

pub(crate) fn providers(env: &BTreeMap<String, String>) -> Result<Providers, ChoiceError> {
    Providers::from_env(|name| env.get(name).cloned())
}

fn unsupported(setting: &str, why: &str) -> Unsupported {
    Unsupported { agent: AgentType::Builtin, setting: setting.to_owned(), why: why.to_owned() }
}

/// Refuses unsupported settings before anything starts.
fn check(config: &SessionConfig) -> Result<(), Unsupported> {
    let at_a_message = matches!(&config.resume, Resume::Session { at: Some(_), .. });
    for (asked, setting, why) in [
        (!config.agent_args.is_empty(), "--agent-arg", "it runs inside Multitap and has no arguments"),
        (config.program.is_some(), "agents.builtin.command", "it runs inside Multitap and has no program"),
        (config.permission_path == PermissionPath::Mcp, "permission by MCP tool", "it asks in its own stream"),
        (config.transport == Transport::OneShot, "transport oneShot", "it runs inside Multitap"),
        (config.checkpointing, "checkpointing", "it has no checkpoints"),
        (at_a_message, "resume at a message", "it can only continue at the end of a conversation"),
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
    launch_error(AgentErrorKind::ProcessSpawnFailed, message)
}

fn launch_error(kind: AgentErrorKind, message: String) -> LaunchError {
    LaunchError::Agent(Box::new(AgentError::new(kind, message).of(AgentType::Builtin)))
}

async fn resume(
    chat_store: &ChatStore,
    config: &SessionConfig,
    folder: &Path,
) -> Result<(crate::chat::Chat, Conversation), LaunchError> {
    let wrong = |error: ChatError| match error {
        ChatError::NotFound(_) => launch_error(AgentErrorKind::SessionNotFound, error.to_string()),
        other => failed(other.to_string()),
    };
    let id = match &config.resume {
        Resume::New => None,
        Resume::Latest => match chat_store.latest(folder).await.map_err(wrong)? {
            None => {
                let folder = folder.display();
                let way_out = "Start a new one without -c, or list all with: multitap sessions";
                let message = format!("no conversation to continue in {folder}. {way_out}");
                return Err(launch_error(AgentErrorKind::SessionNotFound, message));
            }
            found => found,
        },
        Resume::Session { native_id, .. } => Some(native_id.clone()),
    };
    let now = Timestamp::now();
    let Some(id) = id else { return Ok((chat_store.begin(folder, now), Conversation::default())) };
    let (chat, talk) = chat_store.open(&id).await.map_err(wrong)?;
    if !config.fork {
        return Ok((chat, talk));
    }
    let mut copy = chat_store.begin(folder, now);
    if let Some(model) = chat.model() {
        copy.answered_by(model).await.map_err(wrong)?;
    }
    copy.replace(&talk).await.map_err(wrong)?;
    Ok((copy, talk))
}
