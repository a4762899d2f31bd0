//! Project files that make an agent run programs, or allow tools, before the user has agreed.
//!
//! Each CLI asks on its own screen whether a folder is trusted, but not when Multitap drives it. So an untrusted folder
//! is checked before each start, and the agent starts without these files or not at all. Each agent's folder names its
//! files. Must not come in: which folders the user trusts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use multitap_event::{AgentError, AgentErrorKind, AgentType, LaunchError, SessionConfig};
use serde_json::{Map, Value};

use crate::info::AgentInfo;
use crate::json::with_comments;

/// Maximum size of a file that is read; a larger one counts as one that takes effect.
const MOST_BYTES: u64 = 512 * 1024;
/// Maximum number of bytes read of all files together. Files beyond it count as files that take effect.
const MOST_BYTES_IN_ALL: u64 = 8 * 1024 * 1024;
/// Maximum number of files that are checked. A folder with more counts as one that takes effect.
const MOST_FILES: usize = 1000;
/// Maximum depth at which folders of commands and the like are searched. A deeper folder counts as one that takes
/// effect.
const MOST_DEPTH: usize = 6;
/// Number of a file's keys that are named, and number of characters of each.
const SHOWN_KEYS: usize = 6;
const SHOWN_CHARS: usize = 40;

/// A file or folder of the project that takes effect when an agent starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActingFile {
    pub agent: AgentType,
    /// The file's path: relative to the folder if it lies below it, else absolute.
    pub path: PathBuf,
    /// The parts that take effect, such as the names of its keys.
    pub what: String,
}

impl std::fmt::Display for ActingFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.what)
    }
}

/// The files of a folder that take effect when that agent starts there. An agent behind ACP may be any agent, so the
/// files of all count. `env` has the agent's variables in addition to our own.
pub fn acting_files(agent: AgentType, folder: &Path, env: &BTreeMap<String, String>) -> Vec<ActingFile> {
    let mut found = Vec::new();
    for info in read_by(agent) {
        let mut project = Project::new(info, folder, env);
        if let Some(look) = info.project.look {
            look(&mut project);
        }
        found.append(&mut project.found);
    }
    found
}

/// The agents that may read the files of a folder when that one starts.
fn read_by(agent: AgentType) -> Vec<&'static AgentInfo> {
    match AgentInfo::of(agent) {
        None => Vec::new(),
        Some(info) if info.project.look.is_none() => AgentInfo::programs().map(|(info, _)| info).collect(),
        Some(info) => vec![info],
    }
}

/// The files of an added folder that take effect: some agents load skills, agents and plugins from there.
pub fn acting_files_of_added(agent: AgentType, folder: &Path, env: &BTreeMap<String, String>) -> Vec<ActingFile> {
    let agents = read_by(agent).into_iter().filter(|info| info.project.acts_in_added);
    let mut found: Vec<ActingFile> = agents.flat_map(|info| acting_files(info.agent, folder, env)).collect();
    for file in &mut found {
        file.path = real(folder).join(&file.path);
    }
    found
}

/// Describes what a session leaves out because its folder is not trusted; `None` if it leaves out nothing, or would not
/// start.
pub fn left_out(config: &SessionConfig) -> Option<String> {
    judge(&mut config.clone()).ok().flatten().map(|warning| warning.message)
}

/// The configuration with which the session may start, and a warning. Reads files on a thread that may block.
pub(crate) async fn judged(config: SessionConfig) -> Result<(SessionConfig, Option<AgentError>), LaunchError> {
    let agent = config.agent.agent_type();
    let work = move || {
        let mut config = config;
        let warning = judge(&mut config)?;
        Ok((config, warning))
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        let message = format!("cannot look at the project's files: {error}");
        Err(AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(agent).into())
    })
}

