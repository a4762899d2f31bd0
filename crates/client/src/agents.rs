//! The agents that Multitap knows, as the hub launches them: those of `multitap-adapter`, and the built-in one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;

use multitap_adapter::{Keeper, LaunchSpec};
use multitap_agent::UserShell;
pub use multitap_agent::{McpPipe, Save};
use multitap_event::{AgentKind, SessionConfig};
use multitap_hub::{Launch, Launching};
use tokio_util::task::TaskTracker;

/// Launches CLIs, ACP agents and the built-in agent, and ends them.
#[derive(Debug)]
pub struct Agents {
    keeper: Keeper,
    /// Variables hidden from every agent.
    hidden_env: Vec<String>,
    builtin: Builtin,
    /// Whether prompts that begin with `!` run as shell commands, as the built-in agent does by itself.
    shell_lines: bool,
    tasks: TaskTracker,
}

/// The settings of the built-in agent for every session.
#[derive(Clone, Default)]
pub struct Builtin {
    /// Folder for its conversations; without it they are not stored.
    pub data: Option<PathBuf>,
    /// Folder of the user's memory files and custom commands.
    pub config: Option<PathBuf>,
    /// Writes a rule to the user's settings.
    pub save: Option<Save>,
    /// Folders hidden from sandboxed commands, where the system can hide them.
    pub hidden: Vec<PathBuf>,
    /// Folders that sandboxed sessions cannot change: settings and data of this program.
    pub protected: Vec<PathBuf>,
}

/// Additions to one session's configuration.
#[derive(Debug, Clone, Default)]
pub struct SessionExtras {
    /// Variables hidden from the agent and its commands, unless the configuration sets them.
    pub hidden_env: Vec<String>,
    /// MCP servers of this process, by their names in the configuration (the built-in agent only).
    pub pipes: BTreeMap<String, McpPipe>,
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builtin").field("data", &self.data).field("config", &self.config).finish_non_exhaustive()
    }
}

impl Agents {
    pub fn new(keeper: Keeper, hidden_env: Vec<String>, builtin: Builtin) -> Self {
        Self { keeper, hidden_env, builtin, shell_lines: false, tasks: TaskTracker::new() }
    }

    /// Runs prompts that begin with `!` as shell commands, without asking, if their sender owns the session. For
    /// programs whose prompts people type; do not enable it if prompts come from strangers.
    #[must_use]
    pub fn taking_shell_lines(self) -> Self {
        Self { shell_lines: true, ..self }
    }

    /// Launches an agent with additions to its configuration. See [`Launch::launch`].
    pub fn launch_with(&self, config: SessionConfig, extras: SessionExtras) -> Launching {
        if config.agent == AgentKind::Builtin {
            return self.builtin(config, extras);
        }
        let hidden_env = [&self.hidden_env[..], &extras.hidden_env].concat();
        // Edited answers and shell commands are subject to the same rules.
        let blocked = [&config.blocked_tools[..], &config.edit_blocks].concat();
        let shell = self.shell_lines.then(|| UserShell {
            folder: config.working_directory.clone().unwrap_or_else(|| PathBuf::from(".")),
            keeper: self.keeper.clone(),
            environment: config.environment.clone(),
            hidden_env: hidden_env.clone(),
            blocked: blocked.clone(),
        });
        let spec = LaunchSpec { config, keeper: self.keeper.clone(), hidden_env };
        let tasks = self.tasks.clone();
        Box::pin(async move {
            let link = multitap_adapter::launch(spec, &tasks).await?;
            let link = multitap_agent::edit_gate(link, &blocked, &tasks);
            Ok(match shell {
                Some(shell) => multitap_agent::shell_lines(link, shell, &tasks),
                None => link,
            })
        })
    }

    fn builtin(&self, config: SessionConfig, extras: SessionExtras) -> Launching {
        let hidden = |name: &str| self.hidden_env.iter().any(|hidden| hidden == name);
        let known =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let mut env: BTreeMap<_, _> = known.filter(|(name, _)| !hidden(name)).collect();
        env.extend(config.environment.clone());
        let setup = multitap_agent::Setup {
            keeper: self.keeper.clone(),
            hidden_env: [&self.hidden_env[..], &extras.hidden_env].concat(),
            hidden_folders: self.builtin.hidden.clone(),
            protected_folders: self.builtin.protected.clone(),
            data: self.builtin.data.clone(),
            config: self.builtin.config.clone(),
            env,
            trusted: config.trusted,
            private_addresses: config.private_addresses,
            save: self.builtin.save.clone(),
            pipes: extras.pipes,
        };
        let tasks = self.tasks.clone();
        Box::pin(async move { multitap_agent::launch(config, setup, &tasks).await })
    }
}

impl Launch for Agents {
    fn launch(&self, config: SessionConfig) -> Launching {
        self.launch_with(config, SessionExtras::default())
    }

    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}
