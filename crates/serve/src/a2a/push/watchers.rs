//! The unfinished configs of one session: what each is told of the session's frames, stored as deliveries.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::Dialect;
use multitap_event::SessionId;
use multitap_hub::{JournalError, NewDelivery, PushConfigRecord, PushKey, PushPosition, PushScope};
use tokio::time::Instant;

use super::super::cursor::Cursor;
use super::super::frame::{Ends, Frame};
use super::super::history::Log;
use super::super::name;
use super::Push;
use super::body;
use super::notice::{Notice, Watcher};

/// Least time between two notifications of 0.3 with the same state: each contains the whole task.
const BETWEEN_TASKS: Duration = Duration::from_secs(1);
/// Number of notices from which on they are stored before more is read.
const MOST_NOTICES: usize = 256;
/// Most bytes of bodies that are stored together.
const AT_A_TIME: usize = 2 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Watchers {
    push: Arc<Push>,
    log: Log,
    epoch: u64,
    /// Events up to here are of earlier epochs.
    opened_after: u64,
    list: Vec<Watcher>,
    notices: Vec<(PushKey, Notice)>,
    /// When each config of 0.3 was last notified, and what it was not told since.
    told: HashMap<PushKey, Told>,
}

#[derive(Debug)]
struct Told {
    at: Instant,
    /// The latest; it replaces earlier ones.
    deferred: Option<Notice>,
}

impl Watchers {
    pub(super) fn new(push: Arc<Push>, log: Log, epoch: u64, opened_after: u64) -> Self {
        let (list, notices, told) = (Vec::new(), Vec::new(), HashMap::new());
        Self { push, log, epoch, opened_after, list, notices, told }
    }

    fn session(&self) -> &SessionId {
        self.log.session()
    }

    /// Reads which configs there are. Those that are known go on where they are.
    pub(super) async fn load(&mut self) -> Result<(), JournalError> {
        let Some(queue) = self.push.queue() else { return Ok(()) };
        let configs = queue.push_configs(PushScope::Session(self.session().clone())).await?;
        let mut known = std::mem::take(&mut self.list);
        for config in &configs {
            let watcher = match known.iter().position(|watcher| watcher.key == config.key) {
                Some(at) => known.swap_remove(at),
                None => Watcher::new(config, self.first(config).await?, self.position_of(config)),
            };
            self.list.push(watcher);
        }
        self.told.retain(|key, _| configs.iter().any(|config| config.key == *key));
        Ok(())
    }

    async fn first(&self, config: &PushConfigRecord) -> Result<u64, JournalError> {
        if !name::is_own_task(&config.task) {
            return Ok(1);
        }
        let task = self.push.journal.task(config.task.clone()).await?;
        Ok(task.map_or(1, |task| task.first_seq))
    }

