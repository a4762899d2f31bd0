//! The connection of one ACP client: its requests, its sessions, and what it is asked.
//!
//! One task for each connection, which waits only for its own client. A turn belongs to the session: it goes on when the
//! client leaves.

use std::collections::HashMap;

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthenticateRequest, CancelNotification, CloseSessionRequest, DeleteSessionRequest,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest, LoadSessionRequest, McpCapabilities,
    NewSessionRequest, PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest, SessionCapabilities,
    SessionCloseCapabilities, SessionDeleteCapabilities, SessionListCapabilities, SessionResumeCapabilities,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
    StopReason,
};
use multitap_event::{ClientRef, ClientRole, Decide, PromptId, Question, QuestionId, Ruling, SessionId};
use multitap_hub::{FeedEnd, Refusal, Session};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attach::{self, Attach, Detach};
use super::attachment::{Attachment, Item, Items, Sent, Start, WAITING};
use super::encode::PromptEnd;
use super::features::{ClientFeatures, META};
use super::join::{Answer, Done, Joiner, Reply, written};
use super::question::Ask;
use super::setting::{self, Setting};
use super::{CANCEL_REQUEST, INITIALIZE, config, decode, error};
use crate::http::Shared;
use crate::rpc::{CloseReason, Disconnected, Incoming, Invalid, Peer, Pending, Request, RequestId};

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
    /// What the client is asked. Dropping a request takes it back.
    asks: HashMap<(SessionId, QuestionId), Pending>,
    items: Items,
    incoming: mpsc::Receiver<Sent>,
}

/// A request that waits for the end of its prompt.
#[derive(Debug)]
struct Waiting {
    request: RequestId,
    session: SessionId,
    /// Cancelled once the session has taken the prompt or refused it.
    taken: CancellationToken,
}

