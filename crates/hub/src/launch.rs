//! The port to the crate that starts agents.

use std::fmt;
use std::pin::Pin;

use multitap_event::{AgentLink, LaunchError, SessionConfig};

pub type Launching = Pin<Box<dyn Future<Output = Result<AgentLink, LaunchError>> + Send>>;

pub trait Launch: fmt::Debug + Send + Sync + 'static {
    /// Starts an agent; returns when it runs or could not start. Its first event is the start of the session. If the
    /// future is dropped before, the agent is removed.
    fn launch(&self, config: SessionConfig) -> Launching;

    /// Returns when every agent that was started is gone.
    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
