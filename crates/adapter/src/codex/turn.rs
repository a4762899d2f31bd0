//! Turns, and the end of the session.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, MessageId, Retry, Timestamp, TokenUsage, TurnEnd, TurnId,
    TurnStatus,
};
use multitap_process::Exit;
use serde_json::Value;

use super::decode::CodexCodec;
use super::tools::Unended;
use super::usage::Usage;
use super::wire::Fields;
use crate::codec::{End, Step};
use crate::emit::{EndFacts, died};
use crate::json::JsonFields as _;

/// The state of a turn that only Codex's codec needs.
#[derive(Debug, Default)]
pub(super) struct TurnFacts {
    /// Codex's id of the turn that runs.
    pub(super) native_id: Option<String>,
    /// Codex's id of the whole turn; it differs from the id of this one only in a review.
    pub(super) root_id: Option<String>,
    /// Codex's id of the turn that will begin, once Codex has reported it.
    pub(super) announced: Option<String>,
    /// The last item that was an error, and its text.
    pub(super) error_item: Option<(String, String)>,
    /// The last message of the turn.
    pub(super) text: Option<String>,
    pub(super) usage: Usage,
    /// Whether the answer must match a schema.
    pub(super) structured: bool,
}

impl TurnFacts {
    /// Records the error of an item. Returns `false` if the item had the same error before.
    pub(super) fn error_item(&mut self, id: &str, message: &str) -> bool {
        let new = (id.to_owned(), message.to_owned());
        self.error_item.replace(new.clone()) != Some(new)
    }
}

impl CodexCodec {
    /// A turn begins, unless one runs.
    pub(super) fn begin_turn(&mut self, native: Option<&str>, out: &mut Step) {
        let facts = &mut self.turn;
        if self.emit.turns.is_open() {
            facts.native_id = facts.native_id.take().or_else(|| native.map(str::to_owned));
            return;
        }
        facts.text = None;
        facts.native_id = native.map(str::to_owned).or(facts.announced.take());
        facts.root_id = None;
        self.emit.turns.waiting = 0;
        self.emit.turns.reported = None;
        self.emit.turns.begin_as(facts.native_id.clone().map(Into::into), None, out);
    }

    /// Records that the running turn is part of another one.
    pub(super) fn turn_is_part_of(&mut self, root: Option<String>) {
        if self.emit.turns.is_open() {
            self.turn.root_id = root;
        }
    }

    /// Whether a message is about the running turn. It is if it names no turn.
    pub(super) fn is_current_turn(&self, native: Option<&str>) -> bool {
        let is = |known: &Option<String>| known.is_some() && known.as_deref() == native;
        match self.emit.turns.is_open() {
            true => native.is_none() || is(&self.turn.native_id) || is(&self.turn.root_id),
            false => is(&self.turn.announced),
        }
    }

    pub(super) fn prompted(&mut self) {
        self.emit.turns.waiting = 1;
        self.turn.announced = None;
    }

    /// Codex reports the id of the running or the next turn.
    pub(super) fn announce_turn(&mut self, native: Option<&str>) {
        let facts = &mut self.turn;
        if !self.emit.turns.is_open() {
            facts.announced = native.map(str::to_owned);
        } else if facts.native_id.is_none() {
            facts.native_id = native.map(str::to_owned);
        }
    }

    /// Codex's id of the running turn, once it has begun. Before that, Codex refuses an interrupt.
    pub(super) fn begun_turn(&self) -> Option<&str> {
        self.turn.native_id.as_deref().filter(|_| self.emit.turns.is_open())
    }

    /// An item's id in this session: with one process per turn, each process starts counting anew.
    pub(super) fn item_id(&self, id: &str) -> String {
        match self.emit.turns.id().filter(|_| self.exec.is_some()) {
            Some(turn) => format!("{turn}:{id}"),
            None => id.to_owned(),
        }
    }
}

