//! Settings: the user's file, and the project's.
//!
//! The user's file may set everything. The project's comes with somebody else's code, so it may only set what is
//! harmless: which known agent to prefer, whether to include native lines, and what is forbidden. It never chooses a
//! program, its arguments, its environment, MCP servers or who grants permission, unless the user trusts the folder,
//! and then only permissions and remote agents.

mod mcp;
mod permission;
pub(crate) mod save;
mod terminal;
mod variable;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use etcetera::BaseStrategy as _;
use jsonc_parser::ParseOptions;
use multitap_event::{
    A2aServer, AgentKind, AgentType, McpServer, PermissionPath, Transport, UnknownAgent, visible_line,
};
use multitap_tui::{Colours, TerminalPreferences, supports_links};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::permission::Permissions;
pub(crate) use self::permission::holds_home;
use self::variable::{check_size, expand};
use crate::exit::Problem;
use crate::out;

/// JSON, and comments and trailing commas.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Larger files are rejected.
const LARGEST: u64 = 1024 * 1024;
/// Maximum number of warnings about one file; the rest is counted.
const MOST_WARNINGS: usize = 20;

/// Settings from the files and the environment.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) agent: Option<AgentChoice>,
    pub(crate) keep_raw: bool,
    pub(crate) permissions: Permissions,
    /// Whether the user trusts the session's folder.
    pub(crate) trusted: bool,
    /// `--trust`: every folder of this run is trusted.
    trusts_all: bool,
    agents: BTreeMap<AgentType, AgentSettings>,
    /// MCP servers for every agent.
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    /// Remote agents that every agent gets as tools.
    pub(crate) a2a_servers: Vec<A2aServer>,
    pub(crate) a2a: A2a,
    pub(crate) terminal: TerminalPreferences,
    /// Warnings about the files, for the user.
    pub(crate) warnings: Vec<String>,
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
}

/// Settings of the A2A door.
#[derive(Debug, Default)]
pub(crate) struct A2a {
    /// Clients must use the `development-tool` extension.
    pub(crate) extension_required: bool,
}

/// Whether the folder is trusted for this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// As the user's settings say.
    AsSet,
    /// The user confirmed the session's folder.
    ThisFolder,
    /// Every folder of this run, added ones included.
    ForThisRun,
}

impl Trust {
    /// From the `--trust` option.
    pub(crate) fn of(is_given: bool) -> Self {
        if is_given { Self::ForThisRun } else { Self::AsSet }
    }
}

/// The requested agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentChoice {
    Kind(AgentKind),
    /// `acp`: the command in the user's settings.
    SetAcp,
}

impl FromStr for AgentChoice {
    type Err = UnknownAgent;

    fn from_str(word: &str) -> Result<Self, UnknownAgent> {
        if word == AgentType::Acp.as_str() { Ok(Self::SetAcp) } else { word.parse().map(Self::Kind) }
    }
}

/// Settings of one agent.
#[derive(Clone, Default)]
pub(crate) struct AgentSettings {
    /// Its program; for ACP a whole command line, as after `acp:`.
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) permission: PermissionPath,
    pub(crate) transport: Transport,
    pub(crate) checkpointing: bool,
    /// For the built-in agent.
    pub(crate) model: Option<String>,
}

impl std::fmt::Debug for AgentSettings {
    /// Values are omitted: the environment may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentSettings")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

/// A settings file is not usable.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", file.display(), visible_line(problem))]
pub(crate) struct SettingsError {
    pub(crate) file: PathBuf,
    pub(crate) problem: String,
}

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    User,
    Project {
        /// Whether the user's settings let this folder grant permissions.
        trusted: bool,
    },
}

/// The settings of a session in that folder; prints warnings.
pub(crate) fn of(folder: &Path, trust: Trust) -> Result<Settings, Problem> {
    let settings = quietly(folder, trust)?;
    settings.say_warnings();
    Ok(settings)
}

/// Like [`of`], without printing the warnings.
pub(crate) fn quietly(folder: &Path, trust: Trust) -> Result<Settings, Problem> {
    Settings::load(Some(folder), trust).map_err(|error| Problem::usage(error.to_string()))
}

/// Parses MCP servers as the settings would; also returns what is ignored.
pub(crate) fn mcp_servers(value: &Value) -> Result<(BTreeMap<String, McpServer>, Vec<String>), String> {
    let mut notes = Vec::new();
    let servers = mcp::servers(value, &mut notes)?;
    Ok((servers, notes))
}

/// The folder of our own settings.
pub(crate) fn home() -> Option<PathBuf> {
    match std::env::var_os("MULTITAP_HOME").filter(|home| !home.is_empty()) {
        Some(home) => Some(home.into()),
        None => Some(etcetera::choose_base_strategy().ok()?.config_dir().join("multitap")),
    }
}

