//! Opening, loading, listing, closing and deleting sessions: requests that need more than the connection.

use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CloseSessionResponse, DeleteSessionResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionResponse,
    NewSessionRequest, NewSessionResponse, ResumeSessionResponse, SessionInfo,
};
use multitap_event::{ClientRef, ClientRole, PromptId, Query, SessionId};
use multitap_hub::{Refusal, Session, SessionsCall};
use serde::Serialize;
use serde_json::{Map, json};
use tokio::time::timeout;

use super::attach::Attach;
use super::attachment::{Attachment, Reader, Start};
use super::features::{ClientFeatures, META};
use super::{config, decode, error};
use crate::host::{self, Opened, Wanted};
use crate::http::Shared;

/// How long an agent may take to list its models before a session is shown without them.
const MODELS_PATIENCE: Duration = Duration::from_secs(2);
/// How long the answer to `session/close` waits for the end of the session.
const CLOSE_PATIENCE: Duration = Duration::from_secs(10);

/// The outcome of a request.
pub(crate) enum Done {
    /// The `result` as JSON.
    Answered(String),
    Refused(Refusal),
    /// A session that the client joins.
    Joined(Box<Attachment>, Box<Reader>, Reply),
    /// A prompt was accepted under that id; the end of its turn answers the request.
    Prompted {
        sent_as: PromptId,
        prompt: PromptId,
    },
}

/// How the request that joined a session is answered.
pub(crate) enum Reply {
    /// Before anything of the session.
    First(String),
    /// After the history.
    AfterReplay(String),
}

pub(super) type Answer = Result<Done, Refusal>;

/// Answers requests that need more than the connection.
pub(super) struct Joiner {
    pub(super) door: Shared,
    pub(super) client: ClientRef,
    pub(super) features: ClientFeatures,
}

impl Joiner {
    pub(super) async fn open(self, request: NewSessionRequest) -> Answer {
        let open = decode::open(request)?;
        let (session, notices) = match self.door.host.shared() {
            Some(shared) => (shared, Vec::new()),
            None => {
                refuse_observers(&self.client)?;
                let wanted = Wanted { by: self.client.clone(), open };
                let Opened { session, notices } = self.door.host.open(wanted).await?;
                (session, notices)
            }
        };
        let (attachment, reader) = self.join(session, Start::Now).await?;
        let state = self.settings(&attachment.session).await?;
        let id = attachment.session.id().as_str().to_owned();
        let meta = (!notices.is_empty()).then(|| Map::from_iter([(META.to_owned(), json!({ "notices": notices }))]));
        let response =
            NewSessionResponse::new(id).modes(config::modes(&state)).config_options(config::options(&state)).meta(meta);
        Ok(Done::Joined(Box::new(attachment), Box::new(reader), Reply::First(written(&response))))
    }

    pub(super) async fn resume(self, id: SessionId, start: Start) -> Answer {
        let session = self.find(id).await?;
        let is_replay = start == Start::Replay;
        let (attachment, reader) = self.join(session, start).await?;
        let state = self.settings(&attachment.session).await?;
        let (modes, options) = (config::modes(&state), config::options(&state));
        let reply = if is_replay {
            Reply::AfterReplay(written(&LoadSessionResponse::new().modes(modes).config_options(options)))
        } else {
            Reply::First(written(&ResumeSessionResponse::new().modes(modes).config_options(options)))
        };
        Ok(Done::Joined(Box::new(attachment), Box::new(reader), reply))
    }

    pub(super) async fn attach(mut self, call: Attach) -> Answer {
        let start = call.history_policy.start();
        let session = self.find(call.session_id.clone()).await?;
        self.client.role = call.lowered(self.client.role);
        let is_replay = start == Start::Replay;
        let (attachment, reader) = self.join(session, start).await?;
        let state = self.settings(&attachment.session).await?;
        let result = call.result(&attachment.client, &state);
        let reply = if is_replay { Reply::AfterReplay(result) } else { Reply::First(result) };
        Ok(Done::Joined(Box::new(attachment), Box::new(reader), reply))
    }