/// Placeholder for the status of a turn whose end is not reported and that was left unfinished.
pub(super) const INTERRUPTED: &str = "";

/// The end of a turn, as Codex reports it.
#[derive(Debug, Default)]
pub(super) struct TurnOutcome {
    pub(super) status: String,
    pub(super) error: Option<AgentError>,
    pub(super) usage: Option<TokenUsage>,
    pub(super) duration_ms: Option<u64>,
    pub(super) text: Option<String>,
}

impl TurnOutcome {
    pub(super) fn of(status: impl Into<String>) -> Self {
        Self { status: status.into(), ..Self::default() }
    }
}

impl CodexCodec {
    pub(super) fn turn_over(&mut self, over: TurnOutcome, now: Timestamp, out: &mut Step) {
        if self.emit.turns.waiting > 0 {
            self.begin_turn(None, out);
        }
        let status = match over.status.as_str() {
            "interrupted" | "cancelled" | "aborted" => TurnStatus::Cancelled,
            "failed" => TurnStatus::Failed,
            INTERRUPTED => TurnStatus::Interrupted,
            _ => TurnStatus::Completed,
        };
        let error = over.error.filter(|_| status == TurnStatus::Failed);
        if let Some(error) = &error
            && !self.emit.turns.was_reported(&error.message)
        {
            out.events.push(EventKind::Error(error.clone()));
        }
        let unended = if status == TurnStatus::Cancelled { Unended::Cancelled } else { Unended::OfTurn };
        self.close_turn_work(unended, now, out);
        let text = over.text.or(self.turn.text.take()).filter(|text| !text.is_empty());
        let text = text.filter(|_| status == TurnStatus::Completed);
        let structured =
            text.as_deref().filter(|_| self.turn.structured).and_then(|text| serde_json::from_str(text).ok());
        let turn = TurnEnd {
            usage: over.usage.or_else(|| self.turn.usage.turn()),
            duration_ms: over.duration_ms.or_else(|| self.turn_time(now)),
            text,
            error: error.map(|error| error.message),
            native_status: Some(over.status).filter(|word| word != INTERRUPTED),
            structured_output: structured,
            message_id: self.begun_turn().map(MessageId::from),
            ..TurnEnd::of(status)
        };
        self.emit.complete_turn(turn, now, out);
        self.emit.turns.recovered();
        self.reviewing = false;
    }

    pub(super) fn turn_refused(&mut self, error: AgentError, now: Timestamp, out: &mut Step) {
        self.turn_over(TurnOutcome { error: Some(error), ..TurnOutcome::of("failed") }, now, out);
    }

    /// Ends everything that must not outlive a turn: calls without an end, questions without an answer.
    fn close_turn_work(&mut self, which: Unended<'_>, now: Timestamp, out: &mut Step) {
        self.close_unended(which, now, out);
        self.emit.questions.withdraw("the turn is over", |_| true, out);
    }

    /// Handles an error, or a notice that Codex retries.
    pub(super) fn trouble(&mut self, error: &Fields, will_retry: Option<bool>, out: &mut Step) {
        let message = error.text("message").unwrap_or("the agent reports an error");
        let attempt = attempt(message);
        if will_retry.unwrap_or(attempt.is_some()) {
            let (attempt, max_attempts) = attempt.unwrap_or((1, None));
            let reason = error.text("additionalDetails").map_or_else(|| reason(message), str::to_owned);
            let status_code = info(error).1;
            self.emit.texts.retract_unfinished(out);
            let retry = Retry { attempt, max_attempts, delay_ms: None, status_code, reason: Some(reason) };
            out.events.push(EventKind::Retry(retry));
            return;
        }
        out.events.push(EventKind::Error(failure(error)));
        self.emit.turns.reported = Some(message.to_owned());
        if will_retry.is_none() {
            self.emit.turns.failed_for_good(message.to_owned());
        }
    }

