//! The connection of one ACP client: its requests, its sessions, and what it is asked.
//!
//! One task for each connection, which waits only for its own client. A turn belongs to the session: it goes on when the
//! client leaves.

use std::collections::HashMap;
use std::time::Duration;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthenticateRequest, CancelNotification, CloseSessionRequest, CloseSessionResponse,
    DeleteSessionRequest, DeleteSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, McpCapabilities,
    NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities, SessionInfo,
    SessionListCapabilities, SessionResumeCapabilities, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse,
    SetSessionModeRequest, SetSessionModeResponse, StopReason,
};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use multitap_event::{ClientRef, ClientRole, Decide, PromptId, Query, Question, QuestionId, SessionId};
use multitap_hub::{FeedEnd, Refusal, Session, SessionsCall};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::attachment::{Attachment, Item, Items, Reader, Start, WAITING};
use super::encode::PromptEnd;
use super::features::{ClientFeatures, META};
use super::question::Ask;
use super::setting::{self, Setting};
use super::{CANCEL_REQUEST, INITIALIZE, config, decode, error};
use crate::host::{self, Opened, Wanted};
use crate::http::Shared;
use crate::rpc::{CloseReason, Disconnected, Incoming, Invalid, Peer, Request, RequestId};

/// How long an agent may take to list its models before a session is shown without them.
const MODELS_PATIENCE: Duration = Duration::from_secs(2);
const UPDATE: &str = "session/update";

/// The connection of one client.
#[derive(Debug)]
pub(crate) struct Connection {
    door: Shared,
    /// The client as it came; sessions give it an id each.
    client: ClientRef,
    features: ClientFeatures,
    attachments: HashMap<SessionId, Attachment>,
    /// The requests that wait for the end of a prompt.
    prompts: HashMap<PromptId, Waiting>,
    /// Responses that wait until the history was sent.
    loads: HashMap<RequestId, String>,
    asks: Asks,
    items: Items,
    incoming: mpsc::Receiver<(Session, Item)>,
}

/// A request that waits for the end of its prompt.
#[derive(Debug)]
struct Waiting {
    request: RequestId,
    session: SessionId,
}

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

type Answer = Result<Done, Refusal>;

/// What the client was asked.
#[derive(Debug, Default)]
struct Asks {
    pending: FuturesUnordered<tokio::task::JoinHandle<Option<()>>>,
    open: HashMap<(SessionId, QuestionId), CancellationToken>,
}

impl Connection {
    pub(crate) fn new(door: Shared, client: ClientRef) -> Self {
        let (items, incoming) = mpsc::channel(WAITING);
        Self {
            door,
            client,
            features: ClientFeatures::default(),
            attachments: HashMap::new(),
            prompts: HashMap::new(),
            loads: HashMap::new(),
            asks: Asks::default(),
            items,
            incoming,
        }
    }

    /// Serves its client until one of the two leaves. `first` is a request that another protocol has read.
    pub(crate) async fn run(mut self, mut peer: Peer<Done>, first: Option<Request>) {
        if let Some(first) = first
            && self.request(&mut peer, first).await.is_err()
        {
            return;
        }
        // Nothing can be sent to a client that is gone.
        if let Ok(why) = self.serve(&mut peer).await {
            peer.close(why).await;
        }
    }

    async fn serve(&mut self, peer: &mut Peer<Done>) -> Result<CloseReason, Disconnected> {
        let stop = self.door.stop.clone();
        loop {
            if !peer.is_full()
                && let Ok((session, item)) = self.incoming.try_recv()
            {
                self.item(peer, &session, item).await?;
                continue;
            }
            peer.flush().await?;
            tokio::select! {
                () = stop.cancelled() => return Ok(CloseReason::SHUT_DOWN),
                Some((session, item)) = self.incoming.recv() => self.item(peer, &session, item).await?,
                Some(_) = self.asks.pending.next() => {}
                incoming = peer.next() => if let Some(why) = self.act(peer, incoming?).await? {
                    return Ok(why);
                },
            }
        }
    }

