//! One session of a connection: its events as updates, in order, over a bounded channel.
//!
//! A client that does not read fills the channel, then the feed waits, and the hub cuts it off. Must not come in: the
//! transport.

use agent_client_protocol_schema::v1::SessionNotification;
use multitap_event::{ClientRef, ClientRole, EventKind, PromptId, Question, QuestionId, Ruling, SessionId, Timestamp};
use multitap_hub::{AgentSummary, Feed, FeedEnd, Join, JoinFrom, Joined, OpenCall, Refusal, STUCK, Session, Told};
use tokio::sync::mpsc;
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;

use super::config::Choices;
use super::encode::{Encoder, Output, PromptEnd};
use super::features::ClientFeatures;
use crate::rpc::RequestId;

/// Most items that wait for the connection, over all its sessions. Each may be as large as an event.
pub(super) const WAITING: usize = 16;

/// What a session tells its connection.
#[derive(Debug)]
pub(super) enum Item {
    /// The `params` of `session/update`.
    Update(String),
    /// The same, of a prompt that its own sender does not need.
    UserMessage {
        prompt: Option<PromptId>,
        sent_as: Option<String>,
        params: String,
    },
    /// Why a turn failed, which the answers to these prompts say as well.
    Failure {
        prompts: Vec<PromptId>,
        params: String,
    },
    Asked(Box<Question>),
    /// The client refused to show the form of a question.
    FormRefused(Box<Question>),
    Closed {
        question: QuestionId,
        ruling: Option<Box<Ruling>>,
    },
    TurnOver {
        prompts: Vec<PromptId>,
        end: PromptEnd,
    },
    /// The history was sent: the request for it can be answered.
    Replayed,
    /// Events were lost. These prompts are not over, and what is open follows.
    Lost {
        open: Vec<PromptId>,
    },
    /// Nothing more comes.
    Ended(FeedEnd),
}

/// An item, and the attachment that it is from.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) session: SessionId,
    pub(super) item: Item,
    stop: CancellationToken,
}

impl Sent {
    /// Whether the client has left the session meanwhile, or joined it anew.
    pub(super) fn is_stale(&self) -> bool {
        self.stop.is_cancelled()
    }
}

pub(super) type Items = mpsc::Sender<Sent>;

/// Where a client begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// With the whole history.
    Replay,
    /// Now; what is open is shown.
    Now,
    /// Now; only what comes is shown.
    Unseen,
}

/// A joined session. Dropping it leaves.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(super) session: Session,
    pub(super) client: ClientRef,
    /// The request that is answered once the history was sent, and its result.
    pub(super) loading: Option<(RequestId, String)>,
    /// The agents that the client may give the session.
    agents: Vec<AgentSummary>,
    /// The settings with which this connection opened the session.
    pub(super) opened: Option<OpenCall>,
    stop: CancellationToken,
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What reads the session for an attachment.
#[derive(Debug)]
pub(crate) struct Reader {
    session: Session,
    client: ClientRef,
    feed: Feed,
    encoder: Encoder,
    start: Start,
    /// The last event of the history.
    last: u64,
    /// Events were lost: what is open now must be asked of the session.
    has_gap: bool,
    stop: CancellationToken,
}

impl Attachment {
    /// Joins the session. `agents` are those that the client may give it.
    pub(super) async fn join(
        session: Session,
        client: ClientRef,
        features: ClientFeatures,
        start: Start,
        agents: Vec<AgentSummary>,
    ) -> Result<(Self, Reader), Refusal> {
        let is_observer = client.role == Some(ClientRole::Observer);
        let from = match start {
            Start::Replay => JoinFrom::Start,
            Start::Now | Start::Unseen => JoinFrom::Now,
        };
        let join = Join { client, from, patience: Some(STUCK), announce: true };
        let Joined { mut client, feed, snapshot, .. } = session.join(join).await?;
        if is_observer {
            // A session elsewhere knows only the role of its connection.
            client.role = Some(ClientRole::Observer);
        }
        let choices = Choices { modes: session.mode_limit(&client), agents: agents.clone() };
        let encoder = match snapshot {
            Some(state) => Encoder::amid(features, choices, *state),
            None => Encoder::new(features, choices),
        };
        let stop = CancellationToken::new();
        let last = session.last();
        let reader = Reader {
            session: session.clone(),
            client: client.clone(),
            feed,
            encoder,
            start,
            last,
            has_gap: false,
            stop: stop.clone(),
        };
        Ok((Self { session, client, loading: None, agents, opened: None, stop }, reader))
    }

    /// What the client may choose from now.
    pub(super) fn choices(&self) -> Choices {
        Choices { modes: self.session.mode_limit(&self.client), agents: self.agents.clone() }
    }

