//! Sessions as a whole: opening, finding, listing and closing them, and recovering what an earlier process left.

mod recover;

use std::collections::HashMap;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use multitap_event::{ClientRef, LaunchError, Mode, SessionConfig, SessionId, Timestamp};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::recover::rebuild;
use self::recover::{recover, recover_and_release};
use crate::journal::{Filter, Journal, JournalError, NewSession, SessionRecord};
use crate::launch::Launch;
use crate::session::Session;
use crate::session::log::{Log, Right};
use crate::session::task::{Beginning, EarlierEvents, Ground, INBOX, Linger, SessionTask};
use crate::state::State;
use crate::tail::{Retain, Tail};

/// The epoch of a new log.
const FIRST_EPOCH: u64 = 1;

/// All live sessions of this process. Clones share them.
#[derive(Debug, Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    journal: Option<Arc<dyn Journal>>,
    launch: Arc<dyn Launch>,
    sessions: Mutex<HashMap<SessionId, Session>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

pub struct Open {
    pub which: Which,
    /// The configuration of its agent; with a prompt, its first turn begins at once.
    pub config: SessionConfig,
    pub by: ClientRef,
    pub linger: Linger,
    /// After this time, unanswered questions are denied.
    pub question_timeout: Option<Duration>,
    /// The mode that only owners may exceed, until one of them chooses another; by default the initial one.
    pub ceiling: Option<Mode>,
}

pub enum Which {
    New {
        id: SessionId,
        /// The session that it is a copy of.
        forked_from: Option<SessionId>,
        /// Earlier events of the conversation, from another log or from the agent's own store.
        history: Option<EarlierEvents>,
    },
    /// A session of the journal.
    Stored(SessionId),
}

impl Open {
    /// A new session that ends with its agent.
    pub fn new(config: SessionConfig, by: ClientRef) -> Self {
        let which = Which::New { id: SessionId::fresh(), forked_from: None, history: None };
        Self { which, config, by, linger: Linger::default(), question_timeout: None, ceiling: None }
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("which", &self.which).field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { id, .. } => write!(f, "New({id})"),
            Self::Stored(id) => write!(f, "Stored({id})"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Launch(Box<LaunchError>),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("session {0} is live already")]
    Live(SessionId),
    #[error("multitap is shutting down")]
    ShutDown,
}

/// Keeps a session in the list of live ones until its task ends, even by a panic. Waiting callers then return.
struct Place {
    hub: Hub,
    id: SessionId,
    tail: Arc<Tail>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.hub.inner.lock().remove(&self.id);
        // Last, because a caller that waits for the end may open the session again at once.
        self.tail.close();
    }
}

impl Hub {
    /// A hub whose sessions are stored.
    pub fn new(journal: Arc<dyn Journal>, launch: Arc<dyn Launch>) -> Self {
        Self::with(Some(journal), launch)
    }

    /// A hub whose sessions are not stored. Its agents wait for the readers of their events.
    pub fn without_journal(launch: Arc<dyn Launch>) -> Self {
        Self::with(None, launch)
    }

