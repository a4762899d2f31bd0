//! A journal in memory: as exact as one on disk, and it fails when it is told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use multitap_event::{EventKind, Ruling, SessionId, Timestamp};
use multitap_hub::{
    About, Batch, Checkpoint, Claim, Edge, Entry, Filter, Flush, Holder, Journal, JournalError, Kept, NewSession,
    Owner, Page, Part, SessionRecord, TaskFilter, TaskPage, TaskRecord,
};
use tokio::time::sleep;

#[derive(Debug, Default)]
pub(crate) struct Memory {
    logs: Mutex<BTreeMap<SessionId, Log>>,
    tasks: Mutex<BTreeMap<String, TaskRecord>>,
    fails: Mutex<Option<JournalError>>,
    /// What fails is kept all the same, and nobody is told so.
    unclear: Mutex<bool>,
    slow: Mutex<Duration>,
    /// Of this session nothing can be read.
    damaged: Mutex<Option<SessionId>>,
    /// How often something was written, and how often with a flush.
    pub(crate) writes: Mutex<(usize, usize)>,
    /// How many entries were read, page by page.
    pub(crate) reads: Mutex<Vec<usize>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Log {
    record: SessionRecord,
    entries: Vec<Entry>,
    pub(crate) checkpoint: Option<Checkpoint>,
    owner: Option<Owner>,
    rulings: Vec<Ruling>,
    /// Since it was claimed, something could not be kept.
    unkept: bool,
}

impl Memory {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// From now on appending fails; with nothing it works again.
    pub(crate) fn fails(&self, error: Option<JournalError>) {
        *self.fails.lock().unwrap() = error;
    }

    /// From now on what fails is kept all the same.
    pub(crate) fn is_unclear(&self) {
        *self.unclear.lock().unwrap() = true;
    }

    /// From now on nothing of that session can be read.
    pub(crate) fn is_damaged(&self, session: &SessionId) {
        *self.damaged.lock().unwrap() = Some(session.clone());
    }

    /// From now on whatever is written takes so long.
    pub(crate) fn takes(&self, time: Duration) {
        *self.slow.lock().unwrap() = time;
    }

    pub(crate) fn log(&self, session: &SessionId) -> Vec<Entry> {
        self.logs()[session].entries.clone()
    }

    pub(crate) fn checkpoint(&self, session: &SessionId) -> Option<Checkpoint> {
        self.logs()[session].checkpoint.clone()
    }

    /// The process is gone without letting go of anything; the power may be too.
    pub(crate) fn dies(&self) {
        for log in self.logs().values_mut() {
            log.owner = None;
        }
    }

    /// Another process takes the session.
    pub(crate) fn steal(&self, session: &SessionId) {
        self.logs().get_mut(session).unwrap().owner = Some(Owner("thief".into()));
    }

    async fn write(&self) {
        let slow = *self.slow.lock().unwrap();
        if !slow.is_zero() {
            sleep(slow).await;
        }
    }

    fn logs(&self) -> MutexGuard<'_, BTreeMap<SessionId, Log>> {
        self.logs.lock().unwrap()
    }

    fn take(&self, session: &SessionId) -> Result<Claim, JournalError> {
        let mut logs = self.logs();
        let log = logs.get_mut(session).ok_or_else(|| JournalError::NoSuchSession(session.clone()))?;
        if log.owner.is_some() {
            let holder = Holder { pid: 1, since: log.record.created };
            return Err(JournalError::LiveElsewhere { session: session.clone(), holder });
        }
        let owner = Owner(SessionId::fresh().to_string());
        log.owner = Some(owner.clone());
        log.record.epoch += u64::from(std::mem::take(&mut log.unkept));
        Ok(Claim { owner, record: log.record.clone(), checkpoint: log.checkpoint.clone() })
    }

    fn keep(&self, batch: Batch) -> Result<(), JournalError> {
        let error = self.fails.lock().unwrap().clone();
        let mut logs = self.logs();
        let log = logs.get_mut(&batch.session).unwrap();
        log.unkept |= error.is_some();
        if let Some(error) = error.as_ref().filter(|_| !*self.unclear.lock().unwrap()) {
            return Err(error.clone());
        }
        if log.owner.as_ref() != Some(&batch.owner) {
            return Err(JournalError::Lost(batch.session));
        }
        for entry in &batch.entries {
            if entry.seq() <= log.record.last_seq {
                let kept = &log.entries[usize::try_from(entry.seq()).unwrap() - 1];
                assert_eq!(kept, entry, "a number for two events");
                continue;
            }
            assert_eq!(entry.seq(), log.record.last_seq + 1, "a gap");
            log.record.last_seq = entry.seq();
            if let EventKind::PermissionSettled(ruling) = &entry.event().unwrap().kind
                && !entry.is_copy()
            {
                log.rulings.push(ruling.clone());
            }
            // As from a disk: what is read back is a copy.
            log.entries.push(copy(entry));
        }
        log.checkpoint = batch.checkpoint.or(log.checkpoint.take());
        log.record.about = batch.about.unwrap_or(log.record.about.clone());
        let mut writes = self.writes.lock().unwrap();
        writes.0 += 1;
        writes.1 += usize::from(batch.flush == Flush::Now);
        error.map_or(Ok(()), Err)
    }
}

