//! The port to whatever has the sessions: it opens them, takes them up again, and knows what a client may ask for.

mod answer;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use multitap_event::{AgentCommand, ClientRef, SessionId};
use multitap_hub::{AgentSummary, Journal, OpenCall, Refusal, Session, SessionRecord};

pub(crate) use self::answer::answer;

/// What a host answers, in its own time.
pub type Hosted<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// Has the sessions that a door leads to.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// The one session that everybody shares, where the door stands beside a terminal: no others can be opened then.
    fn shared(&self) -> Option<Session>;

    /// The sessions that are live here.
    fn live(&self) -> Vec<Session> {
        self.shared().into_iter().collect()
    }

    /// The agents that a session can have.
    fn agents(&self) -> Hosted<'_, Vec<AgentSummary>> {
        Box::pin(async { Err(Refusal::NotHere) })
    }

    /// Files in a folder that no ignore file hides, the best match first. Blocking.
    fn files(&self, _folder: &Path, _query: &str) -> Vec<String> {
        Vec::new()
    }

    /// A session that is live here.
    fn find(&self, session: &SessionId) -> Option<Session>;

    /// Opens a session of a client's own. What the client wants is not trusted: it is checked here.
    fn open(&self, wanted: Wanted) -> Hosted<'_, Opened>;

    /// Goes on with a session that is kept and not live anywhere.
    fn take_up(&self, session: SessionId, by: ClientRef) -> Hosted<'_, Opened>;

    /// Whether clients of this door may see that session, which is kept and not live here. One log has all sessions of
    /// its user, also those that are none of their business.
    fn shows(&self, session: &SessionRecord) -> bool;

    /// Where the logs are kept.
    fn journal(&self) -> Arc<dyn Journal>;

    /// The slash commands of a session that would be opened now; none where only the agent itself knows them.
    fn commands(&self) -> Hosted<'_, Option<Vec<AgentCommand>>>;

    /// Starts the agent that a session would have now, to ask it about itself. Nothing of that session is logged, and
    /// whoever asks ends it.
    fn ask_agent(&self, by: ClientRef) -> Hosted<'_, Session>;

    /// Who is at the other end of each of these connections, in their order. Looks at the system once for all of them,
    /// after it is called, and may block for some milliseconds.
    fn identify(&self, peers: &[Peer]) -> Vec<PeerIdentity>;
}

/// The other end of a connection within this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// At a private door: a process id.
    Process(u32),
    /// At a port: the address of the other end, and ours.
    Tcp { peer: SocketAddr, own: SocketAddr },
}

/// Who is at the other end of a connection within this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerIdentity {
    /// A program of the user that this host runs as.
    User,
    /// A process that an agent started: it is refused, whoever runs it, because agents must not answer their own
    /// questions.
    Agent,
    /// A program of another user, or the system does not say whose: it needs a token.
    OtherUser,
}

/// A session that a client wants, unchecked.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub by: ClientRef,
    pub open: OpenCall,
}

impl Wanted {
    /// A session about which its client says nothing.
    #[must_use]
    pub fn bare(by: ClientRef) -> Self {
        Self { by, open: OpenCall::default() }
    }
}

/// A session that runs, and what of the client's wishes was not granted.
#[derive(Debug)]
pub struct Opened {
    pub session: Session,
    /// For people, a sentence each.
    pub notices: Vec<String>,
}
