//! Stored push notifications: where clients want to be notified of a task, and what is still to be delivered there.
//!
//! A delivery is stored before it is sent, and counts an attempt before the attempt is made. So a crash loses none, and
//! what may have been sent twice says so. What a notification contains, and when it is sent again, is up to the door.

use std::fmt;

use multitap_event::{SessionId, Timestamp};
use serde_json::{Map, Value};

use super::Kept;

/// Most configs of one task.
pub const PUSH_CONFIGS_PER_TASK: usize = 16;
/// Most configs of one client whose tasks can still change.
pub const PUSH_CONFIGS_PER_CLIENT: usize = 256;
/// Most deliveries of one config that wait. When there are more, the oldest that was not yet tried is given up.
pub const PUSH_QUEUE: usize = 100;
/// Most bytes of their bodies; likewise.
pub const PUSH_QUEUE_BYTES: usize = 8 * 1024 * 1024;
/// Most deliveries of one task that the log of deliveries contains, besides those that wait.
pub const PUSH_LOG: usize = 200;

/// Stores push configs and their deliveries. Each config's deliveries form a queue in the order in which they were
/// stored; only the first of a queue can be taken.
pub trait PushQueue: fmt::Debug + Send + Sync {
    /// Stores a config of a stored task, replacing the one with its id, whose deliveries are given up.
    fn put_config(&self, config: NewPushConfig) -> Kept<'_, PutPushConfig>;

    /// The configs of a task, or the unfinished ones of a session or of all; the newest first.
    fn push_configs(&self, of: PushScope) -> Kept<'_, Vec<PushConfigRecord>>;

    /// Deletes a config and gives up its deliveries. Returns whether there was one.
    fn remove_config(&self, task: String, id: String) -> Kept<'_, bool>;

    /// Stores deliveries, all or none; on `Ok` they survive a power cut. One that is not after the config's position is
    /// skipped: another process stored it. So are those of deleted configs.
    fn enqueue(&self, deliveries: Vec<NewDelivery>) -> Kept<'_, Vec<PendingPush>>;

    /// Moves configs forward that have nothing to deliver before that position.
    fn advance(&self, configs: Vec<(PushKey, PushPosition)>) -> Kept<'_, ()>;

    /// The first delivery of each queue.
    fn pending(&self) -> Kept<'_, Vec<PendingPush>>;

    /// Takes the first delivery of a queue until that time, and counts an attempt, on the disk.
    fn take(&self, config: PushKey, until: Timestamp) -> Kept<'_, TakePush>;

    /// Records the outcome of an attempt. Returns the next of the queue.
    fn settle(&self, attempt: SettledAttempt) -> Kept<'_, Option<PendingPush>>;

    /// The log of deliveries, the newest first.
    fn deliveries(&self, of: DeliveriesOf, limit: usize) -> Kept<'_, Vec<DeliveryRecord>>;
}

/// Names a config for its whole life; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushKey(pub i64);

/// A position in a session's log. Those of a later epoch are after all earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PushPosition {
    pub epoch: u64,
    pub seq: u64,
    pub part: u32,
}

