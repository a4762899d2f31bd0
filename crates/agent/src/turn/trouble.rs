//! Model errors: the turn waits and retries, or fails.

use std::time::Duration;

use multitap_event::{AgentError, AgentErrorKind, AgentType, EventKind, MessageId, Retry, TurnStatus};

use super::reply::Gathered;
use super::{Effect, Machine, Now, Stage, Then, Turn};
use crate::conversation::Message;
use crate::model::{ModelError, ModelErrorKind};

/// Attempts before the turn fails.
pub(super) const ATTEMPTS: u32 = 5;

impl Machine {
    /// The model did not answer to the end.
    pub(super) fn failed(&mut self, error: ModelError, now: &mut Now<'_>, out: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let Stage::Asking { attempt, gathered } = &mut turn.stage else { return };
        let attempt = *attempt;
        if error.passes() && attempt < ATTEMPTS {
            // An interrupted reply is requested again: none of its calls has run.
            out.extend(gathered.discarded().map(Effect::Tell));
            return self.wait(error, attempt, Then::Ask, now, out);
        }
        if error.kind == ModelErrorKind::TooLong && gathered.is_empty() && !turn.summed {
            turn.summed = true;
            turn.stage = Stage::SummingUp { attempt: 1 };
            out.push(Effect::SumUp);
            return;
        }
        self.break_off("the reply broke off", out);
        out.push(Effect::Tell(told(&error)));
        self.end(TurnStatus::Failed, None, Some(error.message), now, out);
    }

    /// The summary failed.
    pub(super) fn not_summed(&mut self, error: ModelError, attempt: u32, now: &mut Now<'_>, out: &mut Vec<Effect>) {
        if error.passes() && attempt < ATTEMPTS {
            return self.wait(error, attempt, Then::SumUp, now, out);
        }
        out.push(Effect::Tell(told(&error)));
        let why = match &self.turn {
            Some(turn) if turn.compress => format!("the conversation could not be summed up: {}", error.message),
            _ => format!("the conversation is too long, and could not be summed up: {}", error.message),
        };
        self.end(TurnStatus::Failed, None, Some(why), now, out);
    }

    /// Waits before a retry.
    fn wait(&mut self, error: ModelError, attempt: u32, then: Then, now: &Now<'_>, out: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let delay = error.retry_after.unwrap_or_else(|| back_off(attempt, now.jitter));
        turn.stage = Stage::Waiting { attempt, then };
        out.push(Effect::Tell(EventKind::Retry(Retry {
            attempt,
            max_attempts: Some(ATTEMPTS - 1),
            delay_ms: Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
            status_code: error.status,
            reason: Some(error.message),
        })));
        out.push(Effect::Wait(delay));
    }

    /// Ends the turn as failed, and says why.
    pub(super) fn fail(&mut self, native: Option<&str>, why: String, now: &mut Now<'_>, out: &mut Vec<Effect>) {
        let told = AgentError::new(AgentErrorKind::Unknown, why.clone()).of(AgentType::Builtin);
        out.push(Effect::Tell(EventKind::Error(told)));
        self.end(TurnStatus::Failed, native, Some(why), now, out);
    }

    /// Stores what the model had said, with an answer to every call in it.
    pub(super) fn break_off(&mut self, why: &str, out: &mut Vec<Effect>) {
        let Some(Turn { stage: Stage::Asking { gathered, .. }, .. }) = &mut self.turn else { return };
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

    pub(super) fn again(&mut self, now: &mut Now<'_>, out: &mut Vec<Effect>) {
        let Some(turn) = &mut self.turn else { return };
        let Stage::Waiting { attempt, then } = turn.stage else { return };
        let attempt = attempt + 1;
        match then {
            Then::Ask => {
                turn.stage = Stage::Asking { attempt, gathered: Gathered::new(MessageId::from((now.id)())) };
                out.push(Effect::AskModel);
            }
            Then::SumUp => {
                turn.stage = Stage::SummingUp { attempt };
                out.push(Effect::SumUp);
            }
        }
    }
}

/// A model error as an event.
fn told(error: &ModelError) -> EventKind {
    let kind = match error.kind {
        ModelErrorKind::Key => AgentErrorKind::PermissionDenied,
        ModelErrorKind::UnknownModel
        | ModelErrorKind::RateLimited
        | ModelErrorKind::Overloaded
        | ModelErrorKind::Connection
        | ModelErrorKind::TooLong
        | ModelErrorKind::Refused => AgentErrorKind::Unknown,
    };
    let told = AgentError::new(kind, error.message.clone()).of(AgentType::Builtin);
    EventKind::Error(match error.status {
        Some(status) => told.code(status.to_string()),
        None => told,
    })
}

/// Exponential backoff with jitter.
fn back_off(attempt: u32, jitter: f64) -> Duration {
    let seconds = f64::from(2_u32.saturating_pow(attempt.min(6) - 1));
    Duration::from_secs_f64(seconds * (0.75 + jitter / 2.0))
}
