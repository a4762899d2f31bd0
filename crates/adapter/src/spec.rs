//! Starting an agent: which program, which codec, and the wait until it has shown that it is up.

use std::io;
use std::path::{Path, PathBuf};

use multitap_event::{
    AgentError, AgentErrorKind, AgentKind, AgentLink, AgentType, LaunchError, Resume, SessionConfig, Transport,
    Unsupported, link,
};
use multitap_process::{Keeper, Program, SpawnError, StdinMode, spawn};
use tempfile::TempPath;
use tokio_util::task::TaskTracker;

use crate::acp::{AcpCodec, Flavor};
use crate::codec::{Codec, DiskFiles};
use crate::pump::{Lifetime, Pump};
use crate::{acp, claude, codex, gemini, mcp, project};

/// What it takes to start an agent.
#[derive(Debug)]
pub struct LaunchSpec {
    pub config: SessionConfig,
    pub keeper: Keeper,
    /// Variables of ours that the agent must not see.
    pub hidden_env: Vec<String>,
}

/// A file that the agent is to read could not be written.
pub(crate) fn private_file_failed(agent: AgentType, error: &io::Error) -> LaunchError {
    let message = format!("cannot write a file for {agent}: {error}");
    AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent).into()
}

/// How one agent is run: its arguments and environment, and its codec.
pub(crate) struct Plan<C> {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) codec: C,
    /// Files that the agent reads. They are removed at the end of the session.
    pub(crate) files: Vec<TempPath>,
    pub(crate) lifetime: Lifetime,
}

impl<C> Plan<C> {
    /// One process for the session, without arguments.
    pub(crate) fn new(codec: C) -> Self {
        Self { args: Vec::new(), env: Vec::new(), codec, files: Vec::new(), lifetime: Lifetime::Session }
    }
}

/// The agents this version can drive.
pub fn drivable(agent: AgentType) -> bool {
    match agent {
        AgentType::Claude | AgentType::Codex | AgentType::Gemini | AgentType::Acp => true,
        AgentType::Builtin => false,
    }
}

/// Whether an agent takes prompts into a running turn.
pub fn steers(agent: AgentType, transport: Transport) -> bool {
    agent == AgentType::Codex && transport == Transport::Default
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
        AgentType::Codex => Some(Box::new(codex::CodexCodec::recorded())),
        AgentType::Gemini => Some(Box::new(gemini::GeminiCodec::recorded())),
        AgentType::Acp => Some(Box::new(AcpCodec::recorded(Flavor::Plain))),
        AgentType::Builtin => None,
    }
}

/// Refuses what an agent's program would read as an option of its own. Clients choose models, and Claude takes the word
/// after `--resume` for an option if it begins like one.
fn check_words(config: &SessionConfig) -> Result<(), Unsupported> {
    let (session, message) = match &config.resume {
        Resume::New | Resume::Latest => (None, None),
        Resume::Session { native_id, at } => (Some(native_id), at.as_ref()),
    };
    for (setting, word) in [("model", config.model.as_ref()), ("session", session), ("message", message)] {
        if let Some(word) = word.filter(|word| word.starts_with('-')) {
            let why = "a name cannot begin with a dash".to_owned();
            return Err(Unsupported { agent: config.agent.agent_type(), setting: format!("{setting} {word}"), why });
        }
    }
    Ok(())
}

