//! Starts an agent: which program, which codec, and the wait until it is ready.

use std::io::{self, Write as _};
use std::path::Path;
use std::pin::Pin;

use multitap_event::{
    AgentError, AgentErrorKind, AgentLink, AgentType, LaunchError, Resume, SessionConfig, Transport, Unsupported, link,
};
use multitap_process::{Keeper, Program, SpawnError, StdinMode, spawn};
use tempfile::TempPath;
use tokio_util::task::TaskTracker;

use crate::codec::Codec;
use crate::info::AgentInfo;
use crate::pump::{Lifetime, Pump};
use crate::{codex, mcp, project};

#[derive(Debug)]
pub struct LaunchSpec {
    pub config: SessionConfig,
    pub keeper: Keeper,
    /// Variables of ours that the agent must not see.
    pub hidden_env: Vec<String>,
}

/// A file that only the user can read, for the agent to read.
pub(crate) fn private_file(agent: AgentType, suffix: &str, content: impl AsRef<[u8]>) -> Result<TempPath, AgentError> {
    let write = || {
        let prefix = format!("multitap-{agent}-{}-", std::process::id());
        let mut file = tempfile::Builder::new().prefix(&prefix).suffix(suffix).tempfile()?;
        file.write_all(content.as_ref())?;
        file.flush()?;
        Ok(file.into_temp_path())
    };
    write().map_err(|error: io::Error| {
        let message = format!("cannot write a file for {agent}: {error}");
        AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent)
    })
}

/// How one agent is started: its arguments and environment, and its codec.
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

pub fn recorded(agent: AgentType) -> Option<Box<dyn Codec>> {
    AgentInfo::of(agent).map(|info| (info.recorded)())
}

/// Whether an agent accepts prompts during a turn.
pub fn steers(agent: AgentType, transport: Transport) -> bool {
    transport == Transport::Default && AgentInfo::of(agent).is_some_and(|info| info.steers)
}

/// Refuses values that an agent's program would parse as options. Clients choose models, and Claude parses the word
/// after `--resume` as an option if it begins like one.
fn check_words(config: &SessionConfig) -> Result<(), Unsupported> {
    let (session, message) = match &config.resume {
        Resume::New | Resume::Latest => (None, None),
        Resume::Session { native_id, at } => (Some(native_id), at.as_ref()),
    };
    for (setting, word) in [("model", config.model.as_ref()), ("session", session), ("message", message)] {
        if let Some(word) = word.filter(|word| word.starts_with('-')) {
            let why = "a name cannot begin with a dash";
            return Err(Unsupported::new(config.agent.agent_type(), format!("{setting} {word}"), why));
        }
    }
    Ok(())
}

/// Starts an agent and waits until it is ready. Its work runs on `tasks`. When the link's command sender is dropped,
/// the agent is asked to end; when `tasks` has finished, all its processes have ended.
pub async fn launch(mut spec: LaunchSpec, tasks: &TaskTracker) -> Result<AgentLink, LaunchError> {
    let agent = spec.config.agent.agent_type();
    mcp::check(&spec.config)?;
    check_words(&spec.config)?;
    let Some(info) = AgentInfo::of(agent) else {
        let message = format!("{agent} is not started as a program");
        return Err(AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent).into());
    };
    // Checked at every start: a project's files may have changed since the last one.
    let (config, warning) = project::judged(spec.config).await?;
    spec.config = config;
    (info.launch)(Start { spec, warning, tasks }).await
}

/// A session to start, after the checks that all agents have in common.
pub(crate) struct Start<'a> {
    pub(crate) spec: LaunchSpec,
    /// A warning about this start, for the owner.
    warning: Option<AgentError>,
    tasks: &'a TaskTracker,
}

pub(crate) type Starting<'a> = Pin<Box<dyn Future<Output = Result<AgentLink, LaunchError>> + Send + 'a>>;

/// Asks the agent to archive one of its stored conversations. Only Codex can.
pub async fn archive(spec: LaunchSpec, native_id: &str) -> Result<(), LaunchError> {
    let agent = spec.config.agent.agent_type();
    if agent != AgentType::Codex {
        return Err(Unsupported::new(agent, "archive", "it cannot archive a conversation").into());
    }
    let args = codex::ARCHIVE_ARGS.map(str::to_owned).to_vec();
    let program = program(&spec, args, Vec::new())?;
    let child = spawn(program, &spec.keeper).await.map_err(|error| spawn_failed(agent, &error))?;
    Ok(codex::archive(child, native_id).await?)
}

impl Start<'_> {
    /// Starts the agent by its plan and waits until it is up.
    pub(crate) async fn by<C: Codec>(self, plan: Plan<C>) -> Result<AgentLink, LaunchError> {
        let Self { spec, warning, tasks } = self;
        let agent = spec.config.agent.agent_type();
        let Plan { args, env, codec, files, lifetime } = plan;
        let program = program(&spec, args, env)?;
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

    /// The program as the session will run it, without the arguments of a plan.
    pub(crate) fn program(&self) -> Option<Program> {
        program(&self.spec, Vec::new(), Vec::new()).ok()
    }
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

/// Adds an option to a command line, once for each of its values.
pub(crate) fn add_options(args: &mut Vec<String>, name: &str, values: impl IntoIterator<Item: AsRef<str>>) {
    args.extend(values.into_iter().flat_map(|value| [name.to_owned(), value.as_ref().to_owned()]));
}

/// A folder as an argument or in JSON, which must be text.
pub(crate) fn folder_text(agent: AgentType, setting: &str, folder: &Path) -> Result<String, Unsupported> {
    folder.to_str().map(str::to_owned).ok_or_else(|| {
        Unsupported::new(agent, setting, format!("the name of the folder {} is not UTF-8", folder.display()))
    })
}

/// The agent's program with the user's arguments and environment around ours.
fn program(spec: &LaunchSpec, args: Vec<String>, env: Vec<(String, String)>) -> Result<Program, LaunchError> {
    let agent = spec.config.agent.agent_type();
    let own = spec.config.program.clone().unwrap_or_default();
    let program = if own.command.as_os_str().is_empty() {
        AgentInfo::of(agent).and_then(AgentInfo::find_program).ok_or_else(|| missing(agent))?
    } else {
        own.command
    };
    // Variables of the plan come last and win, because the agent cannot be driven without them.
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

fn missing(agent: AgentType) -> AgentError {
    let program = AgentInfo::of(agent).and_then(|info| info.program.as_ref());
    let name = program.map_or("", |program| program.name);
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
    use multitap_event::AgentKind;

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
