//! The bridge as a whole: loads agents, serves clients, looks after agents that are down, and ends.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Hops;
use crate::pending::Pending;
use crate::registry::{Registry, retry_after};
use crate::remote::{Origin, RemoteAgent, Status};
use crate::run::Runs;
use crate::server::{Client, Handler};
use crate::watched::Watched;
use multitap_event::A2aServer;

/// Interval at which agents are checked for a new attempt.
const LOOK: Duration = Duration::from_secs(1);

/// How long after the end of its input a client still gets answers: it may have sent its last request and be reading.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// How long remote agents may take to cancel the tasks of a client that left.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);

/// The most clients over HTTP at a time.
const MOST_CLIENTS: usize = 256;

/// A tower service that speaks streamable HTTP, for a server that checks requests itself.
pub type HttpService = StreamableHttpService<Handler, LocalSessionManager>;

/// How a bridge behaves.
#[derive(Debug, Clone)]
pub struct BridgeOptions {
    /// How long all listed agents together may take to load before clients are served.
    pub load_timeout: Duration,
    /// How long a call waits for an agent before it returns the id of the task, which continues. An entry's `timeout`
    /// overrides it.
    pub call_budget: Duration,
    /// How long a person may take to answer what an agent asks during a call.
    pub patience: Duration,
    /// Interval at which the cards of reachable agents are fetched again.
    pub refresh: Duration,
    /// Time after which a silent client over HTTP is disconnected, unless it waits for a call.
    pub idle: Duration,
    /// Whether `load_agent` may reach this machine and the network around it.
    pub allow_private: bool,
    /// Number of agents that the caller's current prompt has passed through.
    pub hops: Hops,
}

impl Default for BridgeOptions {
    fn default() -> Self {
        Self {
            load_timeout: Duration::from_secs(5),
            // Many clients give up on a call after a minute.
            call_budget: Duration::from_secs(50),
            patience: Duration::from_secs(30 * 60),
            refresh: Duration::from_secs(5 * 60),
            idle: Duration::from_secs(5 * 60),
            allow_private: false,
            hops: Hops::None,
        }
    }
}

/// Remote agents as an MCP server. Clones share the same state.
#[derive(Debug, Clone)]
pub struct Bridge {
    pub(crate) options: BridgeOptions,
    pub(crate) registry: Registry,
    pub(crate) runs: Runs,
    pub(crate) pending: Pending,
    pub(crate) tasks: TaskTracker,
    /// The calls of clients on streams.
    pub(crate) calls: TaskTracker,
    /// Cancelled first at the end: these calls are given up.
    pub(crate) leave: CancellationToken,
    pub(crate) stop: CancellationToken,
}

/// The state of a listed agent after loading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub name: String,
    /// Its address, without what may be secret in it.
    pub address: String,
    /// Why it cannot be reached.
    pub error: Option<String>,
}

