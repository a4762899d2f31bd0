//! One client, and everything that is under way with it.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Aborted, abortable};
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::call::Calls;
use super::message::{Fault, Invalid, Message, Request, RequestId, notification, response};
use super::transport::{Disconnected, Received, Transport};
use super::websocket::CloseReason;

/// Maximum number of requests that a client has under way, streams among them.
pub(super) const IN_FLIGHT: usize = 64;

/// How long a client that closed its end is still answered.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

type Work<T> = Pin<Box<dyn Future<Output = (RequestId, Result<T, Aborted>)> + Send>>;

/// One client. `T` is what the protocol makes of a request before it answers.
///
/// A request is open from when [`Peer::next`] returns it until it is answered, or [closed](Peer::end) after the last of
/// several answers. Dropping the peer drops the work that is under way; what that work began goes on.
pub(crate) struct Peer<T> {
    transport: Transport,
    /// Maximum size of a message.
    limit: usize,
    open: HashSet<RequestId>,
    work: FuturesUnordered<Work<T>>,
    aborts: HashMap<RequestId, AbortHandle>,
    calls: Calls,
    /// The client says nothing more: when to stop waiting for the answers to what it asked.
    answers_until: Option<Instant>,
}

/// Input on which a protocol must act.
#[derive(Debug)]
pub(crate) enum Incoming<T> {
    Request(Request),
    Notification {
        method: String,
        params: Value,
    },
    /// The work on that request is done.
    Done(RequestId, T),
    /// Answer it with this error.
    Invalid(Invalid),
    /// Nothing more can be read: answer with this error, if there is one, and close the connection.
    Broken {
        fault: Option<Fault>,
        close: CloseReason,
    },
}

