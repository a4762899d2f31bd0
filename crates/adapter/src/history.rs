//! Conversations that the agents store themselves: finds and lists them, and reports them as unified events.
//!
//! Each agent's folder knows where the agent stores them and what its files look like (`claude/history.rs` and so on);
//! this module has the common part. Read-only: nothing here changes an agent's files.

pub(crate) mod file;
mod reading;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use multitap_event::{AgentType, Timestamp};
use serde::Serialize;
use serde_with::skip_serializing_none;

pub(crate) use reading::{Entries, EntryEvents};
pub use reading::{Reading, read};

use crate::info::{AgentInfo, Store};

/// The word for the newest conversation.
const LATEST: &str = "latest";
/// Minimum length of a prefix of an id: a shorter one is more likely a mistake.
const SHORTEST: usize = 4;

/// A conversation in an agent's own store.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSession {
    pub agent: AgentType,
    /// The agent's own id, which resumes it.
    pub id: String,
    /// The folder of the conversation, if the store has it.
    pub folder: Option<PathBuf>,
    /// The user's first message, on one line.
    pub title: Option<String>,
    pub model: Option<String>,
    pub started: Option<Timestamp>,
    pub updated: Option<Timestamp>,
    pub agent_version: Option<String>,
    /// The agent has archived it, and does not list it any more.
    pub archived: bool,
    /// The file of the conversation, then those of its sub-agents.
    pub files: Vec<PathBuf>,
}

impl StoredSession {
    pub(crate) fn new(agent: AgentType, id: String, file: PathBuf) -> Self {
        Self {
            agent,
            id,
            folder: None,
            title: None,
            model: None,
            started: None,
            updated: file::changed(&file),
            agent_version: None,
            archived: false,
            files: vec![file],
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error(
        "multitap cannot list the conversations of {0}, only those of {with_stores}",
        with_stores = agents_with_stores()
    )]
    NoStore(AgentType),
    #[error("cannot find the conversations of {0}: there is no home folder")]
    NoHome(AgentType),
    #[error("{agent} has no conversation {wanted}")]
    NotFound { agent: AgentType, wanted: String },
    #[error("{agent} has no conversation in {}", folder.display())]
    NoneHere { agent: AgentType, folder: PathBuf },
    #[error("{wanted} matches {} conversations of {agent}: {}", ids.len(), ids.join(", "))]
    Ambiguous { agent: AgentType, wanted: String, ids: Vec<String> },
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

fn agents_with_stores() -> String {
    let with_stores = AgentInfo::all().into_iter().filter(|info| info.has_store());
    let names: Vec<&str> = with_stores.map(|info| info.agent.as_str()).collect();
    match names.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        names => names.concat(),
    }
}

/// One agent's own store of conversations.
#[derive(Debug, Clone)]
pub struct History {
    agent: AgentType,
    store: &'static Store,
    home: PathBuf,
}

impl History {
    /// The store of that agent, as a process with these variables (and otherwise our own) would find it.
    pub fn of(agent: AgentType, env: &BTreeMap<String, String>) -> Result<Self, HistoryError> {
        let info = AgentInfo::of(agent).ok_or(HistoryError::NoStore(agent))?;
        let store = info.store.as_ref().ok_or(HistoryError::NoStore(agent))?;
        Ok(Self { agent, store, home: info.home(env).ok_or(HistoryError::NoHome(agent))? })
    }

    pub fn agent(&self) -> AgentType {
        self.agent
    }

    /// The folder with the agent's own files.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The conversations, newest first: those of one folder, or all. Unreadable ones are left out.
    pub fn list(&self, folder: Option<&Path>) -> Vec<StoredSession> {
        let here = folder.map(Here::new);
        let mut sessions = (self.store.list)(&self.home, here.as_ref());
        sessions.sort_by_cached_key(|session| Reverse((session.updated, session.started, session.id.clone())));
        sessions
    }

    /// Finds a conversation: by its id, a prefix of it, `latest` for the newest in the folder, or for Gemini by
    /// Gemini's own number in that folder.
    pub fn find(&self, wanted: &str, folder: &Path) -> Result<StoredSession, HistoryError> {
        let here = self.list(Some(folder));
        if wanted == LATEST {
            let newest = here.into_iter().find(|session| !session.archived);
            return newest.ok_or_else(|| HistoryError::NoneHere { agent: self.agent, folder: folder.to_owned() });
        }
        if let Some(session) = self.store.numbered.and_then(|numbered| numbered(&here, wanted)) {
            return Ok(session.clone());
        }
        match self.choose(here, wanted) {
            Err(HistoryError::NotFound { .. }) => self.choose(self.list(None), wanted),
            other => other,
        }
    }

    fn choose(&self, mut sessions: Vec<StoredSession>, wanted: &str) -> Result<StoredSession, HistoryError> {
        let (agent, wanted) = (self.agent, wanted.to_owned());
        if let Some(at) = sessions.iter().position(|session| session.id == wanted) {
            return Ok(sessions.swap_remove(at));
        }
        sessions.retain(|session| wanted.len() >= SHORTEST && session.id.starts_with(&wanted));
        match sessions.len() {
            0 => Err(HistoryError::NotFound { agent, wanted }),
            1 => Ok(sessions.swap_remove(0)),
            _ => {
                let ids = sessions.into_iter().map(|session| session.id).collect();
                Err(HistoryError::Ambiguous { agent, wanted, ids })
            }
        }
    }
}

/// The folder whose conversations are listed, under every name that an agent may use for it.
#[derive(Debug)]
pub(crate) struct Here {
    names: Vec<PathBuf>,
}

impl Here {
    pub(crate) fn new(folder: &Path) -> Self {
        let given = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let real = std::fs::canonicalize(&given).ok().filter(|real| *real != given);
        Self { names: std::iter::once(given).chain(real).collect() }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|name| name.to_str())
    }

    pub(crate) fn is(&self, folder: &Path) -> bool {
        self.names.iter().any(|name| name == folder)
    }
}
