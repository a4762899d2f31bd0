//! The sessions behind the door: opened as clients request and this host allows, found, and resumed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use multitap_adapter::{AgentInfo, SignIn};
use multitap_event::{AgentCommand, AgentKind, AgentType, ClientRef, Door, Mode, SessionConfig, SessionId};
use multitap_hub::{
    AgentSummary, Journal, JournalError, Linger, Open, OpenError, Refusal, Session, SessionRecord, Which,
};
use multitap_serve::{Host as ServeHost, Hosted, Opened, Peer, PeerIdentity, Wanted};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{idle, request};
use crate::args::{AgentArgs, SessionArgs};
use crate::exit::Problem;
use crate::file_lists::FileLists;
use crate::host::{Host, about_log};
use crate::settings::Trust;
use crate::{door, launch, settings};

/// Interval of the search for idle sessions.
const LOOK: Duration = Duration::from_secs(60);
/// How long the slot of an ended session may take to become free.
const PLACE_PATIENCE: Duration = Duration::from_secs(5);

/// A host whose sessions belong to its clients.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    inner: Arc<Inner>,
}

struct Inner {
    host: Host,
    /// The folders that sessions may work in; at least one.
    roots: Vec<PathBuf>,
    /// The options for all sessions.
    with: AgentArgs,
    trust_client_settings: bool,
    question_timeout: Option<Duration>,
    /// One permit per session that may be open.
    places: Arc<Semaphore>,
    /// Only one idle session is closed at a time.
    making_room: Semaphore,
    /// Only one session is resumed at a time: a second request finds it open.
    resuming: Semaphore,
    address: watch::Sender<Option<String>>,
    files: FileLists,
}

/// How clients may use a host.
pub(crate) struct ServedOptions {
    /// The options for all sessions.
    pub(crate) with: AgentArgs,
    pub(crate) trust_client_settings: bool,
    pub(crate) question_timeout: Option<Duration>,
    pub(crate) max_sessions: usize,
}

/// The request of a client as granted.
struct GrantedSession {
    config: SessionConfig,
    /// This host's own mode: the session may be opened in a stricter one.
    ceiling: Option<Mode>,
    notices: Vec<String>,
}

