//! Stores the tasks of a session in the journal, so that they can be listed and found after a restart; and places in its
//! log from which frames can be made then.
//!
//! [`TaskKeeper`] is one more reader of the session's frames. A slow disk delays nobody else: the keeper lags behind like a
//! slow client, and a task that changed several times meanwhile is written once.

use std::collections::BTreeMap;
use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_event::{SessionId, Timestamp};
use multitap_hub::{Journal, Session, TaskRecord};

use super::coders::Coders;
use super::frame::{Body, Frame, FrameScope};
use super::stage::{Now, Stage};
use super::{name, past};

/// Maximum number of a session's tasks in memory; the journal has them all.
const KNOWN: usize = 64;
/// Maximum number of frames that are read between two writes.
const BATCH: usize = 256;

/// Writes the tasks of one session to the journal as they change.
#[derive(Debug)]
pub(crate) struct TaskKeeper {
    stage: Arc<Stage>,
    journal: Arc<dyn Journal>,
    coders: Arc<Coders>,
    /// An earlier process stored the tasks up to this event.
    written: u64,
    known: BTreeMap<String, TaskRecord>,
    /// Tasks that changed since the last write.
    changed: Vec<String>,
}

impl TaskKeeper {
    pub(crate) fn new(stage: Arc<Stage>, journal: Arc<dyn Journal>, coders: Arc<Coders>) -> Self {
        let written = stage.session().opened_after();
        Self { stage, journal, coders, written, known: BTreeMap::new(), changed: Vec::new() }
    }

    /// Reads and writes until the session is over.
    pub(crate) async fn run(mut self) {
        let mut reader = self.stage.read_all();
        loop {
            match reader.next().await {
                Ok(Some(frame)) => {
                    self.apply(&frame);
                    for _ in 1..BATCH {
                        let Some(frame) = reader.try_next() else { break };
                        self.apply(&frame);
                    }
                }
                Ok(None) => return,
                Err(missing) => {
                    tracing::warn!(session = %self.stage.session().id(), %missing, "cannot follow the session's tasks");
                    let now = self.stage.now();
                    self.set(&now.task, now.state, now.cursor.seq, Timestamp::now());
                    reader = self.stage.read(now.cursor);
                }
            }
            self.write().await;
        }
    }

    fn apply(&mut self, frame: &Frame) {
        let FrameScope { task, state, .. } = &*frame.scope;
        // A queued prompt does not change the task that runs.
        let is_queued = matches!(frame.body, Body::Prompted { queued: true, .. }) && !name::is_own_task(task);
        if !is_queued {
            self.set(task, *state, frame.cursor.seq, frame.at);
        }
    }

    fn set(&mut self, id: &str, state: TaskState, seq: u64, at: Timestamp) {
        let known = self.known.get(id);
        // The usual case.
        if known.is_some_and(|known| known.state == state.word()) {
            return;
        }
        if known.is_none() && self.known.len() >= KNOWN {
            self.known.retain(|_, task| task.last_seq.is_none());
        }
        let session = self.stage.session().id();
        let task = self.known.entry(id.to_owned()).or_insert_with(|| new_task(id, session, seq, at));
        state.word().clone_into(&mut task.state);
        task.updated = at;
        task.last_seq = (state.is_terminal() && name::is_own_task(id)).then_some(seq);
        if seq > self.written && !self.changed.iter().any(|changed| changed == id) {
            self.changed.push(id.to_owned());
        }
    }

    async fn write(&mut self) {
        for checkpoint in self.stage.take_unsaved() {
            past::keep(&self.journal, self.stage.session().id(), checkpoint).await;
        }
        for id in std::mem::take(&mut self.changed) {
            if let Some(mut task) = self.known.get(&id).cloned() {
                self.coders.mark(&mut task);
                write(&self.journal, task).await;
            }
        }
    }
}

/// A task that begins with that event.
fn new_task(id: &str, session: &SessionId, seq: u64, at: Timestamp) -> TaskRecord {
    TaskRecord {
        id: id.to_owned(),
        session: session.clone(),
        state: TaskState::Submitted.word().to_owned(),
        first_seq: if name::is_own_task(id) { seq } else { 1 },
        last_seq: None,
        created: at,
        updated: at,
        metadata: serde_json::Map::new(),
    }
}

/// A prompt's turn that will be a task of its own, once the session accepts the prompt. A refused prompt is no task.
#[derive(Debug)]
pub(crate) struct NewTask(Option<TaskRecord>);

impl NewTask {
    /// Call this before the prompt is sent: the task begins after the current end of the log.
    pub(crate) fn before(session: &Session, task: &str) -> Self {
        let is_own = name::is_own_task(task);
        Self(is_own.then(|| new_task(task, session.id(), session.last() + 1, Timestamp::now())))
    }

    /// The prompt was accepted: from now on the task can be requested. A running task that the prompt joined stays as
    /// it is.
    pub(crate) async fn accepted(self, journal: &Arc<dyn Journal>) {
        let Some(record) = self.0 else { return };
        let id = record.id.clone();
        if let Err(error) = journal.begin_task(record).await {
            // The log has it anyway.
            tracing::warn!(task = %id, %error, "cannot store a new task");
        }
    }
}

/// Stores the shared session's lasting task, so that a client that comes before the first turn can list and follow it.
pub(crate) async fn ensure(journal: &Arc<dyn Journal>, session: &Session, now: &Now) {
    let is_kept = journal.task(now.task.to_string()).await.is_ok_and(|task| task.is_some());
    if !is_kept {
        let mut record = new_task(&now.task, session.id(), session.last(), Timestamp::now());
        now.state.word().clone_into(&mut record.state);
        write(journal, record).await;
    }
}

/// Stores a task that others will refer to, unless it is stored: a session's lasting task may not have run yet.
pub(crate) async fn ensure_begun(journal: &Arc<dyn Journal>, session: &SessionId, task: &str, seq: u64) {
    if let Err(error) = journal.begin_task(new_task(task, session, seq, Timestamp::now())).await {
        tracing::warn!(task, %error, "cannot store a task");
    }
}

async fn write(journal: &Arc<dyn Journal>, record: TaskRecord) {
    let id = record.id.clone();
    if let Err(error) = journal.keep_task(record).await {
        // The log has it anyway.
        tracing::warn!(task = %id, %error, "cannot store the state of a task");
    }
}
