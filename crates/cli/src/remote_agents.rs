//! Gives the agent of a session the configured remote agents (`a2aServers` in settings) as one MCP server.
//!
//! A CLI is given `multitap mcp` with the list in a private file; the built-in agent is served in this process. The
//! agents' own settings files are not touched. A `multitap mcp` that the user lists in `mcpServers` counts hops as well.
//! Other sessions are unaffected.
//!
//! Must not come in: what the tools are (`multitap_bridge`), and how an agent is configured with a server
//! (`multitap_adapter`).

pub(crate) mod folder;
mod relay;

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use multitap_bridge::{Bridge, BridgeOptions, Hops, Loaded};
use multitap_client::{Agents, McpPipe, SessionExtras};
use multitap_event::{
    A2aServer, AgentError, AgentErrorKind, AgentKind, LaunchError, McpReach, McpServer, SessionConfig, Transport,
};
use multitap_hub::{Launch, Launching};
use tokio::io::{DuplexStream, duplex, split};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::folder::PrivateFolder;
use self::relay::{HopRecord, relay};
use crate::settings::Settings;

/// Name of the MCP server.
pub(crate) const NAME: &str = "a2a-server";
/// Option of `multitap mcp`.
const HOPS_FILE: &str = "--hops-file";
/// Capacity of the pipe to the built-in agent, each way.
const PIPE: usize = 64 * 1024;
/// Time that an agent waits for a call beyond the limit of the call.
const MARGIN: Duration = Duration::from_secs(10);
/// Shorter values are not treated as secrets: they could be any word.
const SHORTEST_SECRET: usize = 8;

/// A `Launch` that adds the remote agents of each session.
#[derive(Debug)]
pub(crate) struct WithRemoteAgents {
    agents: Arc<Agents>,
    /// Folder for private files; without it, the system's folder for temporary files.
    data: Option<PathBuf>,
    tasks: TaskTracker,
}

impl WithRemoteAgents {
    pub(crate) fn new(agents: Arc<Agents>, data: Option<PathBuf>) -> Self {
        Self { agents, data, tasks: TaskTracker::new() }
    }
}

impl Launch for WithRemoteAgents {
    fn launch(&self, mut config: SessionConfig) -> Launching {
        let is_used = !config.a2a_servers.is_empty() && left_out(&config).is_none();
        let has_own = config.mcp_servers.values_mut().any(|server| own_bridge(server).is_some());
        let entries = std::mem::take(&mut config.a2a_servers);
        let mut extras = SessionExtras { hidden_env: secret_variables(&entries), ..SessionExtras::default() };
        if !is_used && !has_own {
            return self.agents.launch_with(config, extras);
        }
        let (agents, tasks, data) = (self.agents.clone(), self.tasks.clone(), self.data.clone());
        Box::pin(async move {
            let mut records = Vec::new();
            if has_own {
                records.push(count_for(&mut config, data.as_deref()).map_err(|error| failed(&config, &error))?);
            }
            if is_used && config.agent == AgentKind::Builtin {
                let (server, pipe, hops) = serve_here(&config, entries, &tasks);
                config.mcp_servers.insert(NAME.to_owned(), server);
                extras.pipes.insert(NAME.to_owned(), pipe);
                records.push(hops);
            } else if is_used {
                let (server, hops) =
                    program(&config, &entries, data.as_deref()).map_err(|error| failed(&config, &error))?;
                config.mcp_servers.insert(NAME.to_owned(), server);
                records.push(hops);
            }
            let link = agents.launch_with(config, extras).await?;
            Ok(relay(link, records, &tasks))
        })
    }

    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            self.agents.all_gone().await;
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}

/// Why the agent does not get the configured remote agents, for people.
pub(crate) fn left_out(config: &SessionConfig) -> Option<String> {
    if config.a2a_servers.is_empty() {
        None
    } else if config.mcp_servers.contains_key(NAME) {
        Some(OWN_SERVER.to_owned())
    } else if config.agent == AgentKind::Gemini && config.transport == Transport::OneShot {
        Some("a2aServers is not used: gemini supports no MCP servers with the transport oneShot".to_owned())
    } else {
        None
    }
}

/// The remote agents that sessions can call, as the card of a door lists them.
pub(crate) fn names(settings: &Settings) -> Vec<String> {
    if settings.mcp_servers.contains_key(NAME) {
        return Vec::new();
    }
    let name = |entry: &A2aServer| entry.name.clone().unwrap_or_else(|| entry.address());
    settings.a2a_servers.iter().map(name).collect()
}

/// The user's own server of that name takes precedence.
pub(crate) const OWN_SERVER: &str =
    "a2aServers is not used, because mcpServers has a server named a2a-server; rename it to use both";

/// The arguments of a server that the user runs as `multitap mcp`, with `--session` for example.
fn own_bridge(server: &mut McpServer) -> Option<&mut Vec<String>> {
    let McpReach::Stdio { command, args, .. } = &mut server.reach else { return None };
    let is_ours = Path::new(command).file_stem().is_some_and(|name| name == "multitap");
    let has_hops = args.iter().any(|arg| arg == HOPS_FILE);
    (is_ours && !has_hops && args.first().is_some_and(|arg| arg == "mcp")).then_some(args)
}

