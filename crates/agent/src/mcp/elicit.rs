//! Requests of a server to the user while one of its tools runs (elicitation), on their way to the owner of the
//! session.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use multitap_event::{Elicitation, ElicitationAnswer, QuestionId};
use rmcp::model::ElicitRequestParams;
use tokio::sync::{mpsc, oneshot};

/// A message to the owner of the session.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Ask the user this. Dropping `reply` cancels it.
    Question { id: QuestionId, elicitation: Elicitation, reply: oneshot::Sender<ElicitationAnswer> },
    /// The server no longer waits for the answer.
    Withdrawn(QuestionId),
}

/// The queue for the questions of one connection. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    server: Arc<str>,
    asks: mpsc::Sender<Asked>,
    open: Arc<AtomicUsize>,
}

/// An open question. Dropping it withdraws the question.
struct Open<'a> {
    asker: &'a Asker,
    id: QuestionId,
    is_answered: bool,
}

impl Asker {
    pub(super) fn new(server: &str, asks: mpsc::Sender<Asked>) -> Self {
        Self { server: server.into(), asks, open: Arc::default() }
    }

    /// Whether the user is being asked: the call's timeout is paused meanwhile.
    pub(super) fn is_waiting(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Asks the user and waits for the answer. Cancelled if the user cannot be asked.
    pub(super) async fn ask(&self, asked: &ElicitRequestParams) -> ElicitationAnswer {
        let params = serde_json::to_value(asked).ok().and_then(|params| params.as_object().cloned());
        let elicitation = Elicitation::of(&self.server, &params.unwrap_or_default());
        let id = QuestionId::from(uuid::Uuid::now_v7().to_string());
        let (reply, answered) = oneshot::channel();
        // If a server asks faster than questions can be shown, its question is cancelled.
        if self.asks.try_send(Asked::Question { id: id.clone(), elicitation, reply }).is_err() {
            return ElicitationAnswer::Cancel;
        }
        self.open.fetch_add(1, Ordering::AcqRel);
        let mut open = Open { asker: self, id, is_answered: false };
        let answer = answered.await;
        open.is_answered = true;
        answer.unwrap_or(ElicitationAnswer::Cancel)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.asker.open.fetch_sub(1, Ordering::AcqRel);
        if !self.is_answered {
            // If the queue is full, the question ends with the call that it belongs to.
            self.asker.asks.try_send(Asked::Withdrawn(self.id.clone())).ok();
        }
    }
}
