//! Accepts connections up to a maximum number, limits the time for heads and for not reading, and ends them when the
//! door closes.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::http2;
use super::peer::{self, PeerCheck, Visitor};
#[cfg(unix)]
use super::private::is_same_user;
use super::{Limits, try_later};
use crate::host::PeerIdentity;

/// From this size on the head of a request is too large, if it is incomplete by then.
pub(super) const HEAD: usize = 64 * 1024;
/// Maximum number of concurrent 503 replies; further connections are just closed.
const TOLD: usize = 64;
/// Time limit of such a reply.
const TELL_PATIENCE: Duration = Duration::from_secs(2);
/// Delay after the system ran out of files or memory.
const RECOVER: Duration = Duration::from_millis(100);

/// Maximum number of bodies that a connection of HTTP/2 sends at a time, while they are small.
const SMALL_BODIES: usize = 16;

/// The slot of a connection, in the extensions of each request. A WebSocket, which outlives its request, keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    _taken: Arc<OwnedSemaphorePermit>,
    /// Small bodies have no room reserved, so their number is bounded. HTTP/1 has one at a time.
    bodies: Arc<Semaphore>,
}

impl Seat {
    fn new(taken: OwnedSemaphorePermit) -> Self {
        Self { _taken: Arc::new(taken), bodies: Arc::new(Semaphore::new(SMALL_BODIES)) }
    }

    /// Waits until the connection may send another body.
    pub(super) async fn next_body(self) -> Option<OwnedSemaphorePermit> {
        // It fails only if the semaphore is closed, which it never is.
        self.bodies.acquire_owned().await.ok()
    }
}

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// The other end of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// All connections of a door.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    /// Cancelled when the time for finishing is over.
    cut: CancellationToken,
    limits: Limits,
    seats: Arc<Semaphore>,
    told: Arc<Semaphore>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            cut: CancellationToken::new(),
            limits,
            seats: Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS))),
            told: Arc::new(Semaphore::new(TOLD)),
        }
    }

    /// Accepts connections on that socket.
    pub(super) fn accept(&self, listener: Listener, router: Router, peers: PeerCheck) {
        let accept = Accept {
            listener,
            router,
            peers,
            limits: self.limits,
            seats: self.seats.clone(),
            told: self.told.clone(),
            stop: self.stop.clone(),
            cut: self.cut.clone(),
            tasks: self.tasks.clone(),
        };
        self.tasks.spawn(accept.run());
    }

    /// Lets responses finish for that long, then closes the rest.
    pub(super) async fn end(self, patience: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!(left = self.tasks.len(), "connections are cut off");
            self.cut.cancel();
            // Tasks of doors react to the stop; one that does not must not delay the others.
            timeout(RECOVER, self.tasks.wait()).await.ok();
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.stop.cancel();
        self.cut.cancel();
    }
}

struct Accept {
    listener: Listener,
    router: Router,
    peers: PeerCheck,
    limits: Limits,
    seats: Arc<Semaphore>,
    told: Arc<Semaphore>,
    stop: CancellationToken,
    cut: CancellationToken,
    tasks: TaskTracker,
}

impl Accept {
    async fn run(self) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = self.next() => accepted,
            };
            match accepted {
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot take in a connection");
                    sleep(RECOVER).await;
                }
            }
        }
    }

    async fn next(&self) -> io::Result<()> {
        match &self.listener {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Frames are small, and clients wait for each.
                stream.set_nodelay(true).ok(); // slower without it, not wrong
                let visitor = self.peers.tcp(&stream);
                self.take_in(stream, visitor);
            }
            #[cfg(unix)]
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                if is_same_user(&stream) {
                    let visitor = PeerCheck::private(&stream);
                    self.take_in(stream, visitor);
                } else {
                    tracing::warn!("refused a connection of another user to a private socket");
                }
            }
        }
        Ok(())
    }

    /// The peer is identified once per connection, without delaying others.
    fn take_in(&self, stream: impl Stream, visitor: Visitor) {
        match self.seats.clone().try_acquire_owned() {
            Ok(seat) => {
                let seat = Seat::new(seat);
                let (peers, router, limits) = (self.peers.clone(), self.router.clone(), self.limits);
                let (stop, tasks) = (self.stop.clone(), self.tasks.clone());
                let served = async move {
                    match peers.identify(visitor).await {
                        // A client need not read the reason.
                        PeerIdentity::Agent => turn_away(stream, peer::refusal).await,
                        identity => serve(stream, (seat, identity), router, limits, stop, tasks).await,
                    }
                };
                let cut = self.cut.clone();
                self.tasks.spawn(async move {
                    tokio::select! {
                        () = cut.cancelled() => {}
                        () = served => {}
                    }
                });
            }
            Err(_) => {
                // All other connections are closed.
                if let Ok(telling) = self.told.clone().try_acquire_owned() {
                    self.tasks.spawn(async move {
                        turn_away(stream, too_many).await;
                        drop(telling);
                    });
                }
            }
        }
    }
}

async fn serve(
    stream: impl Stream,
    (seat, identity): (Seat, PeerIdentity),
    router: Router,
    limits: Limits,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(limits.unread));
    let recognized = tokio::select! {
        () = stop.cancelled() => return,
        recognized = timeout(limits.header_time, http2::recognize(Box::pin(stream))) => recognized,
    };
    match recognized {
        Ok(Ok((true, stream))) => http2::serve(stream, (seat, identity), router, limits, stop, tasks).await,
        Ok(Ok((false, stream))) => serve_http1(stream, (seat, identity), router, limits, stop).await,
        // It broke off, or nothing came.
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn serve_http1(
    stream: impl Stream,
    (seat, identity): (Seat, PeerIdentity),
    router: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(seat.clone());
        request.extensions_mut().insert(identity);
        hyper::service::Service::call(&service, request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Not an error: clients may disconnect at any time.
        tracing::debug!(%error, "a connection broke off");
    }
}

/// Answers the first request with the reason, and closes. A client that does not listen is not waited for.
async fn turn_away(stream: impl Stream, reason: fn() -> Response) {
    let service = service_fn(async |_: hyper::Request<Incoming>| Ok::<Response, Infallible>(reason()));
    let connection = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(TELL_PATIENCE, connection).await {
        tracing::debug!(%error, "a refused connection broke off");
    }
}

fn too_many() -> Response {
    try_later("too many connections: try again later")
}