impl Served {
    pub(crate) fn new(host: Host, roots: Vec<PathBuf>, options: ServedOptions) -> Self {
        let ServedOptions { with, trust_client_settings, question_timeout, max_sessions } = options;
        let inner = Inner {
            host,
            roots,
            with,
            trust_client_settings,
            question_timeout,
            places: Arc::new(Semaphore::new(max_sessions)),
            making_room: Semaphore::new(1),
            resuming: Semaphore::new(1),
            address: watch::Sender::new(None),
            files: FileLists::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sets the address at which others find the sessions of this host.
    pub(super) fn is_at(&self, address: String) {
        self.inner.address.send_replace(Some(address));
    }

    /// Ends every session.
    pub(crate) async fn shutdown(&self) {
        self.inner.host.shutdown().await;
    }

    /// Closes idle sessions for as long as the future is polled.
    pub(super) async fn retire(&self, idle: Duration) {
        loop {
            tokio::time::sleep(LOOK).await;
            idle::close_idle(&self.inner.host, idle).await;
        }
    }

    async fn open_new(&self, wanted: Wanted) -> Result<Opened, Refusal> {
        let place = self.inner.place().await?;
        let (inner, by) = (self.inner.clone(), wanted.by.clone());
        let GrantedSession { config, ceiling, notices } = blocking(move || inner.grant(wanted)).await?;
        let which = Which::New { id: SessionId::fresh(), forked_from: None, history: None };
        let session = self.inner.start(which, config, ceiling, by, place).await?;
        Ok(Opened { session, notices })
    }

    /// Ends a session without a prompt, and opens one with these settings in its place.
    async fn open_anew(&self, id: SessionId, wanted: Wanted) -> Result<Opened, Refusal> {
        let (inner, by) = (self.inner.clone(), wanted.by.clone());
        // What this host does not grant must not end the session.
        let GrantedSession { config, ceiling, notices } = blocking(move || inner.grant(wanted)).await?;
        let prompted = || Refusal::InvalidSetting {
            setting: "agent".into(),
            why: "it cannot change after the first prompt".to_owned(),
        };
        if let Some(session) = self.inner.host.find(&id) {
            if !session.snapshot().await.is_some_and(|state| state.is_unprompted()) {
                return Err(prompted());
            }
            session.end();
            session.over().await;
        }
        let journal = self.inner.host.journal();
        for record in journal.find(id.to_string()).await.map_err(journal_error)? {
            if record.id == id && record.about.title.is_some() {
                return Err(prompted());
            }
            if record.id == id {
                journal.remove(id.clone()).await.map_err(journal_error)?;
            }
        }
        let place = self.inner.place().await?;
        let which = Which::New { id, forked_from: None, history: None };
        let session = self.inner.start(which, config, ceiling, by, place).await?;
        Ok(Opened { session, notices })
    }

    async fn open_stored(&self, id: SessionId, wanted: Wanted) -> Result<Opened, Refusal> {
        let _turn = self.inner.resuming.acquire().await.map_err(|_| Refusal::ShuttingDown)?;
        if let Some(session) = self.inner.host.find(&id) {
            return Ok(Opened { session, notices: Vec::new() });
        }
        let found = self.inner.host.journal().find(id.to_string()).await.map_err(journal_error)?;
        let record = found.into_iter().find(|record| record.id == id && self.inner.shows(record));
        let record = record.ok_or_else(|| Refusal::UnknownSession { session_id: id.clone() })?;
        let place = self.inner.place().await?;
        let (inner, by) = (self.inner.clone(), wanted.by.clone());
        let GrantedSession { config, ceiling, notices } = blocking(move || inner.grant_again(&record, wanted)).await?;
        let session = self.inner.start(Which::Stored(id), config, ceiling, by, place).await?;
        Ok(Opened { session, notices })
    }
}

impl Inner {
    /// Reserves a place for one more session: a free one, or that of an idle session.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        let _turn = self.making_room.acquire().await.map_err(|_| Refusal::ShuttingDown)?;
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        if !idle::close_longest_idle(&self.host).await {
            return Err(Refusal::TooManySessions);
        }
        // The closed session returns its permit once its agent has ended.
        let place = timeout(PLACE_PATIENCE, self.places.clone().acquire_owned()).await;
        place.map_err(|_| Refusal::TooManySessions)?.map_err(|_| Refusal::ShuttingDown)
    }

    /// Clients may only see sessions in the folders of this host.
    fn shows(&self, session: &SessionRecord) -> bool {
        session.folder.as_deref().is_some_and(|folder| request::is_inside(folder, &self.roots))
    }

    /// The agents that a session can have.
    fn agents(&self) -> Result<Vec<AgentSummary>, Refusal> {
        let folder = request::workspace(None, &self.roots)?;
        let settings = settings::of(&folder, Trust::of(self.with.trust)).map_err(unfit)?;
        let default = launch::agent(self.with.agent.as_deref(), &settings).map_err(unfit)?.agent_type();
        let summary = |agent: AgentType, is_installed, install: Option<&str>| AgentSummary {
            name: agent.as_str().to_owned(),
            is_default: agent == default,
            is_installed,
            install: install.map(str::to_owned),
            sign_in: match multitap_adapter::sign_in(agent, &settings.of(agent).env) {
                SignIn::Missing { fix } => Some(fix.to_owned()),
                SignIn::Found(_) | SignIn::Unknown => None,
            },
        };
        let mut agents: Vec<AgentSummary> = AgentInfo::programs()
            .map(|(info, program)| {
                let is_installed = launch::program(info.agent, &settings).found.is_some();
                summary(info.agent, is_installed, Some(program.install))
            })
            .collect();
        if default == AgentType::Acp || settings.of(AgentType::Acp).command.is_some() {
            agents.push(summary(AgentType::Acp, true, None));
        }
        agents.push(summary(AgentType::Builtin, true, None));
        Ok(agents)
    }

    /// The session that a client requests, as far as this host allows it.
    fn grant(&self, wanted: Wanted) -> Result<GrantedSession, Refusal> {
        let folder = request::workspace(wanted.open.cwd.as_deref(), &self.roots)?;
        let settings = settings::of(&folder, Trust::of(self.with.trust)).map_err(unfit)?;
        let mut options = SessionArgs::of(self.with.clone());
        let own = options.with.agent.clone();
        options.with.agent = request::agent(wanted.open.agent.as_deref(), own.clone(), &settings)?;
        if own.is_some() && options.with.agent != own {
            // These arguments were chosen for another agent.
            options.with.agent_arg.clear();
            options.with.model = None;
        }
        options.with.model = wanted.open.model.clone().or(options.with.model);
        options.with.add_dir.extend(request::folders(&wanted.open.additional_directories, &self.roots)?);
        let mut config = launch::config(&options, &settings, folder, None).map_err(unfit)?;
        let (agent, ceiling) = (config.agent.agent_type(), config.mode.clone());
        if let Some(word) = &wanted.open.mode {
            config.mode = Some(Mode::Unified(request::mode(word, config.mode.as_ref(), agent)?));
        }
        let mut notices = request::extras(wanted, self.trust_client_settings, &mut config)?;
        notices.extend(launch::servers_left_out(&config));
        notices.extend(multitap_adapter::project_left_out(&config));
        Ok(GrantedSession { config, ceiling, notices })
    }

    /// The same for a stored session, which keeps its agent, folder and conversation.
    fn grant_again(&self, record: &SessionRecord, wanted: Wanted) -> Result<GrantedSession, Refusal> {
        let folder = request::workspace(record.folder.as_deref(), &self.roots)?;
        let settings = settings::of(&folder, Trust::of(self.with.trust)).map_err(unfit)?;
        let mut options = SessionArgs::of(self.with.clone());
        let agent = Some(record.agent.to_string());
        if options.with.agent.is_some() && options.with.agent != agent {
            options.with.agent_arg.clear();
            options.with.model = None;
        }
        options.with.agent = agent;
        options.resume.clone_from(&record.about.native_id);
        options.with.add_dir.extend(request::folders(&wanted.open.additional_directories, &self.roots)?);
        let mut config = launch::config(&options, &settings, folder, None).map_err(unfit)?;
        // A session that was opened in a stricter mode than the host's keeps that mode.
        let before = record.config.get("approvalMode").and_then(|mode| mode.as_str());
        let (agent, ceiling) = (config.agent.agent_type(), config.mode.clone());
        if let Some(Ok(mode)) = before.map(|word| request::mode(word, config.mode.as_ref(), agent)) {
            config.mode = Some(Mode::Unified(mode));
        }
        let mut notices = request::extras(wanted, self.trust_client_settings, &mut config)?;
        notices.extend(launch::servers_left_out(&config));
        notices.extend(multitap_adapter::project_left_out(&config));
        Ok(GrantedSession { config, ceiling, notices })
    }

    /// Starts a session. It stays open until it is closed, whether or not clients are connected, and then returns its
    /// permit.
    async fn start(
        &self,
        which: Which,
        config: SessionConfig,
        ceiling: Option<Mode>,
        by: ClientRef,
        place: OwnedSemaphorePermit,
    ) -> Result<Session, Refusal> {
        let question_timeout = self.question_timeout;
        let open = Open { which, config, by, linger: Linger::UntilClosed, question_timeout, ceiling };
        self.host.open_for_all(open, self.address.subscribe(), place).await.map_err(open_error)
    }
}

impl ServeHost for Served {
    fn shared(&self) -> Option<Session> {
        None
    }