    fn with(journal: Option<Arc<dyn Journal>>, launch: Arc<dyn Launch>) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        Self { inner: Arc::new(Inner { journal, launch, sessions: Mutex::default(), tasks, stop }) }
    }

    /// Opens a session and starts its agent. Returns when the agent runs. If the future is dropped before, the agent
    /// and the session are removed.
    pub async fn open(&self, open: Open) -> Result<Session, OpenError> {
        let inner = &self.inner;
        if inner.stop.is_cancelled() {
            return Err(OpenError::ShutDown);
        }
        let stop = inner.stop.child_token();
        // The task completes even if the caller is gone.
        let (hub, stopped) = (self.clone(), stop.clone());
        let opening = inner.tasks.spawn(async move { hub.open_all(open, stopped).await });
        // A caller that stops waiting cancels the opening.
        let guard = stop.drop_guard();
        let session = joined(opening).await.unwrap_or(Err(OpenError::ShutDown))?;
        guard.disarm();
        Ok(session)
    }

    async fn open_all(&self, open: Open, stop: CancellationToken) -> Result<Session, OpenError> {
        let inner = &self.inner;
        let Open { which, config, by, linger, question_timeout, ceiling } = open;
        let is_new = matches!(which, Which::New { .. });
        let (ground, history) = match which {
            Which::New { id, forked_from, history } => (self.break_ground(id, forked_from, &config).await?, history),
            Which::Stored(id) => (self.resume(id).await?, None),
        };
        let id = ground.id.clone();
        let retain = if inner.journal.is_none() { Retain::UntilRead } else { Retain::Ring };
        let tail = Arc::new(Tail::new(ground.state.seq, retain));
        if ground.unkept.is_some() {
            tail.retain(Retain::Volatile);
        }
        let (inbox_tx, inbox) = mpsc::channel(INBOX);
        let (native_tx, native) = watch::channel(ground.state.native_id.clone());
        let ceiling = ceiling.or_else(|| config.mode.clone());
        let (bound_tx, bound) = watch::channel(Mode::bound(ceiling.as_ref()));
        let (epoch, past) = (ground.epoch, ground.past());
        let mut session = Session::new(id.clone(), epoch, native, bound, inbox_tx, tail.clone(), past, stop.clone());
        inner.lock().insert(id.clone(), session.clone());
        let beginning = Beginning {
            ground,
            config,
            by,
            history,
            linger,
            question_timeout,
            ceiling,
            launch: inner.launch.clone(),
            tail,
            native: native_tx,
            bound: bound_tx,
            inbox,
            stop: stop.clone(),
        };
        let (opened_tx, opened) = oneshot::channel();
        let place = Place { hub: self.clone(), id, tail: beginning.tail.clone() };
        let task = SessionTask::new(beginning);
        inner.tasks.spawn(async move {
            let _place = place;
            task.run(opened_tx).await;
        });
        let error = match opened.await {
            Ok(Ok(after)) => {
                session.opened_after = after;
                return Ok(session);
            }
            Ok(Err(error)) => OpenError::Launch(Box::new(error)),
            // It was stopped before its agent started.
            Err(_) => OpenError::ShutDown,
        };
        stop.cancel();
        session.over().await;
        if is_new {
            self.forget(&session).await;
        }
        Err(error)
    }

    pub fn find(&self, id: &SessionId) -> Option<Session> {
        self.inner.lock().get(id).cloned()
    }

    pub fn live(&self) -> Vec<Session> {
        self.inner.lock().values().cloned().collect()
    }

    /// All stored sessions, including those of other processes; newest first.
    pub async fn list(&self, filter: Filter) -> Result<Vec<SessionRecord>, JournalError> {
        match &self.inner.journal {
            Some(journal) => journal.list(filter).await,
            None => Ok(Vec::new()),
        }
    }

    /// Ends a session, and returns when its agent is gone.
    pub async fn close(&self, id: &SessionId) {
        if let Some(session) = self.find(id) {
            session.end();
            session.over().await;
        }
    }

    /// Ends every session, and returns when their agents are gone.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.launch.all_gone().await;
    }

    /// Marks interrupted turns in the logs of sessions whose process died, and returns the number of such sessions. A
    /// log that cannot be marked does not stop the rest.
    pub async fn recover(&self) -> Result<usize, JournalError> {
        let Some(journal) = &self.inner.journal else { return Ok(0) };
        let mut recovered = 0;
        for SessionRecord { id, .. } in journal.list(Filter { interrupted: true, ..Filter::default() }).await? {
            // The task releases a claimed log even if the caller is gone.
            let recovering = self.inner.tasks.spawn(recover_and_release(journal.clone(), id.clone()));
            match joined(recovering).await {
                Some(Ok(())) => recovered += 1,
                // Another process or task claimed the log first.
                Some(Err(
                    JournalError::LiveElsewhere { .. } | JournalError::LiveHere(_) | JournalError::NoSuchSession(_),
                ))
                | None => {}
                Some(Err(error)) => tracing::warn!(session = %id, %error, "cannot mark what was interrupted"),
            }
        }
        Ok(recovered)
    }

    /// Creates the log of a new session. If that fails, the session goes on in memory.
    async fn break_ground(
        &self,
        id: SessionId,
        forked_from: Option<SessionId>,
        config: &SessionConfig,
    ) -> Result<Ground, OpenError> {
        let ground = |log, epoch, unkept| Ground { id: id.clone(), state: State::default(), epoch, log, unkept };
        let Some(journal) = &self.inner.journal else { return Ok(ground(None, FIRST_EPOCH, None)) };
        let log = |right| Some(Log { journal: journal.clone(), right });
        let stated = match serde_json::to_value(config.stated()) {
            Ok(Value::Object(stated)) => stated,
            _ => serde_json::Map::new(),
        };
        let new = NewSession {
            id: id.clone(),
            agent: config.agent.clone(),
            folder: config.working_directory.clone(),
            created: Timestamp::now(),
            forked_from,
            config: stated,
        };
        match journal.create(new.clone()).await {
            Ok(claim) => Ok(ground(log(Right::Held(claim.owner)), claim.record.epoch, None)),
            Err(error @ (JournalError::LiveElsewhere { .. } | JournalError::LiveHere(_) | JournalError::Lost(_))) => {
                Err(error.into())
            }
            Err(error) => {
                tracing::warn!(session = %id, %error, "the log cannot be begun");
                Ok(ground(log(Right::Wanted(Box::new(new))), FIRST_EPOCH, Some(error)))
            }
        }
    }

    /// Removes a session whose agent never started.
    async fn forget(&self, session: &Session) {
        let Some(journal) = &self.inner.journal else { return };
        match journal.remove(session.id().clone()).await {
            // The log is removed, or was never created.
            Ok(()) | Err(JournalError::NoSuchSession(_)) => {}
            Err(error) => {
                tracing::warn!(session = %session.id(), %error, "cannot remove the log of a session that did not begin");
            }
        }
    }

    async fn resume(&self, id: SessionId) -> Result<Ground, OpenError> {
        if self.find(&id).is_some() {
            return Err(OpenError::Live(id));
        }
        let Some(journal) = &self.inner.journal else { return Err(JournalError::NoSuchSession(id).into()) };
        let claim = journal.claim(id.clone()).await?;
        let (owner, epoch) = (claim.owner.clone(), claim.record.epoch);
        let state = recover(journal, claim).await?;
        let log = Log { journal: journal.clone(), right: Right::Held(owner) };
        Ok(Ground { id, state, epoch, log: Some(log), unkept: None })
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        // No panic leaves the map inconsistent.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of a task; `None` if the runtime ended it.
async fn joined<T>(task: JoinHandle<T>) -> Option<T> {
    match task.await {
        Ok(outcome) => Some(outcome),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => None,
        },
    }
}