    /// Handles a message. Returns the reason if the connection must be closed.
    async fn act(
        &mut self,
        peer: &mut Peer<Done>,
        incoming: Incoming<Done>,
    ) -> Result<Option<CloseReason>, Disconnected> {
        match incoming {
            Incoming::Request(request) => self.request(peer, request).await?,
            Incoming::Notification { method, params } => self.notified(peer, &method, params).await?,
            Incoming::Done(id, done) => self.done(peer, id, done).await?,
            Incoming::Invalid(Invalid { id, fault }) => {
                peer.refuse_message(&id, &error::written(fault.code, &fault.message, Map::new())).await?;
            }
            Incoming::Broken { fault, close } => {
                if let Some(fault) = fault {
                    let error = error::written(fault.code, &fault.message, Map::new());
                    peer.refuse_message(&RequestId::Null, &error).await?;
                }
                return Ok(Some(close));
            }
        }
        Ok(None)
    }

    async fn done(&mut self, peer: &mut Peer<Done>, id: RequestId, done: Done) -> Result<(), Disconnected> {
        match done {
            Done::Answered(result) => peer.respond(&id, &result).await,
            Done::Refused(refusal) => {
                self.prompts.retain(|_, waiting| waiting.request != id);
                peer.refuse(&id, &error::of(&refusal)).await
            }
            Done::Prompted { sent_as, prompt } => {
                self.assigned(&sent_as, prompt);
                Ok(())
            }
            Done::Joined(attachment, reader, reply) => {
                match reply {
                    Reply::First(result) => peer.respond(&id, &result).await?,
                    Reply::AfterReplay(result) => {
                        self.loads.insert(id, result);
                    }
                }
                let session = attachment.session.id().clone();
                self.asks.close_all(&session);
                self.attachments.insert(session, *attachment);
                self.door.tasks.spawn(reader.run(self.items.clone()));
                Ok(())
            }
        }
    }

    /// Sends what came from a session.
    async fn item(&mut self, peer: &mut Peer<Done>, session: &Session, item: Item) -> Result<(), Disconnected> {
        // A session that the client has left, or joined anew.
        let Some(attachment) = self.attachments.get(session.id()) else { return Ok(()) };
        match item {
            Item::Update(params) => peer.notify(UPDATE, params).await?,
            Item::UserMessage { prompt, sent_as, params } => {
                if !prompt.is_some_and(|prompt| self.is_own(&prompt, sent_as)) {
                    peer.notify(UPDATE, params).await?;
                }
            }
            Item::Asked(question) => {
                let client = attachment.client.clone();
                self.ask(peer, session.clone(), *question, client);
            }
            Item::Closed { question, ruling } => {
                self.asks.close(session.id(), &question);
                if self.features.attach {
                    let settled = ruling.as_ref().map(|ruling| {
                        json!({ "optionId": ruling.selected_option_id, "client": ruling.settled_by.client, "door": ruling.settled_by.door, "at": ruling.at })
                    });
                    let params = json!({ "sessionId": session.id(), "questionId": question, "resolvedBy": settled });
                    peer.notify("_multitap/permission_resolved", params).await?;
                }
            }
            Item::TurnOver { prompts, end } => {
                for prompt in prompts {
                    if let Some(Waiting { request, .. }) = self.prompts.remove(&prompt) {
                        answer_prompt(peer, &request, &end).await?;
                    }
                }
            }
            Item::Replayed(request) => {
                if let Some(result) = self.loads.remove(&request) {
                    peer.respond(&request, &result).await?;
                }
            }
            Item::Ended(end) => self.ended(peer, session.id(), end).await?,
        }
        Ok(())
    }

    /// Whether this client waits for the end of that prompt. A session elsewhere gives it an id of its own.
    fn is_own(&mut self, prompt: &PromptId, sent_as: Option<String>) -> bool {
        if let Some(sent_as) = sent_as {
            self.assigned(&PromptId::from(sent_as), prompt.clone());
        }
        self.prompts.contains_key(prompt)
    }

    /// From now on a prompt has the id that its session gave it.
    fn assigned(&mut self, sent_as: &PromptId, prompt: PromptId) {
        if let Some(waiting) = self.prompts.remove(sent_as) {
            self.prompts.insert(prompt, waiting);
        }
    }

