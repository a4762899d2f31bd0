//! Model errors: the turn waits and retries, or fails.

use std::time::Duration;

use multitap_event::{AgentError, AgentErrorKind, AgentType, EventKind, MessageId, Retry, TurnStatus};

use super::reply::Gathered;
use super::{Effect, Machine, Phase, RetryOf, StepContext, Turn};
use crate::conversation::Message;
use crate::model::{ModelError, ModelErrorKind};

/// Attempts before the turn fails.
pub(super) const ATTEMPTS: u32 = 5;

impl Machine {
    /// Handles a model request that failed or broke off.
    pub(super) fn failed(&mut self, error: ModelError, now: &mut StepContext<'_>, out: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let Phase::Asking { attempt, gathered } = &mut turn.stage else { return };
        let attempt = *attempt;
        if error.passes() && attempt < ATTEMPTS {
            // An interrupted reply is requested again: none of its calls has run.
            out.extend(gathered.retracted().map(Effect::Tell));
            return self.wait(error, attempt, RetryOf::Ask, now, out);
        }
        if error.kind == ModelErrorKind::TooLong && gathered.is_empty() && !turn.summed {
            turn.summed = true;
            turn.stage = Phase::SummingUp { attempt: 1 };
            out.push(Effect::SumUp);
            return;
        }
        self.break_off("the reply broke off", out);
        out.push(Effect::Tell(reported(&error)));
        self.end(TurnStatus::Failed, None, Some(error.message), now, out);
    }

    pub(super) fn not_summed(
        &mut self,
        error: ModelError,
        attempt: u32,
        now: &mut StepContext<'_>,
        out: &mut Vec<Effect>,
    ) {
        if error.passes() && attempt < ATTEMPTS {
            return self.wait(error, attempt, RetryOf::SumUp, now, out);
        }
        out.push(Effect::Tell(reported(&error)));
        let why = match &self.turn {
            Some(turn) if turn.compress => format!("the conversation could not be summarized: {}", error.message),
            _ => format!("the conversation is too long and could not be summarized: {}", error.message),
        };
        self.end(TurnStatus::Failed, None, Some(why), now, out);
    }

    fn wait(&mut self, error: ModelError, attempt: u32, then: RetryOf, now: &StepContext<'_>, out: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let delay = error.retry_after.unwrap_or_else(|| back_off(attempt, now.jitter));
        turn.stage = Phase::Waiting { attempt, then };
        out.push(Effect::Tell(EventKind::Retry(Retry {
            attempt,
            max_attempts: Some(ATTEMPTS - 1),
            delay_ms: Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            status_code: error.status,
            reason: Some(error.message),
        })));
        out.push(Effect::Wait(delay));
    }

    /// Ends the turn as failed, with the reason.
    pub(super) fn fail(&mut self, native: Option<&str>, why: String, now: &mut StepContext<'_>, out: &mut Vec<Effect>) {
        let reported = AgentError::new(AgentErrorKind::Unknown, why.clone()).of(AgentType::Builtin);
        out.push(Effect::Tell(EventKind::Error(reported)));
        self.end(TurnStatus::Failed, native, Some(why), now, out);
    }

    /// Stores the part of the reply that arrived, with an answer to every call in it.
    pub(super) fn break_off(&mut self, why: &str, out: &mut Vec<Effect>) {
        let Some(Turn { stage: Phase::Asking { gathered, .. }, .. }) = &mut self.turn else { return };
        let gathered = std::mem::replace(gathered, Gathered::new(MessageId::from("")));
        let calls = gathered.calls();
        let parts = gathered.into_parts();
        if parts.is_empty() {
            return;
        }
        self.keep(Message::Assistant { parts }, out);
        if !calls.is_empty() {
            self.answer_all(&calls, why, out);
        }
    }

    pub(super) fn again(&mut self, now: &mut StepContext<'_>, out: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let Phase::Waiting { attempt, then } = turn.stage else { return };
        let attempt = attempt + 1;
        match then {
            RetryOf::Ask => {
                turn.stage = Phase::Asking { attempt, gathered: Gathered::new(MessageId::from((now.id)())) };
                out.push(Effect::AskModel);
            }
            RetryOf::SumUp => {
                turn.stage = Phase::SummingUp { attempt };
                out.push(Effect::SumUp);
            }
        }
    }
}

fn reported(error: &ModelError) -> EventKind {
    let kind = match error.kind {
        ModelErrorKind::Key => AgentErrorKind::PermissionDenied,
        ModelErrorKind::UnknownModel
        | ModelErrorKind::RateLimited
        | ModelErrorKind::Overloaded
        | ModelErrorKind::Connection
        | ModelErrorKind::TooLong
        | ModelErrorKind::Refused => AgentErrorKind::Unknown,
    };
    let reported = AgentError::new(kind, error.message.clone()).of(AgentType::Builtin);
    EventKind::Error(match error.status {
        Some(status) => reported.code(status.to_string()),
        None => reported,
    })
}

/// Exponential backoff with jitter.
fn back_off(attempt: u32, jitter: f64) -> Duration {
    let seconds = f64::from(2_u32.saturating_pow(attempt.min(6) - 1));
    Duration::from_secs_f64(seconds * (0.75 + jitter / 2.0))
}
