//! One session of a connection: its events as updates, in order, over a bounded channel.
//!
//! A client that does not read fills the channel, then the feed waits, and the hub cuts it off. Must not come in: the
//! transport.

use agent_client_protocol_schema::v1::SessionNotification;
use multitap_event::{ClientRef, PromptId, Question, QuestionId, Ruling, Timestamp};
use multitap_hub::{Feed, FeedEnd, Join, Joined, Refusal, STUCK, Session, Told};
use tokio::sync::mpsc;
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;

use super::encode::{Encoder, Output, PromptEnd};
use super::features::ClientFeatures;
use crate::rpc::RequestId;

/// What waits for the connection, over all its sessions.
pub(super) const WAITING: usize = 64;

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
    Asked(Box<Question>),
    Closed {
        question: QuestionId,
        ruling: Option<Box<Ruling>>,
    },
    TurnOver {
        prompts: Vec<PromptId>,
        end: PromptEnd,
    },
    /// The history was sent: this request can be answered.
    Replayed(RequestId),
    /// Nothing more comes.
    Ended(FeedEnd),
}

/// Items with the session that they are from.
pub(super) type Items = mpsc::Sender<(Session, Item)>;

/// Where a client begins.
#[derive(Debug)]
pub(super) enum Start {
    /// With the whole history, which answers that request.
    Replay(RequestId),
    /// Now; what is open is shown.
    Now,
}

/// A joined session. Dropping it leaves.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(super) session: Session,
    pub(super) client: ClientRef,
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
    feed: Feed,
    encoder: Encoder,
    start: Start,
    /// The last event of the history.
    last: u64,
    stop: CancellationToken,
}

impl Attachment {
    /// Joins the session.
    pub(super) async fn join(
        session: Session,
        client: ClientRef,
        features: ClientFeatures,
        start: Start,
    ) -> Result<(Self, Reader), Refusal> {
        let from = match start {
            Start::Replay(_) => multitap_hub::JoinFrom::Start,
            Start::Now => multitap_hub::JoinFrom::Now,
        };
        let join = Join { client, from, patience: Some(STUCK), announce: true };
        let Joined { client, feed, snapshot, .. } = session.join(join).await?;
        let encoder = match snapshot {
            Some(state) => Encoder::amid(features, *state),
            None => Encoder::new(features),
        };
        let stop = CancellationToken::new();
        let last = session.last();
        let reader = Reader { session: session.clone(), feed, encoder, start, last, stop: stop.clone() };
        Ok((Self { session, client, stop }, reader))
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
        let mut replay = match std::mem::replace(&mut self.start, Start::Now) {
            Start::Replay(id) => Some(id),
            Start::Now => None,
        };
        if replay.is_none() {
            self.encoder.overview(&mut out);
            self.encoder.settings(&mut out);
            self.encoder.questions(&mut out);
        }
        loop {
            for output in out.drain(..) {
                if let Some(item) = self.item(output, replay.is_some()) {
                    items.send((self.session.clone(), item)).await.ok()?;
                }
            }
            if self.encoder.state().seq >= self.last
                && let Some(id) = replay.take()
            {
                items.send((self.session.clone(), Item::Replayed(id))).await.ok()?;
                self.encoder.settings(&mut out);
                self.encoder.questions(&mut out);
                continue;
            }
            let due = self.encoder.due();
            tokio::select! {
                told = self.feed.next() => match told {
                    Some(Told::Event(entry)) => {
                        if let Some(event) = entry.event() {
                            self.encoder.apply(event, &mut out);
                        }
                    }
                    // What was lost is not shown, but what is open now counts.
                    Some(Told::Gap { next, .. }) => self.last = self.last.min(next),
                    None => {
                        if let Some(id) = replay.take() {
                            items.send((self.session.clone(), Item::Replayed(id))).await.ok()?;
                        }
                        items.send((self.session.clone(), Item::Ended(self.feed.end()))).await.ok()?;
                        return Some(());
                    }
                },
                () = wait(due), if due.is_some() && replay.is_none() => {
                    self.encoder.tick(Timestamp::now(), &mut out);
                }
            }
        }
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
