//! What a stream tells, one after the other.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::{once, unfold};

use super::error::ClientError;
use super::follow::Follower;
use crate::model::Update;

/// One thing that a stream told, and where it stands in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// To go on from here, with [`Client::resubscribe`](super::Client::resubscribe). None if the agent gives no numbers.
    pub cursor: Option<String>,
    pub update: Update,
}

/// The updates of a stream, in their order. After an error nothing more comes. Dropping it stops the reading, and
/// nothing else: the task goes on.
pub struct Updates(Pin<Box<dyn Stream<Item = Result<Told, ClientError>> + Send>>);

impl Updates {
    /// The next one; none at the end. Nothing is lost if the wait is given up.
    pub async fn next(&mut self) -> Option<Result<Told, ClientError>> {
        poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }

    /// A stream that tells one thing.
    pub(super) fn of(told: Told) -> Self {
        Self(Box::pin(once(std::future::ready(Ok(told)))))
    }

    pub(super) fn follow(follower: Follower) -> Self {
        Self(Box::pin(unfold(follower, |mut follower| async {
            let told = follower.next().await?;
            Some((told, follower))
        })))
    }
}

impl Stream for Updates {
    type Item = Result<Told, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").finish_non_exhaustive()
    }
}
