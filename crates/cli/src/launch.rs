//! Turns the user's options into a session configuration: which agent, which program, which settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use multitap_adapter::{AgentInfo, History, HistoryError, ProgramInfo};
use multitap_event::{
    AgentKind, AgentProgram, AgentType, ClientRef, Door, Mode, Prompt, Resume, SessionConfig, Unsupported,
};
use multitap_hub::WhenBusy;
use multitap_process::Keeper;

use crate::args::SessionArgs;
use crate::exit::{Exit, Problem};
use crate::image;
use crate::remote_agents;
use crate::settings::{AgentChoice, Settings};

/// Variables hidden from agents.
pub(crate) const HIDDEN_ENV: [&str; 2] = [crate::token::VARIABLE, "MULTITAP_HANDED_OVER"];

/// Length of the id of a conversation.
const UUID: usize = "01a1dee7-f796-7cb0-aa08-980d9e50d064".len();

/// The folder a session works in.
pub(crate) fn folder(chosen: Option<&Path>) -> Result<PathBuf, Problem> {
    let folder = match chosen {
        Some(folder) => std::path::absolute(folder).with_context(|| format!("find {}", folder.display()))?,
        None => std::env::current_dir().context("find the current folder")?,
    };
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(Problem::usage(format!("--cwd {}: there is no such folder", folder.display())))
}

/// The running binary as the supervisor of children.
pub(crate) fn keeper() -> Result<Keeper, Problem> {
    Ok(Keeper::own_binary().context("find this program's own file")?)
}

/// The client of a session without a screen.
pub(crate) fn headless() -> ClientRef {
    ClientRef::new("stdin", Door::Headless)
}

/// The agent: given, configured, or the first one installed; the built-in agent always is.
pub(crate) fn agent(chosen: Option<&str>, settings: &Settings) -> Result<AgentKind, Problem> {
    let wanted = match chosen {
        Some(name) => Some(name.parse().map_err(|error| Problem::usage(format!("--agent: {error}")))?),
        None => settings.agent.clone(),
    };
    match wanted {
        Some(AgentChoice::Kind(kind)) => return Ok(kind),
        Some(AgentChoice::SetAcp) => return set_acp(settings),
        None => {}
    }
    for (info, default) in AgentInfo::programs() {
        let program = program(info.agent, settings);
        // A user who names a program wants that agent, or an error if it is missing.
        if program.found.is_some() || program.named {
            return Ok(default.kind.clone());
        }
    }
    Ok(AgentKind::Builtin)
}

fn set_acp(settings: &Settings) -> Result<AgentKind, Problem> {
    match settings.of(AgentType::Acp).command.filter(|command| !command.trim().is_empty()) {
        Some(command) => Ok(AgentKind::Acp { command }),
        None => Err(Problem::usage(
            "agent acp: no command is set. Use --agent acp:COMMAND, or set agents.acp.command in your settings",
        )),
    }
}

/// An agent's program according to the environment, the settings and `PATH`.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The path or name that was searched for.
    pub(crate) wanted: String,
    /// Its path, if it was found.
    pub(crate) found: Option<PathBuf>,
    /// Whether it was configured, rather than looked up on `PATH`.
    pub(crate) named: bool,
}

/// The program of an agent that has one of its own.
pub(crate) fn program_info(agent: AgentType) -> Option<&'static ProgramInfo> {
    AgentInfo::of(agent)?.program.as_ref()
}

pub(crate) fn program(agent: AgentType, settings: &Settings) -> Chosen {
    let default = program_info(agent);
    let own = default.and_then(|program| std::env::var_os(program.variable)).filter(|path| !path.is_empty());
    let set = settings.of(agent).command.map(OsString::from).filter(|command| !command.is_empty());
    let chosen = own.or(set);
    let named = chosen.is_some();
    let wanted = chosen.unwrap_or_else(|| default.map_or("", |program| program.name).into());
    Chosen { found: which::which(&wanted).ok(), wanted: wanted.to_string_lossy().into_owned(), named }
}

/// The agent's program with its configured arguments and variables.
pub(crate) fn agent_program(agent: AgentType, settings: &Settings) -> AgentProgram {
    let chosen = program(agent, settings);
    // The adapter has the best error message for a missing default program.
    let command = match chosen.found {
        Some(path) => path,
        None if chosen.named => chosen.wanted.into(),
        None => PathBuf::new(),
    };
    let own = settings.of(agent);
    AgentProgram { command, args: own.args, env: own.env }
}

/// Completes the id of a conversation from the agent's store. Unknown ids are passed on, for the agent to report.
fn native_id(agent: AgentType, wanted: &str, env: &BTreeMap<String, String>, folder: &Path) -> Result<String, Problem> {
    // A complete id needs no lookup.
    let history = History::of(agent, env).ok().filter(|_| wanted.len() < UUID);
    let Some(history) = history else { return Ok(wanted.to_owned()) };
    match history.find(wanted, folder) {
        Ok(session) => Ok(session.id),
        Err(error @ HistoryError::Ambiguous { .. }) => Err(Problem::usage(format!("-r: {error}"))),
        Err(_) => Ok(wanted.to_owned()),
    }
}

