//! The input of a client, which says when it ends. The MCP library keeps that to itself while calls are open.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// Reads from another reader, and cancels a token at its end or failure.
pub(crate) struct Watched<R> {
    read: R,
    ended: CancellationToken,
}

impl<R> Watched<R> {
    pub(crate) fn new(read: R, ended: CancellationToken) -> Self {
        Self { read, ended }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.read).poll_read(context, buf));
        let is_end = buf.filled().len() == before && buf.remaining() > 0;
        if is_end || read.is_err() {
            self.ended.cancel();
        }
        Poll::Ready(read)
    }
}
