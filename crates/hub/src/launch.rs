//! The trait for starting agents.

use std::fmt;
use std::pin::Pin;

use multitap_event::{AgentLink, LaunchError, SessionConfig};

/// An agent that starts.
pub type Launching = Pin<Box<dyn Future<Output = Result<AgentLink, LaunchError>> + Send>>;

/// Starts agents.
pub trait Launch: fmt::Debug + Send + Sync + 'static {
    /// Starts an agent. Returns when it has started or failed. Its first event is `sessionStarted`. If the future is
    /// dropped earlier, no process of the agent remains.
    fn launch(&self, config: SessionConfig) -> Launching;

    /// Completes when no process of any started agent is left.
    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
