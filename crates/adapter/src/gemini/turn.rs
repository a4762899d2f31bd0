//! Turns of `stream-json`: `result`, `error`, and the end of a turn's process.

use multitap_event::{AgentError, AgentErrorKind, AgentType, EventKind, Timestamp, TokenUsage, TurnEnd, TurnStatus};
use multitap_process::Exit;

use super::decode::StreamCodec;
use super::wire::{Done, Tokens, Trouble};
use crate::codec::{End, Step};
use crate::emit::{EndFacts, NoEnd};
use crate::json::{JsonFields as _, text_of};
use crate::line::message_in;

impl StreamCodec {
    pub(super) fn result(&mut self, done: Done, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        let reported = self.emit.turns.reported.take();
        let failure = done.error.unwrap_or_default();
        let (status, why) = match done.status.as_str() {
            "success" if reported.is_none() => (TurnStatus::Completed, None),
            "cancelled" | "interrupted" => (TurnStatus::Cancelled, None),
            _ => {
                let why = failure.message.as_deref().map(plain).or(reported.clone());
                (TurnStatus::Failed, Some(why.unwrap_or_else(|| "the turn failed without a reason".to_owned())))
            }
        };
        if let Some(why) = why.as_ref().filter(|why| reported.as_ref() != Some(*why)) {
            let mut error = AgentError::new(kind_of(why), why).of(AgentType::Gemini);
            error.native_code = failure.kind;
            error.native_error = failure.message.filter(|message| message != why);
            out.events.push(EventKind::Error(error));
        }
        let stats = done.stats;
        for (model, tokens) in stats.iter().flat_map(|stats| &stats.models) {
            let sum = self.spent.entry(model.clone()).or_default();
            sum.usage = sum.usage.plus(usage(tokens));
        }
        let text = self.emit.messages.closing_words().filter(|_| status == TurnStatus::Completed);
        let turn = TurnEnd {
            usage: stats.as_ref().map(|stats| usage(&stats.tokens)),
            // Gemini reports a duration of zero for a failed turn.
            duration_ms: stats.and_then(|stats| stats.duration_ms).filter(|millis| *millis > 0),
            model_usage: self.spent.clone(),
            text,
            error: why,
            native_status: Some(done.status),
            ..TurnEnd::of(status)
        };
        self.turn_over(turn, now, out);
    }

    /// A warning ends nothing; an error is the end of the turn.
    pub(super) fn trouble(&mut self, trouble: Trouble, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        let inner = trouble.value.as_ref().map(|value| text_of(value.field("message").unwrap_or(value)));
        let message = trouble.message.or(inner).unwrap_or_else(|| "the agent reports an error".to_owned());
        let error = AgentError::new(kind_of(&message), &message).of(AgentType::Gemini);
        if trouble.severity.as_deref() == Some("warning") {
            out.events.push(EventKind::Error(error.warning()));
            return;
        }
        out.events.push(EventKind::Error(error));
        if self.runs.is_none() {
            self.emit.turns.failed_for_good(message.clone());
        }
        self.emit.turns.reported = Some(message);
    }

    fn turn_over(&mut self, turn: TurnEnd, now: Timestamp, out: &mut Step) {
        self.close_tools(now, out);
        self.emit.complete_turn(turn, now, out);
    }

    pub(super) fn process_over(&mut self, end: &End, now: Timestamp, out: &mut Step) {
        if !self.emit.turns.is_open() {
            return;
        }
        let (status, error) = match end {
            End::Stopped(_) => (TurnStatus::Cancelled, None),
            End::Broken { why, .. } => (TurnStatus::Interrupted, Some(why.clone())),
            End::Exited(_) if self.emit.turns.is_cancelling() => (TurnStatus::Cancelled, None),
            End::Exited(exit) => {
                let error = died(exit);
                let early = error.kind != AgentErrorKind::ProcessExitError || self.emit.turns.reported.is_some();
                (if early { TurnStatus::Failed } else { TurnStatus::Interrupted }, Some(error))
            }
            End::InputEnded => (TurnStatus::Interrupted, None),
        };
        let reported = self.emit.turns.reported.take();
        let why = reported.clone().or_else(|| error.as_ref().map(|error| error.message.clone()));
        if let Some(error) = error.filter(|_| reported.is_none()) {
            out.events.push(EventKind::Error(error));
        }
        self.turn_over(TurnEnd { error: why, ..TurnEnd::of(status) }, now, out);
    }

    pub(super) fn ended(&mut self, end: &End, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_over() {
            return;
        }
        self.close_tools(now, out);
        self.emit.end_session(end, EndFacts::default(), now, out);
    }

    fn close_tools(&mut self, now: Timestamp, out: &mut Step) {
        let no_end = NoEnd::of_silent_agent(self.emit.turns.is_cancelling());
        self.emit.close_tools(|_| true, no_end, now, out);
    }
}

fn usage(tokens: &Tokens) -> TokenUsage {
    let sum = TokenUsage::of(tokens.input_tokens, tokens.output_tokens);
    TokenUsage {
        cached_tokens: tokens.cached,
        reasoning_tokens: tokens.thought_tokens,
        total_tokens: tokens.total_tokens.unwrap_or(sum.total_tokens),
        ..sum
    }
}

/// The message of the model's server, without the brackets that Gemini adds.
fn plain(message: &str) -> String {
    let inner = message.strip_prefix("[API Error: ").and_then(|rest| rest.strip_suffix(']')).unwrap_or(message);
    message_in(inner).unwrap_or_else(|| inner.to_owned())
}

fn kind_of(message: &str) -> AgentErrorKind {
    let message = message.to_lowercase();
    if message.contains("api key") || message.contains("unauthenticated") || message.contains("permission denied") {
        AgentErrorKind::PermissionDenied
    } else {
        AgentErrorKind::Unknown
    }
}

/// The error of a process that ended without a result, by its exit code.
fn died(exit: &Exit) -> AgentError {
    let last = exit.stderr_tail.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let not_found = exit.stderr_tail.lines().find(|line| line.contains("Error resuming session"));
    let (kind, message) = match exit.code {
        Some(42) if not_found.is_some() => {
            (AgentErrorKind::SessionNotFound, not_found.unwrap_or_default().trim().to_owned())
        }
        Some(41) => (AgentErrorKind::PermissionDenied, format!("gemini requires a sign-in first: {last}")),
        Some(42) => (AgentErrorKind::ProtocolError, format!("gemini did not take the prompt: {last}")),
        Some(53) => (AgentErrorKind::Unknown, "the limit of turns in gemini's settings is reached".to_owned()),
        Some(55) => (AgentErrorKind::PermissionDenied, "gemini does not trust this folder".to_owned()),
        _ => (AgentErrorKind::ProcessExitError, format!("gemini ended in the middle of a turn with {exit}")),
    };
    let error = AgentError::new(kind, message).of(AgentType::Gemini).exited(exit.code);
    if exit.stderr_tail.is_empty() { error } else { error.native(exit.stderr_tail.clone()) }
}