/// Lets the user's own bridges count hops as well: loops would not be recognised otherwise.
fn count_for(config: &mut SessionConfig, data: Option<&Path>) -> io::Result<HopRecord> {
    let folder = PrivateFolder::make(data)?;
    let hops = text(folder.path("hops"))?;
    for args in config.mcp_servers.values_mut().filter_map(own_bridge) {
        args.extend([HOPS_FILE.to_owned(), hops.clone()]);
    }
    Ok(HopRecord::File(folder))
}

/// The server as a program of its own, with the list in a private file.
fn program(config: &SessionConfig, entries: &[A2aServer], data: Option<&Path>) -> io::Result<(McpServer, HopRecord)> {
    let folder = PrivateFolder::make(data)?;
    let list = folder.write("agents.json", &A2aServer::write_list(entries).to_string())?;
    let hops = folder.path("hops");
    let mut args = vec!["mcp".to_owned(), "--agents-file".to_owned(), text(list)?];
    args.extend([HOPS_FILE.to_owned(), text(hops)?]);
    if config.private_addresses {
        args.push("--allow-private-addresses".to_owned());
    }
    let reach = McpReach::program(text(own_binary()?)?, args);
    let server = McpServer { timeout: Some(timeout(entries)), ..McpServer::from(reach) };
    Ok((server, HopRecord::File(folder)))
}

/// The server in this process, and the pipe to it.
fn serve_here(config: &SessionConfig, entries: Vec<A2aServer>, tasks: &TaskTracker) -> (McpServer, McpPipe, HopRecord) {
    let (hops, ended) = (Arc::new(AtomicU32::new(0)), CancellationToken::new());
    let bridge = Bridge::new(BridgeOptions {
        allow_private: config.private_addresses,
        hops: Hops::Shared(hops.clone()),
        ..BridgeOptions::default()
    });
    let server =
        McpServer { timeout: Some(timeout(&entries)), ..McpServer::from(McpReach::program("multitap", Vec::new())) };
    tasks.spawn({
        let (bridge, ended) = (bridge.clone(), ended.clone());
        async move {
            ended.cancelled().await;
            bridge.close().await;
        }
    });
    let record = HopRecord::Shared { hops, _ended: ended.clone().drop_guard() };
    let served = Served { bridge, entries, loaded: Arc::default(), ended };
    let tasks = tasks.clone();
    let pipe = McpPipe::new(move || {
        let (ours, theirs) = duplex(PIPE);
        tasks.spawn(served.clone().run(theirs));
        ours
    });
    (server, pipe, record)
}

/// A bridge that serves the built-in agent.
#[derive(Clone)]
struct Served {
    bridge: Bridge,
    entries: Vec<A2aServer>,
    /// Set once the agents are loaded, before the first client is served.
    loaded: Arc<OnceCell<()>>,
    ended: CancellationToken,
}

impl Served {
    async fn run(self, pipe: DuplexStream) {
        let (read, write) = split(pipe);
        let serve = async {
            self.loaded.get_or_init(|| self.load()).await;
            self.bridge.serve(read, write).await
        };
        tokio::select! {
            () = self.ended.cancelled() => {}
            served = serve => if let Err(error) = served {
                tracing::warn!(error = &error as &dyn std::error::Error, "the remote agents cannot be called");
            }
        }
    }

    async fn load(&self) {
        for Loaded { name, address, error } in self.bridge.load(self.entries.clone()).await {
            match error {
                None => tracing::info!(name, address, "loaded a remote agent"),
                Some(error) => tracing::warn!(name, address, error, "a remote agent does not answer"),
            }
        }
    }
}

/// How long an agent waits for a call: as long as the call waits for the remote agent, and for a person who is asked
/// meanwhile. Agents that have a shorter limit of their own would give up while somebody thinks.
fn timeout(entries: &[A2aServer]) -> Duration {
    let BridgeOptions { call_budget, patience, .. } = BridgeOptions::default();
    let longest = entries.iter().filter_map(|entry| entry.timeout).max().unwrap_or_default();
    longest.max(call_budget) + patience + MARGIN
}

/// Variables of this process that hold a token or a header of these agents, for example because the settings name the
/// variable. Agents that call remote agents must not see their secrets.
fn secret_variables(entries: &[A2aServer]) -> Vec<String> {
    let is_secret = |value: &str| {
        let mut secrets = entries.iter().flat_map(A2aServer::secrets);
        value.len() >= SHORTEST_SECRET
            && secrets.any(|secret| secret == value || secret.rsplit(' ').next() == Some(value))
    };
    let known =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    known.filter(|(_, value)| is_secret(value)).map(|(name, _)| name).collect()
}

/// The path of this program, for another process to run.
fn own_binary() -> io::Result<PathBuf> {
    let binary = std::env::current_exe()?;
    // On Linux this works even if the binary was replaced.
    let running = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    Ok(if !binary.is_file() && running.exists() { running } else { binary })
}

fn text(path: PathBuf) -> io::Result<String> {
    let not_text = |path: std::ffi::OsString| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: the path is not UTF-8", path.display()))
    };
    path.into_os_string().into_string().map_err(not_text)
}

fn failed(config: &SessionConfig, error: &io::Error) -> LaunchError {
    let message = format!("the remote agents (a2aServers) cannot be handed to the agent: {error}");
    let error = AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(config.agent.agent_type());
    LaunchError::Agent(Box::new(error))
}
