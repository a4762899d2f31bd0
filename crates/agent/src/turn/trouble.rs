//! Model errors: the turn waits and retries, or fails.

use std::time::Duration;

use multitap_event::{AgentError, AgentErrorKind, AgentType, EventKind, MessageId, Retry, TurnStatus};

use super::reply::Gathered;
use super::{Effect, Machine, Phase, RetryOf, Step, Turn};
use crate::conversation::Message;
use crate::model::{ModelError, ModelErrorKind};

pub(super) const ATTEMPTS: u32 = 5;

impl Machine {
    pub(super) fn failed(&mut self, error: ModelError, step: &mut Step<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let Phase::Asking { attempt, gathered } = &mut turn.stage else { return };
        let attempt = *attempt;
        if error.passes() && attempt < ATTEMPTS {
            // An interrupted reply is requested again: none of its calls has run.
            step.out.extend(gathered.retracted().map(Effect::Tell));
            return self.wait(error, attempt, RetryOf::Ask, step);
        }
        if error.kind == ModelErrorKind::TooLong && gathered.parts.is_empty() && !turn.summed {
            turn.summed = true;
            return turn.sum_up(1, step);
        }
        self.break_off("the reply broke off", step);
        step.tell(reported(&error));
        self.end(TurnStatus::Failed, None, Some(error.message), step);
    }

    pub(super) fn not_summed(&mut self, error: ModelError, attempt: u32, step: &mut Step<'_>) {
        if error.passes() && attempt < ATTEMPTS {
            return self.wait(error, attempt, RetryOf::SumUp, step);
        }
        step.tell(reported(&error));
        let why = match &self.turn {
            Some(turn) if turn.compress => format!("the conversation could not be summarized: {}", error.message),
            _ => format!("the conversation is too long and could not be summarized: {}", error.message),
        };
        self.end(TurnStatus::Failed, None, Some(why), step);
    }

    fn wait(&mut self, error: ModelError, attempt: u32, then: RetryOf, step: &mut Step<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let delay = error.retry_after.unwrap_or_else(|| back_off(attempt, step.jitter));
        turn.stage = Phase::Waiting { attempt, then };
        step.tell(EventKind::Retry(Retry {
            attempt,
            max_attempts: Some(ATTEMPTS - 1),
            delay_ms: Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            status_code: error.status,
            reason: Some(error.message),
        }));
        step.out.push(Effect::Wait(delay));
    }

    pub(super) fn fail(&mut self, native: Option<&str>, why: String, step: &mut Step<'_>) {
        let reported = AgentError::new(AgentErrorKind::Unknown, why.clone()).of(AgentType::Builtin);
        step.tell(EventKind::Error(reported));
        self.end(TurnStatus::Failed, native, Some(why), step);
    }

    /// Stores the part of the reply that arrived, with an answer to every call in it.
    pub(super) fn break_off(&mut self, why: &str, step: &mut Step<'_>) {
        let Some(Turn { stage: Phase::Asking { gathered, .. }, .. }) = &mut self.turn else { return };
        let gathered = std::mem::replace(gathered, Gathered::new(MessageId::from("")));
        let calls = gathered.calls();
        let parts = gathered.parts;
        if parts.is_empty() {
            return;
        }
        self.keep(Message::Assistant { parts }, step);
        if !calls.is_empty() {
            self.answer_all(&calls, why, step);
        }
    }

    pub(super) fn again(&mut self, step: &mut Step<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let Phase::Waiting { attempt, then } = turn.stage else { return };
        match then {
            RetryOf::Ask => turn.ask(attempt + 1, step),
            RetryOf::SumUp => turn.sum_up(attempt + 1, step),
        }
    }
}

fn reported(error: &ModelError) -> EventKind {
    let is_key = error.kind == ModelErrorKind::Key;
    let kind = if is_key { AgentErrorKind::PermissionDenied } else { AgentErrorKind::Unknown };
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