/// Prepares a start in a folder with files that take effect. If the folder is not trusted, the agent starts without
/// them where it can, and the session gets a warning.
fn judge(config: &mut SessionConfig) -> Result<Option<AgentError>, LaunchError> {
    let folder = match &config.working_directory {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().unwrap_or_default(),
    };
    let agent = config.agent.agent_type();
    let Some(info) = AgentInfo::of(agent) else { return Ok(None) };
    let own = config.program.as_ref().map(|program| program.env.clone()).unwrap_or_default();
    let env = own.into_iter().chain(config.environment.clone()).collect();
    let mut found = acting_files(agent, &folder, &env);
    let mut which = "the folder";
    if config.trusted {
        if let (Some(trust), false) = (info.project.trust, found.is_empty()) {
            trust(config, &folder);
        }
        found.clear();
    }
    if found.is_empty() {
        which = "an added folder";
    }
    let untrusted = config.add_dirs.iter().filter(|folder| !config.trusted_dirs.contains(folder));
    found.extend(untrusted.flat_map(|folder| acting_files_of_added(agent, folder, &env)));
    if found.is_empty() {
        return Ok(None);
    }
    let files = found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let refused = |why: &'static str| {
        let message = format!(
            "{agent} was not started: {which} is not trusted, {why}, and the folder has {files}. \
             To trust it, use --trust or `trustedFolders` in your settings"
        );
        LaunchError::from(AgentError::new(AgentErrorKind::PermissionDenied, message).of(agent))
    };
    (info.project.leave_out)(config, &folder).map_err(refused)?;
    let message = format!(
        "{which} is not trusted: {agent} runs without the project's settings, and without {files}. \
         To use them, use --trust or `trustedFolders` in your settings"
    );
    Ok(Some(AgentError::new(AgentErrorKind::PermissionDenied, message).of(agent).warning()))
}

/// The search for one agent's project files, and its results.
pub(crate) struct Project {
    agent: AgentType,
    /// The folder of the session, with links resolved.
    folder: PathBuf,
    /// The agent's own folder in the user's home, with links resolved. Files in it belong to the user.
    home: Option<PathBuf>,
    found: Vec<ActingFile>,
    bytes_left: u64,
    files_left: usize,
}

pub(crate) enum Contents {
    Absent,
    Text(String),
    /// The file exists but cannot be judged: too large, not a regular file, not text, or unreadable.
    Unknown,
}

