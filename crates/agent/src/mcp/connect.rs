//! Connects to a server and lists its tools.

use std::borrow::Cow;
use std::collections::HashSet;
use std::error::Error;
use std::pin::Pin;
use std::time::Duration;

use multitap_event::{McpReach, McpServer};
use multitap_outbound::error_chain;
use multitap_process::{Exit, Program, StdinMode, spawn};
use rmcp::model::{ErrorCode, PaginatedRequestParams, ProtocolVersion, Tool};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, QuitReason, RunningService,
    RunningServiceCancellationToken,
};
use rmcp::transport::IntoTransport;
use rmcp::{Peer, RoleClient};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use super::ServerContext;
use super::elicit::Asker;
use super::handler::{Handler, ProgressListeners};
use super::http;
use super::pipe::{self, PIPE, StrayOutput};

pub(super) const START_LIMIT: Duration = Duration::from_secs(60);
const LIST_LIMIT: Duration = Duration::from_secs(30);
const CLOSE_LIMIT: Duration = Duration::from_secs(2);
/// Time until the end of a server is noticed.
const END_SHOWS: Duration = Duration::from_millis(500);
const MOST_TOOLS: usize = 512;
const MOST_PAGES: usize = 64;

/// Channels of a connection: for calls, for their progress, and for questions of the server.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) board: ProgressListeners,
    pub(super) asker: Asker,
}

pub(super) struct Link {
    pub(super) line: Connection,
    changed: mpsc::Receiver<()>,
    service: Pin<Box<dyn Future<Output = Result<QuitReason, JoinError>> + Send>>,
    stop: RunningServiceCancellationToken,
    program: Option<PipedProgram>,
}

/// An event that a server causes on its own.
pub(super) enum ServerEvent {
    Ended,
    /// Its list of tools changed.
    Tools,
}

/// A program whose lines are carried through a pipe.
struct PipedProgram {
    task: JoinHandle<Exit>,
    noise: StrayOutput,
}

enum ConnectError {
    /// The server does not know `initialize`, like some servers of the newest revision.
    NoInitialize,
    Closed,
    Other(String),
}

/// The time limit for a server to be ready.
#[derive(Clone, Copy)]
struct Limit {
    at: Instant,
    after: Duration,
}

/// Connects with `initialize`, which nearly all servers support, or else in the way of the newest revision.
pub(super) async fn connect(
    name: &str,
    config: &McpServer,
    place: &ServerContext,
    tasks: &TaskTracker,
) -> Result<Link, String> {
    let after = config.timeout.map_or(START_LIMIT, |limit| limit.min(START_LIMIT));
    let limit = Limit { at: Instant::now() + after, after };
    let newest = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    match connect_by(name, config, place, tasks, ClientLifecycleMode::Initialize, limit).await {
        Err(ConnectError::NoInitialize) => connect_by(name, config, place, tasks, newest, limit).await,
        answer => answer,
    }
    .map_err(|why| match why {
        ConnectError::NoInitialize => {
            "it did not answer initialize: it is not an MCP server, or a newer one".to_owned()
        }
        ConnectError::Closed => "it closed the connection".to_owned(),
        ConnectError::Other(why) => why,
    })
}

async fn connect_by(
    name: &str,
    config: &McpServer,
    place: &ServerContext,
    tasks: &TaskTracker,
    lifecycle: ClientLifecycleMode,
    limit: Limit,
) -> Result<Link, ConnectError> {
    let (changed, changes) = mpsc::channel(1);
    let asker = Asker::new(name, place.asks.clone());
    let handler = Handler { board: ProgressListeners::default(), asker, changed };
    match (place.pipes.get(name), &config.reach) {
        // It runs in this process.
        (Some(pipe), _) => Ok(Link::new(serve(handler, pipe.connect(), lifecycle, limit).await?, changes, None)),
        (None, McpReach::Http { url, headers }) => {
            let transport = http::transport(url, headers).map_err(ConnectError::Other)?;
            Ok(Link::new(serve(handler, transport, lifecycle, limit).await?, changes, None))
        }
        (None, McpReach::Stdio { command, args, env, cwd }) => {
            let program = Program {
                program: command.into(),
                args: args.iter().map(Into::into).collect(),
                env: place.env.iter().chain(env).map(|(name, value)| (name.into(), value.into())).collect(),
                env_remove: place.hidden_env.iter().map(Into::into).collect(),
                cwd: Some(cwd.as_ref().map_or_else(|| place.folder.clone(), |cwd| place.folder.join(cwd))),
                stdin: StdinMode::Piped,
            };
            let child =
                spawn(program, &place.keeper).await.map_err(|error| ConnectError::Other(error_chain(&error)))?;
            let (ours, theirs) = tokio::io::duplex(PIPE);
            let noise = StrayOutput::default();
            let task = tasks.spawn(pipe::carry(child, theirs, noise.clone()));
            let program = PipedProgram { task, noise };
            match serve(handler, ours, lifecycle, limit).await {
                Ok(served) => Ok(Link::new(served, changes, Some(program))),
                Err(why) => Err(program.last_words(why).await),
            }
        }
    }
}

