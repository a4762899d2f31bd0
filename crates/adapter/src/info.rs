//! Facts about each agent that are known before a start. [`AgentInfo::all`] is the only list of agents.
//!
//! Each agent's folder has its `INFO`. The built-in agent is no program and has none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use multitap_event::{AgentKind, AgentType, SessionConfig};
use serde::Serialize;

use crate::codec::Codec;
use crate::history::{Entries, Here, StoredSession};
use crate::project::Project;
use crate::spec::{Start, Starting};
use crate::{acp, claude, codex, gemini};

/// One agent that Multitap drives as a program of its own.
#[derive(Debug)]
pub struct AgentInfo {
    pub agent: AgentType,
    /// `None` for agents behind ACP: their command line says which program it is.
    pub program: Option<ProgramInfo>,
    pub features: AgentFeatures,
    /// Whether the agent accepts prompts during a turn, over its default transport.
    pub steers: bool,
    pub(crate) mcp: McpAbilities,
    pub(crate) home: Option<Home>,
    pub(crate) sign_in: Option<SignInPlaces>,
    pub(crate) store: Option<Store>,
    pub(crate) project: ProjectFiles,
    pub(crate) launch: for<'a> fn(Start<'a>) -> Starting<'a>,
    pub(crate) recorded: fn() -> Box<dyn Codec>,
}

#[derive(Debug)]
pub struct ProgramInfo {
    /// Its name on `PATH`.
    pub name: &'static str,
    /// The environment variable that overrides the program.
    pub variable: &'static str,
    pub install: &'static str,
    /// The version that the fixtures and tests are from.
    pub tested_version: &'static str,
    /// The agent as sessions name it.
    pub kind: AgentKind,
}

/// The features of an agent, through this version of Multitap.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentFeatures {
    pub cost: bool,
    pub usage_per_model: bool,
    pub structured_output: bool,
    pub resume: bool,
    pub resume_at_message: bool,
    pub fork: bool,
    pub hooks: bool,
    pub partial_text: bool,
    pub reasoning: bool,
    pub mcp: bool,
    pub permission_questions: bool,
    pub edited_approval: bool,
    pub cancel: bool,
    pub set_mode: bool,
    pub set_model: bool,
    pub images: bool,
}

/// The settings of an MCP server that an agent supports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct McpAbilities {
    pub(crate) timeout: bool,
    pub(crate) trust: bool,
    pub(crate) include_tools: bool,
    pub(crate) exclude_tools: bool,
    /// Whether the agent itself changes the folder; otherwise the server is started through a shell that does, which
    /// needs Unix.
    pub(crate) cwd: bool,
    /// Whether `trust` and `exclude_tools` become rules that name the server. Such a rule does not work for a name with
    /// an underscore.
    pub(crate) rules_misread_underscores: bool,
}

impl McpAbilities {
    pub(crate) const ALL: Self = Self {
        timeout: true,
        trust: true,
        include_tools: true,
        exclude_tools: true,
        cwd: true,
        rules_misread_underscores: false,
    };
}

/// The folder with an agent's own files.
#[derive(Debug)]
pub(crate) struct Home {
    /// The environment variable that overrides it.
    pub(crate) variable: &'static str,
    /// Whether the variable names the parent folder instead.
    pub(crate) variable_is_parent: bool,
    /// Its name in the user's home.
    pub(crate) folder: &'static str,
}

/// Where an agent records a sign-in.
#[derive(Debug)]
pub(crate) struct SignInPlaces {
    /// Environment variables each of which is enough to sign in.
    pub(crate) variables: &'static [&'static str],
    /// Files in the agent's own folder, or beside it (`../NAME`).
    pub(crate) files: &'static [&'static str],
    pub(crate) fix: &'static str,
    /// Finds a file of the agent's folder that contains a key, or names a way to one.
    pub(crate) in_settings: fn(&Path) -> Option<String>,
    /// macOS may keep the sign-in where files do not show it.
    pub(crate) uses_keychain: bool,
}

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) list: fn(&Path, Option<&Here>) -> Vec<StoredSession>,
    pub(crate) entries: fn(&StoredSession) -> Box<dyn Entries>,
    /// Finds a conversation by its number, if the agent numbers them.
    pub(crate) numbered: Option<Numbered>,
}