/// Starts an agent and waits until it is up. Its work is carried on `tasks`; when the link's command end is dropped
/// the agent is asked to go, and when `tasks` has finished nothing of it is left.
pub async fn launch(mut spec: LaunchSpec, tasks: &TaskTracker) -> Result<AgentLink, LaunchError> {
    let agent = spec.config.agent.agent_type();
    mcp::check(&spec.config)?;
    check_words(&spec.config)?;
    // Judged at every start: a project's files may have come since the last one.
    let (config, warning) = project::judged(spec.config).await?;
    spec.config = config;
    match (&spec.config.agent, spec.config.transport) {
        (AgentKind::Claude, Transport::Default) => {
            let plan = claude::plan(&spec.config, Box::new(DiskFiles))?;
            start(spec, agent, plan, warning, tasks).await
        }
        (AgentKind::Claude, Transport::OneShot) => {
            let why = "it is driven in one process, and needs none for each turn".to_owned();
            Err(Unsupported { agent, setting: "one-shot transport".to_owned(), why }.into())
        }
        (AgentKind::Codex, Transport::Default) => {
            // What cannot be honoured is said before anything is started.
            codex::plan(&spec.config, Box::new(DiskFiles), None)?;
            let no_sandbox = match probed(&spec, agent) {
                Some(codex) => codex::no_sandbox(codex, &spec.keeper).await,
                None => None,
            };
            let plan = codex::plan(&spec.config, Box::new(DiskFiles), no_sandbox)?;
            start(spec, agent, plan, warning, tasks).await
        }
        (AgentKind::Codex, Transport::OneShot) => {
            codex::exec::plan(&spec.config, Box::new(DiskFiles), codex::Found::default())?;
            let found = match probed(&spec, agent) {
                Some(codex) => codex::probe_turns(codex, &spec.config.agent_args, &spec.keeper).await,
                None => codex::Found::default(),
            };
            let plan = codex::exec::plan(&spec.config, Box::new(DiskFiles), found)?;
            start(spec, agent, plan, warning, tasks).await
        }
        (AgentKind::Gemini, Transport::Default) => {
            gemini::check(&spec.config)?;
            // Held until it is up, or until nobody waits for that any more.
            let _taken_up = gemini::take_up(&mut spec.config)?;
            let plan = gemini::plan(&spec.config, Box::new(DiskFiles))?;
            start(spec, agent, plan, warning, tasks).await
        }
        (AgentKind::Acp { command }, Transport::Default) => {
            let program = acp::program(command)?;
            let plan = acp::plan(&spec.config, Box::new(DiskFiles))?;
            let config = SessionConfig { program: Some(program), ..spec.config };
            start(LaunchSpec { config, ..spec }, agent, plan, warning, tasks).await
        }
        (AgentKind::Acp { .. }, Transport::OneShot) => {
            let why = "ACP needs one process for all turns".to_owned();
            Err(Unsupported { agent, setting: "one-shot transport".to_owned(), why }.into())
        }
        (AgentKind::Gemini, Transport::OneShot) => {
            gemini::check(&spec.config)?;
            gemini::find(&mut spec.config)?;
            let plan = gemini::plan_turns(&spec.config, Box::new(DiskFiles))?;
            start(spec, agent, plan, warning, tasks).await
        }
        (AgentKind::Builtin, _) => {
            let message = format!("this version of multitap cannot drive {agent} yet");
            Err(AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent).into())
        }
    }
}

/// Has the agent put one of its stored conversations away. Codex can; the others have no such thing.
pub async fn archive(spec: LaunchSpec, native_id: &str) -> Result<(), LaunchError> {
    let agent = spec.config.agent.agent_type();
    if agent != AgentType::Codex {
        let why = "it has no way to put a conversation away".to_owned();
        return Err(Unsupported { agent, setting: "archive".to_owned(), why }.into());
    }
    let args = codex::ARCHIVE_ARGS.map(str::to_owned).to_vec();
    let program = program(&spec, agent, args, Vec::new())?;
    let child = spawn(program, &spec.keeper).await.map_err(|error| spawn_failed(agent, &error))?;
    Ok(codex::archive(child, native_id).await?)
}

