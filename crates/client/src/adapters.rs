//! The agents of `multitap-adapter`, as the hub starts them.

use std::pin::Pin;

use multitap_adapter::{Keeper, LaunchError as NotLaunched, LaunchSpec, launch};
use multitap_event::SessionConfig;
use multitap_hub::{Launch, LaunchError, Launching};
use tokio_util::task::TaskTracker;

/// Starts CLIs and ACP agents, and sees to it that they end.
#[derive(Debug)]
pub struct Adapters {
    keeper: Keeper,
    /// Variables of ours that no agent may see.
    hidden_env: Vec<String>,
    tasks: TaskTracker,
}

impl Adapters {
    pub fn new(keeper: Keeper, hidden_env: Vec<String>) -> Self {
        Self { keeper, hidden_env, tasks: TaskTracker::new() }
    }
}

impl Launch for Adapters {
    fn launch(&self, config: SessionConfig) -> Launching {
        let spec = LaunchSpec { config, keeper: self.keeper.clone(), hidden_env: self.hidden_env.clone() };
        let tasks = self.tasks.clone();
        Box::pin(async move {
            launch(spec, &tasks).await.map_err(|error| match error {
                NotLaunched::Unsupported(unsupported) => LaunchError::Unsupported(unsupported),
                NotLaunched::Agent(error) => LaunchError::Agent(error),
            })
        })
    }

    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}
