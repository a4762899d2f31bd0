//! Resumes Gemini's stored conversations, and protects their files meanwhile.
//!
//! When Gemini resumes a conversation over ACP, it writes an empty record of it to another file, named by the current
//! minute and the first part of the id. This can lose the conversation in two ways. Within the minute in which the
//! conversation began, both are the same file. And at its next start, by whomever, Gemini considers the empty record
//! broken and deletes all files whose names end in that part of the id. So the real file is renamed to another ending
//! before it is resumed: Gemini finds conversations by the content of files. Then nothing is lost, even if we are
//! killed. The empty record is removed when the conversation is open or the start has failed, or else before the next
//! start.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use multitap_event::{AgentError, AgentErrorKind, AgentType, Resume, SessionConfig};

use super::history::{Chat, chat_paths, chats_of, conversations, files, numbered};
use super::settings::home;
use crate::history::Here;

/// Suffix of the name of a file that was resumed. Not eight letters: Gemini would read those as an id.
const APART: &str = "-kept";

/// A conversation that is being resumed.
#[derive(Debug)]
pub(crate) struct Stored {
    folder: PathBuf,
    id: String,
}

/// Finds the conversation that a session resumes over ACP, and protects its file. Hold the result until the
/// conversation is open.
pub(crate) fn prepare_resume(config: &mut SessionConfig) -> Result<Option<Stored>, AgentError> {
    let Some(stored) = find(config)? else { return Ok(None) };
    stored.set_apart().map_err(|error| {
        let message = format!("cannot keep gemini's conversation {} safe: {error}", stored.id);
        AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(AgentType::Gemini)
    })?;
    Ok(Some(stored))
}

/// Finds the conversation that a session resumes, and sets its id. Call this before every start, even of a new
/// conversation: Gemini reads all conversations when it starts.
pub(crate) fn find(config: &mut SessionConfig) -> Result<Option<Stored>, AgentError> {
    let folder = folder(config);
    if let Some(folder) = &folder {
        tidy(folder);
    }
    let (wanted, none) = match &config.resume {
        Resume::New => return Ok(None),
        Resume::Latest => (None, "gemini has no conversation in this folder to continue".to_owned()),
        Resume::Session { native_id, .. } => {
            (Some(native_id.clone()), format!("gemini has no conversation {native_id} in this folder"))
        }
    };
    let not_found = || AgentError::new(AgentErrorKind::SessionNotFound, none.clone()).of(AgentType::Gemini);
    let folder = folder.ok_or_else(not_found)?;
    let sessions = conversations(&folder);
    let session = match wanted.as_deref() {
        // The newest as lists show it, which need not be the one that began last.
        None | Some("latest") => sessions.iter().max_by_key(|session| (session.updated, session.started, &session.id)),
        Some(wanted) => sessions.iter().find(|session| session.id == *wanted).or_else(|| numbered(&sessions, wanted)),
    };
    let stored = Stored { folder, id: session.ok_or_else(not_found)?.id.clone() };
    config.resume = Resume::Session { native_id: stored.id.clone(), at: None };
    Ok(Some(stored))
}

impl Stored {
    /// Renames the conversation's files, so that Gemini does not treat them like an empty record.
    fn set_apart(&self) -> io::Result<()> {
        for chat in files(&self.folder).iter().filter(|chat| chat.session.id == self.id) {
            let name = chat.path().file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((stem, ending)) = name.rsplit_once('.').filter(|(stem, _)| !stem.ends_with(APART)) else {
                continue;
            };
            let apart = self.folder.join(format!("{stem}{APART}.{ending}"));
            if apart.exists() {
                return Err(io::Error::other(format!("{} is there already", apart.display())));
            }
            fs::rename(chat.path(), apart)?;
        }
        Ok(())
    }
}

/// Also if the start is broken off. Gemini may run a moment longer and write its empty record after this; the next
/// start removes it then.
impl Drop for Stored {
    fn drop(&mut self) {
        tidy(&self.folder);
    }
}

/// Removes empty records of a conversation that also has a real one.
fn tidy(folder: &Path) {
    let mut alike: HashMap<String, Vec<PathBuf>> = HashMap::new();
    for path in chat_paths(folder) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(part) = part_of_id(name) {
            alike.entry(part.to_owned()).or_default().push(path);
        }
    }
    // Only files with the same part of an id are read: there may be many long conversations.
    for paths in alike.into_values().filter(|paths| paths.len() > 1) {
        let chats: Vec<Chat> = paths.into_iter().filter_map(|path| Chat::read(path).ok().flatten()).collect();
        for chat in chats.iter().filter(|chat| chat.blank) {
            let is_twin = chats.iter().any(|other| other.session.id == chat.session.id && !other.blank);
            if let Err(error) = if is_twin { fs::remove_file(chat.path()) } else { Ok(()) } {
                tracing::warn!(path = %chat.path().display(), %error, "cannot remove an empty record");
            }
        }
    }
}

/// The first part of the id in a file's name: `session-2026-11-15T09-16-f546f7be.jsonl`.
fn part_of_id(name: &str) -> Option<&str> {
    name.get("session-2026-11-15T09-16-".len()..)?.split(['-', '.']).next()
}

/// The folder of the conversations of the session's folder.
fn folder(config: &SessionConfig) -> Option<PathBuf> {
    let gemini = home(config)?.join(".gemini");
    let cwd = config.working_directory.clone().or_else(|| std::env::current_dir().ok())?;
    chats_of(&gemini, &Here::new(&cwd))
}

#[cfg(test)]
mod tests;
