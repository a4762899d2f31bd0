//! The port to whatever starts agents.

use std::fmt;
use std::pin::Pin;

use multitap_event::{AgentLink, LaunchError, SessionConfig};

/// An agent on its way.
pub type Launching = Pin<Box<dyn Future<Output = Result<AgentLink, LaunchError>> + Send>>;

/// Starts agents.
pub trait Launch: fmt::Debug + Send + Sync + 'static {
    /// Starts one; comes back when it is up, or could not start. What it tells first is that the session started.
    /// Dropped before that, nothing of it is left.
    fn launch(&self, config: SessionConfig) -> Launching;

    /// Comes back when nothing is left of any agent that was started.
    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
