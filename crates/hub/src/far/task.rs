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
use crate::protocol::{ClientsReply, Refusal, RulesReply, SessionCall, SessionReply, SnapshotReply};
use crate::reach::{Reach, Standing};
use crate::session::{Ask, Join, Joined};
use crate::state::State;
use crate::tail::{Reader, Tail};

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
    start: FarStart,
    elsewhere: Arc<dyn Elsewhere>,
    inbox: mpsc::Receiver<Ask>,
    heard: mpsc::Receiver<FarNews>,
    native: watch::Sender<Option<String>>,
    /// What is known of the mode that only owners may exceed: the one that an owner chose last.
    ceiling: watch::Sender<ApprovalMode>,
    reach: watch::Sender<Standing>,
    tail: Arc<Tail>,
    end: CancellationToken,
    under_way: JoinSet<()>,
    over: bool,
}

impl FarTask {
    #[expect(clippy::too_many_arguments, reason = "all ends of the channels that one function makes")]
    pub(super) fn new(
        start: FarStart,
        elsewhere: Arc<dyn Elsewhere>,
        inbox: mpsc::Receiver<Ask>,
        heard: mpsc::Receiver<FarNews>,
        native: watch::Sender<Option<String>>,
        ceiling: watch::Sender<ApprovalMode>,
        reach: watch::Sender<Standing>,
        tail: Arc<Tail>,
        end: CancellationToken,
    ) -> Self {
        let under_way = JoinSet::new();
        Self { start, elsewhere, inbox, heard, native, ceiling, reach, tail, end, under_way, over: false }
    }

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
        match entry.event() {
            Some(event) => {
                if let EventKind::ModeChanged { mode: Some(mode), by: Some(by), .. } = &event.kind
                    && by.is_owner()
                {
                    self.ceiling.send_replace(*mode);
                }
                state.apply(event);
            }
            // An event of a newer version has a number too.
            None => state.seq = entry.seq(),
        }
        state.show_native_id(&self.native);
    }

    fn on_ask(&mut self, ask: Ask) {
        match ask {
            Ask::Join { join, reply } => drop(reply.send(Ok(self.join(&join)))),
            Ask::Call { call, reply, .. } => match self.look(&call) {
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

    /// Answers a call that only reads the state, which is known here.
    fn look(&self, call: &SessionCall) -> Option<SessionReply> {
        let FarStart { id, epoch, state, .. } = &self.start;
        match call {
            SessionCall::Clients => Some(SessionReply::Clients(ClientsReply { clients: state.clients.clone() })),
            SessionCall::Rules => Some(SessionReply::Rules(RulesReply { rules: state.rules.clone() })),
            SessionCall::Snapshot => Some(SessionReply::Snapshot(SnapshotReply {
                session_id: id.clone(),
                epoch: *epoch,
                snapshot: state.clone(),
            })),
            _ => None,
        }
    }

    /// Everybody who joins here is the same client for the other process.
    fn join(&self, join: &Join) -> Joined {
        let FarStart { id, epoch, client, state } = &self.start;
        let last = self.tail.head().last;
        let place = join.from.place(last, last, *epoch);
        let reader_id = client.client_id.clone().unwrap_or_else(multitap_event::ClientId::fresh);
        let reader = Arc::new(Reader::new(reader_id, place.after, join.patience));
        self.tail.seat(reader.clone());
        let past = Some(Past::Elsewhere(self.elsewhere.clone()));
        let feed = Feed::new(id.clone(), client.clone(), reader, self.tail.clone(), past);
        let snapshot = place.snapshot.then(|| state.clone());
        Joined { client: client.clone(), feed, snapshot, gap: place.gap, epoch: *epoch }
    }
}
