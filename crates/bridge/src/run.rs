//! Remote tasks that are followed, each by a task of its own: an agent's stream is read to its end even if the call
//! that began it has returned. Some agents stop working when their stream is closed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use multitap_a2a::SendMessage;
use multitap_a2a::client::Client;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::collect::Collected;
use crate::remote::RemoteAgent;

/// Maximum number of runs that are remembered, followed or ended. Beyond it, a new one replaces the oldest.
const MOST_RUNS: usize = 64;
/// The most bytes of text and files that ended runs may take together.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// How long one stream is followed.
const LONGEST_FOLLOW: Duration = Duration::from_secs(2 * 60 * 60);
/// The most updates that one stream may bring.
const MOST_UPDATES: usize = 500_000;

/// All runs of a bridge. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs {
    known: Arc<Mutex<VecDeque<Arc<Run>>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A message, and the state of its task.
#[derive(Debug)]
pub(crate) struct Run {
    agent: Arc<RemoteAgent>,
    /// The id of the run, if the agent has not named a task or its id cannot be passed on.
    pub(crate) handle: String,
    stop: CancellationToken,
    state: Mutex<RunState>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RunState {
    pub(crate) collected: Collected,
    /// None while the stream is read.
    pub(crate) end: Option<RunEnd>,
}

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// The agent has finished its answer for now.
    Done,
    /// The stream failed; its output may be incomplete.
    Failed(String),
}

impl Runs {
    /// Sends a message and follows its task.
    pub(crate) fn start(&self, agent: &Arc<RemoteAgent>, client: &Client, send: SendMessage) -> Arc<Run> {
        let collected = Collected::of(send.message.task_id.clone(), send.message.context_id.clone());
        let run = Arc::new(Run {
            agent: agent.clone(),
            handle: format!("call-{}", uuid::Uuid::new_v4()),
            stop: self.stop.child_token(),
            state: Mutex::new(RunState { collected, end: None }),
            changes: watch::Sender::new(0),
        });
        self.remember(run.clone());
        let (client, stop, followed) = (client.clone(), run.stop.clone(), run.clone());
        self.tasks.spawn(async move {
            let deadline = Instant::now() + LONGEST_FOLLOW;
            let end = tokio::select! {
                () = stop.cancelled() => RunEnd::Failed("it is no longer followed".to_owned()),
                end = timeout_at(deadline, followed.follow(&client, send)) => end.unwrap_or_else(|_| {
                    RunEnd::Failed(format!("its stream was still open after {} minutes", LONGEST_FOLLOW.as_secs() / 60))
                }),
            };
            followed.change(|state| state.end = Some(end));
        });
        run
    }

    /// The run that follows a task, by the id of the task or by the handle of the run, the latest first.
    pub(crate) fn find(&self, agent: &Arc<RemoteAgent>, id: &str) -> Option<Arc<Run>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_named = |run: &Run| run.handle == id || run.task_id().as_deref() == Some(id);
        known.iter().rev().find(|run| Arc::ptr_eq(&run.agent, agent) && is_named(run)).cloned()
    }

    fn remember(&self, run: Arc<Run>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes: usize = known.iter().map(|run| run.ended_bytes().unwrap_or_default()).sum();
        while known.len() >= MOST_RUNS || bytes > MOST_BYTES {
            let ended = known.iter().position(|run| run.ended_bytes().is_some());
            let Some(forgotten) = known.remove(ended.unwrap_or_default()) else { break };
            // No call can ask for a forgotten run, so its task is not followed any more.
            forgotten.stop();
            bytes = bytes.saturating_sub(forgotten.ended_bytes().unwrap_or_default());
        }
        known.push_back(run);
    }

    /// Stops following. Remote tasks go on.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Run {
    pub(crate) fn state(&self) -> RunState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notified of each later change.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The latest progress note, and whether the run has ended, without copying the collected output.
    pub(crate) fn glance(&self) -> (Option<String>, bool) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.collected.note.clone(), state.end.is_some())
    }

    pub(crate) fn task_id(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).collected.task_id.clone()
    }

    fn missing(&self) -> Option<&'static str> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).collected.missing()
    }

    /// Waits until the agent has named the task; `None` if it never will.
    pub(crate) async fn named_task(&self) -> Option<String> {
        let mut changes = self.watch();
        loop {
            match (self.task_id(), self.glance().1) {
                (None, false) => changes.changed().await.ok()?,
                (task, _) => return task,
            }
        }
    }

    /// Stops following it.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// How much memory the run takes, if it has ended.
    fn ended_bytes(&self) -> Option<usize> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end.as_ref().map(|_| state.collected.bytes())
    }

    async fn follow(&self, client: &Client, send: SendMessage) -> RunEnd {
        let mut updates = match client.stream(send).await {
            Ok(updates) => updates,
            Err(error) => return RunEnd::Failed(self.agent.explain(&error)),
        };
        for _ in 0..MOST_UPDATES {
            match updates.next().await {
                Some(Ok(told)) => {
                    // Updates after the end of a task do not count.
                    if self.change(|state| state.collected.apply(told.update)) {
                        return RunEnd::Done;
                    }
                }
                Some(Err(error)) => return RunEnd::Failed(self.agent.explain(&error)),
                None => return self.missing().map_or(RunEnd::Done, |why| RunEnd::Failed(why.to_owned())),
            }
        }
        RunEnd::Failed(format!("it sent more than {MOST_UPDATES} updates"))
    }

    /// Changes the state. Returns whether the task is over then.
    fn change(&self, act: impl FnOnce(&mut RunState)) -> bool {
        let is_over = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            act(&mut state);
            state.collected.is_over()
        };
        self.changes.send_modify(|count| *count += 1);
        is_over
    }
}