impl Settings {
    /// Reads the user's file, then the folder's project file, then the environment.
    pub(crate) fn load(folder: Option<&Path>, trust: Trust) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        if let Some(home) = home() {
            settings.read(&home.join("settings.json"), Source::User)?;
        }
        if let Some(folder) = folder {
            settings.trusts_all = trust == Trust::ForThisRun;
            let trusted = trust == Trust::ThisFolder || settings.trusts(folder);
            settings.trusted = trusted;
            settings.read(&folder.join(".multitap/settings.json"), Source::Project { trusted })?;
        }
        if let Ok(word) = std::env::var("MULTITAP_KEEP_RAW") {
            settings.keep_raw = !matches!(word.as_str(), "" | "0" | "false");
        }
        settings.terminal.colours = Colours::of(|name| std::env::var(name).ok());
        settings.terminal.links = supports_links(|name| std::env::var(name).ok());
        Ok(settings)
    }

    /// Whether the user trusts a folder.
    pub(crate) fn trusts(&self, folder: &Path) -> bool {
        self.trusts_all || self.permissions.trusts(folder)
    }

    /// Prints the warnings about the files.
    pub(crate) fn say_warnings(&self) {
        for warning in &self.warnings {
            out::say(&format!("multitap: {warning}"));
        }
    }

    /// The settings of that agent.
    pub(crate) fn of(&self, agent: AgentType) -> AgentSettings {
        self.agents.get(&agent).cloned().unwrap_or_default()
    }

    fn read(&mut self, file: &Path, source: Source) -> Result<(), SettingsError> {
        let wrong = |problem: String| SettingsError { file: file.to_owned(), problem };
        // Checked before it is opened: a link in a project may lead to an endless file.
        let text = match std::fs::metadata(file) {
            Ok(data) if !data.is_file() => return Err(wrong("is not a plain file".to_owned())),
            Ok(data) if data.len() > LARGEST => return Err(wrong(format!("is larger than {LARGEST} bytes"))),
            looked => looked.and_then(|_| std::fs::read_to_string(file)),
        };
        let text = match text {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
        };
        self.files.push(file.to_owned());
        let mut notes = Vec::new();
        self.take(&text, source, &mut notes).map_err(wrong)?;
        self.warnings.extend(warnings(file, &notes));
        Ok(())
    }

    fn take(&mut self, text: &str, source: Source, notes: &mut Vec<String>) -> Result<(), String> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let value = parsed(text)?;
        check_size(&value, &mut { LARGEST }).map_err(|error| error.to_string())?;
        for (key, value) in object(&value, "the file")? {
            match (key.as_str(), source) {
                ("$schema", _) => {}
                ("agent", _) => self.agent = Some(agent(value, source)?),
                ("keepRaw", _) => self.keep_raw = boolean(value, key)?,
                ("agents", Source::User) => self.take_agents(value, notes)?,
                ("mcpServers", Source::User) => self.mcp_servers = mcp::servers(value, notes)?,
                ("a2aServers", Source::User) => {
                    let value = variable::expanded(value).map_err(|error| format!("'a2aServers' {error}"))?;
                    self.a2a_servers.extend(a2a_servers(&value, notes)?);
                }
                // A project's file that names the user's variables could send their values anywhere.
                ("a2aServers", Source::Project { trusted: true }) if !value.to_string().contains("\"tokenEnv\"") => {
                    self.a2a_servers.extend(a2a_servers(value, notes)?);
                }
                ("a2aServers", Source::Project { trusted: true }) => {
                    notes.push("'a2aServers' is ignored here: a project may not use tokenEnv".to_owned());
                }
                ("a2aServers", Source::Project { trusted: false }) => {
                    notes.push(self.permissions.withhold("a2aServers"));
                }
                ("a2a", Source::User) => self.take_a2a(value, notes)?,
                ("terminal", Source::User) => terminal::take(&mut self.terminal, value, notes)?,
                ("terminal", Source::Project { .. }) => {
                    notes.push("'terminal' is ignored here: set it in your own settings".to_owned());
                }
                ("approvalMode" | "tools" | "trustedFolders", _) => self.permissions.take(key, value, source, notes)?,
                ("agents" | "mcpServers" | "a2a", Source::Project { .. }) => notes.push(format!(
                    "'{key}' is ignored here: a project may not choose programs, permissions or who can connect; put it into {}",
                    home().map_or_else(
                        || "your own settings".to_owned(),
                        |home| { home.join("settings.json").display().to_string() }
                    )
                )),
                _ => notes.push(format!("'{key}' is not known to this version and is ignored")),
            }
        }
        Ok(())
    }

    fn take_a2a(&mut self, value: &Value, notes: &mut Vec<String>) -> Result<(), String> {
        for (key, value) in object(value, "a2a")? {
            let path = format!("a2a.{key}");
            match key.as_str() {
                "extensionRequired" => self.a2a.extension_required = boolean(value, &path)?,
                _ => notes.push(format!("'{path}' is not known to this version and is ignored")),
            }
        }
        Ok(())
    }

    fn take_agents(&mut self, value: &Value, notes: &mut Vec<String>) -> Result<(), String> {
        for (name, value) in object(value, "agents")? {
            let path = format!("agents.{name}");
            let Some(agent) = AgentType::ALL.into_iter().find(|agent| agent.as_str() == name) else {
                notes.push(format!("'{path}' is not an agent of this version and is ignored"));
                continue;
            };
            let settings = self.agents.entry(agent).or_default();
            for (key, value) in object(value, &path)? {
                let path = format!("{path}.{key}");
                match key.as_str() {
                    "command" => settings.command = Some(text(value, &path)?),
                    "args" => settings.args = texts(value, &path)?,
                    "env" => settings.env = variables(value, &path)?,
                    "permission" => settings.permission = word(value, &path, "\"stream\" or \"mcp\"")?,
                    "transport" => settings.transport = word(value, &path, "\"default\" or \"oneShot\"")?,
                    "checkpointing" => settings.checkpointing = boolean(value, &path)?,
                    "model" if agent == AgentType::Builtin => settings.model = Some(text(value, &path)?),
                    _ => notes.push(format!("'{path}' is not known to this version and is ignored")),
                }
            }
        }
        Ok(())
    }
}

