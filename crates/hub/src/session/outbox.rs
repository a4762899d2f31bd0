//! What is on its way out of a session: kept first, then told and acted on, all in the order in which it happened.
//!
//! One batch is under way at a time; what gathers meanwhile is the next. When the journal fails, the session goes on:
//! events stay in memory, and the journal is tried again. So it is with a log that could not even be begun.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use multitap_event::{Command, EventKind, SessionId};
use tokio::sync::mpsc::OwnedPermit;
use tokio::time::{Instant, sleep_until};

use super::log::{Log, Right, Write};
use crate::entry::Entry;
use crate::journal::{About, Batch, Checkpoint, Flush, JournalError, Owner};
use crate::state::{Presence, State};

/// How much may wait to be kept before the session stops listening to its agent.
const WAITING_BYTES: usize = 1024 * 1024;
/// How many events a batch may have.
const BATCH: usize = 4096;
/// How much may wait in all before callers have to: their answers wait here too.
const WAITING: usize = 2 * BATCH;
/// How much is remembered of what could not be kept; beyond it the log cannot be taken up again.
const UNSAVED_BYTES: usize = 64 * 1024 * 1024;
/// How long after a failure the journal is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// After how many events the state is kept too.
const CHECKPOINT_EVERY: u64 = 1000;

/// One step on the way out.
pub(super) enum Item {
    Entry(Entry),
    /// Done when everything before it is kept.
    Then(Effect),
}

pub(super) enum Effect {
    Tell(OwnedPermit<Command>, Command),
    Do(Box<dyn FnOnce() + Send>),
}

/// How a batch came out.
pub(super) enum Landed {
    Kept(Vec<Item>),
    /// Not kept, but the session goes on with it. The journal has just failed, if there is an error.
    Unkept(Vec<Item>, Option<JournalError>),
    /// Everything that was not kept is now.
    KeptAgain,
    /// Another process has the session.
    Lost(Vec<Item>),
}

pub(super) struct Outbox {
    session: SessionId,
    log: Option<Log>,
    waiting: VecDeque<Item>,
    waiting_bytes: usize,
    flight: Option<Flight>,
    trouble: Option<Trouble>,
    about: About,
    checkpoint: u64,
}

struct Flight {
    write: Write,
    items: Vec<Item>,
    /// How many of the unkept entries it carries.
    unsaved: usize,
}

/// The journal does not work.
struct Trouble {
    unsaved: VecDeque<Entry>,
    bytes: usize,
    /// Too much was lost to go on with the log.
    hopeless: bool,
    retry: Instant,
}

impl Trouble {
    fn new() -> Self {
        Self { unsaved: VecDeque::new(), bytes: 0, hopeless: false, retry: Instant::now() + RETRY }
    }
}

impl Outbox {
    pub(super) fn new(session: SessionId, log: Option<Log>, state: &State) -> Self {
        let wanted = log.as_ref().is_some_and(|log| matches!(log.right, Right::Wanted(_)));
        Self {
            session,
            log,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            flight: None,
            trouble: wanted.then(Trouble::new),
            about: About::default(),
            checkpoint: state.seq,
        }
    }

    pub(super) fn entry(&mut self, entry: Entry) {
        self.waiting_bytes += entry.bytes();
        self.waiting.push_back(Item::Entry(entry));
    }

    pub(super) fn then(&mut self, effect: Effect) {
        self.waiting.push_back(Item::Then(effect));
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting_bytes < WAITING_BYTES && self.waiting.len() < BATCH
    }

    /// Whether more callers can be answered.
    pub(super) fn takes_calls(&self) -> bool {
        self.waiting.len() < WAITING
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.flight.is_none()
    }

    /// Comes back when something has landed. Cancel safe; never ends while there is nothing to wait for.
    pub(super) async fn landed(&mut self, state: &State) -> Landed {
        loop {
            self.set_off(state);
            if let Some(flight) = &mut self.flight {
                let outcome = (&mut flight.write).await;
                let Some(flight) = self.flight.take() else { continue };
                if let Some(landed) = self.settle(flight, outcome) {
                    return landed;
                }
                continue;
            }
            if !self.waiting.is_empty() {
                // Nothing to keep, or nowhere to keep it.
                let items = self.take_waiting();
                return if self.log.is_none() { Landed::Kept(items) } else { self.unkept(items, None) };
            }
            match self.trouble.as_ref().filter(|trouble| !trouble.hopeless) {
                Some(trouble) => sleep_until(trouble.retry).await,
                None => pending().await,
            }
            self.try_again(None);
        }
    }

    /// At the end, when nothing waits any more: tries once more to keep what was not kept.
    pub(super) async fn last_try(&mut self, state: &State) {
        while self.trouble.as_ref().is_some_and(|trouble| !trouble.hopeless) {
            self.try_again(Some(about(state)));
            let Some(flight) = &mut self.flight else { return };
            let outcome = (&mut flight.write).await;
            let failed = outcome.is_err();
            if let Some(flight) = self.flight.take() {
                self.settle(flight, outcome);
            }
            if failed {
                return;
            }
        }
    }

