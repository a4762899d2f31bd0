//! Agents controlled by a test: a `Launch` that starts no program, and the events that such agents send most often.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use multitap_event::{
    AgentEnd, AgentError, AgentErrorKind, AgentType, Choice, ChoiceKind, Details, Draft, Edit, EventKind, LaunchError,
    Question, SessionConfig, SessionEnd, SessionEndReason, SessionStart, TextChunk, Timestamp, TurnEnd, TurnId,
    TurnStatus, link, option,
};
use multitap_hub::{Launch, Launching};
use tokio::sync::mpsc;

/// Maximum number of launched agents that wait for the test.
const QUEUE: usize = 8;

pub type LaunchedAgent = (SessionConfig, AgentEnd);

/// Starts no agent: sends [`started`] and hands the agent's side of the link to the test.
///
/// The model `broken` fails to launch; the model `panics` panics.
#[derive(Debug)]
pub struct ScriptedLaunch {
    agents: mpsc::Sender<LaunchedAgent>,
    steers: bool,
    /// While set, agents come up without sending [`started`].
    pub silent: AtomicBool,
}

impl ScriptedLaunch {
    pub fn new() -> (Arc<Self>, mpsc::Receiver<LaunchedAgent>) {
        let (agents, launched) = mpsc::channel(QUEUE);
        (Arc::new(Self { agents, steers: false, silent: AtomicBool::new(false) }), launched)
    }

    /// Like [`Self::new`], for agents that can be steered.
    pub fn steering() -> (Arc<Self>, mpsc::Receiver<LaunchedAgent>) {
        let (agents, launched) = mpsc::channel(QUEUE);
        (Arc::new(Self { agents, steers: true, silent: AtomicBool::new(false) }), launched)
    }
}

impl Launch for ScriptedLaunch {
    fn launch(&self, config: SessionConfig) -> Launching {
        assert!(config.model.as_deref() != Some("panics"), "as the test wants it");
        let (agents, steers, silent) = (self.agents.clone(), self.steers, self.silent.load(Ordering::Relaxed));
        Box::pin(async move {
            if config.model.as_deref() == Some("broken") {
                let error = AgentError::new(AgentErrorKind::ProcessSpawnFailed, "it does not start");
                return Err(LaunchError::Agent(Box::new(error)));
            }
            let (mut link, end) = link();
            link.steers = steers;
            if !silent {
                end.events.send(Draft::new(Timestamp::now(), started())).await.ok();
            }
            agents.send((config, end)).await.ok();
            Ok(link)
        })
    }

    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}

pub fn started() -> EventKind {
    EventKind::SessionStarted(SessionStart {
        native_session_id: Some("native".into()),
        ..SessionStart::of(AgentType::Claude)
    })
}

pub fn turn_started() -> EventKind {
    EventKind::TurnStarted { turn_id: TurnId::from("t") }
}

pub fn turn_ended() -> EventKind {
    EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Completed))
}

pub fn ended() -> EventKind {
    EventKind::SessionEnded(SessionEnd::of(SessionEndReason::Completed))
}

pub fn text(content: &str) -> EventKind {
    EventKind::TextChunk(TextChunk::piece(content))
}

/// A question about the command `ls`, which an answer may replace.
pub fn asked(id: &str) -> EventKind {
    EventKind::PermissionAsked(Question {
        question_id: id.into(),
        tool_id: None,
        tool_name: Some("shell".into()),
        title: "may I?".into(),
        options: vec![
            Choice::new(option::PROCEED_ONCE, "Yes", ChoiceKind::AllowOnce),
            Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce),
        ],
        details: Details::Command { command: "ls".into(), directory: None, description: None },
        edits: vec![Edit::NewContent],
        reason: None,
    })
}
