//! The task that keeps the connection to a session: carries events in and calls out, and reconnects.

use std::collections::HashMap;
use std::time::Duration;

use multitap_event::{EventKind, SessionId};
use multitap_hub::{FarEnd, FarNews, GapNotice, JoinCall, JoinReply, Left};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};

use crate::address::Way;
use crate::attach::{Attach, AttachError};
use crate::calls::{Call, CallError, Link};
use crate::dial::{Cut, JOIN, Line};
use crate::wire::{Frame, call};

/// The first and the longest time between two attempts to reconnect.
const SOON: Duration = Duration::from_millis(100);
const SELDOM: Duration = Duration::from_secs(5);
/// How long reconnecting is tried if the host's network is gone.
const FAR: Duration = Duration::from_secs(10 * 60);
/// How long reconnecting is tried for a host on this machine, or for one without the session: it may be restarting.
const NEAR: Duration = Duration::from_secs(10);

/// Close codes of a host: the session is over, and this client was kicked.
const SESSION_OVER: u16 = 4000;
const KICKED: u16 = 4001;
/// A host that goes away. Version 0.1.0 also closes with this code when the session is over.
const GOING_AWAY: u16 = 1001;

pub(crate) struct Runner {
    to: Attach,
    session: SessionId,
    epoch: u64,
    /// The last event received.
    last: u64,
    /// Whether `sessionEnded` was the last start or end of the agent.
    is_ended: bool,
    far: FarEnd,
    calls: mpsc::Receiver<Call>,
    link: watch::Sender<Link>,
    pending: HashMap<u64, oneshot::Sender<Result<Box<RawValue>, CallError>>>,
    asked: u64,
}

enum End {
    /// Nobody here uses the session any more.
    Left,
    Cut(Cut),
}

/// How the task ends.
enum Over {
    Left,
    /// The session is over, or out of reach for good.
    Gone(String),
    SentAway(String),
}

impl From<Left> for End {
    fn from(_: Left) -> Self {
        Self::Left
    }
}

impl From<Left> for Over {
    fn from(_: Left) -> Self {
        Self::Left
    }
}

impl From<Cut> for End {
    fn from(cut: Cut) -> Self {
        Self::Cut(cut)
    }
}

impl Runner {
    pub(crate) fn new(
        to: Attach,
        session: SessionId,
        epoch: u64,
        last: u64,
        far: FarEnd,
        calls: mpsc::Receiver<Call>,
        link: watch::Sender<Link>,
    ) -> Self {
        let pending = HashMap::new();
        Self { to, session, epoch, last, is_ended: false, far, calls, link, pending, asked: JOIN }
    }

    #[tracing::instrument(name = "remote", skip_all, fields(session = %self.session))]
    pub(crate) async fn run(mut self, mut line: Line) {
        let over = loop {
            let cut = match self.serve(&mut line).await {
                End::Left => {
                    line.close().await;
                    break Over::Left;
                }
                End::Cut(cut) => cut,
            };
            self.link.send_replace(Link::Down);
            // The replies to these calls cannot come any more.
            self.pending.drain().for_each(|(_, reply)| drop(reply.send(Err(CallError::Broken))));
            match &cut {
                Cut::Closed { code: KICKED, reason } => break Over::SentAway(reason.clone()),
                Cut::Closed { code: SESSION_OVER, reason } => break Over::Gone(reason.clone()),
                Cut::Closed { code: GOING_AWAY, reason } if self.is_ended => break Over::Gone(reason.clone()),
                Cut::Closed { .. } | Cut::Broken(_) => tracing::info!(%cut, "the connection is lost"),
            }
            match self.again(&cut).await {
                Ok(found) => line = found,
                Err(over) => break over,
            }
            self.link.send_replace(Link::Up);
        };
        self.link.send_replace(Link::Gone);
        let news = match over {
            Over::Left => return,
            Over::Gone(why) => FarNews::Over(why.into()),
            Over::SentAway(why) => FarNews::CutOff(why.into()),
        };
        self.far.hear(news).await.ok(); // then nobody wants to know
    }

