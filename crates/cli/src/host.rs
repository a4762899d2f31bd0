//! The sessions of this process: a hub over the store in the user's data folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use etcetera::BaseStrategy as _;
use multitap_client::{AgentSession, Agents, Builtin, StartError};
use multitap_event::{AgentError, AgentErrorKind, ClientRef, Draft, SessionConfig, SessionId};
use multitap_hub::{EarlierEvents, Hub, Join, JoinFrom, Journal, JournalError, Open, OpenError, Session, Which};
use multitap_store::Store;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::exit::Problem;
use crate::launch::{HIDDEN_ENV, keeper};
use crate::live::{self, LiveNote};
use crate::private::{self, Private};
use crate::remote_agents::{self, WithRemoteAgents};
use crate::settings;

/// Most queued events of an earlier conversation.
const HISTORY: usize = 256;
/// How long a stopping host keeps ending the leftovers of killed hosts. It usually takes milliseconds.
const LEFTOVERS_AT_STOP: Duration = Duration::from_secs(1);

/// A hub and its store.
#[derive(Debug)]
pub(crate) struct Host {
    hub: Hub,
    /// For sessions without a log, which only query an agent.
    unlogged: Hub,
    journal: Arc<dyn Journal>,
    store: Option<Arc<Store>>,
    /// The notes and private doors of sessions, each cancelled once they are gone: they outlast the session a little.
    traces: Arc<Mutex<HashMap<SessionId, CancellationToken>>>,
    /// Tasks that read earlier conversations, and the one that ends the leftovers of killed hosts.
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A running session, and the file that lets other processes find it.
#[derive(Debug)]
pub(crate) struct StartedSession {
    pub(crate) session: AgentSession,
    pub(crate) note: Option<LiveNote>,
}

/// The folder for stored data.
pub(crate) fn data() -> Option<PathBuf> {
    match std::env::var_os("MULTITAP_HOME").filter(|home| !home.is_empty()) {
        Some(home) => Some(home.into()),
        None => Some(etcetera::choose_base_strategy().ok()?.data_dir().join("multitap")),
    }
}

/// Path of the user's store.
fn log_file() -> Result<PathBuf, JournalError> {
    let unknown = || JournalError::Other("no home folder is known: set HOME or MULTITAP_HOME".into());
    Ok(data().ok_or_else(unknown)?.join("sessions.db"))
}

pub(crate) fn open_store() -> Result<Store, JournalError> {
    Store::open(log_file()?)
}

/// The error for people; names the file if the file is at fault.
pub(crate) fn about_log(error: &JournalError) -> String {
    with_file(error).unwrap_or_else(|| error.to_string())
}

/// The error with the path of the file, if the error does not contain it.
fn with_file(error: &JournalError) -> Option<String> {
    use JournalError::{Full, Locked, Newer};
    let file = log_file().ok().filter(|_| matches!(error, Full | Locked | Newer { .. }))?;
    Some(format!("{}: {error}", file.display()))
}

impl Host {
    /// Opens the store. Without a usable one sessions still run, and report it.
    pub(crate) async fn open() -> Result<Self, Problem> {
        let opened = tokio::task::spawn_blocking(open_store);
        let (journal, store): (Arc<dyn Journal>, _) = match opened.await.context("open the log")? {
            Ok(store) => {
                let store = Arc::new(store);
                (store.clone(), Some(store))
            }
            // Sessions report the error, and do not know the path.
            Err(error) => (Arc::new(Store::unusable(with_file(&error).map_or(error, JournalError::Other))), None),
        };
        let hidden = HIDDEN_ENV.map(str::to_owned).to_vec();
        let builtin = Builtin {
            data: data().map(|data| data.join("builtin")),
            config: settings::home(),
            save: settings::home().map(|home| settings::save::into(home.join("settings.json"))),
            hidden: data().map(|data| private::folders(&data)).unwrap_or_default(),
            protected: settings::home().into_iter().chain(data()).collect(),
        };
        let agents = Arc::new(Agents::new(keeper()?, hidden, builtin).taking_shell_lines());
        // An agent that is only queried needs no remote agents.
        let unlogged = Hub::without_journal(agents.clone());
        let hub = Hub::new(journal.clone(), Arc::new(WithRemoteAgents::new(agents, data())));
        if store.is_some()
            && let Err(error) = hub.recover().await
        {
            tracing::warn!(%error, "cannot list interrupted sessions");
        }
        if store.is_some() {
            live::clear_away(journal.as_ref()).await;
        }
        if let Some(data) = data() {
            remote_agents::folder::clear_leftovers(&data);
        }
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        tasks.spawn(end_leftovers(stop.clone()));
        Ok(Self { hub, unlogged, journal, store, traces: Arc::default(), tasks, stop })
    }

    /// Starts a session at that address, and joins it at its start.
    pub(crate) async fn start(
        &self,
        which: Which,
        config: SessionConfig,
        me: ClientRef,
        address: Option<&str>,
    ) -> Result<StartedSession, StartError> {
        let session = self.hub.open(Open { which, ..Open::new(config, me.clone()) }).await.map_err(not_opened)?;
        let from = JoinFrom::After { seq: session.opened_after(), epoch: None };
        let joined = session.join(Join::new(me).from(from)).await.map_err(|_| StartError::ShutDown)?;
        let note = self.note(session.id(), address, None);
        Ok(StartedSession { session: AgentSession::new(session, joined.feed), note })
    }