/// `a2aServers`, with tokens read from variables.
fn a2a_servers(value: &Value, notes: &mut Vec<String>) -> Result<Vec<A2aServer>, String> {
    let mut servers = A2aServer::read_list(value, "a2aServers", notes).map_err(|error| error.to_string())?;
    for server in &mut servers {
        server.resolve_token(|name| std::env::var(name).ok()).map_err(|error| format!("'a2aServers': {error}"))?;
    }
    Ok(servers)
}

fn agent(value: &Value, source: Source) -> Result<AgentChoice, String> {
    let Value::String(word) = value else { return Err(wrong("agent", "the name of an agent", value)) };
    match source {
        Source::User => {
            let word = expand(word).map_err(|error| format!("'agent' {error}"))?;
            word.parse().map_err(|error| format!("'agent': {error}"))
        }
        // `acp:COMMAND` is a program, which a project must not choose.
        Source::Project { .. } => match word.parse() {
            Ok(AgentChoice::Kind(AgentKind::Acp { .. })) => {
                Err("'agent': a project may not choose a command".to_owned())
            }
            Ok(wanted) => Ok(wanted),
            Err(error) => Err(format!("'agent': {error}")),
        },
    }
}

/// One of the words that JSON has for the values of a type.
fn word<T: DeserializeOwned>(value: &Value, path: &str, words: &str) -> Result<T, String> {
    serde_json::from_value(text(value, path)?.into()).map_err(|_| wrong_word(path, words, value))
}

fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| wrong(path, "an object", value))
}

fn boolean(value: &Value, path: &str) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| wrong(path, "true or false", value))
}

fn text(value: &Value, path: &str) -> Result<String, String> {
    let text = value.as_str().ok_or_else(|| wrong(path, "a string", value))?;
    expand(text).map_err(|error| format!("'{path}' {error}"))
}

fn texts(value: &Value, path: &str) -> Result<Vec<String>, String> {
    let items = value.as_array().ok_or_else(|| wrong(path, "a list of strings", value))?;
    items.iter().enumerate().map(|(at, item)| text(item, &format!("{path}[{at}]"))).collect()
}

fn variables(value: &Value, path: &str) -> Result<BTreeMap<String, String>, String> {
    let items = object(value, path)?.iter();
    items.map(|(name, item)| Ok((name.clone(), text(item, &format!("{path}.{name}"))?))).collect()
}

fn wrong(path: &str, wanted: &str, value: &Value) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("'{path}' must be {wanted}, not {found}")
}

/// Notes about a file for people: the first ones, and how many more there are.
fn warnings(file: &Path, notes: &[String]) -> Vec<String> {
    let about = |note: &str| format!("{}: {}", file.display(), visible_line(note));
    let mut warnings: Vec<String> = notes.iter().take(MOST_WARNINGS).map(|note| about(note)).collect();
    let more = notes.len() - warnings.len();
    if more > 0 {
        warnings.push(about(&format!("{more} more warnings")));
    }
    warnings
}

/// The error for an unknown word. Only such a word is quoted, as written: other texts, and expanded variables, may be
/// secrets.
fn wrong_word(path: &str, wanted: &str, word: &Value) -> String {
    format!("'{path}' must be {wanted}, not {word}")
}

/// The value of a settings file.
fn parsed(text: &str) -> Result<Value, String> {
    // Some editors write a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    jsonc_parser::parse_to_serde_value(text, &SYNTAX).map_err(|error| format!("is not JSON: {error}"))
}

#[cfg(test)]
mod tests;