async fn start<C: Codec>(
    spec: LaunchSpec,
    agent: AgentType,
    plan: Plan<C>,
    warning: Option<AgentError>,
    tasks: &TaskTracker,
) -> Result<AgentLink, LaunchError> {
    let Plan { args, env, codec, files, lifetime } = plan;
    let program = program(&spec, agent, args, env)?;
    let LaunchSpec { config, keeper, .. } = spec;
    let (link, end) = link();
    let mut pump = Pump::new(agent, codec, lifetime, end, &config, files);
    match lifetime {
        Lifetime::Session => {
            let path = program.program.clone();
            let mut child = spawn(program, &keeper).await.map_err(|error| spawn_failed(agent, &error))?;
            tracing::debug!(%agent, program = %path.display(), pid = child.pid(), "spawned");
            pump.greet(&mut child).await?;
            pump.warn(warning);
            tasks.spawn(pump.run(child));
        }
        // The first process starts with the first turn.
        Lifetime::Turn => {
            check_program(&program).map_err(|error| spawn_failed(agent, &error))?;
            pump.warn(warning);
            tasks.spawn(pump.run_turns(program, keeper));
        }
    }
    Ok(AgentLink { steers: steers(agent, config.transport), ..link })
}

/// Whether a program could be started, without starting it.
fn check_program(program: &Program) -> Result<(), SpawnError> {
    if which::which(&program.program).is_err() {
        return Err(SpawnError::Missing(program.program.clone()));
    }
    match program.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        Some(cwd) => Err(SpawnError::NoSuchFolder(cwd.clone())),
        None => Ok(()),
    }
}

/// A folder as an argument or in JSON, which can only be text.
pub(crate) fn folder_text(agent: AgentType, setting: &str, folder: &Path) -> Result<String, Unsupported> {
    folder.to_str().map(str::to_owned).ok_or_else(|| {
        let why = format!("the name of the folder {} is not UTF-8", folder.display());
        Unsupported { agent, setting: setting.to_owned(), why }
    })
}

/// The agent's program with the user's arguments and environment around ours.
fn program(
    spec: &LaunchSpec,
    agent: AgentType,
    args: Vec<String>,
    env: Vec<(String, String)>,
) -> Result<Program, LaunchError> {
    let own = spec.config.program.clone().unwrap_or_default();
    let program = if own.command.as_os_str().is_empty() {
        find_program(agent).ok_or_else(|| missing(agent))?
    } else {
        own.command
    };
    // What the plan needs wins, or the agent could not be driven.
    let env = own.env.into_iter().chain(spec.config.environment.clone()).chain(env);
    Ok(Program {
        program,
        args: own.args.into_iter().chain(args).map(Into::into).collect(),
        env: env.map(|(name, value)| (name.into(), value.into())).collect(),
        env_remove: spec.hidden_env.iter().map(Into::into).collect(),
        cwd: spec.config.working_directory.clone(),
        stdin: StdinMode::Piped,
    })
}

/// Codex as the session will run it, if its sandbox matters and the program is there.
fn probed(spec: &LaunchSpec, agent: AgentType) -> Option<Program> {
    let matters = codex::may_need_sandbox(&spec.config);
    program(spec, agent, Vec::new(), Vec::new()).ok().filter(|_| matters)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_an_option_of_the_agents_program() {
        let config = || SessionConfig::new(AgentKind::Claude);
        let resume = |native_id: &str, at: Option<&str>| {
            let resume = Resume::Session { native_id: native_id.to_owned(), at: at.map(str::to_owned) };
            SessionConfig { resume, ..config() }
        };
        let with_model = |model: &str| SessionConfig { model: Some(model.to_owned()), ..config() };
        for fine in [config(), with_model("claude-opus-4-1"), resume("0a-1", Some("m-1"))] {
            assert!(check_words(&fine).is_ok(), "{fine:?}");
        }
        let flag = "--dangerously-skip-permissions";
        for refused in [with_model(flag), resume(flag, None), resume("0a-1", Some(flag))] {
            let error = check_words(&refused).unwrap_err().to_string();
            assert!(error.contains(flag) && error.contains("dash"), "{error}");
        }
    }
}
