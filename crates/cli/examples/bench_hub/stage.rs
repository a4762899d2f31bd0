//! A session in a log of its own, with the agent's end of it in our hands.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use multitap_event::{AgentEnd, AgentKind, ClientRef, Door, Draft, EventKind, SessionConfig, TextChunk, Timestamp};
use multitap_hub::{Feed, Hub, Join, JoinFrom, Open, Session, Told, Which};
use multitap_store::Store;
use multitap_testkit::agent::ScriptedLaunch;

use crate::Outcome;

/// Each log has one session.
const ID: &str = "bench";

pub(crate) struct Stage {
    pub(crate) session: Session,
    agent: AgentEnd,
    store: Arc<Store>,
}

impl Stage {
    /// A session that begins.
    pub(crate) async fn begin(folder: &Path) -> Outcome<Self> {
        Self::open(folder, Which::New { id: ID.into(), forked_from: None, history: None }).await
    }

    /// One that is kept there.
    pub(crate) async fn resume(folder: &Path) -> Outcome<Self> {
        Self::open(folder, Which::Stored(ID.into())).await
    }

    async fn open(folder: &Path, which: Which) -> Outcome<Self> {
        let config = SessionConfig::new(AgentKind::Builtin);
        let open = Open { which, ..Open::new(config, ClientRef::new("bench", Door::Host)) };
        let store = Arc::new(Store::open(folder.join("log.db"))?);
        let (launch, mut agents) = ScriptedLaunch::new();
        let hub = Hub::new(store.clone(), launch);
        let session = hub.open(open).await?;
        let agent = agents.recv().await.ok_or("no agent")?.1;
        Ok(Self { session, agent, store })
    }

    pub(crate) async fn join(&self, from: JoinFrom, patience: Option<Duration>) -> Outcome<Feed> {
        let join = Join { patience, announce: false, ..Join::new(ClientRef::new("client", Door::A2a)).from(from) };
        Ok(self.session.join(join).await?.feed)
    }

    pub(crate) async fn tell(&self, kind: EventKind) -> Outcome<()> {
        Ok(self.agent.events.send(Draft::new(Timestamp::now(), kind)).await?)
    }

    pub(crate) async fn close(self) {
        drop(self.agent);
        self.session.over().await;
        self.store.close().await;
    }
}

/// A piece of text, of about the size that agents stream.
pub(crate) fn text() -> EventKind {
    EventKind::TextChunk(TextChunk::piece("0123456789".repeat(40)))
}

/// Reads until the event of that number; an error if one is missing on the way.
pub(crate) async fn read(mut feed: Feed, last: u64) -> Outcome<Feed> {
    while feed.last() < last {
        let before = feed.last();
        match feed.next().await {
            Some(Told::Event(entry)) if entry.seq() == before + 1 => {}
            other => return Err(format!("after {before}: {other:?}, {:?}", feed.end()).into()),
        }
    }
    Ok(feed)
}
