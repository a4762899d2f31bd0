//! Starts and resumes sessions, and runs one-shot prompts.

use std::path::PathBuf;
use std::sync::Arc;

use multitap_adapter::Keeper;
use multitap_event::{
    AgentError, AgentErrorKind, ClientRef, Decide, Door, EventKind, LaunchError, Question, Resume, SessionConfig,
    SessionId, TurnStatus, Unsupported,
};
use multitap_hub::{Hub, Join, Open, OpenError, Which};

use crate::agents::{Agents, Builtin};
use crate::outcome::SessionOutcome;
use crate::session::AgentSession;

/// Why a question of a one-shot prompt is denied.
const NOBODY: &str = "nobody is there to answer";

/// Starts sessions and ends their agents.
///
/// Cheap to clone; clones share their sessions.
#[derive(Debug, Clone)]
pub struct AgentClient {
    hub: Hub,
    me: ClientRef,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is not supported by the agent; nothing was started.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Agent(Box<AgentError>),
    #[error("the client was shut down")]
    ShutDown,
}

impl From<OpenError> for StartError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Launch(error) => match *error {
                LaunchError::Unsupported(unsupported) => Self::Unsupported(unsupported),
                LaunchError::Agent(error) => Self::Agent(error),
            },
            error @ (OpenError::Journal(_) | OpenError::Live(_)) => {
                Self::Agent(Box::new(AgentError::new(AgentErrorKind::ProcessSpawnFailed, error.to_string())))
            }
            OpenError::ShutDown => Self::ShutDown,
        }
    }
}

impl From<StartError> for AgentError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Unsupported(unsupported) => {
                Self::new(AgentErrorKind::ProtocolError, unsupported.to_string()).of(unsupported.agent)
            }
            StartError::Agent(error) => *error,
            StartError::ShutDown => Self::new(AgentErrorKind::ProcessSpawnFailed, error.to_string()),
        }
    }
}

#[derive(Debug)]
pub struct AgentClientBuilder {
    keeper: Keeper,
    shell_lines: bool,
    me: ClientRef,
}

impl AgentClientBuilder {
    /// Agents start under this `multitap` binary, which ends everything they started even if this program is killed.
    /// Without it they are process groups that end with their session.
    #[must_use]
    pub fn supervisor(mut self, multitap: impl Into<PathBuf>) -> Self {
        self.keeper = Keeper::Supervisor(multitap.into());
        self
    }

    /// Runs prompts that begin with `!` as shell commands, without asking: see [`Agents::taking_shell_lines`].
    #[must_use]
    pub fn shell_lines(mut self) -> Self {
        self.shell_lines = true;
        self
    }

    /// The name under which this client prompts and answers.
    #[must_use]
    pub fn name(mut self, me: ClientRef) -> Self {
        self.me = me;
        self
    }

    pub fn build(self) -> AgentClient {
        let Self { keeper, shell_lines, me } = self;
        let agents = Agents::new(keeper, Vec::new(), Builtin::default());
        let agents = if shell_lines { agents.taking_shell_lines() } else { agents };
        AgentClient { hub: Hub::without_journal(Arc::new(agents)), me }
    }
}

impl Default for AgentClient {
    fn default() -> Self {
        Self::new()
    }
}

impl AgentClient {
    pub fn new() -> Self {
        Self::builder().build()
    }

    pub fn builder() -> AgentClientBuilder {
        AgentClientBuilder { keeper: Keeper::Group, shell_lines: false, me: ClientRef::new("library", Door::Library) }
    }

    /// Starts an agent. With a prompt in `config` its first turn begins at once; without one it waits for a prompt.
    ///
    /// Returns when the agent is up, or could not start.
    pub async fn start(&self, config: SessionConfig) -> Result<AgentSession, StartError> {
        self.start_as(SessionId::fresh(), config).await
    }

    /// Like [`Self::start`], with a session id chosen by the caller.
    pub async fn start_as(&self, id: SessionId, config: SessionConfig) -> Result<AgentSession, StartError> {
        let which = Which::New { id, forked_from: None, history: None };
        let session = self.hub.open(Open { which, ..Open::new(config, self.me.clone()) }).await?;
        // There is no other client to see it join.
        let join = Join { announce: false, ..Join::new(self.me.clone()) };
        let joined = session.join(join).await.map_err(|_| StartError::ShutDown)?;
        Ok(AgentSession::new(session, joined.feed))
    }

    /// Resumes a conversation that the agent knows by `native_id`.
    pub async fn resume(
        &self,
        native_id: impl Into<String>,
        mut config: SessionConfig,
    ) -> Result<AgentSession, StartError> {
        config.resume = Resume::Session { native_id: native_id.into(), at: None };
        self.start(config).await
    }

    /// Runs one prompt and ends the agent. Questions are denied, since nobody can answer.
    ///
    /// A turn that does not complete is an error.
    pub async fn prompt_once(&self, config: SessionConfig) -> Result<SessionOutcome, AgentError> {
        let agent = config.agent.agent_type();
        if config.prompt.is_none() {
            return Err(AgentError::new(AgentErrorKind::ProtocolError, "there is no prompt").of(agent));
        }
        let mut session = self.start(config).await?;
        session.finish().await.ok(); // it ends with the turn; a session that is gone already has ended
        let mut outcome = SessionOutcome::default();
        while let Some(event) = session.events().next().await {
            outcome.apply(&event);
            if let EventKind::PermissionAsked(question) = &event.kind {
                refuse(&session, question).await;
            }
            outcome.events.push(event);
        }
        if outcome.status == Some(TurnStatus::Completed) {
            return Ok(outcome);
        }
        let message = "the agent ended before its turn did";
        Err(outcome.error.unwrap_or_else(|| AgentError::new(AgentErrorKind::ProcessExitError, message).of(agent)))
    }

    /// Ends every session and returns when nothing of their agents is left.
    pub async fn shutdown(&self) {
        self.hub.shutdown().await;
    }
}

async fn refuse(session: &AgentSession, question: &Question) {
    let host = ClientRef::new("multitap", Door::Host);
    match question.refusal() {
        Some(choice) => {
            let decide = Decide::new(&question.question_id, choice.id.clone()).with_feedback(NOBODY);
            // Fails only if the question is already closed.
            session.decide_as(decide, host).await.ok();
        }
        // No option denies it: cancel the turn.
        None => session.cancel().await.unwrap_or_default(),
    }
}
