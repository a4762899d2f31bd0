//! `multitap doctor`: checks the setup and suggests fixes.

use std::io::Read as _;
use std::path::Path;

use multitap_adapter::SignIn;
use multitap_agent::{Enforcement, Sandbox};
use multitap_bridge::{Bridge, BridgeOptions, Loaded};
use multitap_event::{AgentKind, AgentType, SandboxMode, visible_line};
use serde::Serialize;

use super::agents::{Agent, survey, version};
use super::print;
use crate::args::ReportArgs;
use crate::exit::{Exit, Problem};
use crate::launch::{self, HIDDEN_ENV};
use crate::remote_agents;
use crate::settings::{self, Settings, Trust};
use crate::words::pretty_json;

/// The oldest supported Node.js for agents written in JavaScript.
const OLDEST_NODE: u64 = 20;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    name: String,
    status: Status,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    Ok,
    /// Missing, but not needed.
    Skipped,
    Warning,
    Problem,
}

impl Check {
    fn ok(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status: Status::Ok, message: message.into(), fix: None }
    }

    fn warning(name: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status: Status::Warning, message: message.into(), fix: Some(fix.into()) }
    }

    fn problem(name: &str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Problem, ..Self::warning(name, message, fix) }
    }
}

/// The command. Succeeds if a usable agent exists.
pub(crate) async fn doctor(args: &ReportArgs) -> Result<Exit, Problem> {
    let mut checks = Vec::new();
    let settings = match Settings::load(launch::folder(None).ok().as_deref(), Trust::AsSet) {
        Ok(settings) => {
            checks.extend(settings_checks(&settings));
            settings
        }
        Err(error) => {
            checks.push(Check::problem("settings", error.to_string(), "correct the file, or move it away"));
            Settings::default()
        }
    };
    checks.push(home_check());
    let (agents, remote) = tokio::join!(survey(&settings), remote_checks(&settings));
    let agents = agents?;
    // The agent that would start, if any.
    let named = std::env::var("MULTITAP_AGENT").ok();
    let chosen = match launch::agent(named.as_deref(), &settings) {
        Ok(kind) => Some(kind),
        Err(problem) => {
            if problem.exit == Exit::Usage {
                checks.push(Check::problem("agent", problem.to_string(), "correct MULTITAP_AGENT"));
            }
            None
        }
    };
    for agent in &agents {
        checks.push(agent_check(agent, chosen.as_ref().is_none_or(|kind| kind.agent_type() == agent.name)));
        checks.extend(sign_in_check(agent, &settings));
        checks.extend(node_check(agent).await?);
        checks.extend(sandbox_check(agent).await?);
    }
    checks.extend([builtin_check(&settings), shell_sandbox_check().await?]);
    checks.extend(remote);
    let acp = chosen.as_ref().and_then(acp_check);
    let acp_is_there = acp.as_ref().is_some_and(|check| check.status == Status::Ok);
    checks.extend(acp);
    let chosen_type = chosen.as_ref().map(AgentKind::agent_type);
    let usable = chosen.is_some_and(|kind| match kind {
        AgentKind::Acp { .. } => acp_is_there,
        AgentKind::Builtin => true,
        kind => agents.iter().any(|agent| agent.name == kind.agent_type() && agent.installed),
    });
    let sound = !checks.iter().any(|check| check.name == "settings" && check.status == Status::Problem);
    let usable = usable && sound;
    let verdict = if usable { verdict(chosen_type, &checks, &agents) } else { NOT_USABLE.to_owned() };
    let text = if args.json {
        let report = serde_json::json!({ "usable": usable, "checks": checks, "agents": agents });
        pretty_json(&report)?
    } else {
        report(&checks, &verdict)
    };
    print(&text)?;
    Ok(if usable { Exit::Completed } else { Exit::Failed })
}

fn settings_checks(settings: &Settings) -> Vec<Check> {
    let mut checks: Vec<Check> = settings
        .warnings
        .iter()
        .map(|warning| Check::warning("settings", warning.clone(), "remove or correct it"))
        .collect();
    if checks.is_empty() {
        let files: Vec<String> = settings.files.iter().map(|file| file.display().to_string()).collect();
        let read = if files.is_empty() { "none, and none are needed".to_owned() } else { files.join(", ") };
        checks.push(Check::ok("settings", read));
    }
    checks
}

/// Checks that the settings folder, or its nearest existing parent, is writable.
fn home_check() -> Check {
    let Some(home) = settings::home() else {
        return Check::warning("home", "no home folder is known", "set HOME or MULTITAP_HOME");
    };
    let name = home.display();
    let nearest = home.ancestors().find(|folder| folder.exists());
    match nearest.map(tempfile_in) {
        Some(Ok(())) if home.exists() => Check::ok("home", format!("{name}")),
        Some(Ok(())) => Check::ok("home", format!("{name} (not there yet; can be made)")),
        Some(Err(error)) => Check::warning(
            "home",
            format!("{name} cannot be written to: {error}"),
            "change its permissions, or name another folder with MULTITAP_HOME",
        ),
        None => Check::warning("home", format!("{name} cannot be made"), "name another folder with MULTITAP_HOME"),
    }
}

