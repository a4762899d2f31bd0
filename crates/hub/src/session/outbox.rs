//! Outgoing events of a session: stored first, then shown and acted on, all in order.
//!
//! One batch is stored at a time; items that arrive meanwhile form the next. If the journal fails, the session goes on:
//! events stay in memory, and the journal is tried again. The same holds for a log that could not be created.

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

/// Most bytes that wait to be stored before the session stops listening to its agent.
const WAITING_BYTES: usize = 1024 * 1024;
/// Most events of a batch.
const BATCH: usize = 4096;
/// Most waiting items before callers have to wait: their replies wait here too.
const WAITING: usize = 2 * BATCH;
/// Most bytes of unstored events that are remembered; beyond it, storing cannot resume.
const UNSAVED_BYTES: usize = 64 * 1024 * 1024;
/// Time between a failure and the next attempt.
const RETRY: Duration = Duration::from_secs(5);
/// After how many events the state is stored too.
const CHECKPOINT_EVERY: u64 = 1000;

pub(super) enum Item {
    Entry(Entry),
    /// Runs when every item before it is stored.
    Then(Effect),
}

pub(super) enum Effect {
    Tell(OwnedPermit<Command>, Command),
    Do(Box<dyn FnOnce() + Send>),
}

/// The outcome of storing a batch.
pub(super) enum Landed {
    Kept(Vec<Item>),
    /// Not stored, but the session goes on. With an error, the journal has just failed.
    Unkept(Vec<Item>, Option<JournalError>),
    /// The log can be written again, and has every event.
    KeptAgain,
    /// Another process owns the session.
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
    /// How many of the unstored entries it contains.
    unsaved: usize,
}

struct Trouble {
    unsaved: VecDeque<Entry>,
    bytes: usize,
    /// Too many events were dropped to continue the log.
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

    /// Returns when a batch was written; pending while there is none. Cancel safe.
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
                // Nothing to store, or no log.
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

    /// At the end: tries once more to store the unstored events.
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

    /// Starts the next batch, unless one is being stored.
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
        // Without a checkpoint, only the next start takes longer.
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
                // All facts about the session have to be stored again.
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

    /// Tries to store the unstored events.
    fn try_again(&mut self, about: Option<About>) {
        let (Some(log), Some(trouble)) = (&self.log, &mut self.trouble) else { return };
        let entries: Vec<Entry> = trouble.unsaved.iter().take(BATCH).cloned().collect();
        let unsaved = entries.len();
        if unsaved == 0 {
            match log.right {
                Right::Held(_) => self.trouble = None,
                // An empty log can wait for the next attempt.
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

    /// Releases the log; `told` is the last event that a client saw.
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

/// Prompts, rulings, ends of turns, and the beginning and the end of a session are on disk before anybody sees them.
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
