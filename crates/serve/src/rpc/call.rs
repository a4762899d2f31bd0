//! Our requests to the client, and its answers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::message::{ErrorObject, RequestId, notification, request};

/// Maximum number of requests that one client has not answered.
pub(super) const UNANSWERED: usize = 64;

/// Asks one client. Cheap to clone, so the future that answers a request of the client can ask it something meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there is something to send.
    unsent: Notify,
    /// The notification that cancels a request.
    cancel_method: Option<&'static str>,
}

/// Bounded by [`UNANSWERED`]: a request that is cancelled before it is sent is removed.
#[derive(Debug, Default)]
struct State {
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<Result<Value, CallError>>>,
    /// Messages in sending order, with the id if it is a request.
    unsent: VecDeque<(Option<u64>, String)>,
    is_closed: bool,
}

/// A request to the client failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Refused(#[from] ErrorObject),
    #[error("the client has {UNANSWERED} unanswered requests")]
    TooMany,
    #[error("the client is gone")]
    Disconnected,
}

impl Calls {
    pub(super) fn new(cancel_method: Option<&'static str>) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::default(), unsent: Notify::new(), cancel_method }) }
    }

    /// Sends a request to the client and waits for the answer. Dropping the future cancels the request.
    #[cfg(test)]
    pub(crate) async fn call(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        let (pending, answer) = self.begin(method, params)?;
        let answer = answer.await.unwrap_or(Err(CallError::Disconnected));
        drop(pending);
        answer
    }

    /// Sends a request to the client. Dropping what is pending cancels the request; an answer that came before counts.
    pub(crate) fn begin(&self, method: &str, params: &Value) -> Result<(Pending, Answer), CallError> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(CallError::Disconnected);
        }
        // Cancellations count too, for a client that does not read.
        if state.waiting.len() >= UNANSWERED || state.unsent.len() >= 2 * UNANSWERED {
            return Err(CallError::TooMany);
        }
        state.last_id += 1;
        let id = state.last_id;
        let (sender, answer) = oneshot::channel();
        state.waiting.insert(id, sender);
        state.unsent.push_back((Some(id), request(id, method, params)));
        drop(state);
        self.shared.unsent.notify_one();
        Ok((Pending { calls: self.clone(), id }, answer))
    }

    /// Handles an answer of the client. An unexpected answer is ignored, because JSON-RPC has no error for it.
    pub(super) fn answered(&self, id: &RequestId, result: Result<Value, ErrorObject>) {
        let number = if let RequestId::Number(number) = id { number.as_u64() } else { None };
        let waiting = number.and_then(|number| self.lock().waiting.remove(&number));
        // The caller may be gone.
        let is_wanted = waiting.is_some_and(|waiting| waiting.send(result.map_err(CallError::Refused)).is_ok());
        if !is_wanted {
            tracing::debug!(?id, "a response to no request");
        }
    }

    /// Completes when there may be something to send. Cancel safe.
    pub(super) async fn has_unsent(&self) {
        self.shared.unsent.notified().await;
    }

    pub(super) fn is_all_sent(&self) -> bool {
        self.lock().unsent.is_empty()
    }

    pub(super) fn take_unsent(&self) -> Option<String> {
        self.lock().unsent.pop_front().map(|(_, text)| text)
    }

    /// Fails all pending requests.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.unsent.clear();
        state.waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to a request; an error if the request is cancelled.
pub(crate) type Answer = oneshot::Receiver<Result<Value, CallError>>;

/// A request that somebody waits for.
#[derive(Debug)]
pub(crate) struct Pending {
    calls: Calls,
    id: u64,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut state = self.calls.lock();
        if state.waiting.remove(&self.id).is_none() {
            return;
        }
        if let Some(at) = state.unsent.iter().position(|(id, _)| *id == Some(self.id)) {
            state.unsent.remove(at);
        } else if let Some(method) = self.calls.shared.cancel_method {
            state.unsent.push_back((None, notification(method, json!({ "requestId": self.id }))));
            self.calls.shared.unsent.notify_one();
        }
    }
}