    /// A session is over, or this client was cut off from it: what waits for it fails.
    async fn ended(&mut self, peer: &mut Peer<Done>, session: &SessionId, end: FeedEnd) -> Result<(), Disconnected> {
        self.attachments.remove(session);
        self.asks.close_all(session);
        let why = match end {
            FeedEnd::SessionOver => Refusal::SessionEnded,
            FeedEnd::CutOff { .. } => Refusal::Kicked,
        };
        let of_session = |waiting: &Waiting| waiting.session == *session;
        let waiting: Vec<PromptId> =
            self.prompts.iter().filter(|(_, waiting)| of_session(waiting)).map(|(prompt, _)| prompt.clone()).collect();
        for prompt in waiting {
            if let Some(Waiting { request, .. }) = self.prompts.remove(&prompt) {
                peer.refuse(&request, &error::of(&why)).await?;
            }
        }
        Ok(())
    }

    /// Puts a question to the client, beside everything else, and takes its answer to the session.
    fn ask(&mut self, peer: &Peer<Done>, session: Session, question: Question, client: ClientRef) {
        if client.role == Some(ClientRole::Observer) {
            return;
        }
        let Some(ask) = Ask::of(session.id().as_str(), &question, &client, self.features) else { return };
        let closed = CancellationToken::new();
        self.asks.open.insert((session.id().clone(), question.question_id.clone()), closed.clone());
        let calls = peer.calls();
        let asking = async move {
            let answer = match calls.call(ask.method, &ask.params).await {
                Ok(answer) => answer,
                Err(error) => {
                    // It stays open for the others.
                    tracing::debug!(%error, "the client does not answer a question");
                    return;
                }
            };
            let Some(decide) = ask.decision(&question, answer) else { return };
            decided(&session, decide, client).await;
        };
        // Dropping the request takes it back.
        self.asks.pending.push(self.door.tasks.spawn(async move { closed.run_until_cancelled(asking).await }));
    }

    async fn notified(&mut self, peer: &mut Peer<Done>, method: &str, params: Value) -> Result<(), Disconnected> {
        match method {
            "session/cancel" => {
                if let Ok(cancel) = decode::params::<CancelNotification>(Some(params)) {
                    self.cancel(&SessionId::from(&*cancel.session_id.0));
                }
            }
            CANCEL_REQUEST => {
                let Some(Ok(id)) = params.get("requestId").map(RequestId::read) else { return Ok(()) };
                let prompt = self.prompts.values().find(|waiting| waiting.request == id);
                if let Some(session) = prompt.map(|waiting| waiting.session.clone()) {
                    self.cancel(&session);
                } else if peer.abort(&id) {
                    self.loads.remove(&id);
                    peer.refuse(&id, &error::written(error::CANCELLED, "cancelled", Map::new())).await?;
                }
            }
            // A later version may know it.
            _ => {}
        }
        Ok(())
    }

    /// Stops what this client waits for: its queued prompts, and the running turn unless only queued prompts are its own.
    fn cancel(&self, id: &SessionId) {
        let Some(attachment) = self.attachments.get(id) else { return };
        let (session, client) = (attachment.session.clone(), attachment.client.clone());
        let own: Vec<PromptId> = self
            .prompts
            .iter()
            .filter(|(_, waiting)| waiting.session == *id)
            .map(|(prompt, _)| prompt.clone())
            .collect();
        self.door.tasks.spawn(async move {
            let mut withdrawn = 0;
            for prompt in &own {
                // One that is not in the queue runs or is over.
                if session.withdraw(prompt.clone(), client.clone()).await.is_ok() {
                    withdrawn += 1;
                }
            }
            if (own.is_empty() || withdrawn < own.len())
                && let Err(error) = session.cancel(client).await
            {
                tracing::debug!(%error, "nothing to cancel");
            }
        });
    }