fn tempfile_in(folder: &Path) -> std::io::Result<()> {
    let probe = folder.join(format!(".multitap-doctor-{}", std::process::id()));
    std::fs::File::create_new(&probe)?;
    std::fs::remove_file(&probe)
}

/// `needed`: without this agent nothing works.
fn agent_check(agent: &Agent, needed: bool) -> Check {
    let name = agent.name.as_str();
    let install = agent.install.unwrap_or_default();
    let tested = agent.tested.map(|tested| format!("; tested with {tested}")).unwrap_or_default();
    let Some(path) = &agent.path else {
        let missing = if agent.wanted == name { format!("no program '{name}' on PATH") } else { agent.wanted.clone() };
        let message = format!("not found: {missing}{tested}");
        let variable = launch::program_info(agent.name).map_or("", |program| program.variable);
        let fix = format!("{install}, or name its program with {variable}");
        return if needed {
            Check::problem(name, message, fix)
        } else {
            Check { status: Status::Skipped, ..Check::warning(name, message, fix) }
        };
    };
    let path = path.display();
    match (&agent.version, agent.tested) {
        (None, _) => Check::warning(
            name,
            format!("{path} does not report its version{tested}"),
            format!("run `{path} --version` yourself; if it fails: {install}"),
        ),
        (Some(version), known) => {
            let remark = if known.is_some_and(|known| version != known) { ", not with this version" } else { "" };
            let message = format!("{version} at {path}{tested}{remark}");
            // A newer version most likely works as well.
            if known.is_none_or(|known| version == known || newer(version, known)) {
                Check::ok(name, message)
            } else {
                Check::warning(name, message, format!("if it misbehaves: {install}@latest"))
            }
        }
    }
}

/// Whether the user is signed in with an installed agent. A hidden sign-in is not reported.
fn sign_in_check(agent: &Agent, settings: &Settings) -> Option<Check> {
    let name = sign_in_name(agent.name);
    agent.path.as_ref().filter(|_| agent.version.is_some())?;
    match multitap_adapter::sign_in(agent.name, &settings.of(agent.name).env) {
        SignIn::Found(place) => Some(Check::ok(&name, format!("found in {place}"))),
        SignIn::Missing { fix } => Some(Check::warning(&name, "not signed in", fix)),
        SignIn::Unknown => None,
    }
}

fn sign_in_name(agent: AgentType) -> String {
    format!("{agent} sign-in")
}

fn newer(version: &str, than: &str) -> bool {
    let parts = |text: &str| text.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u64>>();
    parts(version) > parts(than)
}

/// Whether the command of the chosen ACP agent exists.
fn acp_check(chosen: &AgentKind) -> Option<Check> {
    let AgentKind::Acp { command } = chosen else { return None };
    Some(match multitap_adapter::acp_program(command) {
        Ok(program) => Check::ok("acp", format!("{} for acp:{command}", program.command.display())),
        Err(error) => Check::problem("acp", error.message, "install that program, or choose another agent"),
    })
}

/// Codex sandboxes every command, and reports nothing where it cannot.
async fn sandbox_check(agent: &Agent) -> Result<Option<Check>, Problem> {
    let answers = agent.name == AgentType::Codex && agent.version.is_some();
    let Some(path) = agent.path.clone().filter(|_| answers) else { return Ok(None) };
    let trouble = multitap_adapter::codex_sandbox_trouble(path, &HIDDEN_ENV, &launch::keeper()?).await;
    Ok(Some(match trouble {
        None => Check::ok("sandbox", "codex can set up its own"),
        Some(why) => Check::warning(
            "sandbox",
            format!("codex cannot set up its own, so every command it runs will fail: {why}"),
            "allow user namespaces, or run it with `--sandbox full-access --approval-mode ask`",
        ),
    }))
}

/// Which model the built-in agent would use.
fn builtin_check(settings: &Settings) -> Check {
    let own = settings.of(AgentType::Builtin);
    let known =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env = known.chain(own.env).collect();
    match own.model.map_or_else(|| multitap_agent::default_model(&env), Ok) {
        Ok(model) if model == "rehearsal" => Check::ok(
            "builtin",
            "built in; rehearses without a key (set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY)",
        ),
        Ok(model) => Check::ok("builtin", format!("built in, with the model {model}")),
        Err(why) => Check::warning("builtin", why, "correct the variable; or choose with --model"),
    }
}

/// Checks which parts of `--sandbox` can be enforced for the built-in agent.
async fn shell_sandbox_check() -> Result<Check, Problem> {
    let folder = launch::folder(None).into_iter().collect::<Vec<_>>();
    let keeper = launch::keeper()?;
    let tried = Sandbox::set_up(SandboxMode::WorkspaceWrite, &folder, Enforcement::Full, &keeper).await;
    Ok(match tried {
        Ok(Some(sandbox)) => Check::ok("shell", format!("--sandbox can be enforced: {}", sandbox.enforced())),
        Ok(None) => Check { status: Status::Skipped, ..Check::ok("shell", "not available on this system") },
        Err(error) => {
            let how = "--sandbox-best-effort accepts less; without --sandbox nothing changes";
            Check { status: Status::Skipped, ..Check::warning("shell", error.to_string(), how) }
        }
    })
}