    pub(super) fn process_over(&mut self, end: &End, now: Timestamp, out: &mut Step) {
        if !self.emit.turns.is_busy() {
            return;
        }
        let (status, error) = match end {
            End::Stopped(_) | End::InputEnded => ("interrupted", None),
            End::Exited(_) if self.emit.turns.is_cancelling() => ("interrupted", None),
            End::Exited(exit) => ("failed", Some(lost(exit).unwrap_or_else(|| died(AgentType::Codex, exit, true)))),
            End::Broken { why, .. } => ("failed", Some(why.clone())),
        };
        self.turn_over(TurnOutcome { error, ..TurnOutcome::of(status) }, now, out);
    }

    pub(super) fn ended(&mut self, end: &End, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_over() {
            return;
        }
        // The session never began: the notices that were held back are emitted now.
        out.events.append(&mut self.held);
        self.close_turn_work(Unended::All, now, out);
        let died = match end {
            End::Exited(exit) => lost(exit),
            End::Stopped(_) | End::Broken { .. } | End::InputEnded => None,
        };
        let usage = if self.emit.turns.is_busy() { self.turn.usage.turn() } else { None };
        let announced = self.turn.announced.take().map(TurnId::from);
        self.emit.end_session(end, EndFacts { announced, usage, died }, now, out);
    }
}

/// The numbers in `Reconnecting... 1/2 (why)`.
fn attempt(message: &str) -> Option<(u32, Option<u32>)> {
    let rest = message.strip_prefix("Reconnecting")?.trim_start_matches('.').trim_start();
    let count = rest.split([' ', '(']).next()?;
    let (attempt, most) = count.split_once('/')?;
    Some((attempt.parse().ok()?, most.parse().ok()))
}

fn reason(message: &str) -> String {
    let inner = message.split_once(" (").and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(message).to_owned()
}

/// Codex's word for an error, and the HTTP status behind it.
fn info(error: &Fields) -> (Option<String>, Option<u16>) {
    match error.get("codexErrorInfo") {
        Some(Value::String(word)) => (Some(word.clone()), None),
        Some(Value::Object(map)) => {
            let status = map.values().find_map(|value| value.get("httpStatusCode")?.as_u64());
            (map.keys().next().cloned(), status.and_then(|status| u16::try_from(status).ok()))
        }
        _ => (None, None),
    }
}

pub(super) fn failure(error: &Fields) -> AgentError {
    let message = error.text("message").unwrap_or("the agent reports an error");
    let (word, status) = info(error);
    let kind = match (word.as_deref(), status) {
        (Some("unauthorized" | "cyberPolicy" | "misalignmentPolicyViolation"), _) | (_, Some(401 | 403)) => {
            AgentErrorKind::PermissionDenied
        }
        (Some("badRequest" | "modelNotFound"), _) => AgentErrorKind::ProtocolError,
        _ => AgentErrorKind::Unknown,
    };
    let mut failed = AgentError::new(kind, message).of(AgentType::Codex);
    failed.native_code = word;
    failed.native_error = error.string("additionalDetails");
    failed
}

/// The error of a program that ended because there is no such conversation.
fn lost(exit: &Exit) -> Option<AgentError> {
    let signs = ["no rollout found", "No saved session", "no saved session", "thread not found", "session not found"];
    if !signs.iter().any(|words| exit.stderr_tail.contains(words)) {
        return None;
    }
    let said = exit.stderr_tail.lines().last().unwrap_or_default().trim_start_matches("Error: ");
    Some(AgentError::new(AgentErrorKind::SessionNotFound, said).of(AgentType::Codex).exited(exit.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_read_from_the_words() {
        assert_eq!(attempt("Reconnecting... 1/2"), Some((1, Some(2))));
        assert_eq!(attempt("Reconnecting... 2/5 (high demand)"), Some((2, Some(5))));
        assert_eq!(attempt("stream disconnected"), None);
        assert_eq!(reason("Reconnecting... 2/5 (high demand)"), "high demand");
    }
}