impl<T: 'static> Peer<T> {
    /// `cancel_method` is the notification that takes a request of ours back, if the protocol has one.
    pub(crate) fn new(transport: Transport, limit: usize, cancel_method: Option<&'static str>) -> Self {
        let calls = Calls::new(cancel_method);
        let (open, work, aborts) = (HashSet::new(), FuturesUnordered::new(), HashMap::new());
        Self { transport, limit, open, work, aborts, calls, answers_until: None }
    }

    /// Hands the connection to another protocol, which goes on with that open request.
    pub(crate) fn hand_over<U: 'static>(self, cancel_method: Option<&'static str>, request: &RequestId) -> Peer<U> {
        let mut peer = Peer::new(self.transport, self.limit, cancel_method);
        peer.open.insert(request.clone());
        peer
    }

    /// The next input; meanwhile sends the requests of [`Self::calls`]. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Incoming<T>, Disconnected> {
        loop {
            if self.answers_until.is_some() && self.work.is_empty() {
                self.flush().await?;
                return Err(Disconnected);
            }
            tokio::select! {
                received = self.transport.receive(self.limit), if self.answers_until.is_none() => {
                    let incoming = match received? {
                        Received::Over => {
                            self.answers_until = Some(Instant::now() + LAST_ANSWERS);
                            continue;
                        }
                        Received::Text(text) => self.read(text.as_bytes()),
                        Received::Fault(fault) => Some(Incoming::Invalid(Invalid { id: RequestId::Null, fault })),
                        Received::Broken { fault, close } => Some(Incoming::Broken { fault, close }),
                    };
                    if let Some(incoming) = incoming {
                        return Ok(incoming);
                    }
                }
                (id, done) = next_done(&mut self.work) => {
                    // The id of aborted work may be in use again.
                    if let Ok(done) = done {
                        self.aborts.remove(&id);
                        return Ok(Incoming::Done(id, done));
                    }
                }
                () = self.calls.has_unsent() => self.flush().await?,
                () = until(self.answers_until) => return Err(Disconnected),
            }
        }
    }

    fn read(&mut self, text: &[u8]) -> Option<Incoming<T>> {
        let invalid = |id, fault| Some(Incoming::Invalid(Invalid { id, fault }));
        match Message::read(text) {
            Ok(Message::Request(Request { id, .. })) if self.open.contains(&id) => invalid(id, Fault::duplicate_id()),
            Ok(Message::Request(Request { id, .. })) if self.open.len() >= IN_FLIGHT => {
                invalid(id, Fault::too_many(IN_FLIGHT))
            }
            Ok(Message::Request(request)) => {
                self.open.insert(request.id.clone());
                Some(Incoming::Request(request))
            }
            Ok(Message::Notification { method, params }) => Some(Incoming::Notification { method, params }),
            Ok(Message::Response { id, result }) => {
                self.calls.answered(&id, result);
                None
            }
            Err(invalid) => Some(Incoming::Invalid(invalid)),
        }
    }

    /// Works on an open request; [`Self::next`] returns the result.
    pub(crate) fn spawn(&mut self, id: RequestId, work: impl Future<Output = T> + Send + 'static) {
        let (work, abort) = abortable(work);
        self.aborts.insert(id.clone(), abort);
        self.work.push(Box::pin(async move { (id, work.await) }));
    }

    /// Gives up the work on a request, which stays open until it is answered. Whether any was under way.
    pub(crate) fn abort(&mut self, id: &RequestId) -> bool {
        let abort = self.aborts.remove(id);
        abort.inspect(AbortHandle::abort).is_some()
    }

    /// Whether work on any request is under way.
    pub(crate) fn is_working(&self) -> bool {
        !self.work.is_empty()
    }

    pub(crate) fn is_open(&self, id: &RequestId) -> bool {
        self.open.contains(id)
    }

    /// Answers a request with a `result` as JSON.
    pub(crate) async fn respond(&mut self, id: &RequestId, result: &str) -> Result<(), Disconnected> {
        self.end(id);
        self.send(response(id, "result", result)).await
    }

    /// One of several answers: the request stays open.
    pub(crate) async fn respond_partly(&mut self, id: &RequestId, result: &str) -> Result<(), Disconnected> {
        self.send(response(id, "result", result)).await
    }

    /// Answers a request with an `error` as JSON.
    pub(crate) async fn refuse(&mut self, id: &RequestId, error: &str) -> Result<(), Disconnected> {
        self.end(id);
        self.send(response(id, "error", error)).await
    }

    /// An error for a message that is no open request.
    pub(crate) async fn refuse_message(&mut self, id: &RequestId, error: &str) -> Result<(), Disconnected> {
        self.send(response(id, "error", error)).await
    }

    /// The request is answered: its id may be used again.
    pub(crate) fn end(&mut self, id: &RequestId) {
        self.open.remove(id);
    }

    /// Sends a notification with `params` as JSON.
    pub(crate) async fn notify(&mut self, method: &str, params: impl Display) -> Result<(), Disconnected> {
        self.send(notification(method, params)).await
    }

    async fn send(&mut self, text: String) -> Result<(), Disconnected> {
        self.transport.ready().await?;
        self.transport.start_send(text)
    }

    /// Whether more should wait until what was sent is flushed.
    pub(crate) fn is_full(&self) -> bool {
        self.transport.is_full()
    }

    /// Sends what was gathered. Cancel safe.
    pub(crate) async fn flush(&mut self) -> Result<(), Disconnected> {
        self.send_calls().await?;
        self.transport.flush().await
    }

    /// Puts the requests and cancellations of [`Self::calls`] before whatever is sent next. Cancel safe.
    pub(crate) async fn send_calls(&mut self) -> Result<(), Disconnected> {
        while !self.calls.is_all_sent() {
            self.transport.ready().await?;
            if let Some(text) = self.calls.take_unsent() {
                self.transport.start_send(text)?;
            }
        }
        Ok(())
    }

    /// The handle that sends requests to the client.
    pub(crate) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// Ends the connection, and says why where the transport can.
    pub(crate) async fn close(self, why: CloseReason) {
        self.calls.close();
        self.transport.close(why).await;
    }
}

/// Returns at that time; never, if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The next work that is done; never, while none is under way. Cancel safe.
async fn next_done<F: Future + Unpin>(work: &mut FuturesUnordered<F>) -> F::Output {
    poll_fn(|context| match work.poll_next_unpin(context) {
        Poll::Ready(Some(done)) => Poll::Ready(done),
        Poll::Ready(None) | Poll::Pending => Poll::Pending,
    })
    .await
}

impl<T> fmt::Debug for Peer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("transport", &self.transport).field("open", &self.open).finish_non_exhaustive()
    }
}