/// Finds a conversation among all of a folder by its number.
pub(crate) type Numbered = for<'a> fn(&'a [StoredSession], &str) -> Option<&'a StoredSession>;

/// How an agent treats project files that run or allow something when it starts.
#[derive(Debug)]
pub(crate) struct ProjectFiles {
    /// Finds such files. `None`: the agent may be any of the others.
    pub(crate) look: Option<fn(&mut Project)>,
    /// Whether such files in added folders count too.
    pub(crate) acts_in_added: bool,
    /// Makes the agent start without them; else says why it cannot.
    pub(crate) leave_out: fn(&mut SessionConfig, &Path) -> Result<(), &'static str>,
    /// Marks the folder as trusted for an agent that would ask by itself.
    pub(crate) trust: Option<fn(&mut SessionConfig, &Path)>,
}

impl AgentInfo {
    /// Every agent, in the order in which Multitap looks for a default.
    pub fn all() -> [&'static Self; 4] {
        [&claude::INFO, &codex::INFO, &gemini::INFO, &acp::INFO]
    }

    /// The agents that have a program of their own.
    pub fn programs() -> impl Iterator<Item = (&'static Self, &'static ProgramInfo)> {
        Self::all().into_iter().filter_map(|info| Some((info, info.program.as_ref()?)))
    }

    /// `None` for the built-in agent.
    pub fn of(agent: AgentType) -> Option<&'static Self> {
        Self::all().into_iter().find(|info| info.agent == agent)
    }

    pub fn find_program(&self) -> Option<PathBuf> {
        which::which(self.program.as_ref()?.name).ok()
    }

    /// Whether the agent stores conversations in files that can be listed and read.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// The agent's own folder, as a child process with these variables would find it. Variables that are not given come
    /// from this process.
    pub(crate) fn home(&self, env: &BTreeMap<String, String>) -> Option<PathBuf> {
        let Home { variable, variable_is_parent, folder } = self.home.as_ref()?;
        let value = |name: &str| {
            let own = env.get(name).map(Into::into).or_else(|| std::env::var_os(name));
            own.filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        match value(variable) {
            Some(parent) if *variable_is_parent => Some(parent.join(folder)),
            Some(home) => Some(home),
            None => Some(value("HOME").or_else(std::env::home_dir)?.join(folder)),
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_testkit::cli::{CLAUDE, CODEX, Cli, GEMINI};

    use super::*;

    /// `multitap-testkit` has its own list of pinned versions, because it depends on none of our crates.
    #[test]
    fn tested_versions_are_those_of_the_pinned_programs() {
        let pinned =
            |agent: &str| -> Cli { *[&CLAUDE, &CODEX, &GEMINI].into_iter().find(|cli| cli.agent == agent).unwrap() };
        for (info, program) in AgentInfo::programs() {
            let cli = pinned(info.agent.as_str());
            assert_eq!((program.name, program.tested_version), (cli.agent, cli.version));
            assert!(program.install.ends_with(cli.package), "{}", program.install);
            assert_eq!(program.variable, format!("MULTITAP_{}_BIN", program.name.to_uppercase()));
            assert_eq!(program.kind.agent_type(), info.agent);
        }
    }

    #[test]
    fn every_agent_but_the_built_in_one_is_listed() {
        let listed = |agent: &AgentType| AgentInfo::of(*agent).is_some();
        let missing: Vec<AgentType> = AgentType::ALL.into_iter().filter(|agent| !listed(agent)).collect();
        assert_eq!(missing, [AgentType::Builtin]);
    }
}