    /// Begins to answer a request.
    async fn request(&mut self, peer: &mut Peer<Done>, request: Request) -> Result<(), Disconnected> {
        let Request { id, method, params } = request;
        if let Err(refusal) = self.begin(peer, id.clone(), &method, params) {
            peer.refuse(&id, &error::of(&refusal)).await?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        peer: &mut Peer<Done>,
        id: RequestId,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), Refusal> {
        let joiner = self.joiner();
        match method {
            INITIALIZE => {
                let result = self.initialize(&decode::params(params)?);
                peer.spawn(id, async move { Done::Answered(written(&result)) });
            }
            "authenticate" => {
                let AuthenticateRequest { method_id, .. } = decode::params(params)?;
                let message =
                    format!("there is no authentication method \"{method_id}\": sign in with the agent's own program");
                return Err(error::invalid_params(message));
            }
            "session/new" => {
                let request: NewSessionRequest = decode::params(params)?;
                spawn(peer, id, async move { joiner.open(request).await });
            }
            "session/load" => {
                let LoadSessionRequest { session_id, .. } = decode::params(params)?;
                let replay = Start::Replay(id.clone());
                spawn(peer, id, async move { joiner.resume(SessionId::from(&*session_id.0), replay).await });
            }
            "session/resume" => {
                let ResumeSessionRequest { session_id, .. } = decode::params(params)?;
                spawn(peer, id, async move { joiner.resume(SessionId::from(&*session_id.0), Start::Now).await });
            }
            "session/list" => {
                let request: ListSessionsRequest = decode::params(params)?;
                spawn(peer, id, async move { joiner.list(request).await });
            }
            "session/prompt" => {
                let PromptRequest { session_id, prompt, meta, .. } = decode::params(params)?;
                let session_id = SessionId::from(&*session_id.0);
                let (session, client) = self.attached(&session_id)?;
                let when_busy = decode::when_busy(meta.as_ref());
                let sent_as = PromptId::fresh();
                let prompt = decode::prompt(prompt, &sent_as)?;
                self.prompts.insert(sent_as.clone(), Waiting { request: id.clone(), session: session_id });
                spawn(peer, id, async move {
                    let prompt = session.prompt(prompt, when_busy, client).await?;
                    Ok(Done::Prompted { sent_as, prompt })
                });
            }
            "session/set_mode" => {
                let SetSessionModeRequest { session_id, mode_id, .. } = decode::params(params)?;
                let (session, client) = self.attached(&SessionId::from(&*session_id.0))?;
                spawn(peer, id, async move {
                    setting::change(&session, Setting::Mode(mode_id.0.to_string()), client).await?;
                    Ok(Done::Answered(written(&SetSessionModeResponse::new())))
                });
            }
            "session/set_config_option" => {
                let SetSessionConfigOptionRequest { session_id, config_id, value, .. } = decode::params(params)?;
                let (session, client) = self.attached(&SessionId::from(&*session_id.0))?;
                let value = value.as_value_id().map(|value| value.0.to_string());
                let value = value.ok_or_else(|| error::invalid_params("value: must be one of the option's values"))?;
                let setting = Setting::of(&config_id.0, value)?;
                spawn(peer, id, async move {
                    setting::change(&session, setting, client).await?;
                    let state = session.snapshot().await.ok_or(Refusal::SessionEnded)?;
                    Ok(Done::Answered(written(&SetSessionConfigOptionResponse::new(config::options(&state)))))
                });
            }
            "session/close" => {
                let CloseSessionRequest { session_id, .. } = decode::params(params)?;
                let session_id = SessionId::from(&*session_id.0);
                let (session, _) = self.attached(&session_id)?;
                self.attachments.remove(&session_id);
                self.asks.close_all(&session_id);
                spawn(peer, id, async move { joiner.close(&session).await });
            }
            "session/delete" => {
                let DeleteSessionRequest { session_id, .. } = decode::params(params)?;
                let session_id = SessionId::from(&*session_id.0);
                self.attachments.remove(&session_id);
                spawn(peer, id, async move { joiner.delete(session_id).await });
            }
            _ => return Err(Refusal::UnknownMethod { message: format!("there is no method \"{method}\"") }),
        }
        Ok(())
    }

    fn attached(&self, id: &SessionId) -> Result<(Session, ClientRef), Refusal> {
        let attachment = self.attachments.get(id).ok_or_else(|| Refusal::UnknownSession { session_id: id.clone() })?;
        Ok((attachment.session.clone(), attachment.client.clone()))
    }

    fn initialize(&mut self, request: &InitializeRequest) -> InitializeResponse {
        self.features = ClientFeatures::of(&request.client_capabilities);
        if let Some(info) = &request.client_info
            && self.client.account.is_none()
        {
            let name = info.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&info.name);
            self.client.client = crate::guard::client_name(name).unwrap_or_else(|| self.client.client.clone());
        }
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let attach = json!({ "attach": { "roles": ["controller", "observer"] }, "promptQueueing": true });
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions)
            .meta(Map::from_iter([(META.to_owned(), attach)]));
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new("multitap", env!("CARGO_PKG_VERSION")).title("Multitap".to_owned()))
    }

    fn joiner(&self) -> Joiner {
        Joiner { door: self.door.clone(), client: self.client.clone(), features: self.features }
    }
}