    /// Opens a session. Clients join it at that address, which may change; programs of this user join through a private
    /// door. `place` is dropped when the session ends.
    pub(crate) async fn open_for_all(
        &self,
        open: Open,
        mut address: watch::Receiver<Option<String>>,
        place: impl Send + 'static,
    ) -> Result<Session, OpenError> {
        let id = match &open.which {
            Which::New { id, .. } | Which::Stored(id) => id.clone(),
        };
        let traces = || self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let before = traces().get(&id).cloned();
        if let Some(before) = before.filter(|_| self.hub.find(&id).is_none()) {
            // The previous opening of this session must not remove what this one leaves.
            before.cancelled().await;
        }
        let session = self.hub.open(open).await?;
        let gone = CancellationToken::new();
        traces().insert(id, gone.clone());
        let all_traces = self.traces.clone();
        let private = self.private_door(&session).await;
        let at = address.borrow_and_update().clone();
        let mut note = self.note(session.id(), at.as_deref(), private.as_ref().and_then(Private::socket));
        let watched = session.clone();
        self.tasks.spawn(async move {
            let over = watched.over();
            tokio::pin!(over);
            loop {
                tokio::select! {
                    () = &mut over => break,
                    Ok(()) = address.changed() => {
                        let at = address.borrow_and_update().clone();
                        if let Some(Err(error)) = note.as_mut().map(|note| note.moved(at.as_deref())) {
                            tracing::warn!(%error, "others cannot find where this session is shared");
                        }
                    }
                }
            }
            drop((note, place));
            if let Some(private) = private {
                private.stop().await;
            }
            gone.cancel();
            all_traces.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, trace| !trace.is_cancelled());
        });
        Ok(session)
    }

    /// Opens a session without a log or a note.
    pub(crate) async fn open_unlogged(&self, open: Open) -> Result<Session, OpenError> {
        self.unlogged.open(open).await
    }

    pub(crate) fn live(&self) -> Vec<Session> {
        self.hub.live()
    }

    /// A live session of this process.
    pub(crate) fn find(&self, session: &SessionId) -> Option<Session> {
        self.hub.find(session)
    }

    /// Opens the private door. A session without one still works.
    async fn private_door(&self, session: &Session) -> Option<Private> {
        let data = data().filter(|_| self.store.is_some())?;
        match Private::open(&data, session.clone(), self.journal.clone()).await {
            Ok(private) => Some(private),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "`multitap attach` cannot join this session");
                None
            }
        }
    }

    /// Ends a session, and returns when nothing of its agent is left.
    pub(crate) async fn close(&self, session: &SessionId) {
        self.hub.close(session).await;
    }

    fn note(&self, session: &SessionId, address: Option<&str>, socket: Option<&Path>) -> Option<LiveNote> {
        let data = data().filter(|_| self.store.is_some());
        let note = data.map(|data| LiveNote::leave(&data, session, address, socket));
        note.transpose().unwrap_or_else(|error| {
            tracing::warn!(%error, "others cannot find this session");
            None
        })
    }

    /// Ends every session, and returns when their agents are gone and the log is written.
    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        tokio::join!(self.unlogged.shutdown(), self.hub.shutdown());
        self.tasks.close();
        self.tasks.wait().await;
        if let Some(store) = &self.store {
            store.close().await;
        }
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Whether the store can be used.
    pub(crate) fn keeps(&self) -> bool {
        self.store.is_some()
    }

    /// Events produced by a task, which ends with its receiver or with this host.
    pub(crate) fn history<F: Future<Output = ()> + Send + 'static>(
        &self,
        make: impl FnOnce(mpsc::Sender<Draft>) -> F,
    ) -> EarlierEvents {
        let (drafts, history) = mpsc::channel(HISTORY);
        self.tasks.spawn(make(drafts));
        history
    }
}

/// Ends the processes that killed hosts left behind; a stopping host does not wait long for it.
async fn end_leftovers(stop: CancellationToken) {
    let stopped = async {
        stop.cancelled().await;
        sleep(LEFTOVERS_AT_STOP).await;
    };
    tokio::select! {
        () = stopped => {}
        count = multitap_process::end_leftovers() => {
            if count > 0 {
                tracing::warn!(count, "ended processes that a killed multitap left behind");
            }
        }
    }
}

pub(crate) fn not_opened(error: OpenError) -> StartError {
    match error {
        OpenError::Journal(JournalError::LiveElsewhere { session, holder }) => {
            let is_open = data().is_some_and(|data| live::takes_others(&data, &session, holder.pid));
            let join =
                if is_open { format!("join it there with `multitap attach {session}`, ") } else { String::new() };
            let message = format!(
                "session {session} is live in process {}: {join}resume it when that process has ended, or continue in a copy with --fork if the agent supports it",
                holder.pid
            );
            StartError::Agent(Box::new(AgentError::new(AgentErrorKind::ProcessSpawnFailed, message)))
        }
        OpenError::Journal(error) => {
            StartError::Agent(Box::new(AgentError::new(AgentErrorKind::ProcessSpawnFailed, about_log(&error))))
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_wrong_with_the_log_its_file_is_named() {
        for error in [JournalError::Full, JournalError::Locked, JournalError::Newer { found: 9, known: 1 }] {
            let why = error.to_string();
            let reported = not_opened(OpenError::Journal(error)).to_string();
            assert!(reported.contains("sessions.db: ") && reported.contains(&why), "{reported}");
        }
        let gone = JournalError::NoSuchSession("s".into());
        assert_eq!(about_log(&gone), gone.to_string(), "that is not the file's fault");
    }
}
