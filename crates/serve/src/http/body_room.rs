//! Bounds the memory that the bodies of all requests take together.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A body of up to this many bytes needs no room, so that large ones never hold up short messages.
const SMALL: usize = 64 * 1024;

/// The room for bodies, in bytes. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct BodyRoom {
    room: Arc<Semaphore>,
    size: u32,
}

/// The room of one body.
#[derive(Debug)]
pub(super) struct Reserved(Option<OwnedSemaphorePermit>);

impl BodyRoom {
    pub(super) fn new(bytes: usize) -> Self {
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { room: Arc::new(Semaphore::new(size as usize)), size }
    }

    /// Waits until there is room for a body of that length.
    pub(super) async fn reserve(&self, length: usize) -> Reserved {
        if length <= SMALL {
            return Reserved(None);
        }
        let bytes = u32::try_from(length).unwrap_or(u32::MAX).min(self.size);
        // It fails only if the semaphore is closed, which it never is.
        Reserved(self.room.clone().acquire_many_owned(bytes).await.ok())
    }
}

impl Reserved {
    /// Holds the room for as long as the bytes are in memory.
    pub(super) fn hold(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(permit) => Bytes::from_owner(Held { bytes, _permit: permit }),
            None => bytes,
        }
    }
}

struct Held {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The length of a body that does not say it, as with gRPC, if it is small; and the body as it was.
pub(super) async fn small_length(body: Body) -> (Option<usize>, Body) {
    let (mut read, mut length) = (Vec::new(), 0);
    let mut rest = body.into_data_stream();
    while length <= SMALL {
        let Some(chunk) = rest.next().await else {
            return (Some(length), Body::from_stream(stream::iter(read)));
        };
        length += chunk.as_ref().map_or(0, Bytes::len);
        let is_broken = chunk.is_err();
        read.push(chunk);
        if is_broken {
            break;
        }
    }
    (None, Body::from_stream(stream::iter(read).chain(rest)))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn room_is_free_again_when_the_last_bytes_are_dropped() {
        let room = BodyRoom::new(3 * SMALL);
        let first = room.reserve(2 * SMALL).await.hold(Bytes::from_static(b"a body"));
        assert!(room.reserve(2 * SMALL).now_or_never().is_none(), "no room");
        assert!(room.reserve(SMALL).now_or_never().is_some(), "a small one needs none");
        let part = first.slice(2..);
        drop(first);
        assert!(room.reserve(2 * SMALL).now_or_never().is_none(), "a part is in use");
        assert_eq!(part, "body");
        drop(part);
        assert!(room.reserve(100 * SMALL).now_or_never().is_some(), "one body may take all");
    }
}
