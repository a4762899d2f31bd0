//! How a door finds out who is at the other end: many connections at once cost few lookups.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use multitap_event::{AgentCommand, ClientRef, SessionId};
use multitap_hub::{Journal, JournalError, Refusal, Session, SessionRecord};
use multitap_serve::{Access, Host, Hosted, Limits, OpenDoor, Opened, Peer, PeerIdentity, Wanted};
use multitap_store::Store;

use crate::scene::{Line, config, port};

/// As many as a test needs to tell one lookup for all from one for each.
const MANY: usize = 200;

/// Who is at that port: all kinds are among many of them.
fn identity(port: u16) -> PeerIdentity {
    [PeerIdentity::User, PeerIdentity::Agent, PeerIdentity::OtherUser][usize::from(port % 3)]
}

/// A host that answers lookups only once the gate is open.
#[derive(Debug)]
struct Slow {
    lookups: Mutex<Vec<Vec<Peer>>>,
    gate: Mutex<Receiver<()>>,
}

impl Slow {
    /// Dropping the sender opens the gate.
    fn new() -> (Arc<Self>, Sender<()>) {
        let (closed, gate) = channel();
        (Arc::new(Self { lookups: Mutex::default(), gate: Mutex::new(gate) }), closed)
    }
}

impl Host for Slow {
    fn shared(&self) -> Option<Session> {
        None
    }

    fn find(&self, _: &SessionId) -> Option<Session> {
        None
    }

    fn open(&self, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::TooManySessions) })
    }

    fn resume(&self, session: SessionId, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::UnknownSession { session_id: session }) })
    }

    fn shows(&self, _: &SessionRecord) -> bool {
        true
    }

    fn journal(&self) -> Arc<dyn Journal> {
        Arc::new(Store::unusable(JournalError::Full))
    }

    fn commands(&self) -> Hosted<'_, Option<Vec<AgentCommand>>> {
        Box::pin(async { Ok(Some(Vec::new())) })
    }

    fn ask_agent(&self, _: ClientRef) -> Hosted<'_, Session> {
        Box::pin(async { Err(Refusal::TooManySessions) })
    }

    fn identify(&self, peers: &[Peer]) -> Vec<PeerIdentity> {
        self.lookups.lock().unwrap().push(peers.to_vec());
        self.gate.lock().unwrap().recv().ok();
        let identity = |peer: &Peer| match peer {
            Peer::Tcp { peer, .. } => identity(peer.port()),
            Peer::Process(_) => PeerIdentity::User,
        };
        peers.iter().map(identity).collect()
    }
}

/// A lookup reads the whole list of processes. When each connection had a lookup of its own, 500 of them took 21 s.
#[tokio::test]
async fn many_connections_at_once_cost_two_lookups_and_each_gets_its_own_answer() {
    let (host, gate) = Slow::new();
    let limits = Limits { connections: MANY, ..Limits::default() };
    let door = OpenDoor::open(config("127.0.0.1", Access::default(), limits), host.clone()).await.unwrap();
    let port = port(&door);
    let request = format!("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    let mut lines = Vec::new();
    for _ in 0..MANY {
        let mut line = Line::to(port).await;
        line.send(&request).await;
        lines.push(line);
    }
    // One more is too many: all before it have been accepted, and wait for their lookup.
    let mut probe = Line::to(port).await;
    probe.send(&request).await;
    assert_eq!(probe.rest().await.status, 503);
    drop(gate);
    for line in &mut lines {
        let expected = match identity(line.port()) {
            PeerIdentity::User => 200,
            PeerIdentity::Agent => 403,
            PeerIdentity::OtherUser => 401,
        };
        assert_eq!(line.rest().await.status, expected);
    }
    let lookups = host.lookups.lock().unwrap().clone();
    assert!(lookups.len() <= 2, "{} lookups for {MANY} connections", lookups.len());
    assert_eq!(lookups.iter().map(Vec::len).sum::<usize>(), MANY);
    door.stop().await;
}
