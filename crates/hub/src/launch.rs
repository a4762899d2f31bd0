//! The port to whatever starts agents.

use std::fmt;
use std::pin::Pin;

use multitap_event::{AgentError, AgentErrorKind, AgentLink, SessionConfig, Unsupported};

/// An agent on its way.
pub type Launching = Pin<Box<dyn Future<Output = Result<AgentLink, LaunchError>> + Send>>;

/// Starts agents.
pub trait Launch: fmt::Debug + Send + Sync + 'static {
    /// Starts one; comes back when it is up, or could not start. Dropped before that, nothing of it is left.
    fn launch(&self, config: SessionConfig) -> Launching;

    /// Comes back when nothing is left of any agent that was started.
    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The agent did not start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LaunchError {
    /// It was asked for something it cannot do; nothing was started.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Agent(Box<AgentError>),
}

impl From<LaunchError> for AgentError {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Unsupported(unsupported) => {
                Self::new(AgentErrorKind::ProtocolError, unsupported.to_string()).of(unsupported.agent)
            }
            LaunchError::Agent(error) => *error,
        }
    }
}