/// The newest conversation of the agent in the folder, looked up if its store is readable.
fn latest(
    agent: AgentType,
    env: &BTreeMap<String, String>,
    folder: &Path,
    at: Option<&String>,
) -> Result<Resume, Problem> {
    match History::of(agent, env).map(|history| history.find("latest", folder)) {
        Ok(Err(HistoryError::NoneHere { .. })) => Err(Problem::new(
            Exit::NotStarted,
            format!(
                "no conversation to continue in {}. Start a new one without -c, or list all with: multitap sessions",
                folder.display()
            ),
        )),
        Ok(Ok(session)) if at.is_some() => Ok(Resume::Session { native_id: session.id, at: at.cloned() }),
        _ => Ok(Resume::Latest),
    }
}

/// The session configuration for the options.
pub(crate) fn config(
    session: &SessionArgs,
    settings: &Settings,
    folder: PathBuf,
    prompt: Option<String>,
) -> Result<SessionConfig, Problem> {
    session.check().map_err(Problem::usage)?;
    let args = &session.with;
    let kind = agent(args.agent.as_deref(), settings)?;
    let agent = kind.agent_type();
    let transport = settings.of(agent).transport;
    let steers = agent == AgentType::Builtin || multitap_adapter::steers(agent, transport);
    if session.when_busy == WhenBusy::Steer && !steers {
        let why = "it cannot take a prompt into a running turn; use queue or interrupt".to_owned();
        return Err(Problem::usage(Unsupported { agent, setting: "--when-busy steer".to_owned(), why }.to_string()));
    }
    let mut config = SessionConfig::new(kind);
    config.mode = match &args.approval_mode {
        Some(word) => {
            Some(Mode::parse(agent, word).map_err(|error| Problem::usage(format!("--approval-mode: {error}")))?)
        }
        None => None,
    };
    let images = session.image.iter().map(|path| image::read(path).map_err(Problem::usage));
    let images: Vec<_> = images.collect::<Result<_, _>>()?;
    config.prompt = match prompt {
        Some(text) => Some(Prompt { text, images, ..Prompt::default() }),
        None if images.is_empty() => None,
        None => return Err(Problem::usage("--image needs a PROMPT")),
    };
    let env = settings.of(agent).env.into_iter().chain(args.env.iter().cloned()).collect();
    config.resume = match (&session.resume, session.continues()) {
        (_, true) => latest(agent, &env, &folder, session.at.as_ref())?,
        (Some(id), false) => {
            Resume::Session { native_id: native_id(agent, id, &env, &folder)?, at: session.at.clone() }
        }
        (None, false) => Resume::New,
    };
    config.fork = session.fork;
    for dir in &args.add_dir {
        config.add_dirs.push(std::path::absolute(dir).with_context(|| format!("find {}", dir.display()))?);
    }
    config.working_directory = Some(folder);
    config.model.clone_from(&args.model);
    config.sandbox = args.sandbox;
    config.sandbox_best_effort = args.sandbox_best_effort;
    config.allowed_tools.clone_from(&args.allow_tool);
    config.blocked_tools.clone_from(&args.block_tool);
    config.max_turns = args.max_turns;
    config.environment = args.env.iter().cloned().collect();
    config.system_prompt.clone_from(&args.system_prompt);
    config.append_system_prompt.clone_from(&args.append_system_prompt);
    config.output_schema = args.output_schema.as_deref().map(schema).transpose()?;
    config.agent_args.clone_from(&args.agent_arg);
    config.trusted = settings.trusted;
    config.trusted_dirs = config.add_dirs.iter().filter(|folder| settings.trusts(folder)).cloned().collect();
    config.private_addresses = settings.permissions.private_addresses;
    config.keep_raw = args.raw || settings.keep_raw;
    config.start_timeout = args.start_timeout;
    let own = settings.of(agent);
    config.permission_path = own.permission;
    config.transport = own.transport;
    config.checkpointing = own.checkpointing;
    config.mcp_servers.clone_from(&settings.mcp_servers);
    config.a2a_servers.clone_from(&settings.a2a_servers);
    config.edit_blocks.clone_from(&settings.permissions.excluded);
    if agent == AgentType::Builtin {
        // These permissions concern the built-in agent; others have their own settings.
        let permissions = &settings.permissions;
        config.mode = config.mode.or(permissions.mode.map(Mode::Unified));
        config.allowed_tools.extend(permissions.allowed.iter().cloned());
        config.blocked_tools.extend(permissions.excluded.iter().cloned());
        config.model = config.model.or(own.model);
        config.environment = own.env.into_iter().chain(std::mem::take(&mut config.environment)).collect();
    } else if program_info(agent).is_some() {
        config.program = Some(agent_program(agent, settings));
    } else {
        // The configured program of the agent, unless another command was given. Configured arguments belong to the
        // configured command.
        let is_set =
            |command: &String| matches!(&config.agent, AgentKind::Acp { command: chosen } if chosen == command);
        if own.command.as_ref().is_none_or(is_set) {
            config.agent_args.splice(0..0, own.args);
        }
        config.environment = own.env.into_iter().chain(std::mem::take(&mut config.environment)).collect();
    }
    Ok(config)
}

/// The MCP servers and remote agents that the agent does not get, for people.
pub(crate) fn servers_left_out(config: &SessionConfig) -> Vec<String> {
    multitap_adapter::mcp_left_out(config).into_iter().chain(remote_agents::left_out(config)).collect()
}

fn schema(path: &Path) -> Result<serde_json::Value, Problem> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem::usage(format!("--output-schema {name}: cannot be read: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Problem::usage(format!("--output-schema {name}: is not JSON: {error}")))
}