    /// An item of this attachment.
    pub(super) fn sends(&self, item: Item) -> Sent {
        Sent { session: self.session.id().clone(), item, stop: self.stop.clone() }
    }
}

impl Reader {
    /// Reads until the session ends or the attachment is dropped.
    pub(super) async fn run(self, items: Items) {
        let stop = self.stop.clone();
        // The connection is gone too.
        stop.run_until_cancelled(self.read(items)).await;
    }

    async fn read(mut self, items: Items) -> Option<()> {
        let mut out = Vec::new();
        let mut is_history = self.start == Start::Replay;
        match self.start {
            Start::Replay => {}
            Start::Now => {
                self.encoder.overview(&mut out);
                self.encoder.settings(&mut out);
                self.encoder.questions(&mut out);
            }
            Start::Unseen => self.encoder.settings(&mut out),
        }
        loop {
            for output in out.drain(..) {
                if let Some(item) = self.item(output, is_history) {
                    self.send(&items, item).await?;
                }
            }
            if is_history && self.encoder.seq() >= self.last {
                is_history = false;
                self.send(&items, Item::Replayed).await?;
                self.encoder.settings(&mut out);
                if !self.has_gap {
                    self.encoder.questions(&mut out);
                }
                continue;
            }
            if self.has_gap && !is_history {
                self.has_gap = false;
                if let Some(item) = self.catch_up(&mut out).await {
                    self.send(&items, item).await?;
                }
                continue;
            }
            let due = self.encoder.due();
            tokio::select! {
                told = self.feed.next() => match told {
                    Some(Told::Event(entry)) => {
                        // After a gap the state is ahead of the feed.
                        if let Some(event) = entry.event().filter(|event| event.seq > self.encoder.seq()) {
                            if matches!(event.kind, EventKind::ModeChanged { .. }) {
                                self.encoder.limit_modes(self.session.mode_limit(&self.client));
                            }
                            self.encoder.apply(event, &mut out);
                        }
                    }
                    Some(Told::Gap { next, .. }) => {
                        self.has_gap = true;
                        if next > self.last {
                            self.last = 0;
                        }
                    }
                    None => {
                        if is_history {
                            self.send(&items, Item::Replayed).await?;
                        }
                        return self.send(&items, Item::Ended(self.feed.end())).await;
                    }
                },
                () = wait(due), if due.is_some() && !is_history => {
                    self.encoder.tick(Timestamp::now(), &mut out);
                }
            }
        }
    }

    /// `None` if the connection is gone.
    async fn send(&self, items: &Items, item: Item) -> Option<()> {
        let sent = Sent { session: self.session.id().clone(), item, stop: self.stop.clone() };
        items.send(sent).await.ok()
    }

    /// Continues from the session as it is now, because events were lost.
    async fn catch_up(&mut self, out: &mut Vec<Output>) -> Option<Item> {
        // Without a state the session is over, and the feed says so.
        let state = self.session.snapshot().await?;
        let queued = state.queue.iter().filter_map(|queued| queued.prompt.prompt_id.as_ref());
        let open = queued.chain(&state.in_flight).cloned().collect();
        self.encoder = self.encoder.anew(*state);
        self.encoder.overview(out);
        self.encoder.all_settings(out);
        self.encoder.questions(out);
        Some(Item::Lost { open })
    }

    /// What the connection has to do; nothing is asked or answered by history.
    fn item(&self, output: Output, is_history: bool) -> Option<Item> {
        let params = |update| {
            let params = SessionNotification::new(self.session.id().as_str().to_owned(), update);
            serde_json::to_string(&params).inspect_err(|error| tracing::error!(%error, "an update is not JSON")).ok()
        };
        match output {
            Output::Update(update) => Some(Item::Update(params(update)?)),
            Output::UserMessage { update, .. } if is_history => Some(Item::Update(params(update)?)),
            Output::UserMessage { prompt, sent_as, update } => {
                Some(Item::UserMessage { prompt, sent_as, params: params(update)? })
            }
            Output::Failure { update, .. } if is_history => Some(Item::Update(params(update)?)),
            Output::Failure { prompts, update } => Some(Item::Failure { prompts, params: params(update)? }),
            Output::Asked(_) | Output::Closed { .. } if is_history => None,
            Output::Asked(question) => Some(Item::Asked(question)),
            Output::Closed { question, ruling } => Some(Item::Closed { question, ruling }),
            // A prompt of this client may end while it loads the session anew.
            Output::TurnOver { prompts, end } => Some(Item::TurnOver { prompts, end }),
        }
    }
}

async fn wait(due: Option<Timestamp>) {
    let Some(due) = due else { return std::future::pending().await };
    sleep(Duration::from_millis(due.millis_since(Timestamp::now()))).await;
}
