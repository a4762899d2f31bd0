//! HTTP/2 with prior knowledge, as gRPC clients speak it, on the same addresses as HTTP/1.
//!
//! What HTTP/1 limits for a connection is limited here for each of its streams: what is not read, what is in memory, how
//! long nothing happens.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Limits;
use super::connection::{HEAD, Seat, Stream};
use crate::host::PeerIdentity;

/// The first bytes of a client of HTTP/2.
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Maximum number of concurrent streams of a connection.
const STREAMS: u32 = 100;
/// Bytes of a request's body that may be under way.
const WINDOW: u32 = 256 * 1024;
/// The same, of all requests of a connection.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Maximum bytes of a response's body that the HTTP library holds until the client makes room for them. The last piece is
/// the library's, read or not: [`STREAMS`] of them are what a connection can hold so.
const PIECE: usize = 16 * 1024;
/// How often a silent connection is pinged, and how long the reply may take. Also keeps it alive on its way through
/// routers and proxies.
const PING: Duration = Duration::from_secs(20);

tokio::task_local! {
    /// Of the stream whose task this is. The HTTP library does not say which stream a task is for.
    static UNREAD: Unread;
}

/// Whether the client begins as one of HTTP/2, and the connection with all that it sent.
pub(super) async fn recognize<S: Stream>(mut stream: S) -> io::Result<(bool, Rewound<S>)> {
    let (mut start, mut filled) = ([0; PREFACE.len()], 0);
    while filled < start.len() {
        let read = stream.read(&mut start[filled..]).await?;
        filled += read;
        if read == 0 || start[..filled] != PREFACE[..filled] {
            break;
        }
    }
    Ok((start == PREFACE, Rewound { start: Bytes::copy_from_slice(&start[..filled]), stream }))
}

pub(super) async fn serve(
    stream: impl Stream,
    (seat, identity): (Seat, PeerIdentity),
    router: Router,
    limits: Limits,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let streams = Streams { tasks, open: watch::Sender::new(0), cut: CancellationToken::new(), unread: limits.unread };
    let _cut = streams.cut.clone().drop_guard();
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(seat.clone());
        request.extensions_mut().insert(identity);
        name_host(&mut request);
        let answered = router.call(request);
        async move {
            let unread = UNREAD.try_with(Unread::clone).unwrap_or_default();
            answered.await.map(|response| response.map(|body| Paced { body, rest: Bytes::new(), unread }))
        }
    });
    let connection = http2::Builder::new(streams.clone())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD as u32)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = finish(&streams, limits, &stop) => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                // The client does not close it either.
                () = streams.idle_for(limits.unread) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        // Not an error: clients may disconnect at any time.
        tracing::debug!(%error, "a connection broke off");
    }
}

/// Returns when the connection should end: the door closes, or nothing was requested for as long as HTTP/1 waits too.
async fn finish(streams: &Streams, limits: Limits, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = streams.idle_for(limits.header_time) => {}
    }
}

/// HTTP/2 has the host in the address.
fn name_host(request: &mut hyper::Request<Incoming>) {
    if request.headers().contains_key(header::HOST) {
        return;
    }
    let host = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    request.headers_mut().extend(host.map(|host| (header::HOST, host)));
}

/// The streams of a connection, each with a task of its own.
#[derive(Debug, Clone)]
struct Streams {
    tasks: TaskTracker,
    /// How many there are.
    open: watch::Sender<usize>,
    /// Cancelled when the connection ends.
    cut: CancellationToken,
    /// How long a client may not read.
    unread: Duration,
}

impl Streams {
    /// Waits until there has been none for that long.
    async fn idle_for(&self, time: Duration) {
        let mut open = self.open.subscribe();
        // The sender is in `self`.
        while open.wait_for(|open| *open == 0).await.is_ok() {
            if timeout(time, open.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        self.open.send_modify(|open| *open += 1);
        let streams = self.clone();
        let unread = Unread::default();
        self.tasks.spawn(async move {
            tokio::select! {
                () = streams.cut.cancelled() => {}
                () = UNREAD.scope(unread.clone(), stream) => {}
                // Dropping the stream resets it.
                () = unread.is_too_long(streams.unread) => tracing::debug!("a stream is not read"),
            }
            streams.open.send_modify(|open| *open -= 1);
        });
    }
}

/// Since when a piece of a response waits for the client to make room for it.
#[derive(Debug, Clone, Default)]
struct Unread(Arc<Mutex<Option<Instant>>>);

impl Unread {
    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a piece has waited for that long. Looks now and then, because pieces come and go often.
    async fn is_too_long(&self, time: Duration) {
        while self.get().is_none_or(|since| since.elapsed() < time) {
            sleep(time / 2).await;
        }
    }
}

/// A response's body in pieces: the next one is taken when there is room for the last.
struct Paced {
    body: Body,
    rest: Bytes,
    unread: Unread,
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.unread.set(None);
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = PIECE.min(self.rest.len());
        let piece = self.rest.split_to(length);
        self.unread.set(Some(Instant::now()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // Asked before the first piece is taken.
        self.body.size_hint()
    }
}

/// A connection whose first bytes are read again.
pub(super) struct Rewound<S> {
    start: Bytes,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.start.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, into);
        }
        let length = self.start.len().min(into.remaining());
        into.put_slice(&self.start.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
