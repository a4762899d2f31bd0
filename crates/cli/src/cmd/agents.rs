//! `multitap agents`: the installed agents and their features; and what bare `multitap` shows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use multitap_adapter::{AgentFeatures, AgentInfo};
use multitap_event::{AgentType, SessionConfig};
use multitap_process::{Keeper, Line, Patience, Program, StdinMode, spawn};
use serde::Serialize;
use tokio::time::timeout;

use super::print;
use super::run::run;
use crate::args::{Cli, ReportArgs};
use crate::exit::{Exit, Problem};
use crate::launch::{self, HIDDEN_ENV};
use crate::settings::{self, Settings, Trust};
use crate::words::pretty_json;

/// Shown to newcomers without an agent.
const REHEARSAL: &str = "think about this folder then list then plan look around; ask for something; plug in an agent";

/// Time limit for a program to print its version.
const VERSION_PATIENCE: Duration = Duration::from_secs(10);

/// One agent as installed here.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Agent {
    pub(crate) name: AgentType,
    pub(crate) installed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The version that this version of multitap was tested with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tested: Option<&'static str>,
    /// Whether this version of multitap can drive it, which holds for all that are listed.
    pub(crate) driven: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) install: Option<&'static str>,
    pub(crate) features: AgentFeatures,
    /// The program that was looked for.
    #[serde(skip)]
    pub(crate) wanted: String,
}

/// The features of the built-in agent.
const BUILTIN_FEATURES: AgentFeatures = AgentFeatures {
    // The built-in agent reports no prices, and resumes only at the end of a conversation.
    cost: false,
    resume_at_message: false,
    hooks: false,
    usage_per_model: true,
    structured_output: true,
    resume: true,
    fork: true,
    partial_text: true,
    reasoning: true,
    mcp: true,
    permission_questions: true,
    edited_approval: true,
    cancel: true,
    set_mode: true,
    set_model: true,
    images: true,
};

/// Finds the installed agents.
pub(crate) async fn survey(settings: &Settings) -> Result<Vec<Agent>, Problem> {
    let keeper = launch::keeper()?;
    let mut agents = Vec::new();
    for (info, program) in AgentInfo::programs() {
        let chosen = launch::program(info.agent, settings);
        let version = match &chosen.found {
            Some(path) => version(path, &keeper).await,
            None => None,
        };
        agents.push(Agent {
            name: info.agent,
            installed: chosen.found.is_some(),
            path: chosen.found,
            version,
            tested: Some(program.tested_version),
            install: Some(program.install),
            features: info.features,
            wanted: chosen.wanted,
            ..Agent::without_program(info.agent)
        });
    }
    Ok(agents)
}

impl Agent {
    /// An agent of which only the name and the features are known.
    fn without_program(name: AgentType) -> Self {
        Self {
            name,
            installed: false,
            path: None,
            version: None,
            tested: None,
            driven: true,
            install: None,
            features: AgentInfo::of(name).map(|info| info.features).unwrap_or_default(),
            wanted: String::new(),
        }
    }
}

/// The agents that have no program to look for: ACP agents in general, and the built-in one, which is always there.
fn without_programs() -> [Agent; 2] {
    let builtin = Agent {
        installed: true,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        features: BUILTIN_FEATURES,
        ..Agent::without_program(AgentType::Builtin)
    };
    [Agent::without_program(AgentType::Acp), builtin]
}

/// The version a program prints: the first word that looks like a number.
pub(crate) async fn version(path: &Path, keeper: &Keeper) -> Option<String> {
    let program = Program {
        program: path.to_owned(),
        args: vec!["--version".into()],
        env: Vec::new(),
        env_remove: HIDDEN_ENV.map(Into::into).to_vec(),
        // Many programs fail to start in a deleted folder.
        cwd: std::env::current_dir().is_err().then(std::env::temp_dir),
        stdin: StdinMode::Null,
    };
    let mut child = spawn(program, keeper).await.ok()?;
    let reported = timeout(VERSION_PATIENCE, async {
        loop {
            match child.stdout.next().await {
                Ok(Some(Line::Text(line))) => match number(&line) {
                    Some(number) => return Some(number),
                    None => continue,
                },
                Ok(Some(Line::TooLong { .. })) => {}
                Ok(None) | Err(_) => return None,
            }
        }
    });
    let reported = reported.await.ok().flatten();
    child.stop(Patience::default()).await;
    reported
}

