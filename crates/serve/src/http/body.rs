//! A request body with a deadline.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// The body did not arrive in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body of the request took too long")]
struct TooSlow;

/// Fails at the deadline, even if data keeps arriving.
#[derive(Debug)]
pub(super) struct Deadline<B> {
    body: Pin<Box<B>>,
    until: Pin<Box<Sleep>>,
}

impl<B> Deadline<B> {
    pub(super) fn new(body: B, time: Duration) -> Self {
        Self { body: Box::pin(body), until: Box::pin(sleep(time)) }
    }
}

impl<B: HttpBody<Data = Bytes, Error: Into<BoxError>>> HttpBody for Deadline<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = self.body.as_mut().poll_frame(context);
        if !matches!(frame, Poll::Ready(None)) && self.until.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(TooSlow.into())));
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
