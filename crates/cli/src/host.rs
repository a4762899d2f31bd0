//! Where the sessions of this process live: a hub over the log in the user's data folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use etcetera::BaseStrategy as _;
use multitap_adapter::{History as AgentsOwn, read};
use multitap_client::{Adapters, AgentSession, StartError};
use multitap_event::{AgentError, AgentErrorKind, AgentType, ClientRef, Draft, SessionConfig, SessionId};
use multitap_hub::{
    Edge, Filter, History, Hub, Join, JoinFrom, Journal, JournalError, Open, OpenError, Part, SessionRecord, Unusable,
    Which,
};
use multitap_store::Store;
use tokio::sync::mpsc;

use crate::args::SessionArgs;
use crate::exit::Problem;
use crate::launch::{HIDDEN_ENV, keeper};
use crate::live::LiveNote;

/// How many events of an earlier conversation may wait to be taken in.
const HISTORY: usize = 256;
/// How much of an earlier log is read at a time.
const PAGE: usize = 512;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// A hub and the log it keeps.
#[derive(Debug)]
pub(crate) struct Host {
    hub: Hub,
    journal: Arc<dyn Journal>,
    store: Option<Arc<Store>>,
}

/// A session that runs, and the note by which others find it.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) session: AgentSession,
    pub(crate) note: Option<LiveNote>,
}

/// The conversation that a session goes on with.
#[derive(Debug)]
pub(crate) enum TakeUp {
    /// None: a new one.
    New,
    /// One of ours.
    Ours(Box<SessionRecord>),
    /// One that only the agent knows.
    AgentsOwn,
}

/// The folder for what is kept.
pub(crate) fn data() -> Option<PathBuf> {
    match std::env::var_os("MULTITAP_HOME").filter(|home| !home.is_empty()) {
        Some(home) => Some(home.into()),
        None => Some(etcetera::choose_base_strategy().ok()?.data_dir().join("multitap")),
    }
}

/// The log of this user.
pub(crate) fn open_store() -> Result<Store, JournalError> {
    let folder = data().ok_or_else(|| JournalError::Other("no home folder is known: set HOME or MULTITAP_HOME".into()));
    Store::open(folder?.join("sessions.db")).map_err(|error| error.reason)
}

impl Host {
    /// Opens the log. One that cannot be used does not keep sessions from running, and they say so.
    pub(crate) async fn open() -> Result<Self, Problem> {
        let opened = tokio::task::spawn_blocking(open_store);
        let (journal, store): (Arc<dyn Journal>, _) = match opened.await.context("open the log")? {
            Ok(store) => {
                let store = Arc::new(store);
                (store.clone(), Some(store))
            }
            Err(error) => (Arc::new(Unusable(error)), None),
        };
        let hidden = HIDDEN_ENV.map(str::to_owned).to_vec();
        let hub = Hub::new(journal.clone(), Arc::new(Adapters::new(keeper()?, hidden)));
        if store.is_some()
            && let Err(error) = hub.recover().await
        {
            tracing::warn!(%error, "cannot look for sessions that were cut off");
        }
        Ok(Self { hub, journal, store })
    }

    /// What `-c` and `-r` mean here: one of ours first, else the agent's own.
    pub(crate) async fn take_up(&self, args: &SessionArgs, folder: &Path) -> Result<TakeUp, Problem> {
        let is_wanted = |record: &SessionRecord| {
            let chosen = args.agent.as_deref().is_none_or(|agent| agent == record.agent.to_string());
            chosen && record.about.native_id.is_some()
        };
        let mut found = match (&args.resume, args.continue_latest) {
            (Some(name), _) => self.journal.find(name.clone()).await.unwrap_or_default(),
            (None, true) => {
                let filter = Filter { folder: Some(folder.to_owned()), ..Filter::default() };
                self.journal.list(filter).await.unwrap_or_default()
            }
            (None, false) => return Ok(TakeUp::New),
        };
        found.retain(is_wanted);
        if let (Some(name), [one, other, ..]) = (&args.resume, found.as_slice()) {
            let message = format!("-r {name}: more than one session begins so, such as {} and {}", one.id, other.id);
            return Err(Problem::usage(message));
        }
        Ok(found.into_iter().next().map_or(TakeUp::AgentsOwn, |record| TakeUp::Ours(Box::new(record))))
    }

    /// Starts a session and joins it where this start begins.
    pub(crate) async fn start(
        &self,
        which: Which,
        config: SessionConfig,
        me: ClientRef,
    ) -> Result<Started, StartError> {
        let session = self.hub.open(Open { which, ..Open::new(config, me.clone()) }).await.map_err(not_opened)?;
        let from = JoinFrom::After { seq: session.opened_after(), epoch: None };
        let joined = session.join(Join::new(me).from(from)).await.map_err(|_| StartError::ShutDown)?;
        let note = data().filter(|_| self.store.is_some()).map(|data| LiveNote::leave(&data, session.id()));
        let note = note.transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "others cannot find this session");
            None
        });
        Ok(Started { session: AgentSession::new(session, joined.feed), note })
    }

    /// Ends every session, and comes back when nothing of their agents is left and everything is kept.
    pub(crate) async fn shutdown(&self) {
        self.hub.shutdown().await;
        if let Some(store) = &self.store {
            store.close().await;
        }
    }

    /// The log of a session, for a copy of it.
    pub(crate) fn copy(&self, session: SessionId) -> History {
        let journal = self.journal.clone();
        feed(move |drafts| async move {
            let mut after = 0;
            loop {
                let part = Part { edge: Edge::After(after), limit: PAGE, bytes: PAGE_BYTES };
                let Ok(page) = journal.page(session.clone(), part).await else { return };
                let Some(last) = page.entries.last() else { return };
                after = last.seq();
                for event in page.entries.iter().filter_map(|entry| entry.event().cloned()) {
                    let draft = Draft { at: event.timestamp, kind: event.kind, raw: event.raw };
                    if drafts.send(draft).await.is_err() {
                        return;
                    }
                }
            }
        })
    }
}

/// What the agent itself keeps of a conversation. Nothing if it cannot be found: then the agent says best what is wrong.
pub(crate) fn agents_own(agent: AgentType, wanted: &str, config: &SessionConfig, folder: &Path) -> Option<History> {
    let own = config.program.as_ref().map(|program| program.env.clone()).unwrap_or_default();
    let env = own.into_iter().chain(config.environment.clone()).collect();
    let session = AgentsOwn::of(agent, &env).ok()?.find(wanted, folder).ok()?;
    let reading = read(&session, config.keep_raw).ok()?;
    Some(feed(move |drafts| async move {
        let read = tokio::task::spawn_blocking(move || {
            for draft in reading {
                if drafts.blocking_send(draft).is_err() {
                    return;
                }
            }
        });
        read.await.ok(); // a reading that broke off has told what it could
    }))
}

/// Events that are made by a task of their own, which ends with whoever takes them.
fn feed<F: Future<Output = ()> + Send + 'static>(make: impl FnOnce(mpsc::Sender<Draft>) -> F) -> History {
    let (drafts, history) = mpsc::channel(HISTORY);
    #[expect(clippy::disallowed_methods, reason = "it ends when the other end of its channel does")]
    tokio::spawn(make(drafts));
    history
}

fn not_opened(error: OpenError) -> StartError {
    match error {
        OpenError::Journal(error @ JournalError::LiveElsewhere { .. }) => {
            let message = format!("{error}; it can be taken up when that process has ended");
            StartError::Agent(Box::new(AgentError::new(AgentErrorKind::ProcessSpawnFailed, message)))
        }
        other => other.into(),
    }
}