#[derive(Clone, PartialEq, Eq)]
pub struct NewPushConfig {
    pub task: String,
    pub id: String,
    pub session: SessionId,
    /// The client that set it, to find its configs and to show it its secrets.
    pub client: String,
    pub url: String,
    /// The URL without its path and query, which may be secret.
    pub origin: String,
    /// The secrets as JSON, in the door's own format.
    pub secrets: Option<String>,
    /// The form of the notifications, in the door's own words.
    pub form: String,
    pub created: Timestamp,
    /// It gets what comes after that position.
    pub after: PushPosition,
    /// The task's state there, in the door's own words.
    pub state: Option<String>,
    /// The task cannot change any more.
    pub finished: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub struct PushConfigRecord {
    pub key: PushKey,
    pub task: String,
    pub id: String,
    pub session: SessionId,
    pub client: String,
    pub url: String,
    pub secrets: Option<String>,
    pub form: String,
    /// Everything up to here is stored as a delivery, or needs none.
    pub after: PushPosition,
    /// The state in its last delivery, or when it was set.
    pub state: Option<String>,
    pub finished: bool,
}

/// Secrets are not for logs; an address may contain one.
impl fmt::Debug for NewPushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewPushConfig").field("task", &self.task).field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for PushConfigRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConfigRecord").field("task", &self.task).field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutPushConfig {
    Stored(PushKey),
    /// The task is not stored.
    NoTask,
    TooManyOfTask,
    TooManyOfClient,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushScope {
    Task(String),
    /// Unfinished ones only.
    Session(SessionId),
    /// Unfinished ones only.
    All,
}

#[derive(Clone, PartialEq, Eq)]
pub struct NewDelivery {
    pub config: PushKey,
    pub at: PushPosition,
    /// The state that it reports, in the door's own words.
    pub state: String,
    pub body: String,
    /// The last one: the task cannot change any more.
    pub last: bool,
}

impl fmt::Debug for NewDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewDelivery").field("config", &self.config).field("at", &self.at).finish_non_exhaustive()
    }
}

/// A queue that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPush {
    pub config: PushKey,
    pub session: SessionId,
    /// When its first delivery is due.
    pub due: Timestamp,
}

/// The first of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakePush {
    Taken(Box<TakenDelivery>),
    /// It is not due, or a living process has it.
    Wait(PendingPush),
    Empty,
}

/// A delivery to attempt now.
#[derive(Clone, PartialEq, Eq)]
pub struct TakenDelivery {
    pub config: PushKey,
    /// The same for each attempt.
    pub id: String,
    /// 1 for the first.
    pub attempt: u32,
    pub created: Timestamp,
    pub url: String,
    pub secrets: Option<String>,
    pub form: String,
    pub body: String,
}

impl fmt::Debug for TakenDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakenDelivery").field("id", &self.id).field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledAttempt {
    pub config: PushKey,
    pub id: String,
    pub attempt: u32,
    pub at: Timestamp,
    pub outcome: DeliveryOutcome,
    /// The status of the answer, if there was one.
    pub http_status: Option<u16>,
    /// Why it failed, without secrets.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    Retry {
        at: Timestamp,
    },
    GivenUp,
    /// Given up, and the receiver is gone: deletes the config.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveriesOf {
    Session(SessionId),
    Task(String),
}

/// An entry of the log of deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    pub id: String,
    pub task: String,
    /// The config's id for its client.
    pub config: String,
    /// The URL without its path and query.
    pub origin: String,
    /// The state that it reports.
    pub state: String,
    pub status: DeliveryStatus,
    pub attempts: u32,
    pub http_status: Option<u16>,
    pub error: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// When it is due, while it waits.
    pub due: Option<Timestamp>,
}

impl DeliveryRecord {
    /// As clients and scripts see it.
    pub fn to_json(&self) -> Value {
        let mut json = Map::from_iter([
            ("id".to_owned(), self.id.as_str().into()),
            ("taskId".to_owned(), self.task.as_str().into()),
            ("configId".to_owned(), self.config.as_str().into()),
            ("origin".to_owned(), self.origin.as_str().into()),
            ("state".to_owned(), self.state.as_str().into()),
            ("status".to_owned(), self.status.word().into()),
            ("attempts".to_owned(), self.attempts.into()),
            ("created".to_owned(), self.created.to_string().into()),
            ("updated".to_owned(), self.updated.to_string().into()),
        ]);
        let more = [
            ("httpStatus", self.http_status.map(Value::from)),
            ("error", self.error.clone().map(Value::from)),
            ("nextAttempt", self.due.map(|due| due.to_string().into())),
        ];
        json.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        json.into()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    Pending,
    Delivered,
    GivenUp,
}

impl DeliveryStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::GivenUp => "givenUp",
        }
    }
}
