//! The port to the owner of the sessions: opens and resumes them, and knows which settings a client may ask for.

mod answer;
mod offers;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use multitap_event::{AgentCommand, ClientRef, SessionId};
use multitap_hub::{AgentSummary, Journal, OpenCall, Refusal, Session, SessionRecord};

pub(crate) use self::answer::{answer, sessions};
pub(crate) use self::offers::Offers;

/// The pending answer of a host.
pub type Hosted<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// Owns the sessions behind a door.
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// The only session of a door beside a terminal. Then no others can be opened.
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

    /// Opens a session for a client. Checks the client's settings, which are not trusted.
    fn open(&self, wanted: Wanted) -> Hosted<'_, Opened>;

    /// Resumes a stored session that is not live. Of the client's settings only MCP servers and additional directories
    /// count: the session has the others.
    fn resume(&self, session: SessionId, wanted: Wanted) -> Hosted<'_, Opened>;

    /// Opens a session anew under its id, for example with another agent. Only one without a prompt.
    fn reopen(&self, _session: SessionId, _wanted: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::NotHere) })
    }

    /// Whether clients of this door may see that stored session. The log contains all sessions of the user, including
    /// those that are not meant for them. The answer is the same for all sessions in a folder.
    fn shows(&self, session: &SessionRecord) -> bool;

    /// The journal with the logs.
    fn journal(&self) -> Arc<dyn Journal>;

    /// The slash commands of a new session; `None` if only the running agent knows them.
    fn commands(&self) -> Hosted<'_, Option<Vec<AgentCommand>>>;

    /// Starts the agent of a new session, to query it. The session is not logged, and the caller ends it.
    fn ask_agent(&self, by: ClientRef) -> Hosted<'_, Session>;

    /// Identifies the other ends of these connections, in order. One lookup after the call serves all of them, and may
    /// block for some milliseconds.
    fn identify(&self, peers: &[Peer]) -> Vec<PeerIdentity>;
}

/// The other end of a local connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// At a private door: a process id.
    Process(u32),
    /// At a port: the address of the other end, and ours.
    Tcp { peer: SocketAddr, own: SocketAddr },
}

/// The program at the other end of a local connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerIdentity {
    /// A program of the host's user.
    User,
    /// A process that an agent started. It is refused, because agents must not answer their own questions.
    Agent,
    /// A program of another or unknown user, which needs a token.
    OtherUser,
}

/// A session that a client wants, unchecked.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub by: ClientRef,
    pub open: OpenCall,
}

impl Wanted {
    /// A request without settings.
    #[must_use]
    pub fn bare(by: ClientRef) -> Self {
        Self { by, open: OpenCall::default() }
    }
}

/// An opened session, and the requested settings that were not granted.
#[derive(Debug)]
pub struct Opened {
    pub session: Session,
    /// One sentence each, for people.
    pub notices: Vec<String>,
}
