//! MCP servers: programs and addresses that provide tools.
//!
//! Each server has a task that owns its connection (`server`); callers use the handle here. All start at once. One
//! that dies or hangs is reported and affects no other; the next call to a lost server reconnects. Must not come in:
//! turns, models, permissions.

mod call;
mod connect;
mod elicit;
mod handler;
mod http;
mod name;
mod outcome;
mod pipe;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use multitap_event::{McpServer, McpServerStatus};
use multitap_process::Keeper;
use serde_json::Map;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::elicit::Asked;
pub use self::pipe::McpPipe;
use self::server::Server;
pub(crate) use self::server::{State, Status};
use crate::tool::{Outcome, Spec, ToolContext};
use crate::tools::mcp::Mcp;

/// How many changes may be queued; servers wait then.
const CHANGES: usize = 64;

/// The servers of a session. Dropping all handles ends them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Servers {
    all: Arc<[Server]>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerContext {
    pub(crate) keeper: Keeper,
    pub(crate) hidden_env: Vec<String>,
    pub(crate) folder: PathBuf,
    /// Added to the environment of every server.
    pub(crate) env: BTreeMap<String, String>,
    /// Servers of this process, by name. Their settings say how their tools are used; the pipe connects to them.
    pub(crate) pipes: BTreeMap<String, McpPipe>,
    /// Queue for requests of servers to the user.
    pub(crate) asks: mpsc::Sender<Asked>,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerChange {
    pub(crate) name: String,
    pub(crate) state: State,
}

impl Servers {
    /// Starts all of them. Status changes come out of the receiver.
    pub(crate) fn start(
        servers: &BTreeMap<String, McpServer>,
        place: &ServerContext,
    ) -> (Self, mpsc::Receiver<ServerChange>) {
        let (changes, reported) = mpsc::channel(CHANGES);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let start = |(name, config): (&String, &McpServer)| {
            Server::start(name, config.clone(), place.clone(), changes.clone(), &tasks, &stop)
        };
        (Self { all: servers.iter().map(start).collect(), tasks, stop }, reported)
    }

    pub(crate) fn specs(&self) -> Vec<Spec> {
        self.all.iter().flat_map(|server| server.state().specs()).collect()
    }

    /// A call without arguments of the tool that the model knows by that name.
    pub(crate) fn find(&self, name: &str) -> Option<Mcp> {
        self.all.iter().find_map(|server| {
            let tool = server.state().native(name)?;
            Some(Mcp { server: server.name.clone(), tool, arguments: Map::new(), trusted: server.config.trust })
        })
    }

    pub(crate) fn changes(&self) -> Vec<ServerChange> {
        self.all.iter().map(|server| ServerChange { name: server.name.clone(), state: server.state() }).collect()
    }

    /// Waits until no server is starting any more. The caller sets the limit.
    pub(crate) async fn settled(&self) {
        for server in self.all.iter() {
            server.settled().await;
        }
    }

    /// Calls a tool that has been allowed.
    pub(crate) async fn call(&self, job: Mcp, context: ToolContext) -> Outcome {
        match self.all.iter().find(|server| server.name == job.server) {
            Some(server) => server.call(&job.tool, job.arguments, context).await,
            None => Outcome::failed(format!("there is no MCP server {}", job.server)),
        }
    }

    /// Closes all connections and ends all programs.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl ServerChange {
    /// As it appears in an event, and in the answer to a query.
    pub(crate) fn status(&self) -> McpServerStatus {
        let Self { name, state } = self;
        let lists_tools = matches!(state.status, Status::Connected | Status::Disconnected);
        McpServerStatus {
            error: state.error.clone(),
            tools: lists_tools.then(|| state.tool_names().into_iter().map(str::to_owned).collect()),
            ..McpServerStatus::new(name, state.status.word())
        }
    }
}
