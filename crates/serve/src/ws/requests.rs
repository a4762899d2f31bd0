//! Requests of one connection that are under way, waited for all at once.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

/// How many requests a client may have under way, streams among them.
pub(crate) const IN_FLIGHT: usize = 64;

/// All of them. Those that are not done when it goes are given up; what they began goes on.
pub(crate) struct Requests<T> {
    all: FuturesUnordered<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T> Requests<T> {
    pub(crate) fn new() -> Self {
        Self { all: FuturesUnordered::new() }
    }

    pub(crate) fn add(&mut self, request: impl Future<Output = T> + Send + 'static) {
        self.all.push(Box::pin(request));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The next one that is done; never, while none is under way. Cancel safe.
    pub(crate) async fn next(&mut self) -> T {
        poll_fn(|context| match self.all.poll_next_unpin(context) {
            Poll::Ready(Some(done)) => Poll::Ready(done),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        })
        .await
    }
}

impl<T> fmt::Debug for Requests<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").field("under_way", &self.all.len()).finish()
    }
}
