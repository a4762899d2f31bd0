//! The updates of a stream, in order.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::stream::{once, unfold};

use super::error::ClientError;
use super::follow::Follower;
use crate::model::Update;

#[derive(Debug, Clone, PartialEq)]
pub struct StreamUpdate {
    /// The cursor to resume after, with [`Client::resubscribe`](super::Client::resubscribe). `None` if the agent does
    /// not number its events.
    pub cursor: Option<String>,
    pub update: Update,
}

/// The updates of a stream, in order. After an error nothing more comes. Dropping it stops the reading only: the task goes
/// on.
pub struct Updates(Pin<Box<dyn Stream<Item = Result<StreamUpdate, ClientError>> + Send>>);

impl Updates {
    /// The next update; `None` at the end. Cancel safe.
    pub async fn next(&mut self) -> Option<Result<StreamUpdate, ClientError>> {
        poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }

    /// A stream of one update.
    pub(super) fn of(told: StreamUpdate) -> Self {
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
    type Item = Result<StreamUpdate, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates").finish_non_exhaustive()
    }
}