/// Why a request was not begun.
enum Stopped {
    Refused(Refusal),
    Disconnected(Disconnected),
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Disconnected> for Stopped {
    fn from(gone: Disconnected) -> Self {
        Self::Disconnected(gone)
    }
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
            asks: HashMap::new(),
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
                && let Ok(sent) = self.incoming.try_recv()
            {
                self.item(peer, sent).await?;
                continue;
            }
            peer.flush().await?;
            tokio::select! {
                () = stop.cancelled() => return Ok(CloseReason::SHUT_DOWN),
                Some(sent) = self.incoming.recv() => self.item(peer, sent).await?,
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
                // A prompt is answered before if its client leaves the session meanwhile.
                if peer.is_open(&id) { peer.refuse(&id, &error::of(&refusal)).await } else { Ok(()) }
            }
            Done::Prompted { sent_as, prompt } => {
                self.assigned(&sent_as, prompt);
                Ok(())
            }
            Done::Joined(attachment, reader, reply) => {
                let mut attachment = attachment;
                let session = attachment.session.id().clone();
                match reply {
                    Reply::First(result) => {
                        peer.respond(&id, &result).await?;
                        if self.attachments.contains_key(&session) {
                            return Ok(()); // The client reads the session already.
                        }
                    }
                    Reply::AfterReplay(result) => attachment.loading = Some((id, result)),
                }
                if let Some(before) = self.attachments.insert(session.clone(), *attachment) {
                    // Its prompts end in the new replay.
                    self.withdraw_asks(peer, &session).await?;
                    if let Some((load, _)) = before.loading.as_ref() {
                        peer.refuse(load, &error::cancelled("the session is loaded anew")).await?;
                    }
                }
                self.door.tasks.spawn(reader.run(self.items.clone()));
                Ok(())
            }
        }
    }

    /// Sends what came from a session.
    async fn item(&mut self, peer: &mut Peer<Done>, sent: Sent) -> Result<(), Disconnected> {
        if sent.is_stale() {
            return Ok(());
        }
        let id = sent.session;
        match sent.item {
            Item::Update(params) => peer.notify(UPDATE, params).await?,
            Item::UserMessage { prompt, sent_as, params } => {
                if !prompt.is_some_and(|prompt| self.is_own(&prompt, sent_as)) {
                    peer.notify(UPDATE, params).await?;
                }
            }
            Item::Asked(question) => self.ask(peer, &id, *question).await?,
            Item::Closed { question, ruling } => self.settled(peer, &id, question, ruling).await?,
            Item::TurnOver { prompts, end } => {
                for prompt in prompts {
                    if let Some(waiting) = self.prompts.remove(&prompt) {
                        answer_prompt(peer, &waiting.request, &end).await?;
                    }
                }
            }
            Item::Replayed => {
                if let Some((request, result)) = self.attachments.get_mut(&id).and_then(|joined| joined.loading.take())
                {
                    peer.respond(&request, &result).await?;
                }
            }
            Item::Lost { open } => {
                self.withdraw_asks(peer, &id).await?;
                let end = PromptEnd::Failed("events were lost, the end of the turn among them".to_owned());
                let is_lost = |prompt: &PromptId, waiting: &mut Waiting| {
                    waiting.session == id && waiting.taken.is_cancelled() && !open.contains(prompt)
                };
                let lost: Vec<Waiting> = self.prompts.extract_if(is_lost).map(|(_, waiting)| waiting).collect();
                for waiting in lost {
                    answer_prompt(peer, &waiting.request, &end).await?;
                }
            }
            Item::Ended(end) => {
                let why = match end {
                    FeedEnd::SessionOver => Refusal::SessionEnded,
                    FeedEnd::CutOff { .. } => Refusal::Kicked,
                };
                self.leave(peer, &id, Err(error::of(&why))).await?;
            }
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

    /// Leaves a session, and answers what waits for it: prompts with this end, a load with an error.
    async fn leave(
        &mut self,
        peer: &mut Peer<Done>,
        id: &SessionId,
        end: Result<StopReason, String>,
    ) -> Result<(), Disconnected> {
        self.withdraw_asks(peer, id).await?;
        let prompts: Vec<Waiting> =
            self.prompts.extract_if(|_, waiting| waiting.session == *id).map(|(_, waiting)| waiting).collect();
        for Waiting { request, .. } in prompts {
            match &end {
                Ok(reason) => peer.respond(&request, &stopped(*reason)).await?,
                Err(error) => peer.refuse(&request, error).await?,
            }
        }
        if let Some(mut attachment) = self.attachments.remove(id)
            && let Some((load, _)) = attachment.loading.take()
        {
            let error = end.err().unwrap_or_else(|| error::cancelled("the session was closed"));
            peer.refuse(&load, &error).await?;
        }
        Ok(())
    }

    /// Withdraws what the client is asked about a session.
    async fn withdraw_asks(&mut self, peer: &mut Peer<Done>, id: &SessionId) -> Result<(), Disconnected> {
        self.asks.retain(|(session, _), _| session != id);
        peer.send_calls().await
    }

    /// Puts a question to the client. Its answer goes to the session, beside everything else.
    async fn ask(&mut self, peer: &mut Peer<Done>, id: &SessionId, question: Question) -> Result<(), Disconnected> {
        let Ok((session, client)) = self.attached(id) else { return Ok(()) };
        if client.role == Some(ClientRole::Observer) {
            return Ok(());
        }
        let Some(ask) = Ask::of(id.as_str(), &question, &client, self.features) else { return Ok(()) };
        let (pending, answer) = match peer.calls().begin(ask.method, &ask.params) {
            Ok(begun) => begun,
            Err(error) => {
                // It stays open for the others.
                tracing::debug!(%error, "the client is not asked");
                return Ok(());
            }
        };
        self.asks.insert((id.clone(), question.question_id.clone()), pending);
        self.door.tasks.spawn(async move {
            // Otherwise it was withdrawn, or the client cannot answer it.
            if let Ok(Ok(answer)) = answer.await
                && let Some(decide) = ask.decision(&question, answer)
            {
                decided(&session, decide, client).await;
            }
        });
        peer.send_calls().await
    }

    /// Takes a question back that needs no answer any more, before anything that follows from its answer is sent.
    async fn settled(
        &mut self,
        peer: &mut Peer<Done>,
        id: &SessionId,
        question: QuestionId,
        ruling: Option<Box<Ruling>>,
    ) -> Result<(), Disconnected> {
        let asked = (id.clone(), question);
        drop(self.asks.remove(&asked));
        peer.send_calls().await?;
        if self.features.attach {
            peer.notify(attach::RESOLVED, attach::resolved(id, &asked.1, ruling.as_deref())).await?;
        }
        Ok(())
    }

    async fn notified(&mut self, peer: &mut Peer<Done>, method: &str, params: Value) -> Result<(), Disconnected> {
        match method {
            "session/cancel" => {
                if let Ok(cancel) = decode::params::<CancelNotification>(Some(params)) {
                    self.cancel(&SessionId::from(&*cancel.session_id.0), |_| true);
                }
            }
            CANCEL_REQUEST => {
                let Some(Ok(id)) = params.get("requestId").map(RequestId::read) else { return Ok(()) };
                let prompt = self.prompts.values().find(|waiting| waiting.request == id);
                if let Some(session) = prompt.map(|waiting| waiting.session.clone()) {
                    self.cancel(&session, |waiting| waiting.request == id);
                } else if peer.abort(&id) {
                    peer.refuse(&id, &error::cancelled("cancelled")).await?;
                }
            }
            // A later version may know it.
            _ => {}
        }
        Ok(())
    }

    /// Stops what this client waits for: its queued prompts, and the running turn unless only queued prompts are meant.
    fn cancel(&self, id: &SessionId, is_meant: impl Fn(&Waiting) -> bool) {
        let Ok((session, client)) = self.attached(id) else { return };
        let meant = self.prompts.iter().filter(|(_, waiting)| waiting.session == *id && is_meant(waiting));
        let own: Vec<_> = meant.map(|(prompt, waiting)| (prompt.clone(), waiting.taken.clone())).collect();
        self.door.tasks.spawn(async move {
            let mut withdrawn = 0;
            for (prompt, taken) in &own {
                // A prompt on its way cannot be withdrawn yet.
                taken.cancelled().await;
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
        match self.begin(peer, id.clone(), &method, params).await {
            Ok(()) => Ok(()),
            Err(Stopped::Refused(refusal)) => peer.refuse(&id, &error::of(&refusal)).await,
            Err(Stopped::Disconnected(gone)) => Err(gone),
        }
    }

    async fn begin(
        &mut self,
        peer: &mut Peer<Done>,
        id: RequestId,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), Stopped> {
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
                return Err(error::invalid_params(message).into());
            }
            "session/new" => {
                let request: NewSessionRequest = decode::params(params)?;
                spawn(peer, id, async move { joiner.open(request).await });
            }
            "session/load" => {
                let LoadSessionRequest { session_id, .. } = decode::params(params)?;
                spawn(peer, id, async move { joiner.resume(SessionId::from(&*session_id.0), Start::Replay).await });
            }
            "session/resume" => {
                let ResumeSessionRequest { session_id, .. } = decode::params(params)?;
                spawn(peer, id, async move { joiner.resume(SessionId::from(&*session_id.0), Start::Now).await });
            }
            "session/list" => {
                let request: ListSessionsRequest = decode::params(params)?;
                spawn(peer, id, async move { joiner.list(request).await });
            }
            "session/prompt" => self.prompt(peer, id, decode::params(params)?)?,
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
                let (session, client) = self.attached(&session_id)?;
                self.leave(peer, &session_id, Ok(StopReason::Cancelled)).await?;
                spawn(peer, id, async move { joiner.close(&session, &client).await });
            }
            "session/delete" => {
                let DeleteSessionRequest { session_id, .. } = decode::params(params)?;
                spawn(peer, id, async move { joiner.delete(SessionId::from(&*session_id.0)).await });
            }
            attach::ATTACH => {
                let call: Attach = decode::params(params)?;
                if self.attachments.contains_key(&call.session_id) {
                    return Err(error::invalid_params("sessionId: this connection has joined it; detach first").into());
                }
                self.features.attach = true;
                let joiner = self.joiner();
                spawn(peer, id, async move { joiner.attach(call).await });
            }
            attach::DETACH => {
                let Detach { session_id } = decode::params(params)?;
                self.attached(&session_id)?;
                let end = Err(error::cancelled("detached; the turn goes on"));
                self.leave(peer, &session_id, end).await?;
                peer.respond(&id, "{}").await?;
            }
            _ => return Err(Refusal::UnknownMethod { message: format!("there is no method \"{method}\"") }.into()),
        }
        Ok(())
    }

    fn prompt(&mut self, peer: &mut Peer<Done>, id: RequestId, request: PromptRequest) -> Result<(), Refusal> {
        let PromptRequest { session_id, prompt, meta, .. } = request;
        let session_id = SessionId::from(&*session_id.0);
        let (session, client) = self.attached(&session_id)?;
        let when_busy = decode::when_busy(meta.as_ref());
        let sent_as = PromptId::fresh();
        let prompt = decode::prompt(prompt, &sent_as)?;
        let taken = CancellationToken::new();
        let guard = taken.clone().drop_guard();
        self.prompts.insert(sent_as.clone(), Waiting { request: id.clone(), session: session_id, taken });
        spawn(peer, id, async move {
            let _taken = guard;
            let prompt = session.prompt(prompt, when_busy, client).await?;
            Ok(Done::Prompted { sent_as, prompt })
        });
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
        let own = json!({ "attach": attach::capability(), "promptQueueing": true });
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions)
            .meta(Map::from_iter([(META.to_owned(), own)]));
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new("multitap", env!("CARGO_PKG_VERSION")).title("Multitap".to_owned()))
    }

    fn joiner(&self) -> Joiner {
        Joiner { door: self.door.clone(), client: self.client.clone(), features: self.features }
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
