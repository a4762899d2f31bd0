//! Finds out who opened a connection, before anything of a request is read: an agent's process is refused, and another
//! user needs a token.
//!
//! The guard checks requests; this checks connections. Doors with tokens skip it: a token is permission to connect. A
//! lookup reads the list of all processes, so one lookup serves all waiting connections. It starts after they were
//! accepted; connections that arrive meanwhile wait for the next one.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::problem;
use crate::guard::Guard;
use crate::host::{Peer, PeerIdentity};

/// Maximum number of connections in the queue and per lookup; further ones wait.
const WAITING: usize = 1024;

/// Identifies the other end of each connection, like [`crate::Host::identify`].
pub(super) type Identify = Arc<dyn Fn(&[Peer]) -> Vec<PeerIdentity> + Send + Sync>;

/// Finds out who is at the other end of each connection.
#[derive(Debug, Clone)]
pub(super) struct PeerCheck {
    /// Whether the door requires tokens.
    has_tokens: bool,
    waiting: mpsc::Sender<Check>,
}

/// Who opened a connection, as far as known at accept.
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
    /// Starts the lookup task, which ends with the last clone.
    pub(super) fn new(identify: Identify, guard: &Guard, tasks: &TaskTracker) -> Self {
        let (waiting, queue) = mpsc::channel(WAITING);
        tasks.spawn(run(identify, queue));
        Self { has_tokens: guard.requires_token(), waiting }
    }

    /// The peer of a TCP connection. A door without tokens is on loopback.
    pub(super) fn tcp(&self, stream: &TcpStream) -> Visitor {
        match (stream.peer_addr(), stream.local_addr()) {
            _ if self.has_tokens => Visitor::Known(PeerIdentity::User),
            (Ok(peer), Ok(own)) => Visitor::Unknown(Peer::Tcp { peer, own }),
            (Err(_), _) | (_, Err(_)) => Visitor::Known(PeerIdentity::OtherUser),
        }
    }

    /// The peer of a private socket. A process outside our pid namespace has no id here.
    #[cfg(unix)]
    pub(super) fn private(stream: &UnixStream) -> Visitor {
        let pid = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok()).filter(|pid| *pid != 0);
        pid.map_or(Visitor::Known(PeerIdentity::User), |pid| Visitor::Unknown(Peer::Process(pid)))
    }

    /// Identifies the peer. In doubt it counts as an agent's process.
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

/// Identifies all waiting peers, one lookup at a time, on a blocking thread.
async fn run(identify: Identify, mut queue: mpsc::Receiver<Check>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, WAITING).await > 0 {
        let (peers, identities): (Vec<Peer>, Vec<_>) =
            waiting.drain(..).map(|check| (check.peer, check.identity)).unzip();
        let identify = identify.clone();
        let found = tokio::task::spawn_blocking(move || identify(&peers)).await;
        // After a failed lookup the senders are dropped, which refuses the connections.
        for (identity, found) in identities.into_iter().zip(found.unwrap_or_default()) {
            identity.send(found).ok(); // the client may be gone
        }
    }
}

/// The answer to a process of an agent.
pub(super) fn refusal() -> Response {
    let message = "refused: an agent started the process that connects, and agents must not control sessions. \
                   To let it in, start this host with --token-file and give that process a token";
    problem(StatusCode::FORBIDDEN, message)
}
