//! The connection of one ACP client: its requests, its sessions, and what it is asked.
//!
//! One task for each connection, which waits only for its own client. A turn belongs to the session: it goes on when the
//! client leaves.

mod request;

use std::collections::HashMap;

use agent_client_protocol_schema::v1::{CancelNotification, PromptResponse, StopReason};
use multitap_event::{ClientRef, ClientRole, Decide, PromptId, Question, QuestionId, Ruling, SessionId};
use multitap_hub::{FeedEnd, Refusal, Session};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::attach;
use super::attachment::{Attachment, Item, Items, Sent, WAITING};
use super::encode::PromptEnd;
use super::features::ClientFeatures;
use super::join::{Done, Joiner, Reply, written};
use super::question::Ask;
use super::{CANCEL_REQUEST, decode, error};
use crate::http::Shared;
use crate::rpc::{CallError, CloseReason, Disconnected, Incoming, Invalid, Peer, Pending, Request, RequestId};

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
            Done::Refused(refusal) => self.refused(peer, &id, &error::of(&refusal)).await,
            Done::Failed(error) => self.refused(peer, &id, &error).await,
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
                    Reply::Anew(Ok(result)) => peer.respond(&id, &result).await?,
                    Reply::Anew(Err(error)) => peer.refuse(&id, &error).await?,
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

    async fn refused(&mut self, peer: &mut Peer<Done>, id: &RequestId, error: &str) -> Result<(), Disconnected> {
        self.prompts.retain(|_, waiting| waiting.request != *id);
        // A prompt is answered before if its client leaves the session meanwhile.
        if peer.is_open(id) { peer.refuse(id, error).await } else { Ok(()) }
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
            Item::Failure { prompts, params } => {
                // Whoever waits for the end of one of them reads why in the answer.
                if !prompts.iter().any(|prompt| self.prompts.contains_key(prompt)) {
                    peer.notify(UPDATE, params).await?;
                }
            }
            Item::Asked(question) => self.ask(peer, &id, *question, self.features).await?,
            Item::FormRefused(question) => {
                // Somebody may have answered it meanwhile.
                if self.asks.contains_key(&(id.clone(), question.question_id.clone())) {
                    let features = ClientFeatures { forms: false, ..self.features };
                    self.ask(peer, &id, *question, features).await?;
                }
            }
            Item::Closed { question, ruling } => self.settled(peer, &id, question, ruling).await?,
            Item::TurnOver { prompts, end } => {
                for prompt in prompts {
                    match (self.prompts.remove(&prompt), &end) {
                        (Some(waiting), PromptEnd::Stopped(reason)) => {
                            peer.respond(&waiting.request, &stopped(*reason)).await?;
                        }
                        (Some(waiting), PromptEnd::Failed(why)) => self.prompt_failed(peer, waiting, why.clone()),
                        (None, _) => {}
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
                let why = "events were lost, the end of the turn among them".to_owned();
                let error = error::of(&Refusal::AgentFailed { message: why });
                let is_lost = |prompt: &PromptId, waiting: &mut Waiting| {
                    waiting.session == id && waiting.taken.is_cancelled() && !open.contains(prompt)
                };
                let lost: Vec<Waiting> = self.prompts.extract_if(is_lost).map(|(_, waiting)| waiting).collect();
                for waiting in lost {
                    peer.refuse(&waiting.request, &error).await?;
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

    /// Answers a prompt whose turn failed, once it is known whether the user is signed in.
    fn prompt_failed(&self, peer: &mut Peer<Done>, waiting: Waiting, message: String) {
        let (joiner, refusal) = (self.joiner(), Refusal::AgentFailed { message });
        let session = self.attachments.get(&waiting.session).map(|joined| joined.session.clone());
        peer.spawn(waiting.request, async move {
            let state = match session {
                Some(session) => session.snapshot().await,
                None => None,
            };
            match state.and_then(|state| state.start) {
                Some(start) => joiner.failed(Some(start.agent_type.as_str()), refusal).await,
                None => Done::Refused(refusal),
            }
        });
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
    async fn ask(
        &mut self,
        peer: &mut Peer<Done>,
        id: &SessionId,
        question: Question,
        features: ClientFeatures,
    ) -> Result<(), Disconnected> {
        let Some(attachment) = self.attachments.get(id) else { return Ok(()) };
        let (session, client) = (attachment.session.clone(), attachment.client.clone());
        if client.role == Some(ClientRole::Observer) {
            return Ok(());
        }
        let Some(ask) = Ask::of(id.as_str(), &question, &client, features) else { return Ok(()) };
        let (pending, answer) = match peer.calls().begin(ask.method, &ask.params) {
            Ok(begun) => begun,
            Err(error) => {
                // It stays open for the others.
                tracing::debug!(%error, "the client is not asked");
                return Ok(());
            }
        };
        self.asks.insert((id.clone(), question.question_id.clone()), pending);
        let form = ask.is_form().then(|| attachment.sends(Item::FormRefused(Box::new(question.clone()))));
        let items = self.items.clone();
        self.door.tasks.spawn(async move {
            match (answer.await, form) {
                (Ok(Ok(answer)), _) => {
                    if let Some(decide) = ask.decision(&question, answer) {
                        decided(&session, decide, client).await;
                    }
                }
                // The connection may be gone too.
                (Ok(Err(CallError::Refused(_))), Some(refused)) => drop(items.send(refused).await),
                // It was withdrawn, or the client cannot answer it.
                (Ok(Err(_)) | Err(_), _) => {}
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

    fn attached(&self, id: &SessionId) -> Result<(Session, ClientRef), Refusal> {
        let attachment = self.attachments.get(id).ok_or_else(|| Refusal::UnknownSession { session_id: id.clone() })?;
        Ok((attachment.session.clone(), attachment.client.clone()))
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

fn stopped(reason: StopReason) -> String {
    written(&PromptResponse::new(reason))
}