    /// The session, which is resumed if it is not live.
    async fn find(&self, id: SessionId) -> Result<Session, Refusal> {
        if let Some(session) = self.door.host.find(&id) {
            return Ok(session);
        }
        refuse_observers(&self.client)?;
        Ok(self.door.host.resume(id, self.client.clone()).await?.session)
    }

    async fn join(&self, session: Session, start: Start) -> Result<(Attachment, Reader), Refusal> {
        Attachment::join(session, self.client.clone(), self.features, start).await
    }

    /// The state of a session whose agent was asked for what it offers.
    async fn settings(&self, session: &Session) -> Result<Box<multitap_hub::State>, Refusal> {
        // A slow agent lists its models later, by an update.
        timeout(MODELS_PATIENCE, session.offered(Query::Models)).await.ok();
        session.snapshot().await.ok_or(Refusal::SessionEnded)
    }

    pub(super) async fn list(self, request: ListSessionsRequest) -> Answer {
        let after = request.cursor.as_deref().map(SessionId::from);
        let call = SessionsCall { cwd: request.cwd, after, ..SessionsCall::default() };
        let reply = host::sessions(&self.door, &call).await?;
        let sessions = reply.sessions.into_iter().map(|session| {
            let meta = json!({ "agent": session.agent, "status": session.status, "questions": session.questions });
            SessionInfo::new(session.session_id.as_str().to_owned(), session.cwd.unwrap_or_default())
                .title(session.title)
                .updated_at(session.updated.to_string())
                .meta(Map::from_iter([(META.to_owned(), meta)]))
        });
        let next = reply.next.map(|id| id.as_str().to_owned());
        Ok(Done::Answered(written(&ListSessionsResponse::new(sessions.collect()).next_cursor(next))))
    }

    /// Frees what nobody else uses. The session is stored and can be loaded again.
    pub(super) async fn close(self, session: &Session, client: &ClientRef) -> Answer {
        let is_shared = self.door.host.shared().is_some_and(|shared| shared.id() == session.id());
        let has_others = session
            .snapshot()
            .await
            .is_some_and(|state| state.clients.iter().any(|other| other.client_id != client.client_id));
        if !is_shared && !has_others && client.role != Some(ClientRole::Observer) {
            session.stop().await?;
            // Otherwise a client that loads it again at once finds a session that is ending.
            timeout(CLOSE_PATIENCE, session.over()).await.ok();
        }
        Ok(Done::Answered(written(&CloseSessionResponse::new())))
    }

    pub(super) async fn delete(self, id: SessionId) -> Answer {
        if !self.client.is_owner() {
            return Err(Refusal::NotOwner);
        }
        let host = &self.door.host;
        if host.shared().is_some_and(|shared| *shared.id() == id) {
            return Err(error::invalid_params("sessionId: this session is shared with a terminal"));
        }
        let stored = host.journal().find(id.as_str().to_owned()).await?;
        let live = host.find(&id);
        if live.is_none() && !stored.iter().any(|record| record.id == id && host.shows(record)) {
            return Err(Refusal::UnknownSession { session_id: id });
        }
        if let Some(session) = live {
            session.end();
            session.over().await;
        }
        host.journal().remove(id).await?;
        Ok(Done::Answered(written(&DeleteSessionResponse::new())))
    }
}

fn refuse_observers(client: &ClientRef) -> Result<(), Refusal> {
    if client.role == Some(ClientRole::Observer) { Err(Refusal::Observer) } else { Ok(()) }
}

pub(super) fn written(reply: &impl Serialize) -> String {
    serde_json::to_string(reply).unwrap_or_else(|error| {
        tracing::error!(%error, "a reply cannot be written as JSON");
        "null".to_owned()
    })
}