    fn live(&self) -> Vec<Session> {
        self.inner.host.live()
    }

    fn agents(&self) -> Hosted<'_, Vec<AgentSummary>> {
        let inner = self.inner.clone();
        Box::pin(blocking(move || inner.agents()))
    }

    fn files(&self, folder: &Path, query: &str) -> Vec<String> {
        self.inner.files.find(folder, query)
    }

    fn find(&self, session: &SessionId) -> Option<Session> {
        self.inner.host.find(session)
    }

    fn open(&self, wanted: Wanted) -> Hosted<'_, Opened> {
        Box::pin(self.open_new(wanted))
    }

    fn resume(&self, session: SessionId, wanted: Wanted) -> Hosted<'_, Opened> {
        Box::pin(self.open_stored(session, wanted))
    }

    fn reopen(&self, session: SessionId, wanted: Wanted) -> Hosted<'_, Opened> {
        Box::pin(self.open_anew(session, wanted))
    }

    fn shows(&self, session: &SessionRecord) -> bool {
        self.inner.shows(session)
    }

    fn journal(&self) -> Arc<dyn Journal> {
        self.inner.host.journal().clone()
    }

    fn commands(&self) -> Hosted<'_, Option<Vec<AgentCommand>>> {
        let inner = self.inner.clone();
        Box::pin(blocking(move || {
            let config = inner.grant(Wanted::bare(ClientRef::new("commands", Door::Host)))?.config;
            let folder = inner.roots.first().map_or(Path::new("."), PathBuf::as_path);
            Ok((config.agent == AgentKind::Builtin)
                .then(|| multitap_agent::commands(settings::home().as_deref(), folder)))
        }))
    }

    fn ask_agent(&self, by: ClientRef) -> Hosted<'_, Session> {
        Box::pin(async move {
            let (inner, wanted) = (self.inner.clone(), Wanted::bare(by.clone()));
            let GrantedSession { config, ceiling, .. } = blocking(move || inner.grant(wanted)).await?;
            let open = Open { ceiling, ..Open::new(config, by) };
            self.inner.host.open_unlogged(open).await.map_err(open_error)
        })
    }

    fn identify(&self, peers: &[Peer]) -> Vec<PeerIdentity> {
        door::identify(peers)
    }
}

impl fmt::Debug for Inner {
    /// Options are omitted: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("roots", &self.roots).field("address", &self.address).finish_non_exhaustive()
    }
}

/// Runs work that reads files on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    spawn_blocking(work).await.unwrap_or(Err(Refusal::ShuttingDown))
}

/// The settings of this host do not fit the session.
#[expect(clippy::needless_pass_by_value, reason = "the error of a map_err")]
fn unfit(problem: Problem) -> Refusal {
    trouble(problem.to_string())
}

/// The host failed, not the client.
fn trouble(message: String) -> Refusal {
    Refusal::AgentFailed { message }
}

fn open_error(error: OpenError) -> Refusal {
    match error {
        OpenError::Journal(error) => journal_error(error),
        other => other.into(),
    }
}

fn journal_error(error: JournalError) -> Refusal {
    let message = about_log(&error);
    match Refusal::from(error) {
        Refusal::LogUnavailable { .. } => Refusal::LogUnavailable { message },
        other => other,
    }
}
