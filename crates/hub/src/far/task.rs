//! The task behind a far session: applies incoming events, lets clients join here, and forwards their calls.
//!
//! It waits only at its `select!`; each pending call has a task of its own.

use std::sync::Arc;

use multitap_event::{ApprovalMode, ClientRef, EventKind};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Elsewhere, FarStart};
use crate::entry::Entry;
use crate::feed::Feed;
use crate::past::Past;
use crate::protocol::Refusal;
use crate::reach::{Reach, Standing};
use crate::session::{Ask, Join, Joined};
use crate::state::State;
use crate::tail::Tail;

/// Most pending calls.
const UNDER_WAY: usize = 32;
/// How many events are applied at a time.
const AT_A_TIME: usize = 64;

/// News about the session.
#[derive(Debug)]
pub enum FarNews {
    Told(Entry),
    /// Every missing event up to `next` is lost; `state` is the session's state by then, or later.
    Skipped {
        next: u64,
        state: Box<State>,
    },
    /// The connection broke, for this reason.
    Lost(Arc<str>),
    /// The connection is back, with another client id.
    Found(ClientRef),
    /// The session is over, for this reason, and all its events were fed in.
    Over(Arc<str>),
    /// The other side kicked us.
    CutOff(Arc<str>),
}

/// Must run for as long as the session is used.
#[derive(Debug)]
#[must_use = "a far session hears nothing unless this is run"]
pub struct FarTask {
    pub(super) start: FarStart,
    pub(super) elsewhere: Arc<dyn Elsewhere>,
    pub(super) inbox: mpsc::Receiver<Ask>,
    pub(super) heard: mpsc::Receiver<FarNews>,
    pub(super) native: watch::Sender<Option<String>>,
    /// What is known of the mode that only owners may exceed: the one that an owner chose last.
    pub(super) ceiling: watch::Sender<ApprovalMode>,
    pub(super) reach: watch::Sender<Standing>,
    pub(super) tail: Arc<Tail>,
    pub(super) end: CancellationToken,
    pub(super) under_way: JoinSet<()>,
    pub(super) over: bool,
}

impl FarTask {
    /// Runs until the session is over, or unused here.
    #[tracing::instrument(name = "far", skip_all, fields(session = %self.start.id))]
    pub async fn run(mut self) {
        let mut heard = Vec::new();
        let mut asked = true;
        while !self.over {
            tokio::select! {
                () = self.end.cancelled() => break,
                count = self.heard.recv_many(&mut heard, AT_A_TIME) => {
                    if count == 0 {
                        break;
                    }
                    self.take_in(&mut heard);
                }
                ask = self.inbox.recv(), if asked && self.under_way.len() < UNDER_WAY => match ask {
                    Some(ask) => self.on_ask(ask),
                    // Feeds may still be open.
                    None => asked = false,
                },
                Some(_) = self.under_way.join_next() => {}
                () = self.tail.moved.notified() => drop(self.tail.sweep()),
            }
        }
        self.tail.close();
    }

    /// Applies queued events in order, and wakes the readers once.
    fn take_in(&mut self, heard: &mut Vec<FarNews>) {
        let mut entries = Vec::new();
        for heard in heard.drain(..) {
            match heard {
                FarNews::Told(entry) => {
                    let last = entries.last().map_or_else(|| self.tail.head().last, Entry::seq);
                    if entry.seq() <= last {
                        continue;
                    }
                    if entry.seq() > last + 1 {
                        // The other process reported no gap: a reader that misses an event requests it.
                        self.tail.add(std::mem::take(&mut entries));
                        self.tail.skip_to(entry.seq());
                    }
                    self.apply(&entry);
                    entries.push(entry);
                }
                FarNews::Skipped { next, state } => {
                    self.tail.add(std::mem::take(&mut entries));
                    self.tail.skip_to(next);
                    self.start.state = state;
                }
                FarNews::Lost(why) => self.reach.send_modify(|now| now.reach = Reach::Lost(why)),
                FarNews::Found(client) => {
                    self.start.client = client.clone();
                    self.reach.send_modify(|now| *now = Standing { reach: Reach::Here, client });
                }
                FarNews::Over(why) => self.is_over(why),
                FarNews::CutOff(why) => {
                    self.tail.cut_all();
                    self.is_over(why);
                }
            }
        }
        self.tail.add(entries);
    }

    fn is_over(&mut self, why: Arc<str>) {
        self.reach.send_modify(|now| now.reach = Reach::Gone(why));
        self.over = true;
    }

    /// A fetched state may be newer than the queued events.
    fn apply(&mut self, entry: &Entry) {
        let state = &mut self.start.state;
        if entry.seq() <= state.seq {
            return;
        }
        if let Some(EventKind::ModeChanged { mode: Some(mode), by: Some(by), .. }) =
            entry.event().map(|event| &event.kind)
            && by.is_owner()
        {
            self.ceiling.send_replace(*mode);
        }
        state.apply_entry(entry);
        state.show_native_id(&self.native);
    }

    fn on_ask(&mut self, ask: Ask) {
        match ask {
            Ask::Join { join, reply } => drop(reply.send(Ok(self.join(&join)))),
            // A call that only reads the state, which is known here, is answered here.
            Ask::Call { call, reply, .. } => match self.start.state.answer(&call, &self.start.id, self.start.epoch) {
                Some(looked) => drop(reply.send(Ok(looked))),
                None => {
                    let answer = self.elsewhere.call(call);
                    // The caller may be gone.
                    self.under_way.spawn(async move { drop(reply.send(answer.await)) });
                }
            },
            Ask::Report { reply, .. } | Ask::Restart { reply, .. } | Ask::Finish { reply } | Ask::Stop { reply } => {
                drop(reply.send(Err(Refusal::NotHere)));
            }
        }
    }

    /// Everybody who joins here is the same client for the other process.
    fn join(&self, join: &Join) -> Joined {
        let FarStart { id, epoch, client, state } = &self.start;
        let last = self.tail.head().last;
        let place = join.from.place(last, last, *epoch);
        let past = Some(Past::Elsewhere(self.elsewhere.clone()));
        let feed = Feed::new(id.clone(), client.clone(), place.after, join.patience, self.tail.clone(), past);
        let snapshot = place.snapshot.then(|| state.clone());
        Joined { client: client.clone(), feed, snapshot, gap: place.gap, epoch: *epoch }
    }
}
