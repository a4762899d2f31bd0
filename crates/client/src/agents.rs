//! The agents that Multitap knows, as the hub starts them: those of `multitap-adapter`, and its own.

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

/// Starts CLIs, ACP agents and the built-in agent, and sees to it that they end.
#[derive(Debug)]
pub struct Agents {
    keeper: Keeper,
    /// Variables of ours that no agent may see.
    hidden_env: Vec<String>,
    builtin: Builtin,
    /// Whether agents take lines that begin with `!`, as the built-in one does by itself.
    shell_lines: bool,
    tasks: TaskTracker,
}

/// What the built-in agent needs to know in every session: where it finds and keeps its things.
#[derive(Clone, Default)]
pub struct Builtin {
    /// Its conversations; without it they are not kept.
    pub data: Option<PathBuf>,
    /// The user's memory and commands.
    pub config: Option<PathBuf>,
    /// Writes a rule to the user's settings.
    pub save: Option<Save>,
    /// Folders that no command in a sandbox may see, where the system can hide them.
    pub hidden: Vec<PathBuf>,
}

/// What the agent of one session is started with beside its configuration.
#[derive(Debug, Clone, Default)]
pub struct SessionExtras {
    /// Variables that neither the agent nor its commands may see. What the configuration adds to the environment stays.
    pub hidden_env: Vec<String>,
    /// MCP servers of this process, by their names in the configuration (the built-in agent).
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

    /// A prompt that begins with `!` is a command, which is run unasked for those who own the session. For programs
    /// whose prompts people type; one that passes on the words of strangers must not want it.
    #[must_use]
    pub fn taking_shell_lines(self) -> Self {
        Self { shell_lines: true, ..self }
    }

    /// Starts an agent, with more than its configuration says. See [`Launch::launch`].
    pub fn launch_with(&self, config: SessionConfig, extras: SessionExtras) -> Launching {
        if config.agent == AgentKind::Builtin {
            return self.builtin(config, extras);
        }
        let hidden_env = [&self.hidden_env[..], &extras.hidden_env].concat();
        // Edited answers and lines of the user pass the same rules.
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