fn number(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().map(|word| word.trim_start_matches('v'));
    words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).map(str::to_owned)
}

pub(crate) async fn agents(args: &ReportArgs) -> Result<Exit, Problem> {
    let mut agents = survey(&load()?).await?;
    agents.extend(without_programs());
    let text = if args.json { pretty_json(&serde_json::json!({ "agents": agents }))? } else { table(&agents) };
    print(&text)
}

/// The agents, for the terminal UI.
pub(crate) async fn lines(folder: &Path) -> Result<String, Problem> {
    let mut agents = survey(&settings::quietly(folder, Trust::AsSet)?).await?;
    agents.extend(without_programs());
    Ok(table(&agents))
}

/// One line for a user who chose no agent: what was found, and which one is used.
pub(crate) fn greeting(config: &SessionConfig, settings: &Settings) -> String {
    let found = AgentInfo::programs().filter(|(info, _)| launch::program(info.agent, settings).found.is_some());
    let found: Vec<&str> = found.map(|(info, _)| info.agent.as_str()).collect();
    match found.as_slice() {
        [] => {
            let known = std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
            let env = known.chain(config.environment.clone()).collect();
            let model = config.model.clone().map_or_else(|| multitap_agent::default_model(&env), Ok);
            match model {
                Ok(model) if model != "rehearsal" => {
                    format!("No other agent found: this is the built-in one, on {model}")
                }
                _ => "No agent found: this is a rehearsal. `multitap doctor` says how to get one".to_owned(),
            }
        }
        [only] => format!("Found {only}"),
        [first, ..] => format!("Found {}: this is {first}; --agent NAME chooses another", found.join(", ")),
    }
}

/// The output of bare `multitap` without a terminal.
pub(crate) async fn welcome() -> Result<Exit, Problem> {
    let agents = survey(&load()?).await?;
    let mut text = format!("multitap {}: one session with any coding agent\n\n", env!("CARGO_PKG_VERSION"));
    text.push_str(&table(&agents));
    text.push_str("\nAsk something:    multitap -p \"explain this folder\"\n");
    text.push_str("See what it does: multitap -p \"…\" --output-format stream-json\n");
    text.push_str("Check your setup: multitap doctor        All options: multitap --help\n");
    let is_alone = !agents.iter().any(|agent| agent.installed);
    if is_alone {
        text.push_str(&format!(
            "\nNo other agent is installed, so here is a rehearsal: multitap -p \"{REHEARSAL}\"\n\n"
        ));
    }
    let printed = print(&text)?;
    if is_alone {
        let args = ["multitap", "-p", REHEARSAL, "--agent", "builtin", "--model", "rehearsal"];
        return run(Cli::parse_from(args).run).await;
    }
    Ok(printed)
}

fn load() -> Result<Settings, Problem> {
    // A deleted folder has no settings, but agents are still installed.
    let folder = launch::folder(None).ok();
    let settings =
        Settings::load(folder.as_deref(), Trust::AsSet).map_err(|error| Problem::usage(error.to_string()))?;
    settings.say_warnings();
    Ok(settings)
}

fn table(agents: &[Agent]) -> String {
    let mut text = String::new();
    for agent in agents {
        let line = match (&agent.path, agent.name) {
            (Some(path), _) => {
                let version = agent.version.as_deref().unwrap_or("version unknown");
                format!("{version:<12} {}", path.display())
            }
            (None, AgentType::Builtin) => "built in: a model of Anthropic, OpenAI or Google, or a rehearsal".to_owned(),
            (None, AgentType::Acp) => "any agent that speaks ACP: --agent acp:COMMAND".to_owned(),
            (None, _) => format!("not found    get it: {}", agent.install.unwrap_or_default()),
        };
        text.push_str(&format!("  {:<8} {line}\n", agent.name.as_str()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("2.1.325 (Claude Code)", Some("2.1.325")),
            ("codex-cli 0.166.0", Some("0.166.0")),
            ("v20.20.2", Some("20.20.2")),
            ("0.61.0", Some("0.61.0")),
            ("hello", None),
            ("", None),
        ] {
            assert_eq!(number(said).as_deref(), version, "{said}");
        }
    }
}
