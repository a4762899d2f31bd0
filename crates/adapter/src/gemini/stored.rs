//! Gemini's stored conversations, as far as taking one up is concerned; and what keeps them whole while it is.
//!
//! Taking one up over ACP makes Gemini write an empty record of the same conversation beside the real one, in a file
//! named by the minute and the first part of the id. Two things then go wrong. In the minute in which the
//! conversation was begun, that is the very same file, and what was said is lost. And at its next start Gemini takes
//! the empty record for broken, and deletes all files of that conversation. So the real file is set back by a minute
//! where it must be, and the empty one is removed as soon as the conversation is open.

use std::fs;
use std::io;
use std::path::PathBuf;

use multitap_event::{AgentError, AgentErrorKind, AgentType, Resume, SessionConfig, Timestamp};

use super::history::{Chat, chats_of, files};
use super::settings::home;
use crate::history::Here;

/// How many minutes a file may be set back to find a free name.
const SET_BACK: i64 = 120;
const MINUTE: i64 = 60_000;

/// A conversation that is being taken up.
#[derive(Debug)]
pub(crate) struct Stored {
    folder: PathBuf,
    id: String,
}

/// Finds the conversation that a session is to take up over ACP, and makes it safe to do so.
pub(crate) fn take_up(config: &mut SessionConfig, now: Timestamp) -> Result<Option<Stored>, AgentError> {
    let Some(stored) = find(config)? else { return Ok(None) };
    stored.make_safe(now).map_err(|error| {
        let message = format!("cannot keep gemini's conversation {} safe: {error}", stored.id);
        AgentError::new(AgentErrorKind::ProcessSpawnFailed, message).of(AgentType::Gemini)
    })?;
    Ok(Some(stored))
}

/// Finds the conversation that a session is to take up, and names it by its id.
pub(crate) fn find(config: &mut SessionConfig) -> Result<Option<Stored>, AgentError> {
    let (wanted, none) = match &config.resume {
        Resume::New => return Ok(None),
        Resume::Latest => (None, "gemini has no conversation in this folder to continue".to_owned()),
        Resume::Session { native_id, .. } => {
            (Some(native_id.clone()), format!("gemini has no conversation {native_id} in this folder"))
        }
    };
    let not_found = || AgentError::new(AgentErrorKind::SessionNotFound, none.clone()).of(AgentType::Gemini);
    let folder = folder(config).ok_or_else(not_found)?;
    let mut chats = files(&folder);
    chats.retain(|chat| !chat.blank);
    chats.sort_by(|one, other| one.start().cmp(other.start()));
    chats.dedup_by(|one, other| one.id == other.id);
    let chat = match &wanted {
        None => chats.pop(),
        Some(wanted) => {
            let by_id = chats.iter().position(|chat| chat.id == *wanted);
            // As Gemini numbers them: the oldest is 1.
            let by_number = || wanted.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < chats.len());
            by_id.or_else(by_number).map(|at| chats.swap_remove(at))
        }
    };
    let stored = Stored { folder, id: chat.ok_or_else(not_found)?.id };
    config.resume = Resume::Session { native_id: stored.id.clone(), at: None };
    Ok(Some(stored))
}

impl Stored {
    /// Sets the conversation's files back to before the minute that runs.
    fn make_safe(&self, now: Timestamp) -> io::Result<()> {
        self.tidy();
        for chat in self.files() {
            let name = chat.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((stamp, rest)) = stamp_of(name) else { continue };
            if stamp < stamp_at(now).as_str() {
                continue;
            }
            let earlier = (1..=SET_BACK).map(|minutes| Timestamp::from_millis(now.as_millis() - minutes * MINUTE));
            let free = earlier
                .map(|at| self.folder.join(format!("session-{}{rest}", stamp_at(at))))
                .find(|path| !path.exists());
            let free = free.ok_or_else(|| io::Error::other("no free name for its file"))?;
            fs::rename(&chat.path, free)?;
        }
        Ok(())
    }

    /// Removes the empty records of this conversation.
    pub(crate) fn tidy(&self) {
        let files = self.files();
        if files.iter().all(|chat| chat.blank) {
            return;
        }
        for chat in files.iter().filter(|chat| chat.blank) {
            if let Err(error) = fs::remove_file(&chat.path) {
                tracing::warn!(path = %chat.path.display(), %error, "cannot remove an empty record");
            }
        }
    }

    fn files(&self) -> Vec<Chat> {
        let mut files = files(&self.folder);
        files.retain(|chat| chat.id == self.id);
        files
    }
}

/// The minute in a file's name, and what follows it: `session-2026-11-15T09-16-f546f7be.jsonl`.
fn stamp_of(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("session-")?.split_at_checked("2026-11-15T09-16".len())
}

fn stamp_at(at: Timestamp) -> String {
    at.to_string().chars().take("2026-11-15T09-16".len()).map(|c| if c == ':' { '-' } else { c }).collect()
}

/// Where the conversations of the session's folder are.
fn folder(config: &SessionConfig) -> Option<PathBuf> {
    let gemini = home(config)?.join(".gemini");
    let cwd = config.working_directory.clone().or_else(|| std::env::current_dir().ok())?;
    chats_of(&gemini, &Here::new(&cwd))
}

#[cfg(test)]
mod tests;
