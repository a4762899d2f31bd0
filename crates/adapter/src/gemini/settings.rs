//! Sets up Gemini by variables and private files; the user's own settings are read, never written.

use std::path::{Path, PathBuf};

use multitap_event::{AgentError, AgentType, Resume, SessionConfig, Transport};
use serde_json::Value;
use tempfile::TempPath;

use super::project::is_left_out;
use crate::json::with_comments;
use crate::spec::private_file;

/// The address of Gemini's models, unless another server is named.
const MODEL_SERVER: &str = "https://generativelanguage.googleapis.com";

/// The private files of a session, with the variables and arguments that name them.
#[derive(Default)]
pub(super) struct Private {
    pub(super) files: Vec<TempPath>,
    pub(super) env: Vec<(String, String)>,
    pub(super) args: Vec<String>,
}

pub(super) fn private(config: &SessionConfig) -> Result<Private, AgentError> {
    let mut private = Private::default();
    // If commands get a terminal, their output is missing when they finish.
    private.env.push(("GEMINI_PTY_INFO".to_owned(), "child_process".to_owned()));
    if let Some(prompt) = &config.system_prompt {
        let path = private.file(".md", prompt)?;
        private.env.push(("GEMINI_SYSTEM_MD".to_owned(), path));
    }
    let policy = policy(config);
    if !policy.is_empty() {
        let path = private.file(".toml", &policy)?;
        // Not `--policy`: that would replace the user's own rules.
        private.args.extend(["--admin-policy".to_owned(), path]);
    }
    if config.transport == Transport::Default && config.resume != Resume::New && must_name_server(config) {
        private.env.push(("GOOGLE_GEMINI_BASE_URL".to_owned(), MODEL_SERVER.to_owned()));
    }
    Ok(private)
}

impl Private {
    fn file(&mut self, suffix: &str, text: &str) -> Result<String, AgentError> {
        let file = private_file(AgentType::Gemini, suffix, text)?;
        let path = file.display().to_string();
        self.files.push(file);
        Ok(path)
    }
}

/// The end of an allow rule, for modes in which something may be changed.
const ALLOW: &str = "decision = \"allow\"\npriority = 800\nmodes = [\"default\", \"autoEdit\", \"yolo\"]\n\n";

/// Rules for the tools of the session. An allow rule may name the beginning of a shell command, such as
/// `run_shell_command(git status)`. Allow rules do not apply in modes in which nothing may be changed.
fn policy(config: &SessionConfig) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let deny = |tool: &String| format!("[[rule]]\ntoolName = {}\ndecision = \"deny\"\npriority = 900\n\n", text(tool));
    let allow = |tool: &String| {
        let (name, prefix) = command_rule(tool);
        let prefix = prefix.map(|prefix| format!("commandPrefix = {}\n", text(prefix))).unwrap_or_default();
        format!("[[rule]]\ntoolName = {}\n{prefix}{ALLOW}", text(name))
    };
    let servers = config.mcp_servers.iter().flat_map(|(name, server)| {
        // A rule without `toolName` would invalidate the whole file.
        let of = |tool: &str| format!("[[rule]]\nmcpName = {}\ntoolName = {}\n", text(name), text(tool));
        let deny = server.exclude_tools.iter().map(|tool| of(tool) + "decision = \"deny\"\npriority = 900\n\n");
        deny.chain(server.trust.then(|| of("*") + ALLOW)).collect::<Vec<_>>()
    });
    config.blocked_tools.iter().map(deny).chain(config.allowed_tools.iter().map(allow)).chain(servers).collect()
}

/// The tool and the beginning of the command in `run_shell_command(git status)`.
pub(super) fn command_rule(tool: &str) -> (&str, Option<&str>) {
    match tool.split_once('(') {
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').unwrap_or(rest))),
        None => (tool, None),
    }
}

/// Over ACP, Gemini resumes a conversation only if its settings say how to sign in, or if a model server is named; for
/// a new conversation, a key in the environment is enough. So we name the default server, where that makes no other
/// difference.
fn must_name_server(config: &SessionConfig) -> bool {
    let chosen = |folder: PathBuf| set(&folder, "/security/auth/selectedType").is_some_and(|value| value.is_string());
    variable(config, "GEMINI_API_KEY").is_some()
        && variable(config, "GOOGLE_GEMINI_BASE_URL").is_none()
        && !home(config).is_some_and(chosen)
        && !project_folder(config).is_some_and(chosen)
}

/// Whether Gemini's own settings enable checkpoints; those of the project take precedence. Gemini has no option for it,
/// and settings files named by a variable must belong to root.
pub(super) fn takes_checkpoints(config: &SessionConfig) -> bool {
    let places = [project_folder(config), home(config)];
    let said = places.into_iter().flatten().find_map(|folder| set(&folder, "/general/checkpointing/enabled"));
    said == Some(true.into())
}

/// The folder whose settings are the project's; `None` if they are left out.
fn project_folder(config: &SessionConfig) -> Option<PathBuf> {
    config.working_directory.clone().filter(|_| !is_left_out(&config.environment))
}

/// The value at that place in the settings of a folder.
fn set(folder: &Path, pointer: &str) -> Option<Value> {
    let text = std::fs::read_to_string(folder.join(".gemini").join("settings.json")).ok()?;
    with_comments(&text).ok()?.pointer(pointer).cloned()
}

/// The folder that holds Gemini's own folder.
pub(super) fn home(config: &SessionConfig) -> Option<PathBuf> {
    let named = ["GEMINI_CLI_HOME", "HOME"].into_iter().find_map(|name| variable(config, name));
    named.map(PathBuf::from).or_else(std::env::home_dir)
}

/// A variable as the agent will see it.
pub(super) fn variable(config: &SessionConfig, name: &str) -> Option<String> {
    let own = config.program.as_ref().and_then(|program| program.env.get(name));
    let given = config.environment.get(name).or(own).cloned();
    given.or_else(|| std::env::var(name).ok()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use multitap_event::{McpReach, McpServer};

    use super::*;

    #[test]
    fn checkpoints_are_switched_on_in_the_users_settings_or_the_projects() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = SessionConfig::new(multitap_event::AgentKind::Gemini);
        config.environment.insert("GEMINI_CLI_HOME".to_owned(), folder.path().join("home").display().to_string());
        config.working_directory = Some(folder.path().join("work"));
        let say = |place: &str, enabled: bool| {
            let own = folder.path().join(place).join(".gemini");
            std::fs::create_dir_all(&own).unwrap();
            let text = format!("{{ /* mine */ \"general\": {{\"checkpointing\": {{\"enabled\": {enabled}}}}} }}");
            std::fs::write(own.join("settings.json"), text).unwrap();
        };
        assert!(!takes_checkpoints(&config));
        say("home", true);
        assert!(takes_checkpoints(&config));
        say("work", false);
        assert!(!takes_checkpoints(&config), "the project's settings win");
        say("work", true);
        say("home", false);
        assert!(takes_checkpoints(&config));
    }

    #[test]
    fn tools_become_rules() {
        let mut config = SessionConfig::new(multitap_event::AgentKind::Gemini);
        config.blocked_tools = vec!["web_fetch".to_owned()];
        config.allowed_tools = vec!["run_shell_command(git status)".to_owned()];
        let server = McpServer::from(McpReach::program("serve", Vec::new()));
        let server = McpServer { trust: true, exclude_tools: vec!["fail".to_owned()], ..server };
        config.mcp_servers = [("tiny".to_owned(), server)].into();
        insta::assert_snapshot!(policy(&config));
    }
}