impl Journal for Memory {
    fn create(&self, session: NewSession) -> Kept<'_, Claim> {
        Box::pin(async move {
            if let Some(error) = self.fails.lock().unwrap().clone() {
                return Err(error);
            }
            let record = SessionRecord {
                id: session.id.clone(),
                agent: session.agent,
                folder: session.folder,
                created: session.created,
                updated: session.created,
                forked_from: session.forked_from,
                config: session.config,
                about: About::default(),
                last_seq: 0,
                epoch: 1,
                live: None,
            };
            let log =
                Log { record, entries: Vec::new(), checkpoint: None, owner: None, rulings: Vec::new(), unkept: false };
            self.logs().insert(session.id.clone(), log);
            let claim = self.take(&session.id);
            self.write().await;
            claim
        })
    }

    fn claim(&self, session: SessionId) -> Kept<'_, Claim> {
        Box::pin(async move {
            let claim = self.take(&session);
            self.write().await;
            claim
        })
    }

    fn append(&self, batch: Batch) -> Kept<'_, ()> {
        Box::pin(async move {
            self.write().await;
            self.keep(batch)
        })
    }

    fn page(&self, session: SessionId, part: Part) -> Kept<'_, Page> {
        Box::pin(async move {
            if self.damaged.lock().unwrap().as_ref() == Some(&session) {
                return Err(JournalError::Damaged("a page of it".into()));
            }
            let logs = self.logs();
            let log = logs.get(&session).ok_or_else(|| JournalError::NoSuchSession(session.clone()))?;
            let mut bytes = 0;
            let mut fits = |entry: &&Entry| {
                let first = bytes == 0;
                bytes += entry.json().len();
                first || bytes <= part.bytes
            };
            let mut entries: Vec<Entry> = match part.edge {
                Edge::After(seq) => {
                    let after = log.entries.iter().filter(|entry| entry.seq() > seq);
                    after.take(part.limit).take_while(&mut fits).map(copy).collect()
                }
                Edge::Before(seq) => {
                    let before = log.entries.iter().rev().filter(|entry| entry.seq() < seq);
                    before.take(part.limit).take_while(&mut fits).map(copy).collect()
                }
            };
            if matches!(part.edge, Edge::Before(_)) {
                entries.reverse();
            }
            self.reads.lock().unwrap().push(entries.len());
            Ok(Page { entries, last_seq: log.record.last_seq })
        })
    }

    fn release(&self, session: SessionId, owner: Owner, told: u64) -> Kept<'_, ()> {
        Box::pin(async move {
            if let Some(log) = self.logs().get_mut(&session)
                && log.owner.as_ref() == Some(&owner)
            {
                log.owner = None;
                log.unkept = told > log.record.last_seq;
            }
            Ok(())
        })
    }

    fn list(&self, filter: Filter) -> Kept<'_, Vec<SessionRecord>> {
        Box::pin(async move {
            let logs = self.logs();
            let wanted = |log: &&Log| !filter.interrupted || (log.record.about.open && log.owner.is_none());
            Ok(logs.values().filter(wanted).map(|log| log.record.clone()).collect())
        })
    }

    fn find(&self, name: String) -> Kept<'_, Vec<SessionRecord>> {
        Box::pin(async move {
            let logs = self.logs();
            let found = logs.values().filter(|log| log.record.id.as_str().starts_with(&name));
            Ok(found.map(|log| log.record.clone()).collect())
        })
    }

    fn remove(&self, session: SessionId) -> Kept<'_, ()> {
        Box::pin(async move {
            self.logs().remove(&session);
            self.tasks.lock().unwrap().retain(|_, task| task.session != session);
            Ok(())
        })
    }

    fn rulings(&self, session: SessionId) -> Kept<'_, Vec<Ruling>> {
        Box::pin(async move { Ok(self.logs()[&session].rulings.clone()) })
    }

    fn keep_task(&self, task: TaskRecord) -> Kept<'_, ()> {
        Box::pin(async move {
            if !self.logs().contains_key(&task.session) {
                return Err(JournalError::NoSuchSession(task.session));
            }
            self.tasks.lock().unwrap().insert(task.id.clone(), task);
            Ok(())
        })
    }

    fn begin_task(&self, task: TaskRecord) -> Kept<'_, ()> {
        Box::pin(async move {
            if !self.logs().contains_key(&task.session) {
                return Err(JournalError::NoSuchSession(task.session));
            }
            self.tasks.lock().unwrap().entry(task.id.clone()).or_insert(task);
            Ok(())
        })
    }

    fn task(&self, id: String) -> Kept<'_, Option<TaskRecord>> {
        Box::pin(async move { Ok(self.tasks.lock().unwrap().get(&id).cloned()) })
    }

    fn tasks(&self, filter: TaskFilter) -> Kept<'_, TaskPage> {
        Box::pin(async move {
            let mut tasks: Vec<TaskRecord> = self.tasks.lock().unwrap().values().cloned().collect();
            tasks.retain(|task| {
                filter.session.as_ref().is_none_or(|session| task.session == *session)
                    && filter.state.as_ref().is_none_or(|state| task.state == *state)
                    && filter.updated_after.is_none_or(|since| task.updated >= since)
            });
            let total = tasks.len() as u64;
            tasks.sort_by(|one, other| (other.updated, &other.id).cmp(&(one.updated, &one.id)));
            tasks.retain(|task| filter.before.as_ref().is_none_or(|(time, id)| (task.updated, &task.id) < (*time, id)));
            tasks.truncate(filter.limit);
            Ok(TaskPage { tasks, total })
        })
    }
}

fn copy(entry: &Entry) -> Entry {
    Entry::stored(entry.seq(), entry.json())
}

/// Some moment.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(1)
}
