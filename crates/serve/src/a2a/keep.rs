//! Where tasks stand, put away as it changes: so they can be listed and found again after a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_event::{SessionId, Timestamp};
use multitap_hub::{Journal, Session, TaskRecord};

use super::coders::Coders;
use super::frame::{Body, Frame, Place};
use super::name;
use super::stage::{Listen, Now};

/// How many tasks of a session are remembered here; the journal has them all.
const KNOWN: usize = 64;

/// Keeps the tasks of one session.
#[derive(Debug)]
pub(crate) struct Keeper {
    session: SessionId,
    journal: Arc<dyn Journal>,
    coders: Arc<Coders>,
    /// Events up to this one were taken care of by an earlier process.
    from: u64,
    known: BTreeMap<String, TaskRecord>,
    /// Those that changed since the last rest.
    changed: Vec<String>,
}

impl Keeper {
    pub(crate) fn new(session: SessionId, journal: Arc<dyn Journal>, coders: Arc<Coders>, from: u64) -> Self {
        Self { session, journal, coders, from, known: BTreeMap::new(), changed: Vec::new() }
    }
}

/// A task that begins with that event.
fn fresh(id: &str, session: &SessionId, seq: u64, at: Timestamp) -> TaskRecord {
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
    /// Before the prompt is sent: the task begins after what is in the log by now.
    pub(crate) fn before(session: &Session, task: &str) -> Self {
        let is_own = name::is_own_task(task);
        Self(is_own.then(|| fresh(task, session.id(), session.last() + 1, Timestamp::now())))
    }

    /// The prompt was accepted: whoever hears of the task can ask for it. A task that runs already, such as one that the
    /// prompt joined, stays as it is.
    pub(crate) async fn accepted(self, journal: &Arc<dyn Journal>) {
        let Some(record) = self.0 else { return };
        let id = record.id.clone();
        if let Err(error) = journal.begin_task(record).await {
            // The log has it all the same.
            tracing::warn!(task = %id, %error, "cannot store a new task");
        }
    }
}

/// The one task of a session that everybody shares can be listed for as long as the session lives: how else would a
/// client that comes before the first turn know what to listen to?
pub(crate) async fn ensure(journal: &Arc<dyn Journal>, session: &Session, now: &Now) {
    let is_kept = journal.task(now.task.to_string()).await.is_ok_and(|task| task.is_some());
    if !is_kept {
        let mut record = fresh(&now.task, session.id(), session.last(), Timestamp::now());
        now.state.word().clone_into(&mut record.state);
        put_away(journal, record).await;
    }
}

async fn put_away(journal: &Arc<dyn Journal>, record: TaskRecord) {
    let id = record.id.clone();
    if let Err(error) = journal.keep_task(record).await {
        // The log has it all the same.
        tracing::warn!(task = %id, %error, "cannot keep where a task stands");
    }
}

impl Listen for Keeper {
    fn heard(&mut self, frame: &Frame) {
        let Place { task: id, state, .. } = &*frame.place;
        let (word, at) = (state.word(), frame.at);
        let is_news = match self.known.get(&**id) {
            // As most of the time.
            Some(known) if known.state == word => return,
            known => known.is_none(),
        };
        if is_news && self.known.len() >= KNOWN {
            self.known.retain(|_, task| task.last_seq.is_none());
        }
        let id = id.to_string();
        let task = self.known.entry(id.clone()).or_insert_with(|| fresh(&id, &self.session, frame.cursor.seq, at));
        // A prompt that waits is no change of the task that runs.
        if matches!(frame.body, Body::Prompted { queued: true, .. }) && !name::is_own_task(&id) {
            return;
        }
        word.clone_into(&mut task.state);
        task.updated = at;
        let is_over = state.is_terminal() && name::is_own_task(&id);
        task.last_seq = is_over.then_some(frame.cursor.seq);
        if frame.cursor.seq > self.from && !self.changed.contains(&id) {
            self.changed.push(id);
        }
    }

    async fn rest(&mut self) {
        for id in std::mem::take(&mut self.changed) {
            if let Some(mut task) = self.known.get(&id).cloned() {
                self.coders.mark(&mut task);
                put_away(&self.journal, task).await;
            }
        }
    }
}