/// Answers requests that need more than the connection.
struct Joiner {
    door: Shared,
    client: ClientRef,
    features: ClientFeatures,
}

impl Joiner {
    async fn open(self, request: NewSessionRequest) -> Answer {
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

    async fn resume(self, id: SessionId, start: Start) -> Answer {
        let session = match self.door.host.find(&id) {
            Some(session) => session,
            None => {
                refuse_observers(&self.client)?;
                self.door.host.resume(id, self.client.clone()).await?.session
            }
        };
        let is_replay = matches!(start, Start::Replay(_));
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

    async fn join(&self, session: Session, start: Start) -> Result<(Attachment, Reader), Refusal> {
        Attachment::join(session, self.client.clone(), self.features, start).await
    }

    /// The state of a session whose agent was asked for what it offers.
    async fn settings(&self, session: &Session) -> Result<Box<multitap_hub::State>, Refusal> {
        // A slow agent lists its models later, by an update.
        timeout(MODELS_PATIENCE, session.offered(Query::Models)).await.ok();
        session.snapshot().await.ok_or(Refusal::SessionEnded)
    }

    async fn list(self, request: ListSessionsRequest) -> Answer {
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
    async fn close(self, session: &Session) -> Answer {
        let is_shared = self.door.host.shared().is_some_and(|shared| shared.id() == session.id());
        let has_others = session.snapshot().await.is_some_and(|state| {
            state.clients.iter().any(|client| client.door != self.client.door || client.client != self.client.client)
        });
        if !is_shared && !has_others {
            session.stop().await?;
        }
        Ok(Done::Answered(written(&CloseSessionResponse::new())))
    }

    async fn delete(self, id: SessionId) -> Answer {
        if !self.client.is_owner() {
            return Err(Refusal::NotOwner);
        }
        let is_shared = self.door.host.shared().is_some_and(|shared| *shared.id() == id);
        if is_shared {
            return Err(error::invalid_params("sessionId: this session is shared with a terminal"));
        }
        if let Some(session) = self.door.host.find(&id) {
            session.end();
            session.over().await;
        }
        self.door.host.journal().remove(id).await?;
        Ok(Done::Answered(written(&DeleteSessionResponse::new())))
    }
}

impl Asks {
    /// Takes a question back from the client.
    fn close(&mut self, session: &SessionId, question: &QuestionId) {
        if let Some(asked) = self.open.remove(&(session.clone(), question.clone())) {
            asked.cancel();
        }
    }

    fn close_all(&mut self, session: &SessionId) {
        self.open.retain(|(of, _), asked| {
            let is_other = of != session;
            if !is_other {
                asked.cancel();
            }
            is_other
        });
    }
}

impl Drop for Asks {
    fn drop(&mut self) {
        for asked in self.open.values() {
            asked.cancel();
        }
    }
}

/// Takes an answer to the session. One that does not count leaves the question open.
async fn decided(session: &Session, decide: Decide, client: ClientRef) {
    if let Err(refusal) = session.decide(decide, client).await {
        tracing::debug!(session = %session.id(), %refusal, "an answer does not count");
    }
}

async fn answer_prompt(peer: &mut Peer<Done>, request: &RequestId, end: &PromptEnd) -> Result<(), Disconnected> {
    match end {
        PromptEnd::Stopped(reason) => peer.respond(request, &stopped(*reason)).await,
        PromptEnd::Failed(why) => {
            let refusal = Refusal::AgentFailed { message: why.clone() };
            peer.refuse(request, &error::of(&refusal)).await
        }
    }
}

fn stopped(reason: StopReason) -> String {
    written(&PromptResponse::new(reason))
}

fn spawn(peer: &mut Peer<Done>, id: RequestId, answer: impl Future<Output = Answer> + Send + 'static) {
    peer.spawn(id, async move { answer.await.unwrap_or_else(Done::Refused) });
}

fn refuse_observers(client: &ClientRef) -> Result<(), Refusal> {
    if client.role == Some(ClientRole::Observer) { Err(Refusal::Observer) } else { Ok(()) }
}

fn written(reply: &impl Serialize) -> String {
    serde_json::to_string(reply).unwrap_or_else(|error| {
        tracing::error!(%error, "a reply cannot be written as JSON");
        "null".to_owned()
    })
}
