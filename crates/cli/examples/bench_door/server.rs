//! The door, in a process of its own: one session that everybody shares, with an agent that says as much as it is asked.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use multitap_event::{
    AgentCommand, AgentEnd, AgentKind, AgentType, ClientRef, Command, Door as Way, Draft, EventKind, SessionConfig,
    SessionId, SessionStart, TextChunk, Timestamp, TurnEnd, TurnStatus, link,
};
use multitap_hub::{Filter, Hub, Journal, Launch, Launching, Linger, Open, Refusal, Session, SessionRecord, Which};
use multitap_serve::{
    Access, CardVersions, DoorConfig, Host, Hosted, Limits, OpenDoor, Opened, Peer, PeerIdentity, Wanted,
};
use multitap_store::Store;
use tokio_util::task::TaskTracker;

use crate::Outcome;

/// What makes this program the door.
pub(crate) const WORD: &str = "__door";

/// Serves until it is killed; says where on its first line. With a folder, its session goes on where it was.
pub(crate) async fn run(folder: Option<&str>) -> Outcome<()> {
    let scratch = tempfile::tempdir()?;
    let store = Arc::new(Store::open(folder.map_or(scratch.path(), Path::new).join("log.db"))?);
    let hub = Hub::new(store.clone(), Arc::new(Talker::default()));
    let by = ClientRef::new("bench", Way::Host);
    let mut open = Open { linger: Linger::UntilClosed, ..Open::new(SessionConfig::new(AgentKind::Builtin), by) };
    if let Some(stored) = hub.list(Filter::default()).await?.first() {
        open.which = Which::Stored(stored.id.clone());
    }
    let session = hub.open(open).await?;
    let host = Arc::new(One { session, journal: store });
    let config = DoorConfig {
        host: "127.0.0.1".into(),
        port: 0,
        access: Access::default(),
        limits: Limits::default(),
        extension_required: false,
        remote_agents: Vec::new(),
        push: multitap_serve::PushOptions::default(),
        public_url: None,
        card: CardVersions::Hybrid,
    };
    let door = OpenDoor::open(config, host).await?;
    println!("{}", door.url());
    std::future::pending().await
}

/// The host of one session.
#[derive(Debug)]
struct One {
    session: Session,
    journal: Arc<dyn Journal>,
}

impl Host for One {
    fn shared(&self) -> Option<Session> {
        Some(self.session.clone())
    }

    fn find(&self, session: &SessionId) -> Option<Session> {
        Some(self.session.clone()).filter(|shared| shared.id() == session)
    }

    fn open(&self, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::NotReady) })
    }

    fn resume(&self, session: SessionId, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::UnknownSession { session_id: session }) })
    }

    fn journal(&self) -> Arc<dyn Journal> {
        self.journal.clone()
    }

    fn shows(&self, _: &SessionRecord) -> bool {
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

/// An agent that says as many pieces of text as its prompt is a number.
#[derive(Debug, Default)]
struct Talker {
    tasks: TaskTracker,
}

impl Launch for Talker {
    fn launch(&self, _: SessionConfig) -> Launching {
        let tasks = self.tasks.clone();
        Box::pin(async move {
            let (link, end) = link();
            tasks.spawn(talk(end));
            Ok(link)
        })
    }

    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}

async fn talk(mut agent: AgentEnd) {
    let start = SessionStart { native_session_id: Some("bench".into()), ..SessionStart::of(AgentType::Builtin) };
    let mut turns = 0;
    let mut say = vec![EventKind::SessionStarted(start)];
    loop {
        for kind in say.drain(..) {
            if agent.events.send(Draft::new(Timestamp::now(), kind)).await.is_err() {
                return;
            }
        }
        let Some(command) = agent.commands.recv().await else { return };
        let Command::Prompt(prompt) = command else { continue };
        turns += 1;
        let pieces: usize = prompt.text.trim().parse().unwrap_or(1);
        say.push(EventKind::TurnStarted { turn_id: format!("turn-{turns}").into() });
        say.extend(std::iter::repeat_with(piece).take(pieces));
        say.push(EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Completed)));
    }
}

/// A piece of text, of about the size that agents stream.
pub(crate) fn piece() -> EventKind {
    EventKind::TextChunk(TextChunk::piece("0123456789".repeat(4)))
}