/// A client could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client did not start with initialize")]
    Begin(#[source] Box<ServerInitializeError>),
    #[error("the connection ended with an error")]
    Broken(#[source] tokio::task::JoinError),
}

impl Bridge {
    pub fn new(options: BridgeOptions) -> Self {
        Self {
            options,
            registry: Registry::default(),
            runs: Runs::default(),
            pending: Pending::default(),
            tasks: TaskTracker::new(),
            calls: TaskTracker::new(),
            leave: CancellationToken::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Loads agents in parallel. Returns when all are loaded or the load timeout is over; unreachable agents are tried
    /// again later. The result is in the order of the entries.
    pub async fn load(&self, entries: Vec<A2aServer>) -> Vec<Loaded> {
        let agents: Vec<_> = entries
            .into_iter()
            .map(|entry| RemoteAgent::new(entry, Origin::Listed, self.options.allow_private))
            .collect();
        let mut loading = JoinSet::new();
        for agent in agents.clone() {
            let deadline = self.options.load_timeout;
            loading.spawn(async move { agent.load(deadline).await });
        }
        while loading.join_next().await.is_some() {}
        let add = |agent: &Arc<RemoteAgent>| {
            let (address, status) = (agent.entry.address(), agent.status());
            let (name, full) = match self.registry.add(agent.clone()) {
                Ok(name) => (name, None),
                Err(error) => (String::new(), Some(error.to_string())),
            };
            let down = match status {
                Status::Ready(_) => None,
                Status::Down { why, .. } => Some(why),
            };
            Loaded { name, address, error: full.or(down) }
        };
        // No card may claim a name that the user gave to another agent.
        let mut added: Vec<(usize, Loaded)> = Vec::with_capacity(agents.len());
        for is_named in [true, false] {
            let of_that_kind = agents.iter().enumerate().filter(|(_, agent)| agent.entry.name.is_some() == is_named);
            added.extend(of_that_kind.map(|(at, agent)| (at, add(agent))));
        }
        added.sort_by_key(|(at, _)| *at);
        let loaded = added.into_iter().map(|(_, loaded)| loaded).collect();
        self.tasks.spawn(self.clone().look_after());
        loaded
    }

    /// Serves one client on a pair of streams until it leaves. Calls that it left behind are given up, which cancels
    /// their tasks: nobody else could see them.
    pub async fn serve<R, W>(&self, read: R, write: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let left = self.leave.child_token();
        let handler = Handler::new(self.clone(), Client::Streams { left: left.clone() });
        match handler.serve((Watched::new(read, left.clone()), write)).await {
            Ok(client) => tokio::select! {
                ended = client.waiting() => ended.map(drop).map_err(ServeError::Broken),
                // It would wait longer for calls that are still open.
                () = async { left.cancelled().await; sleep(GRACE + LEAVE_LIMIT).await } => Ok(()),
            },
            // The client left before it sent anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Begin(Box::new(error))),
        }
    }

    /// The same bridge over streamable HTTP. The server around it must check who connects.
    pub fn http(&self) -> HttpService {
        let bridge = self.clone();
        // The server around it has checked the Host header already.
        let config =
            StreamableHttpServerConfig::default().disable_allowed_hosts().with_cancellation_token(self.stop.clone());
        let client = Arc::new(());
        let handler = move || {
            // One of the references is our own.
            if Arc::strong_count(&client) > MOST_CLIENTS {
                return Err(io::Error::other(format!("there are {MOST_CLIENTS} clients already")));
            }
            Ok(Handler::new(bridge.clone(), Client::Http { _counted: client.clone() }))
        };
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(self.options.idle);
        StreamableHttpService::new(handler, sessions.into(), config)
    }

    /// Ends the bridge's own work. Open calls of clients on streams are given up, which cancels their tasks if the agents
    /// are quick. Other remote tasks go on.
    pub async fn close(&self) {
        self.leave.cancel();
        self.calls.close();
        if timeout(LEAVE_LIMIT, self.calls.wait()).await.is_err() {
            tracing::debug!("tasks of open calls were not cancelled in time");
        }
        self.stop.cancel();
        self.runs.close().await;
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Tries agents that are down again, and fetches the cards of the others from time to time.
    async fn look_after(self) {
        let mut refreshed = Instant::now();
        loop {
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep(LOOK) => {}
            }
            let is_refresh = refreshed.elapsed() >= self.options.refresh;
            if is_refresh {
                refreshed = Instant::now();
            }
            let is_due = |agent: &RemoteAgent| match agent.status() {
                Status::Ready(_) => is_refresh,
                Status::Down { failures, tried, .. } => {
                    agent.origin == Origin::Listed && tried.elapsed() >= retry_after(failures)
                }
            };
            let due: Vec<_> = self.registry.all().into_iter().filter(|(_, agent)| is_due(agent)).collect();
            let mut loading = JoinSet::new();
            for (name, agent) in due {
                let (registry, deadline) = (self.registry.clone(), self.options.load_timeout);
                loading.spawn(async move { registry.reload(&name, &agent, deadline).await });
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = async { while loading.join_next().await.is_some() {} } => {}
            }
        }
    }
}