    /// In another epoch, later events have the numbers of lost ones.
    fn position_of(&self, config: &PushConfigRecord) -> Cursor {
        let PushPosition { epoch, seq, part } = config.after;
        if epoch == self.epoch || seq <= self.opened_after {
            return Cursor::new(seq, part);
        }
        Cursor::new(self.opened_after, u32::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether to store before more is read.
    pub(super) fn is_full(&self) -> bool {
        self.notices.len() >= MOST_NOTICES
    }

    pub(super) fn list(&self) -> &[Watcher] {
        &self.list
    }

    /// The frame after which the first of them reads on.
    pub(super) fn position(&self) -> Cursor {
        self.list.iter().map(|watcher| watcher.seen).min().unwrap_or_default()
    }

    pub(super) fn take(&mut self, frame: &Arc<Frame>) {
        self.each(|watcher, notices| watcher.take(frame, notices));
    }

    /// There are no more frames: messages are complete as they are.
    pub(super) fn close_messages(&mut self) {
        self.each(Watcher::close_message);
        self.release(None);
    }

    fn each(&mut self, mut make: impl FnMut(&mut Watcher, &mut Vec<Notice>)) {
        let mut made = Vec::new();
        for watcher in &mut self.list {
            make(watcher, &mut made);
            for notice in made.drain(..) {
                if watcher.form.dialect == Dialect::V1_0 {
                    self.notices.push((watcher.key, notice));
                    continue;
                }
                let now = Instant::now();
                match self.told.get_mut(&watcher.key) {
                    Some(told) if notice.is_same_state && now < told.at + BETWEEN_TASKS => told.deferred = Some(notice),
                    _ => {
                        // The task contains what was deferred.
                        self.told.insert(watcher.key, Told { at: now, deferred: None });
                        self.notices.push((watcher.key, notice));
                    }
                }
            }
        }
    }

    /// A notice that no frame caused.
    pub(super) fn tell(&mut self, key: PushKey, notice: Notice) {
        self.notices.push((key, notice));
    }

    /// When something that was deferred is to be told.
    pub(super) fn due(&self) -> Option<Instant> {
        let deferred = self.told.values().filter(|told| told.deferred.is_some());
        deferred.map(|told| told.at + BETWEEN_TASKS).min()
    }

    /// Tells what was deferred until `now`, or all of it.
    pub(super) fn release(&mut self, now: Option<Instant>) {
        for (key, told) in &mut self.told {
            let is_due = now.is_none_or(|now| told.at + BETWEEN_TASKS <= now);
            if let Some(notice) = told.deferred.take_if(|_| is_due) {
                told.at = Instant::now();
                self.notices.push((*key, notice));
            }
        }
    }

    /// Stores what is to be told. After an error it is still to be told.
    pub(super) async fn store(&mut self) -> Result<(), JournalError> {
        while !self.notices.is_empty() {
            let (deliveries, taken) = self.deliveries().await;
            let last: Vec<PushKey> =
                deliveries.iter().filter(|delivery| delivery.last).map(|delivery| delivery.config).collect();
            let Some(queue) = self.push.queue() else { return Ok(()) };
            let pending = if deliveries.is_empty() { Vec::new() } else { queue.enqueue(deliveries).await? };
            self.push.stored(pending);
            self.notices.drain(..taken);
            self.list.retain(|watcher| !last.contains(&watcher.key));
        }
        Ok(())
    }

    /// The next deliveries, and how many notices they are made of.
    async fn deliveries(&self) -> (Vec<NewDelivery>, usize) {
        let (mut deliveries, mut bytes, mut taken) = (Vec::new(), 0, 0);
        for (key, notice) in &self.notices {
            if bytes >= AT_A_TIME {
                break;
            }
            taken += 1;
            // Its config was deleted.
            let Some(watcher) = self.list.iter().find(|watcher| watcher.key == *key) else { continue };
            let body = self.body(watcher, notice).await;
            bytes += body.len();
            let Cursor { seq, part } = notice.frame.cursor;
            deliveries.push(NewDelivery {
                config: *key,
                at: PushPosition { epoch: self.epoch, seq, part },
                state: notice.frame.scope.state.word().to_owned(),
                body,
                last: notice.last,
            });
        }
        (deliveries, taken)
    }

    async fn body(&self, watcher: &Watcher, notice: &Notice) -> String {
        let (frame, form) = (&notice.frame, watcher.form);
        // In 1.0 the task at the end of a turn brings the artifacts, which no frame has.
        let is_frame = form.dialect == Dialect::V1_0 && !(form.artifacts && frame.ends == Some(Ends::Turn));
        if is_frame {
            return body::of_frame(frame, form, notice.is_cut);
        }
        body::of_task(&self.log, frame, watcher.first, form).await.unwrap_or_else(|error| {
            tracing::warn!(session = %self.session(), %error, "a notification lacks the task's messages");
            body::bare_task(frame, form)
        })
    }

    /// Records that there is nothing more to tell up to where each has read, or up to the end of the log.
    pub(super) async fn advance(&self, end: Option<u64>) -> Result<(), JournalError> {
        let position = |watcher: &Watcher| {
            let Cursor { seq, part } = match end {
                Some(end) => Cursor::new(end, u32::MAX),
                None => watcher.passed()?,
            };
            Some((watcher.key, PushPosition { epoch: self.epoch, seq, part }))
        };
        let moved: Vec<_> = self.list.iter().filter_map(position).collect();
        match self.push.queue() {
            // What is still to be told would be lost.
            Some(queue) if !moved.is_empty() && self.notices.is_empty() && self.due().is_none() => {
                queue.advance(moved).await
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use multitap_event::{Draft, EventKind, TextChunk, Timestamp};
    use multitap_hub::JournalError;
    use multitap_store::Store;
    use multitap_testkit::agent::{asked, turn_ended, turn_started};
    use tokio::time::advance;

    use super::super::super::project::Projector;
    use super::super::PushOptions;
    use super::*;

    fn watchers(form: &str) -> Watchers {
        let journal = Arc::new(Store::unusable(JournalError::Full));
        let push = Arc::new(Push::new(journal.clone(), PushOptions::default(), true));
        let config = PushConfigRecord {
            key: PushKey(1),
            task: "task-s".to_owned(),
            id: "p".to_owned(),
            session: "s".into(),
            client: String::new(),
            url: String::new(),
            secrets: None,
            form: form.to_owned(),
            after: PushPosition::default(),
            state: None,
            finished: false,
        };
        let mut watchers = Watchers::new(push, Log::Kept { journal, session: "s".into() }, 1, 0);
        watchers.list.push(Watcher::new(&config, 1, Cursor::default()));
        watchers
    }

    struct Script(Projector, u64);

    impl Script {
        fn tell(&mut self, watchers: &mut Watchers, kind: EventKind) {
            let mut frames = Vec::new();
            self.1 += 1;
            self.0.apply(&Draft::new(Timestamp::from_millis(0), kind).stamp("s".into(), self.1), &mut frames);
            frames.into_iter().for_each(|frame| watchers.take(&Arc::new(frame)));
        }
    }

    fn said(id: &str) -> EventKind {
        EventKind::TextChunk(TextChunk { message_id: Some(id.into()), ..TextChunk::piece("word") })
    }

    fn states(watchers: &Watchers) -> Vec<&str> {
        watchers.notices.iter().map(|(_, notice)| notice.frame.scope.state.word()).collect()
    }

    /// Each body of 0.3 is the whole task: an agent that says much in many messages, or asks much, would otherwise cause
    /// work that grows with their number times the size of the task.
    #[tokio::test(start_paused = true)]
    async fn a_webhook_of_0_3_gets_the_same_state_once_per_second() {
        let (mut watchers, mut script) = (watchers("0.3"), Script(Projector::new("s"), 0));
        script.tell(&mut watchers, turn_started());
        for number in 0..1000 {
            script.tell(&mut watchers, said(&number.to_string()));
        }
        assert_eq!(states(&watchers), ["working"], "the messages wait");
        let due = watchers.due().unwrap();
        watchers.release(Some(Instant::now()));
        assert_eq!((watchers.notices.len(), watchers.due()), (1, Some(due)));
        advance(BETWEEN_TASKS).await;
        watchers.release(Some(Instant::now()));
        assert_eq!((states(&watchers), watchers.due()), (vec!["working", "working"], None), "one for all of them");
        script.tell(&mut watchers, said("last"));
        script.tell(&mut watchers, asked("q"));
        script.tell(&mut watchers, asked("r"));
        assert_eq!(states(&watchers)[2..], ["input-required"], "another state is told at once");
        script.tell(&mut watchers, turn_ended());
        assert_eq!(states(&watchers)[3..], ["completed"]);
        assert_eq!(watchers.due(), None, "the task contains what waited");
    }

    #[tokio::test(start_paused = true)]
    async fn a_webhook_of_1_0_gets_each_message() {
        let (mut watchers, mut script) = (watchers("1.0"), Script(Projector::new("s"), 0));
        script.tell(&mut watchers, turn_started());
        for number in 0..10 {
            script.tell(&mut watchers, said(&number.to_string()));
        }
        watchers.close_messages();
        assert_eq!((watchers.notices.len(), watchers.due()), (11, None));
    }
}
