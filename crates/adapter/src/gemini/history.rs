//! Finds conversations in Gemini's own store. The modules below read their records.
//!
//! `tmp/PROJECT/chats/session-TIME-ID.jsonl`, where PROJECT is the name in `projects.json` for the folder, or in older
//! versions the SHA-256 of its path; older files are one JSON document (`.json`).

mod record;
mod tool;
mod wire;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use multitap_event::{AgentType, Timestamp, one_line};
use multitap_process::{Line, MAX_LINE};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

pub(crate) use record::Stored;

use self::wire::StoredMessage as _;
use crate::history::file::{self, Lines, name};
use crate::history::{Here, StoredSession};
use crate::json::JsonFields as _;

/// The longest path of a folder that is read from a project's mark.
const LONGEST_PATH: u64 = 64 * 1024;

pub(crate) fn list(home: &Path, here: Option<&Here>) -> Vec<StoredSession> {
    let projects = projects(home, here).into_iter().map(|(project, folder)| {
        let sessions = conversations(&project.join("chats")).into_iter();
        sessions.map(move |session| StoredSession { folder: folder.clone(), ..session })
    });
    newest_files(projects.flatten().collect())
}

/// A conversation that was resumed may have several files; the one written to last counts.
fn newest_files(mut sessions: Vec<StoredSession>) -> Vec<StoredSession> {
    sessions.sort_by(|one, other| (&one.id, other.updated).cmp(&(&other.id, one.updated)));
    sessions.dedup_by(|one, other| one.id == other.id);
    sessions
}

/// The conversations in a folder of chats in which somebody said something.
pub(super) fn conversations(chats: &Path) -> Vec<StoredSession> {
    newest_files(files(chats).into_iter().filter(|chat| !chat.blank).map(|chat| chat.session).collect())
}

/// The conversation with that number in Gemini's list: the oldest in the folder is 1.
pub(crate) fn numbered<'a>(sessions: &'a [StoredSession], wanted: &str) -> Option<&'a StoredSession> {
    let at = wanted.parse::<usize>().ok()?.checked_sub(1)?;
    let mut oldest_first: Vec<&StoredSession> = sessions.iter().collect();
    oldest_first.sort_by_key(|session| session.started);
    oldest_first.get(at).copied()
}

/// The folder in which Gemini itself would look for the conversations of a folder.
pub(super) fn chats_of(home: &Path, here: &Here) -> Option<PathBuf> {
    let projects = projects(home, Some(here)).into_iter().map(|(project, _)| project);
    // A project with a name is preferred to one of an older version.
    Some(projects.min_by_key(|project| is_digest(name(project)))?.join("chats"))
}

/// The projects, all or those of one folder, each with its folder if known.
fn projects(home: &Path, here: Option<&Here>) -> Vec<(PathBuf, Option<PathBuf>)> {
    let known = Folders::of(home);
    let projects = file::entries(&home.join("tmp")).into_iter().filter_map(|project| {
        let folder = known.of_project(&project);
        match (here, &folder) {
            (Some(here), Some(folder)) if !here.is(folder) => None,
            (Some(here), None) => {
                let folder = here.names().find(|path| digest(path) == name(&project))?;
                Some((project, Some(PathBuf::from(folder))))
            }
            _ => Some((project, folder)),
        }
    });
    projects.collect()
}

/// The folders in `projects.json`: by the name of the project, and by the digest that older versions used.
#[derive(Default)]
struct Folders {
    by_name: HashMap<String, PathBuf>,
    by_digest: HashMap<String, PathBuf>,
}

impl Folders {
    fn of(home: &Path) -> Self {
        let read = || -> io::Result<Vec<u8>> {
            let mut text = Vec::new();
            file::open(&home.join("projects.json"))?.take(MAX_LINE as u64).read_to_end(&mut text)?;
            Ok(text)
        };
        let known: Option<Value> = read().ok().and_then(|text| serde_json::from_slice(&text).ok());
        let known = known.as_ref().and_then(|known| known.object("projects"));
        let mut folders = Self::default();
        for (folder, project) in known.into_iter().flatten() {
            if let Some(project) = project.as_str() {
                folders.by_name.entry(project.to_owned()).or_insert_with(|| folder.into());
                folders.by_digest.insert(digest(folder), folder.into());
            }
        }
        folders
    }

