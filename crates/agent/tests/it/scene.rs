//! A session with the built-in agent and its rehearsal model, in a place of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use multitap_agent::{Setup, launch};
use multitap_event::{
    AgentKind, AgentLink, ApprovalMode, Command, Decide, EditReview, EditedCall, EventKind, McpServer, McpServerStatus,
    Mode, Prompt, Question, SessionConfig, ToolCompleted, ToolProgress,
};
use multitap_process::Keeper;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Long enough for anything that works.
const LONG: Duration = Duration::from_secs(60);

pub(crate) struct Scene {
    link: Option<AgentLink>,
    tasks: TaskTracker,
    folder: TempDir,
    /// Everything so far.
    pub(crate) told: Vec<EventKind>,
}

impl Scene {
    /// A session with these servers, in which everything is asked about.
    pub(crate) async fn start<const N: usize>(servers: [(&str, McpServer); N]) -> Self {
        Self::in_mode(ApprovalMode::Ask, servers).await
    }

    pub(crate) async fn in_mode<const N: usize>(mode: ApprovalMode, servers: [(&str, McpServer); N]) -> Self {
        Self::blocking(&[], mode, servers).await
    }

    /// A session in which these rules block.
    pub(crate) async fn blocking<const N: usize>(
        rules: &[&str],
        mode: ApprovalMode,
        servers: [(&str, McpServer); N],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = SessionConfig::new(AgentKind::Builtin);
        config.blocked_tools = rules.iter().map(|rule| (*rule).to_owned()).collect();
        config.model = Some("rehearsal".to_owned());
        config.mode = Some(Mode::Unified(mode));
        config.working_directory = Some(folder.path().to_owned());
        config.mcp_servers = servers.into_iter().map(|(name, server)| (name.to_owned(), server)).collect();
        let setup = Setup {
            hidden_folders: Vec::new(),
            protected_folders: Vec::new(),
            keeper: Keeper::Group,
            hidden_env: Vec::new(),
            data: None,
            config: None,
            env: BTreeMap::new(),
            trusted: false,
            private_addresses: false,
            save: None,
            pipes: BTreeMap::new(),
        };
        let tasks = TaskTracker::new();
        let link = launch(config, setup, &tasks).await.unwrap();
        Self { link: Some(link), tasks, folder, told: Vec::new() }
    }

    /// What the agent says of an edited answer, before it counts.
    pub(crate) async fn review(&self, question: &Question, decide: &Decide) -> Result<EditedCall, String> {
        let (reply, verdict) = oneshot::channel();
        let review = EditReview { question: Box::new(question.clone()), decide: decide.clone(), mode: None, reply };
        self.link.as_ref().unwrap().reviews.send(review).await.unwrap();
        timeout(LONG, verdict).await.unwrap().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) async fn send(&mut self, command: Command) {
        self.link.as_ref().unwrap().commands.send(command).await.unwrap();
    }

    /// Goes on until an event is what is looked for.
    pub(crate) async fn until<T>(&mut self, what: &str, find: impl Fn(&EventKind) -> Option<T>) -> T {
        let link = self.link.as_mut().unwrap();
        let told = &mut self.told;
        let found = timeout(LONG, async {
            while let Some(draft) = link.events.recv().await {
                let found = find(&draft.kind);
                told.push(draft.kind);
                if found.is_some() {
                    return found;
                }
            }
            None
        });
        found.await.ok().flatten().unwrap_or_else(|| panic!("{what} never came: {:#?}", self.told))
    }

    /// A prompt, up to the end of its turn.
    pub(crate) async fn turn(&mut self, text: &str) -> Vec<EventKind> {
        let before = self.told.len();
        self.send(Command::Prompt(Prompt::text(text))).await;
        self.end_of_turn().await;
        self.told[before..].to_vec()
    }

    pub(crate) async fn end_of_turn(&mut self) {
        self.until("the end of the turn", |kind| matches!(kind, EventKind::TurnCompleted(_)).then_some(())).await;
    }

    /// A prompt, up to the question about it.
    pub(crate) async fn asked(&mut self, text: &str) -> Question {
        self.send(Command::Prompt(Prompt::text(text))).await;
        let asked = |kind: &EventKind| match kind {
            EventKind::PermissionAsked(question) => Some(question.clone()),
            _ => None,
        };
        self.until("a question", asked).await
    }

    /// An answer, and what came of the call.
    pub(crate) async fn answer(&mut self, decide: Decide) -> ToolCompleted {
        self.send(Command::Decide(decide)).await;
        let done = self.until("the end of the call", |kind| match kind {
            EventKind::ToolCompleted(done) => Some(done.clone()),
            _ => None,
        });
        let done = done.await;
        self.end_of_turn().await;
        done
    }

    /// Ends the session; everything is gone then.
    pub(crate) async fn close(mut self) -> Vec<EventKind> {
        let Some(AgentLink { mut events, commands, .. }) = self.link.take() else { return self.told };
        drop(commands);
        let rest = async {
            while let Some(draft) = events.recv().await {
                self.told.push(draft.kind);
            }
            self.tasks.close();
            self.tasks.wait().await;
        };
        timeout(LONG, rest).await.expect("the session does not end");
        self.told
    }
}

pub(crate) fn completed(told: &[EventKind]) -> Vec<ToolCompleted> {
    let of = |kind: &EventKind| match kind {
        EventKind::ToolCompleted(done) => Some(done.clone()),
        _ => None,
    };
    told.iter().filter_map(of).collect()
}

pub(crate) fn progress(told: &[EventKind]) -> Vec<ToolProgress> {
    let of = |kind: &EventKind| match kind {
        EventKind::ToolProgress(progress) => Some(progress.clone()),
        _ => None,
    };
    told.iter().filter_map(of).collect()
}

pub(crate) fn was_asked(told: &[EventKind]) -> bool {
    told.iter().any(|kind| matches!(kind, EventKind::PermissionAsked(_)))
}

/// What was told about a server.
pub(crate) fn server(told: &[EventKind], name: &str) -> Vec<McpServerStatus> {
    let of = |kind: &EventKind| match kind {
        EventKind::McpServerStatus(status) if status.name == name => Some(status.clone()),
        _ => None,
    };
    told.iter().filter_map(of).collect()
}

/// The words of a turn.
pub(crate) fn text(told: &[EventKind]) -> String {
    let of = |kind: &EventKind| match kind {
        EventKind::TextChunk(chunk) => Some(chunk.content.clone()),
        _ => None,
    };
    told.iter().filter_map(of).collect()
}
