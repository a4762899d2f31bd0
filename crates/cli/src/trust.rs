//! Trust in a folder: what it contains that can act, the question in the terminal, and where the answer is stored.
//!
//! Without a terminal (`-p`, `serve`) there is `--trust`, or a stored answer. The adapter decides what an agent
//! leaves out in an untrusted folder.

use std::path::{Path, PathBuf};

use multitap_adapter::{AgentInfo, acting_files, acting_files_of_added};
use multitap_event::{AgentType, SessionConfig, visible_line};
use multitap_tui::{ChoiceDialog, TerminalLease, choose};

use crate::exit::{Exit, Problem};
use crate::out;
use crate::settings::{self, Settings};

/// Most files listed.
const SHOWN: usize = 12;
/// The key of a project's own settings that acts whichever agent runs: the others are about the built-in agent.
const FOR_ALL: &str = "a2aServers";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TrustAnswer {
    Trusted,
    NotTrusted,
    /// The user does not want to start.
    Left,
}

/// Asks whether the session's folder is trusted, if that makes a difference to its agent. `declined` holds the
/// folders declined in this run, which are not asked about again.
pub(crate) async fn ask(
    lease: &mut TerminalLease,
    config: &SessionConfig,
    settings: &Settings,
    folder: &Path,
    declined: &mut Vec<PathBuf>,
) -> Result<TrustAnswer, Problem> {
    let agent = config.agent.agent_type();
    let env = environment(config);
    let acts = match agent {
        AgentType::Builtin => !settings.permissions.withheld.is_empty(),
        // Without the project's remote agents it starts all the same, and a no would say that it does not.
        AgentType::Acp => !acting_files(agent, folder, &env).is_empty(),
        AgentType::Claude | AgentType::Codex | AgentType::Gemini => {
            settings.permissions.withheld.iter().any(|key| key == FOR_ALL)
                || !acting_files(agent, folder, &env).is_empty()
        }
    };
    if settings.trusted || !acts {
        return Ok(TrustAnswer::NotTrusted);
    }
    let lines = lines(&real(folder), &env, settings);
    ask_with(lease, agent, settings, folder, lines, declined).await
}

/// Asks whether an added folder is trusted, if that makes a difference to the session's agent.
pub(crate) async fn ask_about_added(
    lease: &mut TerminalLease,
    config: &SessionConfig,
    settings: &Settings,
    folder: &Path,
    declined: &mut Vec<PathBuf>,
) -> Result<TrustAnswer, Problem> {
    let agent = config.agent.agent_type();
    let env = environment(config);
    let is_trusted = config.trusted_dirs.iter().any(|trusted| trusted == folder) || settings.trusts(folder);
    if is_trusted || acting_files_of_added(agent, folder, &env).is_empty() {
        return Ok(TrustAnswer::NotTrusted);
    }
    let lines = lines(&real(folder), &env, &Settings::default());
    ask_with(lease, agent, settings, folder, lines, declined).await
}

/// Asks about a folder with these contents, and stores a yes.
async fn ask_with(
    lease: &mut TerminalLease,
    agent: AgentType,
    settings: &Settings,
    folder: &Path,
    lines: Vec<String>,
    declined: &mut Vec<PathBuf>,
) -> Result<TrustAnswer, Problem> {
    let real = real(folder);
    if declined.contains(&real) {
        return Ok(TrustAnswer::NotTrusted);
    }
    let parent = parent(&real);
    let mut answers = vec!["Yes, I trust this folder".to_owned()];
    answers.extend(
        parent.as_ref().map(|parent| visible_line(&format!("Yes, and all of {}", parent.display())).into_owned()),
    );
    answers.push(match agent {
        AgentType::Acp => "No: do not start".to_owned(),
        _ => "No: start without the project's settings".to_owned(),
    });
    let safe = answers.len() - 1;
    let asked = ChoiceDialog {
        title: visible_line(&format!("Do you trust the files in {}?", real.display())).into_owned(),
        lines,
        answers,
        safe,
    };
    let chosen = choose(lease, settings.terminal, &asked).await;
    let chosen = chosen.map_err(|error| Problem::new(Exit::Failed, format!("cannot ask on this terminal: {error}")))?;
    let trusted = match (chosen, parent) {
        (None, _) => return Ok(TrustAnswer::Left),
        (Some(answer), _) if answer == safe => {
            declined.push(real);
            return Ok(TrustAnswer::NotTrusted);
        }
        (Some(1), Some(parent)) => parent,
        (Some(_), _) => real,
    };
    let stored = match settings::home() {
        Some(home) => settings::save::trust(&home.join("settings.json"), &trusted),
        None => Err("no home folder is known".to_owned()),
    };
    if let Err(why) = stored {
        out::say(&format!("multitap: the folder is trusted for this run only: {why}"));
    }
    Ok(TrustAnswer::Trusted)
}

/// The contents of a folder that can act, for people. The answer is for all agents, so the files of all are listed.
fn lines(folder: &Path, env: &std::collections::BTreeMap<String, String>, settings: &Settings) -> Vec<String> {
    let mut found: Vec<String> = AgentInfo::programs()
        .flat_map(|(info, _)| acting_files(info.agent, folder, env))
        .map(|file| format!("  {:<8} {file}", file.agent.as_str()))
        .collect();
    let (for_all, own): (Vec<&str>, Vec<&str>) =
        settings.permissions.withheld.iter().map(String::as_str).partition(|key| *key == FOR_ALL);
    for (whose, keys) in [(AgentType::Builtin.as_str(), own), ("all", for_all)] {
        if !keys.is_empty() {
            found.push(format!("  {whose:<8} .multitap/settings.json ({})", keys.join(", ")));
        }
    }
    if found.len() > SHOWN {
        let more = found.len() - SHOWN;
        found.truncate(SHOWN);
        found.push(format!("  … and {more} more"));
    }
    let mut lines =
        vec!["These files can run programs or allow tools without asking you, as soon as an agent starts:".to_owned()];
    lines.extend(found.iter().map(|line| visible_line(line).into_owned()));
    lines.extend([String::new(), "The answer applies to all agents, even if the files change later.".to_owned()]);
    lines
}

/// The parent folder, unless it is the user's home or the root.
fn parent(folder: &Path) -> Option<PathBuf> {
    let parent = folder.parent().filter(|parent| parent.parent().is_some())?;
    (!settings::holds_home(parent)).then(|| parent.to_owned())
}

fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

fn environment(config: &SessionConfig) -> std::collections::BTreeMap<String, String> {
    let own = config.program.as_ref().map(|program| program.env.clone()).unwrap_or_default();
    own.into_iter().chain(config.environment.clone()).collect()
}
