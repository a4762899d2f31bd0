//! Refuses connections because of the process at the other end, before anything of a request is read.
//!
//! The guard judges requests; this judges who opened the connection. Doors with tokens do without: whoever got a token was
//! meant to come in.

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use super::connection::Stream;
use super::problem;
use crate::guard::{Guard, is_loopback};
use crate::host::{Host, Peer};

/// How many connections are checked at a time. Each reads the system's list of processes.
const CHECKS: usize = 4;

/// Asks the host about each connection.
#[derive(Debug, Clone)]
pub(super) struct PeerCheck {
    host: Arc<dyn Host>,
    /// Tokens decide at this door.
    has_tokens: bool,
    checks: Arc<Semaphore>,
}

impl PeerCheck {
    pub(super) fn new(host: Arc<dyn Host>, guard: &Guard) -> Self {
        let has_tokens = !guard.security_schemes().is_empty();
        Self { host, has_tokens, checks: Arc::new(Semaphore::new(CHECKS)) }
    }

    /// The process behind a connection to a port. Only connections within this machine have one.
    pub(super) fn tcp(&self, stream: &TcpStream) -> Option<Peer> {
        let (peer, own) = (stream.peer_addr().ok()?, stream.local_addr().ok()?);
        // A machine reaches itself at any of its addresses.
        let is_local = is_loopback(peer.ip()) || peer.ip().to_canonical() == own.ip().to_canonical();
        (is_local && !self.has_tokens).then_some(Peer::Tcp { peer, own })
    }

    /// The process behind a connection to a private door. One outside our process namespace has no id here.
    #[cfg(unix)]
    pub(super) fn private(stream: &UnixStream) -> Option<Peer> {
        let pid = stream.peer_cred().ok()?.pid()?;
        u32::try_from(pid).ok().filter(|pid| *pid != 0).map(Peer::Process)
    }

    /// Whether this connection is refused. In doubt it is.
    pub(super) async fn refuses(&self, peer: Option<Peer>) -> bool {
        let (Some(peer), Ok(_check)) = (peer, self.checks.acquire().await) else { return peer.is_some() };
        let host = self.host.clone();
        let refused = tokio::task::spawn_blocking(move || host.refuses(peer)).await.unwrap_or(true);
        if refused {
            tracing::warn!(?peer, "refused a connection of a process that an agent started");
        }
        refused
    }
}

/// Answers the first request with the reason, and closes.
pub(super) async fn turn_away(stream: impl Stream) {
    let service = service_fn(async |_: hyper::Request<Incoming>| Ok::<Response, Infallible>(refusal()));
    let connection = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a refused connection broke off");
    }
}

fn refusal() -> Response {
    let message = "refused: an agent started the process that connects, and agents must not control sessions. \
                   To let it in, start this host with --token-file and give that process a token";
    problem(StatusCode::FORBIDDEN, message)
}
