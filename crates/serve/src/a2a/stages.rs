//! The stages of sessions: one for each, from its first client until the session ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use multitap_event::SessionId;
use multitap_hub::{Journal, Refusal, Session};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::stage::Stage;

type Cell = Arc<OnceCell<Arc<Stage>>>;

/// Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stages {
    open: Arc<Mutex<HashMap<SessionId, Cell>>>,
}

impl Stages {
    /// The stage of a session. The first call opens it, and runs it and its reader `reads` among `tasks`.
    pub(crate) async fn get<R>(
        &self,
        session: &Session,
        journal: &Arc<dyn Journal>,
        reads: impl Fn(Arc<Stage>) -> R,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Arc<Stage>, Refusal>
    where
        R: Future<Output = ()> + Send + 'static,
    {
        loop {
            let cell = self.cell(session.id());
            let opened = cell.get_or_try_init(|| async {
                let (stage, feed) = Stage::open(session.clone(), journal.clone()).await?;
                let last = session.last();
                tasks.spawn(reads(stage.clone()));
                let run = stage.clone().run(feed, stop.clone());
                let stages = self.clone();
                tasks.spawn(async move {
                    run.await;
                    // At once, and not with the next request: a stage holds megabytes, and an idle host gets no
                    // requests.
                    remove_ended(&mut stages.lock());
                });
                stage.reached(last).await;
                Ok::<_, Refusal>(stage)
            });
            let stage = opened.await?.clone();
            if !stage.session().is_over() {
                return Ok(stage);
            }
            // The stage's task may have ended before the stage was stored in the cell.
            remove_ended(&mut self.lock());
            // A session that was opened again after its end has another stage.
            if session.is_over() {
                return Ok(stage);
            }
        }
    }

    fn cell(&self, session: &SessionId) -> Cell {
        let mut open = self.lock();
        remove_ended(&mut open);
        open.entry(session.clone()).or_default().clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Cell>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove_ended(open: &mut HashMap<SessionId, Cell>) {
    open.retain(|_, cell| cell.get().is_none_or(|stage| !stage.session().is_over()));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use multitap_event::{AgentKind, ClientRef, Door, SessionConfig};
    use multitap_hub::{Hub, Linger, Open};
    use multitap_store::Store;
    use multitap_testkit::agent::ScriptedLaunch;
    use tokio::time::timeout;

    use super::*;

    /// Long enough for a busy machine; nothing waits this long when all is well.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A host that nobody asks anything after its sessions ended must not hold their frames and the ends of their logs.
    #[tokio::test]
    async fn ended_sessions_are_let_go_although_nobody_asks() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path().join("sessions.db")).unwrap());
        let (launch, mut agents) = ScriptedLaunch::new();
        let journal: Arc<dyn Journal> = store.clone();
        let hub = Hub::new(store, launch);
        let (stages, tasks, stop) = (Stages::default(), TaskTracker::new(), CancellationToken::new());
        let mut weak = Vec::new();
        for _ in 0..3 {
            let by = ClientRef::new("test", Door::A2a);
            let open = Open { linger: Linger::UntilClosed, ..Open::new(SessionConfig::new(AgentKind::Builtin), by) };
            let session = hub.open(open).await.unwrap();
            let stage = stages.get(&session, &journal, |_| async {}, &tasks, &stop).await.unwrap();
            assert!(Arc::ptr_eq(&stage, &stages.get(&session, &journal, |_| async {}, &tasks, &stop).await.unwrap()));
            weak.push(Arc::downgrade(&stage));
        }
        assert_eq!(stages.lock().len(), 3);
        agents.close();
        while let Some(agent) = agents.recv().await {
            drop(agent);
        }
        hub.shutdown().await;
        tasks.close();
        timeout(PATIENCE, tasks.wait()).await.unwrap();
        assert_eq!(stages.lock().len(), 0);
        assert!(weak.iter().all(|stage| stage.upgrade().is_none()));
    }
}
