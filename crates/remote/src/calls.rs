//! Requests to the other process, each with a time limit.

use std::sync::Arc;
use std::time::Duration;

use multitap_hub::{Answer, Elsewhere, PageCall, PageReply, Refusal, SessionCall, SessionReply, SessionRequest};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::wire::check;

/// Time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most requests that wait to be sent.
pub(crate) const CALLS: usize = 64;

/// A request, and the sender for its answer.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) params: Value,
    pub(crate) reply: oneshot::Sender<Result<Box<RawValue>, CallError>>,
}

/// Why there is no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Refused(Refusal),
    #[error("the connection to the session is lost, so this was not sent: try again when the connection is back")]
    NotSent,
    #[error("the connection broke before the answer: this may or may not have been done")]
    Broken,
    #[error("no answer within {} s: this may or may not have been done", PATIENCE.as_secs())]
    Timeout,
    #[error("cannot read the answer: {0}")]
    Unreadable(Arc<str>),
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(refusal) => refusal,
            CallError::NotSent | CallError::Broken | CallError::Timeout | CallError::Unreadable(_) => {
                Self::Connection { message: error.to_string() }
            }
        }
    }
}

impl From<serde_json::Error> for CallError {
    fn from(error: serde_json::Error) -> Self {
        Self::Unreadable(error.to_string().into())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Up,
    Down,
    /// The session is gone for good.
    Gone,
}

/// Sends requests to the task that has the connection.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    calls: mpsc::Sender<Call>,
    link: watch::Receiver<Link>,
}

impl Calls {
    pub(crate) fn new(calls: mpsc::Sender<Call>, link: watch::Receiver<Link>) -> Self {
        Self { calls, link }
    }

    async fn ask(&self, request: &SessionRequest) -> Result<Box<RawValue>, CallError> {
        let (method, params) = request.to_request();
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.calls.send(Call { method, params, reply }).await.map_err(|_| CallError::NotSent)?;
            answer.await.unwrap_or(Err(CallError::Broken))
        };
        timeout(PATIENCE, asked).await.unwrap_or(Err(CallError::Timeout))
    }

    /// Repeats a read-only request until there is an answer or the connection is gone for good.
    async fn insist(mut self, request: &SessionRequest) -> Result<Box<RawValue>, CallError> {
        loop {
            let failed = match self.ask(request).await {
                Err(failed @ (CallError::NotSent | CallError::Broken | CallError::Timeout)) => failed,
                other => return other,
            };
            let link = self.link.wait_for(|link| *link != Link::Down).await.map(|link| *link);
            if !matches!(link, Ok(Link::Up)) {
                return Err(failed);
            }
        }
    }
}

impl Elsewhere for Calls {
    fn call(&self, call: SessionCall) -> Answer<SessionReply> {
        let calls = self.clone();
        Box::pin(async move {
            let result = calls.ask(&SessionRequest::Call(call.clone())).await?;
            check(result.get()).map_err(CallError::from)?;
            Ok(SessionReply::read(&call, result.get()).map_err(CallError::from)?)
        })
    }

    fn page(&self, page: PageCall) -> Answer<PageReply> {
        let calls = self.clone();
        Box::pin(async move {
            let result = calls.insist(&SessionRequest::Page(page)).await?;
            Ok(serde_json::from_str(result.get()).map_err(CallError::from)?)
        })
    }
}