    /// Carries frames both ways while the connection lasts.
    async fn serve(&mut self, line: &mut Line) -> End {
        loop {
            let step = tokio::select! {
                () = self.far.left() => Err(End::Left),
                frame = line.hear() => match frame {
                    Ok(frame) => self.heard(line, frame).await,
                    Err(cut) => Err(cut.into()),
                },
                Some(call) = self.calls.recv() => self.ask(line, call).await,
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    async fn heard(&mut self, line: &mut Line, frame: Frame) -> Result<(), End> {
        match frame {
            Frame::Event(entry) => {
                self.last = self.last.max(entry.seq());
                match entry.event().map(|event| &event.kind) {
                    Some(EventKind::SessionEnded(_)) => self.is_ended = true,
                    Some(EventKind::SessionStarted(_)) => self.is_ended = false,
                    _ => {}
                }
                self.far.hear(FarNews::Told(entry)).await?;
            }
            Frame::Gap(GapNotice { next, snapshot: Some(state), .. }) => {
                self.last = self.last.max(next.saturating_sub(1));
                self.far.hear(FarNews::Skipped { next, state }).await?;
            }
            Frame::Gap(GapNotice { snapshot: None, .. }) => self.over_the_gap(line).await?,
            Frame::Answer { id, answer } => {
                if let Some(reply) = self.pending.remove(&id) {
                    // The caller may have given up.
                    reply.send(answer.map_err(CallError::Refused)).ok();
                }
            }
            Frame::Other => {}
        }
        Ok(())
    }

    /// Events are lost, and the state after them is unknown: joins again to get it. Events after the gap are not lost,
    /// and are requested by their readers.
    async fn over_the_gap(&mut self, line: &mut Line) -> Result<(), End> {
        let joined = match line.join(JoinCall::default()).await {
            Ok(joined) => joined,
            Err(AttachError::Cut(cut)) => return Err(cut.into()),
            Err(error) => return Err(Cut::Broken(error.to_string()).into()),
        };
        // Answers that came meanwhile were dropped.
        self.pending.drain().for_each(|(_, reply)| drop(reply.send(Err(CallError::Broken))));
        if let Some(state) = joined.snapshot {
            self.last = state.seq;
            self.far.hear(FarNews::Skipped { next: state.seq + 1, state }).await?;
        }
        Ok(self.far.hear(FarNews::Found(joined.client)).await?)
    }

    async fn ask(&mut self, line: &mut Line, Call { method, params, reply }: Call) -> Result<(), End> {
        self.pending.retain(|_, reply| !reply.is_closed());
        self.asked += 1;
        let text = call(self.asked, &method, &params);
        self.pending.insert(self.asked, reply);
        Ok(line.say(text).await?)
    }

    /// Reconnects, and continues where the last connection ended. Meanwhile calls are refused.
    async fn again(&mut self, cut: &Cut) -> Result<Line, Over> {
        let since = Instant::now();
        let patience = if matches!(self.to.address.way, Way::Unix(_)) { NEAR } else { FAR };
        let mut pause = SOON;
        self.far.hear(FarNews::Lost(cut.to_string().into())).await?;
        loop {
            let error = match self.try_again().await? {
                Ok((line, joined)) => {
                    self.check(&joined)?;
                    self.far.hear(FarNews::Found(joined.client)).await?;
                    return Ok(line);
                }
                Err(error) => error,
            };
            let patience = if error.is_no_session() { NEAR } else { patience };
            if error.is_final() || since.elapsed() > patience {
                return Err(Over::Gone(given_up(cut, &error)));
            }
            tracing::debug!(%error, "no new connection yet");
            self.refuse_until(sleep(pause)).await?;
            pause = (2 * pause).min(SELDOM);
        }
    }

    async fn try_again(&mut self) -> Result<Result<(Line, JoinReply), AttachError>, Over> {
        let to = self.to.clone();
        let join = JoinCall { session_id: Some(self.session.clone()), ..JoinCall::after(self.last, Some(self.epoch)) };
        self.refuse_until(async move { Line::open(&to, join).await }).await
    }

    /// Waits for a future, and refuses calls meanwhile.
    async fn refuse_until<T>(&mut self, done: impl Future<Output = T>) -> Result<T, Over> {
        tokio::pin!(done);
        loop {
            tokio::select! {
                () = self.far.left() => return Err(Over::Left),
                done = &mut done => return Ok(done),
                Some(call) = self.calls.recv() => drop(call.reply.send(Err(CallError::NotSent))),
            }
        }
    }

    /// Whether the log continues where we were.
    fn check(&self, joined: &JoinReply) -> Result<(), Over> {
        if joined.gap.is_some() || joined.epoch != self.epoch {
            let why = "the end of this session's log was lost with its host: attach again to see it as it is now";
            return Err(Over::Gone(why.to_owned()));
        }
        Ok(())
    }
}

/// The message for a connection that could not be replaced.
fn given_up(cut: &Cut, error: &AttachError) -> String {
    match error {
        AttachError::Refused { status: 404, .. } | AttachError::NotJoined(_) => {
            format!("the session is over ({cut}; {error})")
        }
        AttachError::Unreachable { source, .. } => format!("the session is out of reach ({cut}; {error}: {source})"),
        other => format!("the session is out of reach ({cut}; {other})"),
    }
}
