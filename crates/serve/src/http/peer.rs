//! Finds out who opened a connection, before anything of a request is read: an agent's process is refused, and another
//! user needs a token.
//!
//! The guard judges requests; this judges connections. Doors with tokens do without: whoever got a token was meant to
//! come in. One lookup reads the list of all processes, so it serves every connection that waits for one. It always
//! begins after the connections that it serves were accepted: those that arrive meanwhile wait for the next.

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
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::connection::Stream;
use super::problem;
use crate::guard::Guard;
use crate::host::{Peer, PeerIdentity};

/// How many connections wait for a lookup, and how many one lookup serves; further ones wait to be queued.
const WAITING: usize = 1024;

/// Says who is at the other end of each connection, as [`crate::Host::identify`] does.
pub(super) type Identify = Arc<dyn Fn(&[Peer]) -> Vec<PeerIdentity> + Send + Sync>;

/// Finds out who is at the other end of each connection.
#[derive(Debug, Clone)]
pub(super) struct PeerCheck {
    /// Tokens decide at this door.
    has_tokens: bool,
    waiting: mpsc::Sender<Check>,
}

/// Who opened a connection, as far as it is known when it is accepted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Visitor {
    Known(PeerIdentity),
    Unknown(Peer),
}

#[derive(Debug)]
struct Check {
    peer: Peer,
    identity: oneshot::Sender<PeerIdentity>,
}

impl PeerCheck {
    /// The task that looks up who comes ends with the last clone of this.
    pub(super) fn new(identify: Identify, guard: &Guard, tasks: &TaskTracker) -> Self {
        let (waiting, queue) = mpsc::channel(WAITING);
        tasks.spawn(run(identify, queue));
        Self { has_tokens: !guard.security_schemes().is_empty(), waiting }
    }

    /// Who comes to a port. Without tokens it is one that only this machine reaches.
    pub(super) fn tcp(&self, stream: &TcpStream) -> Visitor {
        match (stream.peer_addr(), stream.local_addr()) {
            _ if self.has_tokens => Visitor::Known(PeerIdentity::User),
            (Ok(peer), Ok(own)) => Visitor::Unknown(Peer::Tcp { peer, own }),
            (Err(_), _) | (_, Err(_)) => Visitor::Known(PeerIdentity::OtherUser),
        }
    }

    /// Who comes to a private door. A process outside our process namespace has no id here.
    #[cfg(unix)]
    pub(super) fn private(stream: &UnixStream) -> Visitor {
        let pid = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok()).filter(|pid| *pid != 0);
        pid.map_or(Visitor::Known(PeerIdentity::User), |pid| Visitor::Unknown(Peer::Process(pid)))
    }

    /// Who it is. In doubt it is an agent's process.
    pub(super) async fn identify(&self, visitor: Visitor) -> PeerIdentity {
        let peer = match visitor {
            Visitor::Known(identity) => return identity,
            Visitor::Unknown(peer) => peer,
        };
        let (identity, found) = oneshot::channel();
        let asked = self.waiting.send(Check { peer, identity }).await;
        let found = if asked.is_ok() { found.await.ok() } else { None };
        if found == Some(PeerIdentity::Agent) {
            tracing::warn!(?peer, "refused a connection of a process that an agent started");
        }
        found.unwrap_or(PeerIdentity::Agent)
    }
}

/// Looks up all that wait, one lookup at a time, away from the threads that serve.
async fn run(identify: Identify, mut queue: mpsc::Receiver<Check>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, WAITING).await > 0 {
        let (peers, identities): (Vec<Peer>, Vec<_>) =
            waiting.drain(..).map(|check| (check.peer, check.identity)).unzip();
        let identify = identify.clone();
        let found = tokio::task::spawn_blocking(move || identify(&peers)).await;
        // After a lookup that failed, the senders are dropped, and the connections refused.
        for (identity, found) in identities.into_iter().zip(found.unwrap_or_default()) {
            identity.send(found).ok(); // the client may be gone
        }
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
