//! Opening, loading, listing, closing and deleting sessions: requests that need more than the connection.

use std::time::Duration;

use agent_client_protocol_schema::v1::{
    AuthMethod, AuthMethodAgent, AuthenticateResponse, CloseSessionResponse, DeleteSessionResponse, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    ResumeSessionResponse, SessionConfigOption, SessionInfo, SessionModeState, SetSessionConfigOptionResponse,
};
use multitap_event::{ClientRef, ClientRole, PromptId, Query, SessionId};
use multitap_hub::{AgentSummary, OpenCall, Refusal, Session, SessionsCall, State};
use serde::Serialize;
use serde_json::{Map, Value, json};
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
    /// The `error` as JSON.
    Failed(String),
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
    /// With this `result` or `error`. The session was opened anew: what the client knows of it ends.
    Anew(Result<String, String>),
}

pub(super) type Answer = Result<Done, Refusal>;

/// Answers requests that need more than the connection.
pub(super) struct Joiner {
    pub(super) door: Shared,
    pub(super) client: ClientRef,
    pub(super) features: ClientFeatures,
}

impl Joiner {
    /// Adds how to sign in with the agents that are not signed in.
    pub(super) async fn hello(self, response: InitializeResponse) -> Done {
        let method = |agent: AgentSummary| {
            let fix = agent.sign_in.filter(|_| agent.is_installed)?;
            let name = format!("Sign in with {}", agent.name);
            Some(AuthMethod::Agent(AuthMethodAgent::new(agent.name, name).description(fix)))
        };
        let methods = self.agents().await.into_iter().filter_map(method).collect();
        Done::Answered(written(&response.auth_methods(methods)))
    }

    /// The user signs in with the agent's own program: says whether that is done.
    pub(super) async fn authenticate(self, method: &str) -> Answer {
        let agent = self.agents().await.into_iter().find(|agent| agent.name == method);
        let agent = agent.ok_or_else(|| {
            error::invalid_params(format!("methodId: there is no authentication method \"{method}\""))
        })?;
        Ok(match agent.sign_in {
            None => Done::Answered(written(&AuthenticateResponse::new())),
            Some(fix) => Done::Failed(error::not_signed_in("authentication is required", &agent.name, &fix)),
        })
    }

    pub(super) async fn open(self, request: NewSessionRequest) -> Answer {
        let open = decode::open(request)?;
        let (opened, notices, agents) = match self.door.host.shared() {
            Some(shared) => (shared, Vec::new(), Vec::new()),
            None => {
                refuse_observers(&self.client)?;
                let wanted = Wanted { by: self.client.clone(), open: open.clone() };
                match self.door.host.open(wanted).await {
                    Ok(Opened { session, notices }) => (session, notices, self.agents().await),
                    Err(refusal) => return Ok(self.failed(open.agent.as_deref(), refusal).await),
                }
            }
        };
        let (mut attachment, reader) = self.join(opened, Start::Now, agents).await?;
        attachment.opened = Some(open);
        let (modes, options) = self.settings(&attachment).await?;
        let id = attachment.session.id().as_str().to_owned();
        let response = NewSessionResponse::new(id).modes(modes).config_options(options).meta(noticed(&notices));
        Ok(Done::Joined(Box::new(attachment), Box::new(reader), Reply::First(written(&response))))
    }

    pub(super) async fn resume(self, id: SessionId, open: OpenCall, start: Start) -> Answer {
        let (session, notices) = match self.find(id.clone(), open).await {
            Ok(found) => found,
            Err(refusal) => {
                let stored = self.door.host.journal().find(id.as_str().to_owned()).await.unwrap_or_default();
                let agent = stored.iter().find(|record| record.id == id).map(|record| record.agent.agent_type());
                return Ok(match agent {
                    Some(agent) => self.failed(Some(agent.as_str()), refusal).await,
                    None => Done::Refused(refusal),
                });
            }
        };
        let is_replay = start == Start::Replay;
        let (attachment, reader) = self.join(session, start, Vec::new()).await?;
        let ((modes, options), meta) = (self.settings(&attachment).await?, noticed(&notices));
        let reply = if is_replay {
            Reply::AfterReplay(written(&LoadSessionResponse::new().modes(modes).config_options(options).meta(meta)))
        } else {
            Reply::First(written(&ResumeSessionResponse::new().modes(modes).config_options(options).meta(meta)))
        };
        Ok(Done::Joined(Box::new(attachment), Box::new(reader), reply))
    }