/// The configured remote agents: whether agents get them, and which respond.
async fn remote_checks(settings: &Settings) -> Vec<Check> {
    const NAME: &str = "a2aServers";
    let entries = settings.a2a_servers.clone();
    if entries.is_empty() {
        return Vec::new();
    }
    let given = if settings.mcp_servers.contains_key(remote_agents::NAME) {
        Check::warning(NAME, remote_agents::OWN_SERVER, "rename it in mcpServers, or remove a2aServers")
    } else {
        let count = match entries.len() {
            1 => "1 remote agent".to_owned(),
            count => format!("{count} remote agents"),
        };
        Check::ok(NAME, format!("{count}: every agent gets them as the MCP server {}", remote_agents::NAME))
    };
    let bridge = Bridge::new(BridgeOptions::default());
    let loaded = bridge.load(entries).await;
    bridge.close().await;
    let one = |Loaded { name, address, error }| match error {
        None => Check::ok(NAME, format!("{name}: {address} answers")),
        Some(why) => Check::warning(
            NAME,
            format!("{name}: {address} cannot be used: {}", visible_line(&why)),
            "start that agent, or correct its entry in a2aServers",
        ),
    };
    std::iter::once(given).chain(loaded.into_iter().map(one)).collect()
}

/// For agents that are Node.js scripts: whether a recent Node.js is installed.
async fn node_check(agent: &Agent) -> Result<Option<Check>, Problem> {
    let Some(path) = agent.path.as_deref().filter(|path| wants_node(path)) else { return Ok(None) };
    let fix = format!("install Node.js {OLDEST_NODE} or newer: https://nodejs.org");
    let Ok(node) = which::which("node") else {
        let message = format!("{} needs Node.js, and there is no 'node' on PATH", path.display());
        return Ok(Some(Check::problem("node", message, fix)));
    };
    let Some(version) = version(&node, &launch::keeper()?).await else {
        return Ok(Some(Check::warning("node", format!("{} does not report its version", node.display()), fix)));
    };
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok()).unwrap_or(0);
    let message = format!("{version} at {}, for {}", node.display(), agent.name);
    Ok(Some(if major >= OLDEST_NODE { Check::ok("node", message) } else { Check::warning("node", message, fix) }))
}

/// Whether the program's first line names Node.js.
fn wants_node(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(128).read_to_end(&mut head));
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && first.starts_with(b"#!") && String::from_utf8_lossy(first).contains("node")
}

const NOT_USABLE: &str = "No agent can be used yet: fix the problems above.";

/// The summary: what works with the agent that would start, else with another one.
fn verdict(chosen: Option<AgentType>, checks: &[Check], agents: &[Agent]) -> String {
    const ASK: &str = "-p \"explain this folder\"";
    let sign_in = |agent: AgentType| checks.iter().find(|check| check.name == sign_in_name(agent));
    let rehearses = checks.iter().any(|check| check.name == "builtin" && check.message.contains("rehearses"));
    if chosen == Some(AgentType::Builtin) && rehearses {
        return format!(
            "Ready for a rehearsal, which follows fixed rules: multitap {ASK}\nFor answers from a real model, install an agent or set a key."
        );
    }
    let missing = chosen.and_then(|agent| Some((agent, sign_in(agent).filter(|check| check.status != Status::Ok)?)));
    let Some((agent, check)) = missing else { return format!("Ready: multitap {ASK}") };
    let signed_in = |agent: &&Agent| sign_in(agent.name).is_some_and(|check| check.status == Status::Ok);
    let other = agents.iter().find(signed_in).map(|agent| agent.name);
    let (other, how) = match other {
        Some(other) => (other, ""),
        None if rehearses => (AgentType::Builtin, ", which without a key only rehearses"),
        None => (AgentType::Builtin, ""),
    };
    let fix = check.fix.as_deref().unwrap_or_default();
    format!("{agent} is not signed in: {fix}\nUntil then, use {other}{how}: multitap --agent {other} {ASK}")
}

fn report(checks: &[Check], verdict: &str) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = match check.status {
            Status::Ok => "ok     ",
            Status::Skipped => "skip   ",
            Status::Warning => "warning",
            Status::Problem => "problem",
        };
        text.push_str(&format!("{mark}  {:<14}  {}\n", check.name, check.message));
        if let Some(fix) = &check.fix {
            text.push_str(&format!("{:25}fix: {fix}\n", ""));
        }
    }
    text.push_str(&format!("\n{verdict}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers() {
        assert!(newer("2.1.1000", "2.1.325"));
        assert!(newer("3.0.0", "2.1.325"));
        assert!(!newer("2.1.99", "2.1.325"));
        assert!(!newer("2.1.325", "2.1.325"));
    }
}
