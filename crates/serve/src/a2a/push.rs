//! Push notifications: calls webhooks about tasks, so that clients need not hold a stream open.
//!
//! `follow` reads the frames of a session with configs, `notice` selects what a webhook is sent, and `body` writes it.
//! The journal stores each notification before the `courier` sends it (`send`), and `retry` decides what its answer
//! means. `catch_up` finds what an earlier process could not store any more. A session without configs costs nothing
//! but one query when its stage opens; no webhook delays a stream, another webhook or the agent.
//!
//! Must not come in: JSON-RPC, what a client may see.

mod body;
mod catch_up;
pub(crate) mod config;
mod courier;
mod follow;
mod log;
mod notice;
mod retry;
mod send;
mod watchers;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{Journal, PendingPush, PushKey, PushQueue};
use multitap_outbound::Screen;
use tokio::sync::Notify;

pub(crate) use self::courier::run;
pub(super) use self::follow::follow;
pub(crate) use self::log::deliveries;
use self::send::Sender;

/// How webhooks are called.
#[derive(Debug, Clone)]
pub struct PushOptions {
    /// Whether webhooks may have private, link-local and other special addresses. Those of this machine are always
    /// allowed if only this machine can reach the door.
    pub allow_private: bool,
    /// Wait after the first attempt that failed; it doubles with each further one.
    pub first_wait: Duration,
    /// Also the longest accepted `Retry-After`.
    pub longest_wait: Duration,
    /// Most attempts of one delivery.
    pub attempts: u32,
    /// A delivery that is older is given up.
    pub longest_age: Duration,
    /// Time limit of an attempt.
    pub answer_time: Duration,
    /// How often the journal is searched for what other processes left.
    pub search: Duration,
}

impl Default for PushOptions {
    fn default() -> Self {
        Self {
            allow_private: false,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60 * 60),
            attempts: 16,
            longest_age: Duration::from_secs(24 * 60 * 60),
            answer_time: Duration::from_secs(15),
            search: Duration::from_secs(60),
        }
    }
}

/// The push notifications of a door.
#[derive(Debug)]
pub(crate) struct Push {
    journal: Arc<dyn Journal>,
    screen: Screen,
    options: PushOptions,
    sender: Sender,
    /// Tells the follower of a session that its configs changed.
    changed: Mutex<HashMap<SessionId, Arc<Notify>>>,
    /// News for the courier.
    due: Mutex<HashMap<PushKey, PendingPush>>,
    woken: Notify,
}

impl Push {
    /// For a door that only this machine can reach, or others as well.
    pub(crate) fn new(journal: Arc<dyn Journal>, options: PushOptions, is_local: bool) -> Self {
        let screen = Screen::allowing_private(options.allow_private);
        let screen = if is_local { screen.allowing_loopback() } else { screen };
        Self {
            sender: Sender::new(screen.clone(), options.answer_time),
            journal,
            screen,
            options,
            changed: Mutex::default(),
            due: Mutex::default(),
            woken: Notify::new(),
        }
    }

    /// `None` if the journal stores no notifications.
    pub(crate) fn queue(&self) -> Option<&dyn PushQueue> {
        self.journal.push_queue()
    }

    /// The addresses that webhooks may have.
    pub(crate) fn screen(&self) -> &Screen {
        &self.screen
    }

    /// A config of that session was stored or deleted.
    pub(crate) fn config_changed(&self, session: &SessionId) {
        if let Some(changed) = lock(&self.changed).get(session) {
            changed.notify_one();
        }
    }

    /// Deliveries were stored.
    fn stored(&self, pending: Vec<PendingPush>) {
        if !pending.is_empty() {
            lock(&self.due).extend(pending.into_iter().map(|pending| (pending.config, pending)));
            self.woken.notify_one();
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic leaves the maps inconsistent.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A time that much later.
fn after(at: Timestamp, wait: Duration) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
}