    /// Gives a session another agent: it is opened anew under its id.
    pub(super) async fn change_agent(
        self,
        session: Session,
        client: ClientRef,
        opened: OpenCall,
        agent: String,
    ) -> Answer {
        if has_others(&session, &client).await {
            return Err(error::invalid_params("value: the agent cannot change while others use the session"));
        }
        let (id, host) = (session.id().clone(), &self.door.host);
        let wanted = |open: &OpenCall| Wanted { by: self.client.clone(), open: open.clone() };
        let mut open = OpenCall { agent: Some(agent), model: None, ..opened.clone() };
        let (reopened, refused) = match host.reopen(id.clone(), wanted(&open)).await {
            Ok(reopened) => (reopened, None),
            Err(refusal) if host.find(&id).is_some() => return Err(refusal),
            // The other agent does not start.
            Err(refusal) => {
                let refused = self.failed(open.agent.as_deref(), refusal).await;
                open = opened;
                (host.reopen(id, wanted(&open)).await?, Some(refused))
            }
        };
        let (mut attachment, reader) = self.join(reopened.session, Start::Now, self.agents().await).await?;
        attachment.opened = Some(open);
        let (_, options) = self.settings(&attachment).await?;
        let response = SetSessionConfigOptionResponse::new(options).meta(noticed(&reopened.notices));
        let reply = match refused {
            None => Reply::Anew(Ok(written(&response))),
            Some(Done::Failed(error)) => Reply::Anew(Err(error)),
            Some(Done::Refused(refusal)) => Reply::Anew(Err(error::of(&refusal))),
            Some(_) => Reply::Anew(Err(error::of(&Refusal::NoAgent))),
        };
        Ok(Done::Joined(Box::new(attachment), Box::new(reader), reply))
    }

    pub(super) async fn attach(mut self, call: Attach) -> Answer {
        let start = call.history_policy.start();
        let (session, _) = self.find(call.session_id.clone(), OpenCall::default()).await?;
        self.client.role = call.lowered(self.client.role);
        let is_replay = start == Start::Replay;
        let (attachment, reader) = self.join(session, start, Vec::new()).await?;
        let state = self.state(&attachment.session).await?;
        let result = call.result(&attachment.client, &state, &attachment.choices());
        let reply = if is_replay { Reply::AfterReplay(result) } else { Reply::First(result) };
        Ok(Done::Joined(Box::new(attachment), Box::new(reader), reply))
    }

    /// The session, which is resumed with these settings if it is not live, and what of them does not count.
    async fn find(&self, id: SessionId, open: OpenCall) -> Result<(Session, Vec<String>), Refusal> {
        if let Some(session) = self.door.host.find(&id) {
            let is_ignored = !open.mcp_servers.is_empty() || !open.additional_directories.is_empty();
            let notice = is_ignored.then(|| "mcpServers and additionalDirectories: the agent runs already".to_owned());
            return Ok((session, notice.into_iter().collect()));
        }
        refuse_observers(&self.client)?;
        let Opened { session, notices } = self.door.host.resume(id, Wanted { by: self.client.clone(), open }).await?;
        Ok((session, notices))
    }

    async fn join(
        &self,
        session: Session,
        start: Start,
        agents: Vec<AgentSummary>,
    ) -> Result<(Attachment, Reader), Refusal> {
        Attachment::join(session, self.client.clone(), self.features, start, agents).await
    }

    /// The agents of the host; none if it has one session only.
    pub(super) async fn agents(&self) -> Vec<AgentSummary> {
        self.door.host.agents().await.unwrap_or_default()
    }

    /// How a request ends whose agent failed, which may be because its user is not signed in. Without a name it is the
    /// agent that a new session has.
    pub(super) async fn failed(&self, agent: Option<&str>, refusal: Refusal) -> Done {
        let Refusal::AgentFailed { message } = &refusal else { return Done::Refused(refusal) };
        let is_meant = |known: &AgentSummary| agent.map_or(known.is_default, |agent| known.name == agent);
        let agent = self.agents().await.into_iter().find(is_meant).filter(|agent| agent.is_installed);
        match agent.and_then(|agent| Some((agent.name, agent.sign_in?))) {
            Some((agent, fix)) => Done::Failed(error::not_signed_in(message, &agent, &fix)),
            None => Done::Refused(refusal),
        }
    }

    /// What the client of a session may set.
    async fn settings(
        &self,
        attachment: &Attachment,
    ) -> Result<(Option<SessionModeState>, Vec<SessionConfigOption>), Refusal> {
        let (state, choices) = (self.state(&attachment.session).await?, attachment.choices());
        Ok((config::modes(&state, choices.modes), config::options(&state, &choices)))
    }

    /// The state of a session whose agent was asked for what it offers.
    async fn state(&self, session: &Session) -> Result<Box<State>, Refusal> {
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
        if !is_shared && !has_others(session, client).await && client.role != Some(ClientRole::Observer) {
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

/// Whether other clients have joined the session.
async fn has_others(session: &Session, client: &ClientRef) -> bool {
    let state = session.snapshot().await;
    state.is_some_and(|state| state.clients.iter().any(|other| other.client_id != client.client_id))
}

/// What the host did not grant, for people.
fn noticed(notices: &[String]) -> Option<Map<String, Value>> {
    (!notices.is_empty()).then(|| Map::from_iter([(META.to_owned(), json!({ "notices": notices }))]))
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
