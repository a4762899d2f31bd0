//! One server: the task that owns its connection, and the handle through which it is seen and called.

use std::ops::ControlFlow;
use std::sync::Arc;

use multitap_event::{McpServer, ToolKind};
use rmcp::model::Tool;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connect::{self, Connection, Link, ServerEvent};
use super::{ServerChange, ServerContext, name};
use crate::tool::Spec;

/// Most queued requests to the owner; senders wait then.
const WISHES: usize = 8;
const LONGEST_DESCRIPTION: usize = 8 * 1024;

/// A server, as others see it.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) config: Arc<McpServer>,
    pub(super) state: watch::Receiver<State>,
    pub(super) wishes: mpsc::Sender<OwnerRequest>,
}

#[derive(Debug)]
pub(super) enum OwnerRequest {
    Connect,
    /// Drop the connection: requests on it did not arrive.
    GiveUp(String),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) status: Status,
    pub(crate) error: Option<String>,
    /// The tools; of a disconnected server the last known ones, because a call reconnects it.
    tools: Arc<[Offered]>,
    pub(super) line: Option<Connection>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Status {
    #[default]
    Starting,
    Connected,
    Failed,
    /// The server was connected, and the connection was lost.
    Disconnected,
}

impl Status {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::Failed => "failed",
            Self::Disconnected => "disconnected",
        }
    }
}

/// A tool, under the server's name and the model's.
#[derive(Debug)]
struct Offered {
    native: String,
    spec: Spec,
}

impl State {
    pub(super) fn specs(&self) -> Vec<Spec> {
        self.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    /// The server's own name of the tool that the model knows by that name.
    pub(super) fn native(&self, name: &str) -> Option<String> {
        self.tools.iter().find(|tool| tool.spec.name == name).map(|tool| tool.native.clone())
    }

    pub(crate) fn tool_names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.native.as_str()).collect()
    }
}

impl Server {
    /// Starts to connect. The task ends when it is stopped, or when the last handle is dropped.
    pub(super) fn start(
        name: &str,
        config: McpServer,
        place: ServerContext,
        changes: mpsc::Sender<ServerChange>,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Self {
        let (now, state) = watch::channel(State::default());
        let (wishes, wished) = mpsc::channel(WISHES);
        let (name, config) = (name.to_owned(), Arc::new(config));
        let owner = Owner {
            name: name.clone(),
            config: Arc::clone(&config),
            place,
            now,
            changes,
            wished,
            tasks: tasks.clone(),
            stop: stop.clone(),
        };
        tasks.spawn(owner.run());
        Self { name, config, state, wishes }
    }

    pub(super) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(super) async fn settled(&self) {
        // Without an owner the state changes no more.
        self.state.clone().wait_for(|state| state.status != Status::Starting).await.ok();
    }
}

struct Owner {
    name: String,
    config: Arc<McpServer>,
    place: ServerContext,
    now: watch::Sender<State>,
    changes: mpsc::Sender<ServerChange>,
    wished: mpsc::Receiver<OwnerRequest>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Owner {
    async fn run(mut self) {
        let stop = self.stop.clone();
        loop {
            self.tell(Status::Starting, None).await;
            let connected = tokio::select! {
                () = stop.cancelled() => return,
                connected = self.connect() => connected,
            };
            match connected {
                Ok((link, tools)) => {
                    self.have(link.line.clone(), tools).await;
                    if self.keep(link).await.is_break() {
                        return;
                    }
                }
                Err(why) => self.tell(Status::Failed, Some(why)).await,
            }
            if self.wait().await.is_break() {
                return;
            }
        }
    }

    async fn connect(&self) -> Result<(Link, Vec<Tool>), String> {
        let link = Box::pin(connect::connect(&self.name, &self.config, &self.place, &self.tasks)).await?;
        match connect::tools(&link.line.peer, self.config.timeout).await {
            Ok(tools) => Ok((link, tools)),
            Err(why) => Err(link.failed(why).await),
        }
    }

    async fn keep(&mut self, mut link: Link) -> ControlFlow<()> {
        let stop = self.stop.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => {
                    link.close().await;
                    return ControlFlow::Break(());
                }
                news = link.news() => match news {
                    ServerEvent::Ended => {
                        let why = link.why().await;
                        self.tell(Status::Disconnected, Some(why)).await;
                        return ControlFlow::Continue(());
                    }
                    ServerEvent::Tools => match connect::tools(&link.line.peer, self.config.timeout).await {
                        Ok(tools) => self.have(link.line.clone(), tools).await,
                        Err(error) => tracing::warn!(server = self.name, error, "its tools are unknown now"),
                    },
                },
                wish = self.wished.recv() => match wish {
                    Some(OwnerRequest::Connect) => {}
                    Some(OwnerRequest::GiveUp(why)) => {
                        link.close().await;
                        self.tell(Status::Disconnected, Some(why)).await;
                        return ControlFlow::Continue(());
                    }
                    None => {
                        link.close().await;
                        return ControlFlow::Break(());
                    }
                },
            }
        }
    }

    /// Waits until somebody needs a server that is gone.
    async fn wait(&mut self) -> ControlFlow<()> {
        let stop = self.stop.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => return ControlFlow::Break(()),
                wish = self.wished.recv() => match wish {
                    Some(OwnerRequest::Connect) => return ControlFlow::Continue(()),
                    Some(OwnerRequest::GiveUp(_)) => {}
                    None => return ControlFlow::Break(()),
                },
            }
        }
    }

    async fn have(&self, line: Connection, tools: Vec<Tool>) {
        let offered: Vec<_> = tools.into_iter().filter(|tool| self.config.offers(&tool.name)).collect();
        let tools = offer(&self.name, &offered);
        self.set(State { status: Status::Connected, error: None, tools, line: Some(line) }).await;
    }

    /// Reports that there is no connection, and why.
    async fn tell(&self, status: Status, error: Option<String>) {
        let tools = Arc::clone(&self.now.borrow().tools);
        self.set(State { status, error, tools, line: None }).await;
    }

    /// Reports the change before it takes effect: a task that sees the new state finds the report about it.
    async fn set(&self, state: State) {
        let change = ServerChange { name: self.name.clone(), state: state.clone() };
        tokio::select! {
            () = self.stop.cancelled() => {}
            reported = self.changes.send(change) => drop(reported), // the receiver may be gone
        }
        self.now.send_replace(state);
    }
}

/// A server's tools as they are offered to the model.
fn offer(server: &str, tools: &[Tool]) -> Arc<[Offered]> {
    let natives: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    let names = name::names(server, &natives);
    let offered = names.into_iter().zip(tools).map(|(name, tool)| {
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let spec = Spec {
            name,
            description: description.chars().take(LONGEST_DESCRIPTION).collect(),
            parameters: parameters(tool),
            kind: ToolKind::Mcp,
            server: Some(server.to_owned()),
            // The server's own hints are not trusted: no tool may run unasked, or in parallel, because of them.
            read_only: false,
        };
        Offered { native: tool.name.to_string(), spec }
    });
    offered.collect()
}

/// The schema of a tool's arguments, without what model providers reject.
fn parameters(tool: &Tool) -> Value {
    let mut schema = tool.input_schema.as_ref().clone();
    schema.remove("$schema");
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    schema.into()
}
