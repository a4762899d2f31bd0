//! Delivers what is stored: one attempt per webhook at a time, many webhooks at once.
//!
//! One courier per door. It sends what its own followers stored, and what earlier processes left for sessions that this
//! door shows.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::Error;
use multitap_event::{SessionId, Timestamp};
use multitap_hub::{JournalError, PendingPush, PushKey, PushScope, Session, SettledAttempt, TakePush};
use tokio::task::{Id, JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::retry::Verdict;
use super::{Push, after, catch_up, lock};
use crate::error;
use crate::http::Shared;

/// Most attempts at a time.
const ATTEMPTS: usize = 64;
/// How often sessions with configs are looked for that became live here without an A2A client.
const LOOK: Duration = Duration::from_secs(2);
/// The wait after the journal failed.
const JOURNAL_PAUSE: Duration = Duration::from_secs(5);
/// How long an attempt is this process's own, besides the time limit of the attempt.
const MARGIN: Duration = Duration::from_secs(30);
/// How long running attempts may take when the door closes. What they leave is attempted again after the next start.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// Delivers until the door closes.
pub(crate) async fn run(door: Shared) {
    let Some(push) = door.push.clone().filter(|push| push.queue().is_some()) else { return };
    let stop = door.stop.clone();
    let (queues, looked, attempts) = (HashMap::new(), HashSet::new(), JoinSet::new());
    let (has_configs, catching_up, attempted) = (false, None, HashMap::new());
    let mut courier = Courier { door, push, queues, has_configs, looked, catching_up, attempts, attempted };
    tokio::select! {
        () = stop.cancelled() => {}
        () = courier.deliver() => {}
    }
    // Those that take longer are aborted, and say so when they are repeated.
    timeout(STOP_PATIENCE, async { while courier.attempts.join_next().await.is_some() {} }).await.ok();
}

struct Courier {
    door: Shared,
    push: Arc<Push>,
    /// Queues that are not empty, by config.
    queues: HashMap<PushKey, Queue>,
    /// Whether any session has unfinished configs.
    has_configs: bool,
    /// Live sessions whose configs were looked for.
    looked: HashSet<SessionId>,
    catching_up: Option<JoinHandle<()>>,
    attempts: JoinSet<Settled>,
    /// The queues of running attempts.
    attempted: HashMap<Id, PushKey>,
}

#[derive(Debug, Clone, Copy)]
struct Queue {
    due: Timestamp,
    is_attempted: bool,
    /// When a delivery is due that was stored during an attempt.
    more: Option<Timestamp>,
}

impl Queue {
    fn due(due: Timestamp) -> Self {
        Self { due, is_attempted: false, more: None }
    }
}

/// What came of an attempt: when the next of the queue is due, if there is one.
type Settled = Result<Option<Timestamp>, JournalError>;

impl Courier {
    async fn deliver(&mut self) {
        let mut search = interval(self.push.options.search);
        let mut look = interval(LOOK);
        search.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let push = self.push.clone();
        loop {
            let now = Timestamp::now();
            self.start_due(now);
            let next = self.next_due(now);
            tokio::select! {
                Some(settled) = self.attempts.join_next_with_id(), if !self.attempts.is_empty() => match settled {
                    Ok((id, next)) => self.settled(id, next),
                    Err(error) => {
                        tracing::error!(%error, "an attempt to deliver a push notification panicked");
                        self.settled(error.id(), Ok(Some(after(Timestamp::now(), JOURNAL_PAUSE))));
                    }
                },
                () = push.woken.notified() => self.hear(),
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
                _ = search.tick() => match self.search().await {
                    Ok(sessions) => self.catch_up(sessions),
                    Err(error) => tracing::debug!(%error, "cannot read the pending push notifications"),
                },
                _ = look.tick(), if self.has_configs => self.look().await,
            }
        }
    }

    /// Starts what is due.
    fn start_due(&mut self, now: Timestamp) {
        let free = ATTEMPTS.saturating_sub(self.attempts.len());
        let due = self.queues.iter().filter(|(_, queue)| !queue.is_attempted && queue.due <= now);
        let mut due: Vec<(Timestamp, PushKey)> = due.map(|(key, queue)| (queue.due, *key)).collect();
        due.sort_unstable();
        for (_, key) in due.into_iter().take(free) {
            if let Some(queue) = self.queues.get_mut(&key) {
                queue.is_attempted = true;
                let attempt = self.attempts.spawn(attempt(self.push.clone(), key));
                self.attempted.insert(attempt.id(), key);
            }
        }
    }

    /// When something is due that can be started; `None` if another event comes first.
    fn next_due(&self, now: Timestamp) -> Option<Instant> {
        if self.attempts.len() >= ATTEMPTS {
            return None;
        }
        let waiting = self.queues.values().filter(|queue| !queue.is_attempted);
        let due = waiting.map(|queue| queue.due).min()?;
        Some(Instant::now() + Duration::from_millis(due.millis_since(now)))
    }

    /// Followers stored deliveries.
    fn hear(&mut self) {
        let news = std::mem::take(&mut *lock(&self.push.due));
        news.into_values().for_each(|pending| self.add(&pending));
    }

    fn add(&mut self, pending: &PendingPush) {
        let queue = self.queues.entry(pending.config).or_insert(Queue::due(pending.due));
        if queue.is_attempted {
            queue.more = Some(pending.due);
        } else {
            queue.due = pending.due;
        }
    }

    fn settled(&mut self, attempt: Id, next: Settled) {
        let Some(key) = self.attempted.remove(&attempt) else { return };
        let more = self.queues.remove(&key).and_then(|queue| queue.more);
        let due = match next {
            Ok(next) => next.or(more),
            Err(error) => {
                tracing::warn!(%error, "cannot record the delivery of a push notification");
                Some(after(Timestamp::now(), JOURNAL_PAUSE))
            }
        };
        self.queues.extend(due.map(|due| (key, Queue::due(due))));
    }

    /// Finds what earlier processes left. Returns the sessions with unfinished configs that this door shows.
    async fn search(&mut self) -> Result<Vec<SessionId>, JournalError> {
        let push = self.push.clone();
        let Some(queue) = push.queue() else { return Ok(Vec::new()) };
        let mut shown = HashMap::new();
        for pending in queue.pending().await? {
            if self.is_shown(&pending.session, &mut shown).await? {
                self.add(&pending);
            }
        }
        let configs = queue.push_configs(PushScope::All).await?;
        self.has_configs = !configs.is_empty();
        let sessions: HashSet<SessionId> = configs.into_iter().map(|config| config.session).collect();
        let mut found = Vec::new();
        for session in sessions {
            if self.is_shown(&session, &mut shown).await? {
                found.push(session);
            }
        }
        Ok(found)
    }

    async fn is_shown(&self, session: &SessionId, known: &mut HashMap<SessionId, bool>) -> Result<bool, JournalError> {
        if let Some(shown) = known.get(session) {
            return Ok(*shown);
        }
        let host = &self.door.host;
        let shown = host.find(session).is_some() || {
            let found = self.push.journal.find(session.to_string()).await?;
            found.iter().any(|record| record.id == *session && host.shows(record))
        };
        known.insert(session.clone(), shown);
        Ok(shown)
    }

    /// Sessions that became live without an A2A client have no frames: opens the stages of those with configs.
    async fn look(&mut self) {
        let live = self.door.host.live();
        self.looked.retain(|looked| live.iter().any(|session| session.id() == looked));
        for session in live {
            if self.looked.contains(session.id()) {
                continue;
            }
            match self.follow(&session).await {
                Ok(()) => drop(self.looked.insert(session.id().clone())),
                Err(error) => tracing::debug!(session = %session.id(), %error, "cannot look for push configs"),
            }
        }
    }

    async fn follow(&self, session: &Session) -> Result<(), Error> {
        let Some(queue) = self.push.queue() else { return Ok(()) };
        let configs = queue.push_configs(PushScope::Session(session.id().clone())).await;
        if configs.map_err(|error| error::from_journal(&error))?.is_empty() {
            return Ok(());
        }
        self.door.a2a.stage(&self.door, session).await.map(drop)
    }

    /// Reads on where other processes stopped.
    fn catch_up(&mut self, sessions: Vec<SessionId>) {
        if !sessions.is_empty() && self.catching_up.as_ref().is_none_or(JoinHandle::is_finished) {
            let run = catch_up::run(self.door.clone(), self.push.clone(), sessions);
            self.catching_up = Some(self.door.tasks.spawn(run));
        }
    }
}

/// Takes the first delivery of a queue, sends it, and records the outcome.
async fn attempt(push: Arc<Push>, key: PushKey) -> Settled {
    let Some(queue) = push.queue() else { return Ok(None) };
    let until = after(Timestamp::now(), push.options.answer_time + MARGIN);
    let delivery = match queue.take(key, until).await? {
        TakePush::Taken(delivery) => *delivery,
        TakePush::Wait(pending) => return Ok(Some(pending.due)),
        TakePush::Empty => return Ok(None),
    };
    let (id, number, created) = (delivery.id.clone(), delivery.attempt, delivery.created);
    let attempted = push.sender.attempt(delivery).await;
    let at = Timestamp::now();
    let Verdict { outcome, http_status, error } = push.options.judge(attempted, number, created, at, chance(number));
    tracing::debug!(delivery = id, attempt = number, ?outcome, http_status, "attempted a push notification");
    let settled = SettledAttempt { config: key, id, attempt: number, at, outcome, http_status, error };
    Ok(queue.settle(settled).await?.map(|next| next.due))
}

/// A random number from 0 to 1.
fn chance(attempt: u32) -> f64 {
    let drawn = RandomState::new().hash_one(attempt) % 1024;
    f64::from(u32::try_from(drawn).unwrap_or_default()) / 1023.0
}
