//! The running turn, the usage of earlier turns, and the end of the session.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, SessionEnd, SessionEndReason, Timestamp, TokenUsage, TurnEnd,
    TurnId, TurnStatus,
};
use multitap_process::Exit;

use crate::codec::{End, Step};

#[derive(Debug, Default)]
pub(crate) struct Turns {
    count: u64,
    open: Option<OpenTurn>,
    cancelling: bool,
    /// Number of prompts that were sent and whose turns have not begun.
    pub(crate) waiting: u32,
    /// The error that was reported in this turn; the turn's end does not report it again.
    pub(crate) reported: Option<String>,
    /// How the last turn ended, and why if it failed.
    last: Option<(TurnStatus, Option<String>)>,
    used: Option<TokenUsage>,
    /// An error that ended the session itself.
    fatal: Option<String>,
    ended: bool,
}

#[derive(Debug)]
struct OpenTurn {
    id: TurnId,
    /// `None` if the agent itself times the turn.
    started: Option<Timestamp>,
}

/// Facts about the end of a session that only the codec knows, besides the exit.
#[derive(Debug, Default)]
pub(crate) struct EndFacts {
    /// The agent's id of the turn of a waiting prompt, if it has reported one.
    pub(crate) announced: Option<TurnId>,
    pub(crate) usage: Option<TokenUsage>,
    /// Why the program died, if it did.
    pub(crate) died: Option<AgentError>,
}

impl Turns {
    /// A turn begins, unless one runs.
    pub(crate) fn begin(&mut self, now: Timestamp, out: &mut Step) {
        self.begin_as(None, Some(now), out);
    }

    /// Begins a turn under the agent's own id. An agent that times its turns needs no start time.
    pub(crate) fn begin_as(&mut self, id: Option<TurnId>, started: Option<Timestamp>, out: &mut Step) {
        if self.open.is_some() {
            return;
        }
        self.count += 1;
        let id = id.unwrap_or_else(|| format!("turn-{}", self.count).into());
        out.events.push(EventKind::TurnStarted { turn_id: id.clone() });
        self.open = Some(OpenTurn { id, started });
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether a turn runs or a prompt waits for its own: there is work to cancel.
    pub(crate) fn is_busy(&self) -> bool {
        self.open.is_some() || self.waiting > 0
    }

    pub(crate) fn was_reported(&self, error: &str) -> bool {
        self.reported.as_deref() == Some(error)
    }

    pub(crate) fn id(&self) -> Option<&TurnId> {
        self.open.as_ref().map(|open| &open.id)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn cancel(&mut self) {
        self.cancelling = true;
    }

    pub(crate) fn is_cancelling(&self) -> bool {
        self.cancelling
    }

    /// The session cannot go on, whatever the program does.
    pub(crate) fn failed_for_good(&mut self, why: String) {
        self.fatal = Some(why);
    }

    /// The agent went on after an error.
    pub(crate) fn recovered(&mut self) {
        self.fatal = None;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended
    }

    /// Ends the turn; with a `clock` the end also reports the duration.
    pub(crate) fn complete(&mut self, mut turn: TurnEnd, clock: Option<Timestamp>, out: &mut Step) {
        self.cancelling = false;
        self.reported = None;
        if let Some(open) = self.open.take() {
            let timed = clock.zip(open.started).map(|(now, started)| now.millis_since(started));
            turn.duration_ms = turn.duration_ms.or(timed);
            turn.turn_id = Some(open.id);
        }
        self.used = TokenUsage::sum(self.used, turn.usage);
        self.last = Some((turn.status, turn.error.clone()));
        out.events.push(EventKind::TurnCompleted(turn));
    }

    /// The agent's output has ended: ends the running turn, then the session. The caller has closed the turn's work.
    pub(crate) fn end(
        &mut self,
        agent: AgentType,
        end: &End,
        facts: EndFacts,
        clock: Option<Timestamp>,
        out: &mut Step,
    ) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let (exit, asked) = match end {
            End::Exited(exit) | End::Broken { exit, .. } => (Some(exit), false),
            End::Stopped(exit) => (Some(exit), true),
            End::InputEnded => (None, false),
        };
        let in_turn = self.is_busy();
        let failed_before = self.last.as_ref().is_some_and(|(status, _)| *status != TurnStatus::Completed);
        let died = match end {
            End::Broken { why, .. } => Some(why.clone()),
            _ => exit
                .filter(|exit| !asked && (in_turn || !(exit.success() || failed_before)))
                .map(|exit| facts.died.unwrap_or_else(|| died(agent, exit, in_turn))),
        };
        let mut error = self.fatal.take();
        let fatal = error.is_some();
        if let Some(died) = died {
            error.get_or_insert_with(|| died.message.clone());
            out.events.push(EventKind::Error(died));
        }
        if in_turn {
            let status = match (fatal, asked) {
                (true, _) => TurnStatus::Failed,
                (false, true) => TurnStatus::Cancelled,
                (false, false) => TurnStatus::Interrupted,
            };
            self.begin_as(facts.announced, None, out);
            let turn = TurnEnd { usage: facts.usage, error: error.clone(), ..TurnEnd::of(status) };
            self.complete(turn, clock, out);
        }
        let (reason, why) = match (&error, self.last.take()) {
            (Some(_), _) => (SessionEndReason::Failed, None),
            (None, Some((status, why))) => (status.into(), why),
            (None, None) => (SessionEndReason::Completed, None),
        };
        out.events.push(EventKind::SessionEnded(SessionEnd {
            reason,
            error: error.or(why),
            final_usage: self.used,
            exit_code: exit.and_then(|exit| exit.code),
        }));
    }
}

/// The error of a program that ended without being asked to.
pub(crate) fn died(agent: AgentType, exit: &Exit, in_turn: bool) -> AgentError {
    let when = if in_turn { " in the middle of a turn" } else { "" };
    let message = format!("{agent} ended{when} with {exit}");
    let error = AgentError::new(AgentErrorKind::ProcessExitError, message).of(agent).exited(exit.code);
    if exit.stderr_tail.is_empty() { error } else { error.native(exit.stderr_tail.clone()) }
}
