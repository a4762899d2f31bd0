//! A session with a real agent on a scripted model.

use std::path::Path;
use std::time::Duration;

use multitap_adapter::{LaunchSpec, launch};
use multitap_event::{
    AgentKind, AgentLink, AgentProgram, Command, Decide, Draft, EventKind, LaunchError, Prompt, Question,
    SessionConfig, ToolCompleted, ToolOutcome, TurnEnd,
};
use multitap_process::Keeper;
use multitap_testkit::Scratch;
use multitap_testkit::model::ModelServer;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// Nothing the scripted model does takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The model, a clean place, and what sessions run on.
pub(crate) struct Place {
    agent: AgentKind,
    pub(crate) model: ModelServer,
    pub(crate) scratch: Scratch,
    pub(crate) tasks: TaskTracker,
    launcher: std::path::PathBuf,
}

impl Place {
    pub(crate) fn new(claude: &Path) -> Self {
        Self::of(AgentKind::Claude, claude)
    }

    /// A place for sessions with that agent, whose program this is.
    pub(crate) fn of(agent: AgentKind, program: &Path) -> Self {
        Self::passing(agent, program, &[])
    }

    /// The same, where these variables reach the agent from the adapter.
    pub(crate) fn passing(agent: AgentKind, program: &Path, variables: &[&str]) -> Self {
        let model = ModelServer::start([]).unwrap();
        let scratch = Scratch::new(&model).unwrap();
        let launcher = scratch.launcher(program, variables).unwrap();
        Self { agent, model, scratch, tasks: TaskTracker::new(), launcher }
    }

    pub(crate) fn config(&self) -> SessionConfig {
        SessionConfig {
            program: Some(AgentProgram { command: self.launcher.clone(), ..AgentProgram::default() }),
            working_directory: Some(self.scratch.workspace()),
            ..SessionConfig::new(self.agent.clone())
        }
    }

    /// The program that runs the agent in this place.
    pub(crate) fn program(&self) -> &Path {
        &self.launcher
    }

    pub(crate) async fn start(&self, config: SessionConfig) -> Scene {
        self.try_start(config).await.unwrap()
    }

    pub(crate) async fn try_start(&self, config: SessionConfig) -> Result<Scene, LaunchError> {
        let spec = LaunchSpec { config, keeper: Keeper::Group, hidden_env: Vec::new() };
        Ok(Scene { link: launch(spec, &self.tasks).await?, told: Vec::new() })
    }
}

/// One session.
pub(crate) struct Scene {
    pub(crate) link: AgentLink,
    pub(crate) told: Vec<EventKind>,
}

impl Scene {
    pub(crate) async fn send(&self, command: Command) {
        self.link.commands.send(command).await.unwrap();
    }

    pub(crate) async fn prompt(&self, text: &str) {
        self.send(Command::Prompt(Prompt::text(text))).await;
    }

    pub(crate) async fn decide(&self, question: &Question, option: &str) {
        self.send(Command::Decide(Decide::new(&question.question_id, option))).await;
    }

    /// The next event that `pick` wants.
    pub(crate) async fn until<T>(&mut self, pick: impl Fn(&EventKind) -> Option<T>) -> T {
        loop {
            let next: Option<Draft> = timeout(PATIENCE, self.link.events.recv()).await.unwrap_or_else(|_| {
                panic!("nothing more came after {:#?}", self.told);
            });
            let Some(draft) = next else { panic!("the session ended: {:#?}", self.told) };
            let picked = pick(&draft.kind);
            self.told.push(draft.kind);
            if let Some(picked) = picked {
                return picked;
            }
        }
    }

    pub(crate) async fn question(&mut self) -> Question {
        self.until(|kind| if let EventKind::PermissionAsked(question) = kind { Some(question.clone()) } else { None })
            .await
    }

    /// The end of the turn; a question on the way fails the test.
    pub(crate) async fn turn_end(&mut self) -> TurnEnd {
        let end = self.until(|kind| match kind {
            EventKind::TurnCompleted(end) => Some(Ok(end.clone())),
            EventKind::PermissionAsked(question) => Some(Err(question.clone())),
            _ => None,
        });
        match end.await {
            Ok(end) => end,
            Err(question) => panic!("nobody expected {question:#?}"),
        }
    }

    /// A whole turn without questions.
    pub(crate) async fn turn(&mut self, text: &str) -> TurnEnd {
        self.prompt(text).await;
        self.turn_end().await
    }

    /// Lets go of it, and returns all it told.
    pub(crate) async fn close(self) -> Vec<EventKind> {
        let Self { link: AgentLink { mut events, commands, .. }, mut told } = self;
        drop(commands);
        while let Some(draft) = timeout(PATIENCE, events.recv()).await.unwrap() {
            told.push(draft.kind);
        }
        told
    }
}

/// What the tools came to, in order.
pub(crate) fn results(told: &[EventKind]) -> Vec<ToolCompleted> {
    told.iter()
        .filter_map(|kind| if let EventKind::ToolCompleted(tool) = kind { Some(tool.clone()) } else { None })
        .collect()
}

/// How they ended.
pub(crate) fn outcomes(told: &[EventKind]) -> Vec<ToolOutcome> {
    results(told).iter().map(|tool| tool.outcome).collect()
}

/// The agent's own id of the session.
pub(crate) fn native_id(told: &[EventKind]) -> String {
    let id = told.iter().find_map(|kind| match kind {
        EventKind::SessionStarted(start) => start.native_session_id.clone(),
        EventKind::NativeSessionChanged { native_session_id } => Some(native_session_id.clone()),
        _ => None,
    });
    id.unwrap()
}

/// What the agent said, in one piece.
pub(crate) fn said(told: &[EventKind]) -> String {
    let text =
        |kind: &EventKind| if let EventKind::TextChunk(chunk) = kind { Some(chunk.content.clone()) } else { None };
    told.iter().filter_map(text).collect()
}
