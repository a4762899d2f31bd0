//! A door beside one session, whose agent is in the test's hands.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    AgentCommand, AgentEnd, AgentKind, ClientRef, Command, Door as Way, Draft, EventKind, SessionConfig, SessionId,
    Timestamp,
};
use multitap_hub::{Feed, Hub, Join, JoinFrom, Journal, Linger, Open, Refusal, Session, Told};
use multitap_remote::{Address, Attach, AttachError, Attached, attach};
use multitap_serve::{
    Access, CardVersions, DoorConfig, Host, Hosted, Limits, OpenDoor, Opened, Peer, PeerIdentity, Wanted,
};
use multitap_store::Store;
use multitap_testkit::agent::ScriptedLaunch;
pub(crate) use multitap_testkit::agent::{asked, ended, text, turn_ended, turn_started};
use tempfile::TempDir;
use tokio::time::timeout;

/// Long enough for a busy machine; nothing waits this long when all is well.
const PATIENCE: Duration = Duration::from_secs(20);

/// What should come soon, and does not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it comes soon")
}

/// The host of that session.
#[derive(Debug)]
pub(crate) struct One {
    session: Session,
    store: Arc<Store>,
}

impl One {
    pub(crate) fn new(session: Session, store: Arc<Store>) -> Self {
        Self { session, store }
    }
}

impl Host for One {
    fn shared(&self) -> Option<Session> {
        Some(self.session.clone())
    }

    fn find(&self, session: &SessionId) -> Option<Session> {
        Some(self.session.clone()).filter(|own| own.id() == session)
    }

    fn open(&self, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::TooManySessions) })
    }

    fn resume(&self, session: SessionId, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::UnknownSession { session_id: session }) })
    }

    fn journal(&self) -> Arc<dyn Journal> {
        self.store.clone()
    }

    fn shows(&self, _: &multitap_hub::SessionRecord) -> bool {
        true
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

/// All of it.
pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) session: Session,
    pub(crate) agent: AgentEnd,
    pub(crate) host: Arc<One>,
    pub(crate) folder: TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path().join("sessions.db")).unwrap());
        let (launch, mut agents) = ScriptedLaunch::new();
        let hub = Hub::new(store.clone(), launch);
        let open = Open::new(SessionConfig::new(AgentKind::Claude), ann());
        let session = hub.open(Open { linger: Linger::UntilClosed, ..open }).await.unwrap();
        let agent = soon(agents.recv()).await.unwrap().1;
        let host = Arc::new(One::new(session.clone(), store));
        Self { hub, session, agent, host, folder }
    }

    pub(crate) async fn door(&self, access: Access) -> OpenDoor {
        open_door(self.host.clone(), access).await
    }

    pub(crate) async fn tells(&self, kind: EventKind) {
        self.agent.events.send(Draft::new(Timestamp::now(), kind)).await.unwrap();
    }

    pub(crate) async fn hears(&mut self) -> Command {
        soon(self.agent.commands.recv()).await.unwrap()
    }

    /// The agent goes, and the host with it.
    pub(crate) async fn ends(self) -> TempDir {
        drop(self.agent);
        soon(self.hub.shutdown()).await;
        self.folder
    }

    /// Somebody who watches where the session runs.
    pub(crate) async fn watch(&self) -> Feed {
        watch(&self.session).await
    }
}

/// A door beside the session of that host.
pub(crate) async fn open_door(host: Arc<One>, access: Access) -> OpenDoor {
    let config = DoorConfig {
        host: "127.0.0.1".to_owned(),
        port: 0,
        access,
        limits: Limits::default(),
        extension_required: false,
        remote_agents: Vec::new(),
        push: multitap_serve::PushOptions::default(),
        public_url: None,
        card: CardVersions::Hybrid,
    };
    OpenDoor::open(config, host).await.unwrap()
}

/// Who opened the session.
pub(crate) fn ann() -> ClientRef {
    ClientRef::new("ann", Way::Terminal)
}

pub(crate) async fn attached(url: &str) -> Attached {
    try_attach(url, None).await.unwrap()
}

pub(crate) async fn try_attach(url: &str, token: Option<&str>) -> Result<Attached, AttachError> {
    let address = Address::parse(url).unwrap();
    soon(attach(Attach {
        address,
        client: "eve & co".to_owned(),
        door: Way::Terminal,
        token: token.map(str::to_owned),
    }))
    .await
}

/// All of a session, by somebody nobody is told of.
pub(crate) async fn watch(session: &Session) -> Feed {
    let join = Join { announce: false, ..Join::new(ann()).from(JoinFrom::Start) };
    session.join(join).await.unwrap().feed
}

/// What is told up to an event that is looked for, to the letter.
pub(crate) async fn until(feed: &mut Feed, wanted: impl Fn(&EventKind) -> bool) -> Vec<(u64, String)> {
    let mut seen = Vec::new();
    loop {
        match soon(feed.next()).await.expect("the session goes on") {
            Told::Event(entry) => {
                seen.push((entry.seq(), entry.json().to_owned()));
                if entry.event().is_some_and(|event| wanted(&event.kind)) {
                    return seen;
                }
            }
            Told::Gap { after, next } => panic!("a gap from {after} to {next}"),
        }
    }
}

pub(crate) fn says(kind: &EventKind, words: &str) -> bool {
    matches!(kind, EventKind::TextChunk(chunk) if chunk.content == words)
}
