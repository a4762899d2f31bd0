//! The HTTP server: addresses, limits, shutdown. All doors share its router.

mod bind;
mod body_room;
mod connection;
mod http2;
mod peer;
mod private;
mod public_url;
mod route;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use multitap_hub::STUCK;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::body_room::BodyRoom;
pub(crate) use self::connection::Seat;
use self::connection::{Connections, Listener};
use self::peer::{Identify, PeerCheck};
use self::private::SocketFile;
pub use self::public_url::{InvalidPublicUrl, PublicUrl};
use crate::a2a::{self, Push, PushOptions};
use crate::guard::{Access, AccessError, Guard, is_loopback};
use crate::host::{Host, Offers, Peer, PeerIdentity};

/// Time limit for running responses when the door closes.
const STOP_PATIENCE: Duration = Duration::from_secs(3);

/// A door to open.
#[derive(Debug, Clone)]
pub struct DoorConfig {
    /// A name or an address of this machine. `localhost`, `127.0.0.1` and `::1` mean both loopback addresses.
    pub host: String,
    /// 0 takes any free one.
    pub port: u16,
    pub access: Access,
    pub limits: Limits,
    /// Whether clients must use the `development-tool` extension.
    pub extension_required: bool,
    /// The remote agents that the agents here can call, by name. The extended card lists them.
    pub remote_agents: Vec<String>,
    /// How clients' webhooks are called.
    pub push: PushOptions,
    /// The address in the card, behind a proxy. Its name and its pages are allowed.
    pub public_url: Option<PublicUrl>,
    pub card: CardVersions,
}

/// The versions in the card for a client that names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CardVersions {
    #[default]
    Hybrid,
    /// Clients of 0.3 cannot read it. For suites of 1.0 that accept no other field.
    V1_0,
}

/// A service behind the same guard as sessions.
#[derive(Debug, Clone)]
pub struct ServiceConfig {
    /// As in [`DoorConfig`].
    pub host: String,
    /// 0 picks a free port.
    pub port: u16,
    pub access: Access,
    pub limits: Limits,
}

/// Limits of a door.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum bytes of a request's body and of a WebSocket frame.
    pub body: usize,
    /// Maximum bytes of all bodies that are in memory; further ones wait for as long as a body may pause, and then get
    /// 503. Small bodies do not count: the number of connections bounds them.
    pub bodies: usize,
    /// Maximum number of connections; further ones get 503.
    pub connections: usize,
    /// Time limit for the head of a request, and between requests.
    pub header_time: Duration,
    /// Maximum pause within a body.
    pub body_pause: Duration,
    /// Time limit for a whole body. A body that arrives byte by byte never pauses, but occupies a connection.
    pub body_time: Duration,
    /// How long a client may not read.
    pub unread: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 16 * 1024 * 1024,
            bodies: 256 * 1024 * 1024,
            connections: 1024,
            header_time: Duration::from_secs(30),
            body_pause: Duration::from_secs(30),
            body_time: Duration::from_secs(120),
            unread: STUCK,
        }
    }
}

/// The door could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// Other machines could connect without a token.
    #[error(
        "{host} can be reached from other machines, so a token is required: set --token-file or MULTITAP_TOKEN, or listen on 127.0.0.1"
    )]
    NeedsToken { host: String },
    #[error("{address} is already in use: choose another port, or 0 for any free port")]
    InUse { address: SocketAddr },
    #[error("cannot listen at {address}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("another process listens at {}", path.display())]
    PrivateInUse { path: PathBuf },
    #[error("cannot listen at {}", path.display())]
    Private { path: PathBuf, source: io::Error },
    #[error("cannot find an address of {host}")]
    Unknown { host: String, source: io::Error },
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// An open door. Dropping it closes it at once; [`OpenDoor::stop`] lets responses finish.
#[derive(Debug)]
pub struct OpenDoor {
    addresses: Vec<SocketAddr>,
    url: String,
    connections: Connections,
    /// The socket file of a private door, removed when the door closes.
    socket: Option<SocketFile>,
}

/// Shared by all handlers.
pub(crate) type Shared = Arc<DoorState>;