async fn serve<T, E, A>(
    handler: Handler,
    transport: T,
    lifecycle: ClientLifecycleMode,
    limit: Limit,
) -> Result<RunningService<RoleClient, Handler>, ConnectError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: Error + Send + Sync + 'static,
{
    match timeout_at(limit.at, Box::pin(handler.serve_with_lifecycle(transport, lifecycle))).await {
        Err(_) => Err(ConnectError::Other(format!("it did not answer within {}", shown(limit.after)))),
        Ok(Ok(served)) => Ok(served),
        Ok(Err(ClientInitializeError::JsonRpcError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => {
            Err(ConnectError::NoInitialize)
        }
        Ok(Err(ClientInitializeError::ConnectionClosed(_))) => Err(ConnectError::Closed),
        Ok(Err(ClientInitializeError::TransportError { error, .. })) => {
            Err(ConnectError::Other(http::words(error.error.as_ref())))
        }
        Ok(Err(error)) => Err(ConnectError::Other(error_chain(&error))),
    }
}

impl PipedProgram {
    /// Adds the end of the program's stderr to the error. The program exits soon, since nobody holds its pipe any more.
    async fn last_words(self, why: ConnectError) -> ConnectError {
        let noise = self.noise.words();
        let exit = self.task.await.unwrap_or_default();
        match why {
            ConnectError::NoInitialize => ConnectError::NoInitialize,
            ConnectError::Closed => ConnectError::Other(format!("{}{noise}", pipe::ended(&exit))),
            // We ended it ourselves, so its exit explains nothing.
            ConnectError::Other(why) if exit.stderr_tail.is_empty() => ConnectError::Other(format!("{why}{noise}")),
            ConnectError::Other(why) => {
                ConnectError::Other(format!("{why}{noise}; on its stderr: {}", pipe::last_words(&exit)))
            }
        }
    }
}

impl Link {
    fn new(
        served: RunningService<RoleClient, Handler>,
        changed: mpsc::Receiver<()>,
        program: Option<PipedProgram>,
    ) -> Self {
        let Handler { board, asker, .. } = served.service().clone();
        let line = Connection { peer: served.peer().clone(), board, asker };
        let stop = served.cancellation_token();
        Self { line, changed, service: Box::pin(served.waiting()), stop, program }
    }

    /// Waits for an event that the server causes on its own. Cancel safe.
    pub(super) async fn news(&mut self) -> ServerEvent {
        tokio::select! {
            _ = &mut self.service => ServerEvent::Ended,
            Some(()) = self.changed.recv() => ServerEvent::Tools,
        }
    }

    pub(super) async fn why(self) -> String {
        drop(self.service);
        let why = match self.program {
            Some(program) => program.last_words(ConnectError::Closed).await,
            None => ConnectError::Closed,
        };
        match why {
            ConnectError::Other(why) => why,
            ConnectError::Closed | ConnectError::NoInitialize => "the connection is gone".to_owned(),
        }
    }

    /// Closes an unusable connection and returns the reason: the server's own exit explains more than the failed
    /// request.
    pub(super) async fn failed(mut self, why: String) -> String {
        if let Ok(ServerEvent::Ended) = timeout(END_SHOWS, self.news()).await {
            return self.why().await;
        }
        self.close().await;
        why
    }

    /// Closes the connection, and ends the program with everything it started.
    pub(super) async fn close(self) {
        self.stop.cancel();
        timeout(CLOSE_LIMIT, self.service).await.ok(); // the program is ended in either case
        if let Some(program) = self.program {
            program.task.await.ok();
        }
    }
}

/// All tools of a server, without duplicates.
pub(super) async fn tools(peer: &Peer<RoleClient>, limit: Option<Duration>) -> Result<Vec<Tool>, String> {
    let limit = limit.map_or(LIST_LIMIT, |limit| limit.min(LIST_LIMIT));
    let mut tools = Tools::default();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = cursor.take().map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let listed = timeout(limit, peer.list_tools(page)).await;
        let listed = listed.map_err(|_| format!("it did not list its tools within {}", shown(limit)))?;
        let listed = listed.map_err(|error| format!("it did not list its tools: {}", error_chain(&error)))?;
        tools.add(listed.tools);
        cursor = listed.next_cursor;
        if cursor.is_none() || tools.is_full() {
            break;
        }
    }
    Ok(tools.found)
}

/// The tools of a server, up to [`MOST_TOOLS`].
#[derive(Default)]
struct Tools {
    found: Vec<Tool>,
    names: HashSet<Cow<'static, str>>,
}

impl Tools {
    fn add(&mut self, page: Vec<Tool>) {
        for tool in page {
            if !self.is_full() && self.names.insert(tool.name.clone()) {
                self.found.push(tool);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= MOST_TOOLS
    }
}

pub(super) fn shown(time: Duration) -> String {
    if time.subsec_millis() == 0 { format!("{} s", time.as_secs()) } else { format!("{} ms", time.as_millis()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_is_listed_once_and_no_more_than_are_taken() {
        let tool = |number: usize| -> Tool {
            serde_json::from_value(json!({ "name": format!("tool {number}"), "inputSchema": {} })).unwrap()
        };
        let known = MOST_TOOLS - 1;
        let mut tools = Tools::default();
        tools.add((0..known).map(tool).collect());
        tools.add((0..50_000).map(|number| tool(number % known)).collect());
        assert_eq!(tools.found.len(), known);
        tools.add((known..known + 10).map(tool).collect());
        assert_eq!((tools.found.len(), tools.is_full()), (MOST_TOOLS, true));
    }
}