    fn of_project(&self, project: &Path) -> Option<PathBuf> {
        let marked = || {
            let mut root = String::new();
            file::open(&project.join(".project_root")).ok()?.take(LONGEST_PATH).read_to_string(&mut root).ok()?;
            Some(PathBuf::from(root.trim())).filter(|root| root.is_absolute())
        };
        let named = self.by_name.get(name(project)).cloned();
        named.or_else(marked).or_else(|| self.by_digest.get(name(project)).cloned())
    }
}

fn is_digest(project: &str) -> bool {
    project.len() == 64 && project.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn digest(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        write!(hex, "{byte:02x}").ok();
    }
    hex
}

/// One file of a conversation.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) session: StoredSession,
    /// The file has no messages, or none that still count.
    pub(super) blank: bool,
}

/// All files of conversations in a folder of chats, including empty ones.
pub(super) fn files(folder: &Path) -> Vec<Chat> {
    chat_paths(folder).filter_map(|path| Chat::read(path).ok().flatten()).collect()
}

pub(super) fn chat_paths(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_chat = |path: &PathBuf| {
        let name = name(path);
        name.starts_with("session-") && (name.ends_with(".jsonl") || name.ends_with(".json"))
    };
    file::entries(folder).into_iter().filter(is_chat)
}

/// The lines of a file. A file that is one JSON document is one line.
fn lines(path: &Path) -> io::Result<Lines> {
    if path.extension().is_some_and(|extension| extension == "json") {
        let mut text = Vec::new();
        file::open(path)?.take(MAX_LINE as u64 + 1).read_to_end(&mut text)?;
        let is_document = text.len() <= MAX_LINE && serde_json::from_slice::<Map<String, Value>>(&text).is_ok();
        if let Some(text) = String::from_utf8(text).ok().filter(|_| is_document) {
            return Ok(Box::new(std::iter::once(Ok(Line::Text(text)))));
        }
    }
    file::lines(path)
}

impl Chat {
    pub(super) fn path(&self) -> &Path {
        &self.session.files[0]
    }

    /// Reads from a file what the list of conversations shows; `None` if the file is a sub-agent's.
    pub(super) fn read(path: PathBuf) -> io::Result<Option<Self>> {
        let (mut id, mut start, mut updated, mut model, mut title, mut said) = (None, None, None, None, None, false);
        for line in lines(&path)? {
            let Line::Text(line) = line? else { continue };
            // After the first message, only lines that change messages, the model or the last times matter.
            if said && !["\"$set\"", "\"$rewindTo\"", "\"model\""].iter().any(|word| line.contains(word)) {
                continue;
            }
            let Ok(record) = serde_json::from_str::<Value>(&line) else { continue };
            if record.text("kind") == Some("subagent") {
                return Ok(None);
            }
            if record.text("$rewindTo").is_some() {
                continue;
            }
            let set = record.field("$set");
            id = id.or_else(|| record.string("sessionId").or(set.string("sessionId")));
            start = start.or_else(|| record.string("startTime").or(set.string("startTime")));
            updated = set.string("lastUpdated").or(record.string("lastUpdated")).or(updated);
            let whole = record.field("messages").or(set.field("messages")).and_then(Value::as_array);
            if let Some(messages) = whole {
                said = messages.iter().any(|message| message.is_said());
            }
            said |= record.is_said();
            for message in std::iter::once(&record).chain(whole.into_iter().flatten()) {
                model = model.or_else(|| message.string("model"));
                if title.is_none() && message.is_prompt() {
                    title = Some(one_line(&message.words()));
                }
            }
        }
        let time = |text: Option<String>| text.as_deref().and_then(Timestamp::parse);
        Ok(id.map(|id| {
            let session = StoredSession::new(AgentType::Gemini, id, path);
            let updated = time(updated).or(session.updated);
            Self { session: StoredSession { title, model, started: time(start), updated, ..session }, blank: !said }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_folders_are_named_by_a_digest() {
        assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