/// What all requests of a door have in common.
pub(crate) struct DoorState {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) entrance: Entrance,
    pub(crate) about: About,
    /// Cancelled when the door closes, which ends streams.
    pub(crate) stop: CancellationToken,
    /// Tasks that outlive their request. The door waits for them when it closes.
    pub(crate) tasks: TaskTracker,
    pub(crate) a2a: a2a::Service,
    /// Push notifications. A door without an address has none: its clients are on this machine.
    pub(crate) push: Option<Arc<Push>>,
    /// What the agent of a new session would offer.
    pub(crate) offers: Offers,
    /// When the door was opened, as an HTTP date.
    pub(crate) opened: String,
}

/// The checks for every request. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Entrance {
    pub(crate) guard: Arc<Guard>,
    pub(crate) limits: Limits,
    pub(crate) bodies: BodyRoom,
}

impl Entrance {
    fn new(guard: Guard, limits: Limits) -> Self {
        Self { guard: Arc::new(guard), limits, bodies: BodyRoom::new(limits.bodies) }
    }
}

/// The door's data in the card.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) url: String,
    /// The address in the card, whatever name a client used.
    pub(crate) public_url: Option<PublicUrl>,
    pub(crate) card: CardVersions,
    pub(crate) extension_required: bool,
    pub(crate) remote_agents: Vec<String>,
}

impl About {
    /// A door that other machines cannot reach.
    fn private(url: String) -> Self {
        let card = CardVersions::Hybrid;
        Self { url, public_url: None, card, extension_required: false, remote_agents: Vec::new() }
    }
}

impl DoorState {
    /// For a protocol that comes by no address, such as over stdio: its client is the user.
    pub(crate) fn without_address(host: Arc<dyn Host>, stop: CancellationToken) -> Self {
        let about = About::private(String::new());
        let entrance = Entrance::new(Guard::private(), Limits::default());
        Self::new(host, entrance, about, None, stop, TaskTracker::new())
    }

    fn new(
        host: Arc<dyn Host>,
        entrance: Entrance,
        about: About,
        push: Option<Arc<Push>>,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        let (a2a, offers) = (a2a::Service::default(), Offers::default());
        let opened = httpdate::fmt_http_date(SystemTime::now());
        Self { host, entrance, about, stop, tasks, a2a, push, offers, opened }
    }
}

impl fmt::Debug for DoorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoorState").field("about", &self.about).finish_non_exhaustive()
    }
}

impl OpenDoor {
    /// Opens a door to that host's sessions.
    pub async fn open(config: DoorConfig, host: Arc<dyn Host>) -> Result<Self, DoorError> {
        let mut access = config.access;
        if let Some(public) = &config.public_url {
            access.allow_hosts.push(public.authority().to_owned());
            access.allow_origins.push(public.origin().to_owned());
        }
        // Whoever is let in under another name comes through a proxy, perhaps from elsewhere.
        let is_named = !access.allow_hosts.is_empty();
        let Bound { listeners, addresses, url, guard } = bound(&config.host, config.port, access).await?;
        let about = About {
            url: url.clone(),
            public_url: config.public_url,
            card: config.card,
            extension_required: config.extension_required,
            remote_agents: config.remote_agents,
        };
        let is_local = !is_named && addresses.iter().all(|address| is_loopback(address.ip()));
        let push = Some(Arc::new(Push::new(host.journal(), config.push, is_local)));
        let connections = take_in(listeners, host, guard, about, push, config.limits);
        Ok(Self { addresses, url, connections, socket: None })
    }

    /// Opens a door to a service at that path, behind the same guard. Observers are refused.
    pub async fn open_service<S, A, R>(
        config: ServiceConfig,
        path: &str,
        identify: fn(&[Peer]) -> Vec<PeerIdentity>,
        service: S,
    ) -> Result<Self, DoorError>
    where
        S: Fn(Request) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = R> + Send + 'static,
        R: IntoResponse,
    {
        let Bound { listeners, addresses, url, guard } = bound(&config.host, config.port, config.access).await?;
        let connections = Connections::new(config.limits);
        let peers = PeerCheck::new(Arc::new(identify), &guard, &connections.tasks);
        let entrance = Entrance::new(guard, config.limits);
        let router = route::service(&entrance, path, service);
        for listener in listeners {
            connections.accept(listener, router.clone(), peers.clone());
        }
        Ok(Self { addresses, url, connections, socket: None })
    }

