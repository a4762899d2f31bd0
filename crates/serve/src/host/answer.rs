//! Answers calls on a host: the same for every door.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use multitap_event::{ClientRef, ClientRole, Query, SessionId, Timestamp};
use multitap_hub::{
    AboutSession, Filter, HostCall, HostReply, JournalError, OpenReply, Refusal, Session, SessionQuestion,
    SessionStatus, SessionSummary, SessionsCall, SessionsReply, State,
};
use tokio::task::spawn_blocking;

use super::{Opened, Wanted};
use crate::http::Shared;

/// Number of sessions on a page if the client does not say, and the maximum.
const PAGE_SESSIONS: usize = 50;
const MAX_PAGE_SESSIONS: usize = 500;
/// How much of a query for files is used.
const QUERY: usize = 200;

/// Answers a client's call on the host. `joined` is the session that its connection has joined.
pub(crate) async fn answer(
    door: &Shared,
    call: HostCall,
    by: ClientRef,
    joined: Option<Session>,
) -> Result<HostReply, Refusal> {
    match call {
        HostCall::Sessions(call) => sessions(door, &call).await.map(HostReply::Sessions),
        HostCall::Open(open) => {
            refuse_observers(&by)?;
            door.host.open(Wanted { by, open: *open }).await.map(opened)
        }
        HostCall::Resume { session_id } => {
            refuse_observers(&by)?;
            match door.host.find(&session_id) {
                Some(session) => Ok(opened(Opened { session, notices: Vec::new() })),
                None => door.host.resume(session_id, Wanted::bare(by)).await.map(opened),
            }
        }
        HostCall::Agents => Ok(HostReply::Agents { agents: door.host.agents().await? }),
        HostCall::Models(about) => {
            let offer = offered(door, about, by, joined, Query::Models).await?;
            Ok(HostReply::Models { models: offer.models.unwrap_or_default() })
        }
        HostCall::Commands(about) => {
            let offer = offered(door, about, by, joined, Query::Commands).await?;
            Ok(HostReply::Commands { commands: offer.commands.unwrap_or_default() })
        }
        HostCall::Files(call) => {
            let session = named(door, call.session_id, joined)?.ok_or(Refusal::NoSession)?;
            let files = files(door, &session, call.query.chars().take(QUERY).collect()).await?;
            Ok(HostReply::Files { files })
        }
        HostCall::Questions => Ok(HostReply::Questions { questions: questions(door).await }),
    }
}

/// A page of the sessions that clients of this door may see.
pub(crate) async fn sessions(door: &Shared, call: &SessionsCall) -> Result<SessionsReply, Refusal> {
    let host = &door.host;
    let mut live: HashMap<SessionId, Session> =
        host.live().into_iter().map(|session| (session.id().clone(), session)).collect();
    let filter = Filter { folder: call.cwd.clone(), ..Filter::default() };
    let mut records = match host.journal().list(filter).await {
        Ok(records) => records,
        // Live sessions go on without a log.
        Err(JournalError::NoSuchSession(_)) => Vec::new(),
        Err(error) if live.is_empty() => return Err(error.into()),
        Err(error) => {
            tracing::warn!(%error, "stored sessions cannot be listed");
            Vec::new()
        }
    };
    records.retain(|record| live.contains_key(&record.id) || host.shows(record));
    if let Some(after) = &call.after {
        let place = records.iter().position(|record| record.id == *after);
        let place = place.ok_or_else(|| Refusal::UnknownSession { session_id: after.clone() })?;
        records.drain(..=place);
    }
    let logged: HashSet<SessionId> = records.iter().map(|record| record.id.clone()).collect();
    let limit = call.limit.unwrap_or(PAGE_SESSIONS).clamp(1, MAX_PAGE_SESSIONS);
    let has_more = records.len() > limit;
    records.truncate(limit);
    let next = records.last().filter(|_| has_more).map(|record| record.id.clone());
    let mut sessions = Vec::with_capacity(records.len());
    for record in records {
        let session = live.remove(&record.id);
        let summary = SessionSummary::stored(record);
        sessions.push(match session {
            Some(session) => session.snapshot().await.map_or(summary.clone(), |state| summary.live(&state)),
            None => summary,
        });
    }
    if call.after.is_none() {
        live.retain(|id, _| !logged.contains(id));
        for session in live.into_values() {
            sessions.extend(unlogged(&session, call).await);
        }
    }
    Ok(SessionsReply { sessions, next })
}

/// A live session that has no log here: it cannot be written, or is in another process.
async fn unlogged(session: &Session, call: &SessionsCall) -> Option<SessionSummary> {
    let state = session.snapshot().await?;
    let cwd = folder(&state);
    if call.cwd.is_some() && call.cwd != cwd {
        return None;
    }
    let (agent, now) = (state.start.as_ref()?.agent_type.to_string(), Timestamp::now());
    let summary = SessionSummary {
        session_id: session.id().clone(),
        title: None,
        agent,
        cwd,
        model: None,
        created: now,
        updated: now,
        status: SessionStatus::Idle,
        questions: 0,
    };
    Some(summary.live(&state))
}

/// The open questions of all live sessions.
async fn questions(door: &Shared) -> Vec<SessionQuestion> {
    let mut questions = Vec::new();
    for session in door.host.live() {
        let Some(state) = session.snapshot().await else { continue };
        let asked = state.questions.open().iter().cloned();
        questions.extend(asked.map(|question| SessionQuestion { session_id: session.id().clone(), question }));
    }
    questions
}

async fn offered(
    door: &Shared,
    about: AboutSession,
    by: ClientRef,
    joined: Option<Session>,
    what: Query,
) -> Result<multitap_event::AgentCapabilities, Refusal> {
    if let Some(session) = named(door, about.session_id, joined)? {
        return session.offered(what).await;
    }
    door.offers.get(door.host.as_ref(), by, what).await
}

async fn files(door: &Shared, session: &Session, query: String) -> Result<Vec<String>, Refusal> {
    let folder = session.snapshot().await.and_then(|state| folder(&state));
    let folder = folder.ok_or(Refusal::NoAgent)?;
    let host = door.host.clone();
    spawn_blocking(move || host.files(&folder, &query)).await.map_err(|_| Refusal::ShuttingDown)
}

/// The folder that a session works in.
fn folder(state: &State) -> Option<PathBuf> {
    state.start.as_ref()?.config.as_ref()?.working_directory.clone().map(PathBuf::from)
}

/// The session of that id; without one, the session that was joined.
fn named(door: &Shared, id: Option<SessionId>, joined: Option<Session>) -> Result<Option<Session>, Refusal> {
    match id {
        None => Ok(joined),
        Some(session_id) => door.host.find(&session_id).map(Some).ok_or(Refusal::UnknownSession { session_id }),
    }
}

fn opened(Opened { session, notices }: Opened) -> HostReply {
    HostReply::Opened(OpenReply { session_id: session.id().clone(), notices })
}

fn refuse_observers(by: &ClientRef) -> Result<(), Refusal> {
    if by.role == Some(ClientRole::Observer) { Err(Refusal::Observer) } else { Ok(()) }
}
