//! The door of a single session: leads clients to the one session of this process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use multitap_event::{AgentCommand, ClientRef, ClientRole, SessionId};
use multitap_hub::{Journal, Refusal, Session, SessionRecord};
use multitap_process::{Connector, LocalConnection, connectors, is_of_agent};
use multitap_serve::{
    Access, CardVersions, DoorConfig, DoorError, Host, Hosted, Limits, OpenDoor, Opened, Peer, PeerIdentity,
    PushOptions, Scheme, Tokens, Wanted,
};

use crate::args::{AccessArgs, DoorArgs, DoorOptions};
use crate::exit::{Exit, Problem};
use crate::file_lists::FileLists;
use crate::remote_agents;
use crate::settings::Settings;
use crate::token;

/// A host with one session, which all clients share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Empty until the agent is up; replaced when the user switches sessions.
    session: Mutex<Option<Session>>,
    journal: Arc<dyn Journal>,
    files: FileLists,
}

impl Shared {
    /// Opens the door, if one was requested. Clients are refused until there is a session.
    pub(crate) async fn open(
        args: &DoorArgs,
        settings: &Settings,
        journal: Arc<dyn Journal>,
    ) -> Result<Option<(OpenDoor, Arc<Self>)>, Problem> {
        let Some(port) = args.a2a_port else { return Ok(None) };
        let shared = Arc::new(Self::new(journal));
        let door = shared.open_at(port, args, settings).await?;
        Ok(Some((door, shared)))
    }

    /// A host for a session that has started.
    pub(crate) fn of(session: Session, journal: Arc<dyn Journal>) -> Self {
        Self { session: Mutex::new(Some(session)), ..Self::new(journal) }
    }

    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { session: Mutex::default(), journal, files: FileLists::default() }
    }

    pub(crate) async fn open_at(
        self: &Arc<Self>,
        port: u16,
        args: &DoorArgs,
        settings: &Settings,
    ) -> Result<OpenDoor, Problem> {
        let config = config(args.host(), port, args.options(), settings)?;
        OpenDoor::open(config, self.clone()).await.map_err(not_opened)
    }

    pub(crate) fn share(&self, session: Session) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }
}

impl Host for Shared {
    fn shared(&self) -> Option<Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn files(&self, folder: &Path, query: &str) -> Vec<String> {
        self.files.find(folder, query)
    }

    fn find(&self, session: &SessionId) -> Option<Session> {
        self.shared().filter(|shared| shared.id() == session)
    }

    fn open(&self, _: Wanted) -> Hosted<'_, Opened> {
        // Before the session has begun only: later requests are led to it.
        Box::pin(async { Err(Refusal::NotReady) })
    }

    fn resume(&self, session: SessionId, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::UnknownSession { session_id: session }) })
    }

    fn shows(&self, _: &SessionRecord) -> bool {
        // The shared session is live.
        false
    }

    fn journal(&self) -> Arc<dyn Journal> {
        self.journal.clone()
    }

    fn commands(&self) -> Hosted<'_, Option<Vec<AgentCommand>>> {
        // Before the session has begun only: later its agent is asked.
        Box::pin(async { Err(Refusal::NotReady) })
    }

    fn ask_agent(&self, _: ClientRef) -> Hosted<'_, Session> {
        Box::pin(async { Err(Refusal::NotReady) })
    }

    fn identify(&self, peers: &[Peer]) -> Vec<PeerIdentity> {
        identify(peers)
    }
}

/// Identifies the process at the other end of each connection. A process that an agent started must not act as the
/// user.
pub(crate) fn identify(peers: &[Peer]) -> Vec<PeerIdentity> {
    let connection = |peer: &Peer| match *peer {
        Peer::Tcp { peer, own } => Some(LocalConnection { peer, own }),
        Peer::Process(_) => None,
    };
    let connections: Vec<LocalConnection> = peers.iter().filter_map(connection).collect();
    let mut connectors = connectors(&connections).into_iter();
    let identity = |peer: &Peer| match peer {
        Peer::Process(pid) if is_of_agent(*pid) => PeerIdentity::Agent,
        Peer::Process(_) => PeerIdentity::User,
        Peer::Tcp { .. } => match connectors.next() {
            Some(Connector::User) => PeerIdentity::User,
            Some(Connector::OtherUser) => PeerIdentity::OtherUser,
            Some(Connector::Agent) | None => PeerIdentity::Agent,
        },
    };
    peers.iter().map(identity).collect()
}

pub(crate) fn config(
    host: &str,
    port: u16,
    options: DoorOptions<'_>,
    settings: &Settings,
) -> Result<DoorConfig, Problem> {
    let DoorOptions { access, public, push } = options;
    Ok(DoorConfig {
        host: host.to_owned(),
        port,
        access: self::access(access)?,
        limits: Limits::default(),
        extension_required: settings.a2a.extension_required,
        remote_agents: remote_agents::names(settings),
        push: PushOptions { allow_private: push.allow_private_webhooks, ..PushOptions::default() },
        public_url: public.public_url.clone(),
        card: CardVersions::Hybrid,
    })
}

pub(crate) fn access(args: &AccessArgs) -> Result<Access, Problem> {
    Ok(Access {
        allow_hosts: args.allow_host.clone(),
        allow_origins: args.allow_origin.clone(),
        scheme: Scheme::of(tokens(args)?),
    })
}

/// The tokens of the file, and the one in the environment.
fn tokens(access: &AccessArgs) -> Result<Tokens, Problem> {
    let usage = |error: anyhow::Error| Problem::usage(format!("{error:#}"));
    let mut tokens = match &access.token_file {
        Some(file) => Tokens::read(file).context("--token-file").map_err(usage)?,
        None => Tokens::default(),
    };
    if let Some(token) = token::of_environment() {
        // A variable that is set but empty is a mistake: an open door was not intended.
        let token = token.to_string_lossy();
        tokens.add(&token, ClientRole::Controller, None).context(token::VARIABLE).map_err(usage)?;
    }
    Ok(tokens)
}

pub(crate) fn not_opened(error: DoorError) -> Problem {
    let exit = match &error {
        DoorError::NeedsToken { .. } | DoorError::Access(_) => Exit::Usage,
        DoorError::InUse { .. }
        | DoorError::Bind { .. }
        | DoorError::Unknown { .. }
        | DoorError::PrivateInUse { .. }
        | DoorError::Private { .. } => Exit::Failed,
    };
    Problem::new(exit, format!("{:#}", anyhow::Error::new(error)))
}

/// The address for programs on this machine.
pub(crate) fn address(door: &OpenDoor) -> String {
    let at = |ip: IpAddr, port| format!("http://{}", SocketAddr::new(ip, port));
    match door.addresses().first() {
        Some(first) if first.ip() == Ipv4Addr::UNSPECIFIED => at(Ipv4Addr::LOCALHOST.into(), first.port()),
        Some(first) if first.ip() == Ipv6Addr::UNSPECIFIED => at(Ipv6Addr::LOCALHOST.into(), first.port()),
        _ => door.url().to_owned(),
    }
}

/// The URL in an argument, if it is one: `HOST:PORT` and `:PORT` are shorthand. Ids contain no colon.
pub(crate) fn url_of(to: &str) -> Option<String> {
    match to {
        _ if to.contains("://") => Some(to.to_owned()),
        _ if to.starts_with(':') && !to.starts_with("::") => Some(format!("http://127.0.0.1{to}")),
        _ if to.contains(':') => Some(format!("http://{to}")),
        _ => None,
    }
}