    /// Sends the next batch on its way, unless one is.
    fn set_off(&mut self, state: &State) {
        if self.flight.is_some() || self.trouble.is_some() || self.waiting.is_empty() {
            return;
        }
        let Some(log) = self.log.clone() else { return };
        let items = self.take_waiting();
        let entries: Vec<Entry> = items
            .iter()
            .filter_map(|item| if let Item::Entry(entry) = item { Some(entry.clone()) } else { None })
            .collect();
        if entries.is_empty() {
            self.flight = Some(Flight { write: Box::pin(async { Ok(None) }), items, unsaved: 0 });
            return;
        }
        let flush = entries.iter().map(flush).max().unwrap_or(Flush::Soon);
        let about = Some(about(state)).filter(|about| *about != self.about);
        if let Some(about) = &about {
            self.about.clone_from(about);
        }
        let checkpoint = self.checkpoint(state);
        let session = self.session.clone();
        let write = log.append(|owner| Batch { session, owner, entries, flush, checkpoint, about });
        self.flight = write.map(|write| Flight { write, items, unsaved: 0 });
    }

    fn checkpoint(&mut self, state: &State) -> Option<Checkpoint> {
        let rests = state.turn.is_none() && state.seq >= self.checkpoint + CHECKPOINT_EVERY / 10;
        if !rests && state.seq < self.checkpoint + CHECKPOINT_EVERY {
            return None;
        }
        self.checkpoint = state.seq;
        // A state that cannot be written costs time at the next start, and nothing else.
        Some(Checkpoint { seq: state.seq, state: serde_json::to_string(state).ok()? })
    }

    fn settle(&mut self, flight: Flight, outcome: Result<Option<Owner>, JournalError>) -> Option<Landed> {
        let Flight { items, unsaved, .. } = flight;
        match outcome {
            Ok(Some(owner)) => {
                self.log.as_mut()?.right = Right::Held(owner);
                self.trouble.as_mut()?.retry = Instant::now();
                None
            }
            Ok(None) if unsaved > 0 => {
                let trouble = self.trouble.as_mut()?;
                for entry in trouble.unsaved.drain(..unsaved) {
                    trouble.bytes -= entry.bytes();
                }
                if trouble.unsaved.is_empty() {
                    self.trouble = None;
                    return Some(Landed::KeptAgain);
                }
                trouble.retry = Instant::now();
                None
            }
            Ok(None) => Some(Landed::Kept(items)),
            Err(JournalError::Lost(_)) => {
                self.log = None;
                self.trouble = None;
                Some(Landed::Lost(items))
            }
            Err(error) if self.trouble.is_some() => {
                tracing::debug!(session = %self.session, %error, "the log still cannot be written");
                self.trouble.as_mut()?.retry = Instant::now() + RETRY;
                None
            }
            Err(error) => {
                tracing::warn!(session = %self.session, %error, "the log cannot be written");
                // Whatever was to be known of the session has to be said again.
                self.about = About::default();
                self.trouble = Some(Trouble::new());
                Some(self.unkept(items, Some(error)))
            }
        }
    }

    fn unkept(&mut self, items: Vec<Item>, error: Option<JournalError>) -> Landed {
        if let Some(trouble) = &mut self.trouble {
            for item in &items {
                let Item::Entry(entry) = item else { continue };
                trouble.bytes += entry.bytes();
                trouble.unsaved.push_back(entry.clone());
            }
            if trouble.bytes > UNSAVED_BYTES {
                trouble.hopeless = true;
                trouble.unsaved = VecDeque::new();
                trouble.bytes = 0;
            }
        }
        Landed::Unkept(items, error)
    }

    /// Tries to keep what was not kept.
    fn try_again(&mut self, about: Option<About>) {
        let (Some(log), Some(trouble)) = (&self.log, &mut self.trouble) else { return };
        let entries: Vec<Entry> = trouble.unsaved.iter().take(BATCH).cloned().collect();
        let unsaved = entries.len();
        if unsaved == 0 {
            match log.right {
                Right::Held(_) => self.trouble = None,
                // A log in which nothing would stand can wait.
                Right::Wanted(_) => trouble.retry = Instant::now() + RETRY,
            }
            return;
        }
        let (session, flush) = (self.session.clone(), Flush::Now);
        let append = |owner| Batch { session, owner, entries, flush, checkpoint: None, about };
        self.flight = match log.begin() {
            Some(write) => Some(Flight { write, items: Vec::new(), unsaved: 0 }),
            None => log.append(append).map(|write| Flight { write, items: Vec::new(), unsaved }),
        };
    }

    /// Nobody writes the log any more; `told` is the last event that anybody saw.
    pub(super) async fn let_go(self, told: u64) -> Result<(), JournalError> {
        match &self.log {
            Some(log) => log.release(self.session.clone(), told).await,
            None => Ok(()),
        }
    }

    fn take_waiting(&mut self) -> Vec<Item> {
        self.waiting_bytes = 0;
        self.waiting.drain(..).collect()
    }
}

/// Prompts, rulings, the ends of turns, and where a session begins and ends are on the disk before anybody hears.
fn flush(entry: &Entry) -> Flush {
    match entry.event().map(|event| &event.kind) {
        Some(
            EventKind::UserMessage(_)
            | EventKind::PromptQueued { .. }
            | EventKind::PromptWithdrawn { .. }
            | EventKind::PermissionSettled(_)
            | EventKind::TurnCompleted(_)
            | EventKind::SessionStarted(_)
            | EventKind::SessionEnded(_),
        ) => Flush::Now,
        _ => Flush::Soon,
    }
}

pub(crate) fn about(state: &State) -> About {
    About {
        title: state.title.clone(),
        native_id: state.conversation().map(str::to_owned),
        model: state.model.clone(),
        open: state.agent == Presence::Here,
    }
}