impl Project {
    fn new(info: &AgentInfo, folder: &Path, env: &BTreeMap<String, String>) -> Self {
        let home = info.home(env).and_then(|home| home.canonicalize().ok());
        let (bytes_left, files_left) = (MOST_BYTES_IN_ALL, MOST_FILES);
        Self { agent: info.agent, folder: real(folder), home, found: Vec::new(), bytes_left, files_left }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// The folder of the session and those above it.
    pub(crate) fn ancestors(&self) -> Vec<PathBuf> {
        self.folder.ancestors().map(Path::to_owned).collect()
    }

    /// The folder of the session and those above it, up to the root of its repository.
    pub(crate) fn up_to_repository(&self) -> Vec<PathBuf> {
        up_to_repository(&self.folder)
    }

    /// If the session's repository is a linked worktree: the root of its main repository.
    pub(crate) fn main_repository(&self) -> Option<PathBuf> {
        let link = self.up_to_repository().pop()?.join(".git");
        let Contents::Text(text) = contents(&link) else { return None };
        let own = real(&link.parent()?.join(text.strip_prefix("gitdir:")?.trim()));
        let Contents::Text(common) = contents(&own.join("commondir")) else { return None };
        Some(real(&own.join(common.trim())).parent()?.to_owned())
    }

    /// Whether a folder belongs to the user, not to a project.
    pub(crate) fn is_own(&self, folder: &Path) -> bool {
        self.home.as_deref().is_some_and(|home| folder.canonicalize().is_ok_and(|folder| folder == home))
    }

    /// Whether a folder contains the agent's own folder, as the user's home does.
    pub(crate) fn is_home(&self, folder: &Path) -> bool {
        self.home.as_deref().and_then(Path::parent) == Some(folder)
    }

    pub(crate) fn found(&mut self, path: &Path, what: impl Into<String>) {
        let path = path.strip_prefix(&self.folder).unwrap_or(path).to_owned();
        self.found.push(ActingFile { agent: self.agent, path, what: what.into() });
    }

    /// Checks a JSON file: every key that `is_harmless` does not accept takes effect. Its argument is the path of the
    /// key.
    pub(crate) fn look_at_json(&mut self, path: &Path, is_harmless: impl Fn(&[&str], &Value) -> bool) {
        let text = match self.contents(path) {
            Contents::Absent => return,
            Contents::Unknown => return self.found(path, "cannot be read"),
            Contents::Text(text) => text,
        };
        if text.trim().is_empty() {
            return;
        }
        match with_comments(&text) {
            Ok(Value::Object(settings)) => {
                let keys = acting_keys(&settings, &is_harmless);
                if !keys.is_empty() {
                    self.found(path, shown(&keys));
                }
            }
            // The agent may be able to read a file that we cannot.
            Ok(_) | Err(_) => self.found(path, "is not plain JSON"),
        }
    }

    /// Checks a folder and those below it: it takes effect if `acts` says so of a file's path and text. The first such
    /// file is named.
    pub(crate) fn look_into(&mut self, folder: &Path, acts: impl Fn(&Path, &str) -> Option<&'static str>) {
        let mut left = vec![(folder.to_owned(), 0)];
        while let Some((place, depth)) = left.pop() {
            let Ok(entries) = fs::read_dir(&place) else { continue };
            for entry in entries.flatten() {
                if self.files_left == 0 || depth > MOST_DEPTH {
                    return self.found(folder, "too much to look at");
                }
                self.files_left -= 1;
                let path = entry.path();
                if path.is_dir() {
                    left.push((path, depth + 1));
                    continue;
                }
                let what = match self.contents(&path) {
                    Contents::Absent => None,
                    Contents::Unknown => Some("cannot be read"),
                    Contents::Text(text) => acts(&path, &text),
                };
                if let Some(what) = what {
                    return self.found(&path, what);
                }
            }
        }
    }

    /// Reads a small regular file, unless enough was read already.
    pub(crate) fn contents(&mut self, path: &Path) -> Contents {
        match contents(path) {
            Contents::Text(text) => match self.bytes_left.checked_sub(text.len() as u64) {
                Some(left) => {
                    self.bytes_left = left;
                    Contents::Text(text)
                }
                None => Contents::Unknown,
            },
            other => other,
        }
    }
}

/// A folder with links resolved, and those above it up to the root of its repository; without a repository, only the
/// folder.
pub(crate) fn up_to_repository(folder: &Path) -> Vec<PathBuf> {
    let folder = real(folder);
    let all: Vec<PathBuf> = folder.ancestors().map(Path::to_owned).collect();
    let root = all.iter().position(|folder| folder.join(".git").exists()).unwrap_or(0);
    all.into_iter().take(root + 1).collect()
}

fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// Reads a small regular file; a FIFO would block.
pub(crate) fn contents(path: &Path) -> Contents {
    match fs::metadata(path) {
        Ok(about) if about.is_file() && about.len() <= MOST_BYTES => {}
        Ok(_) => return Contents::Unknown,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Contents::Absent;
        }
        Err(_) => return Contents::Unknown,
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
    match read {
        Ok(read) if read as u64 <= MOST_BYTES => Contents::Text(text),
        _ => Contents::Unknown,
    }
}

/// The keys that take effect. If an object has harmless keys, its other keys are named in place of the object.
fn acting_keys(settings: &Map<String, Value>, is_harmless: &impl Fn(&[&str], &Value) -> bool) -> Vec<String> {
    let mut keys = Vec::new();
    for (key, value) in settings {
        if is_harmless(&[key], value) {
            continue;
        }
        match value {
            Value::Object(below) if below.keys().any(|inner| is_harmless(&[key, inner], &below[inner])) => {
                let acting = below.iter().filter(|(inner, value)| !is_harmless(&[key, inner], value));
                keys.extend(acting.map(|(inner, _)| format!("{key}.{inner}")));
            }
            Value::Object(below) if below.is_empty() => {}
            _ => keys.push(key.clone()),
        }
    }
    keys
}

/// Keys in a form that is safe to show: short, and with control characters made visible.
fn shown(keys: &[String]) -> String {
    let short = |key: &String| key.chars().take(SHOWN_CHARS).collect::<String>().escape_debug().to_string();
    let mut words: Vec<String> = keys.iter().take(SHOWN_KEYS).map(short).collect();
    if keys.len() > SHOWN_KEYS {
        words.push("…".to_owned());
    }
    words.join(", ")
}

#[cfg(test)]
mod tests;
