//! The sessions of the system under test.

use std::sync::Arc;

use multitap_event::{AgentCommand, AgentKind, ClientRef, SessionConfig, SessionId};
use multitap_hub::{Hub, Journal, Launch, Linger, Open, Refusal, Session, SessionRecord};
use multitap_serve::{Host, Hosted, Opened, Peer, PeerIdentity, Wanted};

/// A host whose agents are all of one kind.
#[derive(Debug)]
pub(crate) struct Sut {
    hub: Hub,
    journal: Arc<dyn Journal>,
}

impl Sut {
    pub(crate) fn new(journal: Arc<dyn Journal>, launch: Arc<dyn Launch>) -> Self {
        Self { hub: Hub::new(journal.clone(), launch), journal }
    }
}

impl Host for Sut {
    fn shared(&self) -> Option<Session> {
        None
    }

    fn find(&self, session: &SessionId) -> Option<Session> {
        self.hub.find(session)
    }

    fn open(&self, wanted: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async {
            let open = Open::new(SessionConfig::new(AgentKind::Builtin), wanted.by);
            let open = Open { linger: Linger::UntilClosed, ..open };
            let session = self.hub.open(open).await.map_err(|_| Refusal::TooManySessions)?;
            Ok(Opened { session, notices: Vec::new() })
        })
    }

    fn resume(&self, session: SessionId, _: ClientRef) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::UnknownSession { session_id: session }) })
    }

    fn shows(&self, _: &SessionRecord) -> bool {
        true
    }

    fn journal(&self) -> Arc<dyn Journal> {
        self.journal.clone()
    }

    fn commands(&self) -> Hosted<'_, Option<Vec<AgentCommand>>> {
        Box::pin(async { Ok(Some(Vec::new())) })
    }

    fn ask_agent(&self, _: ClientRef) -> Hosted<'_, Session> {
        Box::pin(async { Err(Refusal::TooManySessions) })
    }

    fn identify(&self, peers: &[Peer]) -> Vec<PeerIdentity> {
        vec![PeerIdentity::User; peers.len()]
    }
}