    /// Opens a private socket to that host's sessions, for programs of the same user, as owners. The folder of the
    /// socket becomes private.
    #[cfg(unix)]
    #[expect(clippy::unused_async, reason = "as the other one, and a socket is registered with the runtime")]
    pub async fn open_private(socket: &Path, limits: Limits, host: Arc<dyn Host>) -> Result<Self, DoorError> {
        let url = format!("unix:{}", socket.display());
        let (listener, socket) = private::listen(socket)?;
        let about = About::private(url.clone());
        let connections = take_in(vec![Listener::Unix(listener)], host, Guard::private(), about, None, limits);
        Ok(Self { addresses: Vec::new(), url, connections, socket: Some(socket) })
    }

    /// Not supported on this system.
    #[cfg(not(unix))]
    #[expect(clippy::unused_async, reason = "as where there are")]
    pub async fn open_private(socket: &Path, _: Limits, _: Arc<dyn Host>) -> Result<Self, DoorError> {
        Err(private::not_there(socket, io::ErrorKind::Unsupported.into()))
    }

    /// The path of a private door's socket.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().map(SocketFile::path)
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The URL for people and clients: `http://HOST:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Accepts no more connections, ends streams, and waits a while for running responses.
    pub async fn stop(self) {
        drop(self.socket);
        self.connections.end(STOP_PATIENCE).await;
    }
}

/// A bound listener and its guard.
struct Bound {
    listeners: Vec<Listener>,
    addresses: Vec<SocketAddr>,
    url: String,
    guard: Guard,
}

async fn bound(host: &str, port: u16, access: Access) -> Result<Bound, DoorError> {
    let wanted = bind::addresses(host).await?;
    let is_guarded = access.scheme.requires_token();
    if !is_guarded && !wanted.iter().all(|address| is_loopback(*address)) {
        return Err(DoorError::NeedsToken { host: host.to_owned() });
    }
    // Invalid options must fail before listening; the port is known only after.
    Guard::new(access.clone(), host, port)?;
    let listeners = bind::listen(&wanted, port).await?;
    let addresses: Vec<SocketAddr> = listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
    let port = addresses.first().map_or(port, SocketAddr::port);
    let guard = Guard::new(access, host, port)?;
    let listeners = listeners.into_iter().map(Listener::Tcp).collect();
    Ok(Bound { listeners, addresses, url: bind::url(host, port), guard })
}

/// Accepts connections on those sockets.
fn take_in(
    listeners: Vec<Listener>,
    host: Arc<dyn Host>,
    guard: Guard,
    about: About,
    push: Option<Arc<Push>>,
    limits: Limits,
) -> Connections {
    let connections = Connections::new(limits);
    let identify: Identify = {
        let host = host.clone();
        Arc::new(move |peers| host.identify(peers))
    };
    let peers = PeerCheck::new(identify, &guard, &connections.tasks);
    let entrance = Entrance::new(guard, limits);
    let (stop, tasks) = (connections.stop.clone(), connections.tasks.clone());
    let door = Arc::new(DoorState::new(host, entrance, about, push, stop, tasks));
    connections.tasks.spawn(a2a::run_push(door.clone()));
    let router = route::router(&door);
    for listener in listeners {
        connections.accept(listener, router.clone(), peers.clone());
    }
    connections
}

/// An error as JSON, for failures before the protocol is known.
pub(crate) fn problem(status: StatusCode, message: &str) -> Response {
    problem_with(status, message, Value::Null)
}

/// The answer to a request that there is no room for now.
fn try_later(message: &str) -> Response {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, message);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Like [`problem`], with more fields.
pub(crate) fn problem_with(status: StatusCode, message: &str, more: Value) -> Response {
    let mut error = json!({ "code": status.as_u16(), "message": message });
    if let (Value::Object(error), Value::Object(more)) = (&mut error, more) {
        error.extend(more);
    }
    (status, Json(json!({ "error": error }))).into_response()
}
