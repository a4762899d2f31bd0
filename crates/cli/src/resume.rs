//! Which conversation a session resumes: none, one of our sessions, or one that only the agent knows; and the history
//! in its log.

use std::path::{Path, PathBuf};

use multitap_adapter::{History, read};
use multitap_event::{
    AgentError, AgentErrorKind, Draft, EventKind, Resume, SessionConfig, SessionId, SystemNote, SystemSubtype,
    Timestamp,
};
use multitap_hub::{EarlierEvents, Edge, Filter, Part, SessionRecord, Which};

use crate::args::SessionArgs;
use crate::exit::{Exit, Problem};
use crate::host::{Host, about_log};

/// How many events of an earlier log are read at a time.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// The conversation to resume.
#[derive(Debug)]
pub(crate) enum ResumeTarget {
    New,
    /// A session of ours.
    Ours(Box<SessionRecord>),
    /// A conversation that only the agent knows.
    AgentsOwn,
}

impl ResumeTarget {
    /// Resolves `-c` and `-r`: one of our sessions first, else the agent's own.
    pub(crate) async fn find(host: &Host, args: &SessionArgs, folder: &Path) -> Result<Self, Problem> {
        let is_chosen =
            |record: &SessionRecord| args.with.agent.as_deref().is_none_or(|agent| agent == record.agent.to_string());
        let named = args.resume.as_ref().filter(|_| !args.continues());
        let found = match (named, args.continues()) {
            (None, false) => return Ok(Self::New),
            // The session will report that nothing is stored; the agent may still know the conversation.
            _ if !host.keeps() => return Ok(Self::AgentsOwn),
            (Some(name), _) => host.journal().find(name.clone()).await,
            (None, true) => host.journal().list(Filter { folder: Some(folder.to_owned()), ..Filter::default() }).await,
        };
        let mut found = found.map_err(|error| Problem::new(Exit::Failed, about_log(&error)))?;
        found.retain(is_chosen);
        if named.is_none() {
            // The newest with a conversation; one that the agent knows takes precedence over one with shell commands
            // only.
            let is_heard = |record: &SessionRecord| record.about.native_id.is_some();
            let is_any_heard = found.iter().any(is_heard);
            found.retain(|record| is_heard(record) || (!is_any_heard && record.about.title.is_some()));
        }
        if let (Some(name), [one, other, ..]) = (named, found.as_slice()) {
            let message = format!("-r {name} matches more than one session, such as {} and {}", one.id, other.id);
            return Err(Problem::usage(message));
        }
        Ok(found.into_iter().next().map_or(Self::AgentsOwn, |record| Self::Ours(Box::new(record))))
    }

    /// The options for one of our sessions: its agent, its folder, its conversation.
    pub(crate) fn options(&self, args: &SessionArgs, folder: PathBuf) -> (SessionArgs, PathBuf) {
        let Self::Ours(record) = self else { return (args.clone(), folder) };
        let mut options = args.clone();
        options.with.agent = Some(record.agent.to_string());
        options.resume.clone_from(&record.about.native_id);
        options.continue_latest = false;
        let own = record.folder.clone().filter(|own| args.cwd.is_none() && own.is_dir());
        (options, own.unwrap_or(folder))
    }

    /// Which log the session writes, and the history before it. `id` is for a new one.
    pub(crate) fn which(self, host: &Host, config: &SessionConfig, folder: &Path, id: SessionId) -> Which {
        match self {
            Self::New => Which::New { id, forked_from: None, history: None },
            Self::Ours(record) if config.fork => {
                Which::New { id, history: Some(copy(host, record.id.clone())), forked_from: Some(record.id) }
            }
            Self::Ours(record) => Which::Stored(record.id),
            Self::AgentsOwn => Which::New { id, forked_from: None, history: agents_own(host, config, folder) },
        }
    }
}

/// The log of a session as history for a copy. A read error is reported in the copy.
fn copy(host: &Host, session: SessionId) -> EarlierEvents {
    let journal = host.journal().clone();
    host.history(move |drafts| async move {
        let mut after = 0;
        loop {
            let part = Part { edge: Edge::After(after), limit: PAGE, bytes: PAGE_BYTES };
            let page = match journal.page(session.clone(), part).await {
                Ok(page) => page,
                Err(error) => {
                    let message = format!("cannot read on in session {session} after event {after}: {error}");
                    let error = EventKind::Error(AgentError::new(AgentErrorKind::Unknown, message));
                    drafts.send(Draft::new(Timestamp::now(), error)).await.ok(); // no receiver may be left
                    return;
                }
            };
            let Some(last) = page.entries.last() else {
                drafts.send(Draft::new(Timestamp::now(), forked_from(&session))).await.ok(); // no receiver may be left
                return;
            };
            after = last.seq();
            for event in page.entries.iter().filter_map(|entry| entry.event().cloned()) {
                let draft = Draft { at: event.timestamp, kind: event.kind, raw: event.raw };
                if drafts.send(draft).await.is_err() {
                    return;
                }
            }
        }
    })
}

/// The mark between a copied history and what follows.
fn forked_from(session: &SessionId) -> EventKind {
    let (subtype, message) = (SystemSubtype::FORKED.to_owned(), Some(format!("forked from session {session}")));
    EventKind::System(SystemNote { subtype, message, data: serde_json::Map::new() })
}

/// The history in the agent's own store. `None` if it is not found: the agent reports that best.
fn agents_own(host: &Host, config: &SessionConfig, folder: &Path) -> Option<EarlierEvents> {
    let wanted = match &config.resume {
        Resume::Session { native_id, .. } => native_id.as_str(),
        Resume::Latest | Resume::New => "latest",
    };
    let own = config.program.as_ref().map(|program| program.env.clone()).unwrap_or_default();
    let env = own.into_iter().chain(config.environment.clone()).collect();
    let session = History::of(config.agent.agent_type(), &env).ok()?.find(wanted, folder).ok()?;
    let reading = read(&session, config.keep_raw).ok()?;
    Some(host.history(move |drafts| async move {
        let read = tokio::task::spawn_blocking(move || {
            for draft in reading {
                if drafts.blocking_send(draft).is_err() {
                    return;
                }
            }
        });
        read.await.ok(); // a reader that failed has already reported it
    }))
}
