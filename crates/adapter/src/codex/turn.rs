//! Turns, and the end of it all.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, MessageId, Retry, Timestamp, TokenUsage, TurnEnd, TurnId,
    TurnStatus,
};
use multitap_process::Exit;
use serde_json::Value;

use super::decode::CodexCodec;
use super::tools::Forgotten;
use super::usage::Usage;
use super::wire::Fields;
use crate::codec::{End, Step};
use crate::track::{self, Known};

/// The turn that runs, and what Codex has that others have not.
#[derive(Debug)]
pub(super) struct Turns {
    books: track::Turns,
    /// Codex's own names of the turn that runs.
    native: Native,
    /// A prompt was handed over and its turn has not begun.
    waiting: bool,
    /// Codex's id of the turn that will begin, once it has said so.
    announced: Option<String>,
    /// An error that this turn already told; its end is not told as another.
    told: Option<String>,
    /// The last item that was an error, and its text.
    error_item: Option<(String, String)>,
    /// The last message of the turn.
    text: Option<String>,
    pub(super) usage: Usage,
    /// Each turn is a process of its own, which counts its items from nought.
    processes: bool,
    /// The answer is to fit a schema.
    structured: bool,
}

#[derive(Debug, Default)]
struct Native {
    id: Option<String>,
    /// The turn that it is part of, which is another one only in a review.
    root: Option<String>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            books: track::Turns::new(AgentType::Codex),
            native: Native::default(),
            waiting: false,
            announced: None,
            told: None,
            error_item: None,
            text: None,
            usage: Usage::default(),
            processes: false,
            structured: false,
        }
    }
}

impl Turns {
    /// For a session whose every turn is a process.
    pub(super) fn of_processes(mut self) -> Self {
        self.processes = true;
        self
    }

    /// Answers are to fit a schema.
    pub(super) fn structured(mut self, structured: bool) -> Self {
        self.structured = structured;
        self
    }

    /// A turn begins, unless one runs.
    pub(super) fn begin(&mut self, native: Option<&str>, out: &mut Step) {
        if self.books.is_open() {
            if self.native.id.is_none() {
                self.native.id = native.map(str::to_owned);
            }
            return;
        }
        self.waiting = false;
        self.told = None;
        self.text = None;
        let id = native.map(str::to_owned).or(self.announced.take());
        self.books.begin_as(id.clone().map(Into::into), None, out);
        self.native = Native { id, root: None };
    }

    /// The turn under way is part of that one.
    pub(super) fn is_part_of(&mut self, root: Option<String>) {
        if self.books.is_open() {
            self.native.root = root;
        }
    }

    /// Whether Codex means the turn under way. One that is not told is it.
    pub(super) fn is_current(&self, native: Option<&str>) -> bool {
        let known = |known: &Option<String>| known.is_some() && known.as_deref() == native;
        match self.books.is_open() {
            true => native.is_none() || known(&self.native.id) || known(&self.native.root),
            false => known(&self.announced),
        }
    }

    pub(super) fn prompted(&mut self) {
        self.waiting = true;
        self.announced = None;
    }

    /// Codex says under which id the turn runs or will.
    pub(super) fn announce(&mut self, native: Option<&str>) {
        if !self.books.is_open() {
            self.announced = native.map(str::to_owned);
        } else if self.native.id.is_none() {
            self.native.id = native.map(str::to_owned);
        }
    }

    /// Whether there is work to cancel.
    pub(super) fn is_busy(&self) -> bool {
        self.books.is_open() || self.waiting
    }

    /// Codex's id of the turn under way, once it has begun: no interrupt is taken before.
    pub(super) fn begun(&self) -> Option<&str> {
        self.native.id.as_deref().filter(|_| self.books.is_open())
    }

    pub(super) fn cancel(&mut self) {
        self.books.cancel();
    }

    /// Somebody wants the turn to end, whose id was not known then.
    pub(super) fn is_cancelling(&self) -> bool {
        self.books.is_cancelling()
    }

    pub(super) fn said(&mut self, text: &str) {
        self.text = Some(text.to_owned());
    }

    /// Whether the agent said something in this turn.
    pub(super) fn has_spoken(&self) -> bool {
        self.text.is_some()
    }

    /// The name of the turn, where items are counted anew in each.
    pub(super) fn scope(&self) -> Option<&str> {
        self.books.id().filter(|_| self.processes).map(TurnId::as_str)
    }

    /// An item tells of an error; false if it did so before.
    pub(super) fn error_item(&mut self, id: &str, message: &str) -> bool {
        let new = (id.to_owned(), message.to_owned());
        let known = self.error_item.as_ref() == Some(&new);
        self.error_item = Some(new);
        !known
    }

    /// An error was told.
    pub(super) fn error_told(&mut self, text: &str) {
        self.told = Some(text.to_owned());
    }

    fn was_told(&self, text: &str) -> bool {
        self.told.as_deref() == Some(text)
    }
}

/// In place of a word for how a turn ended: nothing tells, and something was left undone.
pub(super) const CUT_OFF: &str = "";

/// What a turn's end says.
#[derive(Debug, Default)]
pub(super) struct Over {
    pub(super) status: String,
    pub(super) error: Option<AgentError>,
    pub(super) usage: Option<TokenUsage>,
    pub(super) duration_ms: Option<u64>,
    pub(super) text: Option<String>,
}

impl CodexCodec {
    /// The turn under way is over.
    pub(super) fn turn_over(&mut self, over: Over, now: Timestamp, out: &mut Step) {
        if self.turns.waiting {
            self.turns.begin(None, out);
        }
        let status = match over.status.as_str() {
            "interrupted" | "cancelled" | "aborted" => TurnStatus::Cancelled,
            "failed" => TurnStatus::Failed,
            CUT_OFF => TurnStatus::Interrupted,
            _ => TurnStatus::Completed,
        };
        let error = over.error.filter(|_| status == TurnStatus::Failed);
        if let Some(error) = &error
            && !self.turns.was_told(&error.message)
        {
            out.events.push(EventKind::Error(error.clone()));
        }
        let forgotten = if status == TurnStatus::Cancelled { Forgotten::Cancelled } else { Forgotten::OfTurn };
        self.close_turn_work(forgotten, now, out);
        self.texts.turn_over();
        let text = over.text.or(self.turns.text.take()).filter(|text| !text.is_empty());
        let text = text.filter(|_| status == TurnStatus::Completed);
        let structured =
            text.as_deref().filter(|_| self.turns.structured).and_then(|text| serde_json::from_str(text).ok());
        let turn = TurnEnd {
            usage: over.usage.or_else(|| self.turns.usage.turn()),
            duration_ms: over.duration_ms.or_else(|| self.turn_time(now)),
            text,
            error: error.map(|error| error.message),
            native_status: Some(over.status).filter(|word| word != CUT_OFF),
            structured_output: structured,
            denials: self.tools.take_denials(),
            message_id: self.turns.begun().map(MessageId::from),
            ..TurnEnd::of(status)
        };
        self.turns.books.complete(turn, None, out);
        self.turns.books.recovered();
        self.turns.told = None;
        self.reviewing = false;
    }

    /// The turn could not even begin.
    pub(super) fn turn_refused(&mut self, error: AgentError, now: Timestamp, out: &mut Step) {
        let over = Over { status: "failed".to_owned(), error: Some(error), ..Over::default() };
        self.turn_over(over, now, out);
    }

    /// Ends what must not outlive a turn: calls without an end, questions without an answer.
    fn close_turn_work(&mut self, which: Forgotten<'_>, now: Timestamp, out: &mut Step) {
        let clock = self.session.clock(now);
        self.tools.close_forgotten(which, clock, out);
        self.questions.withdraw("the turn is over", |_| true, out);
    }

    /// An error, or word that Codex tries again.
    pub(super) fn trouble(&mut self, error: &Fields, will_retry: Option<bool>, out: &mut Step) {
        let message = error.text("message").unwrap_or("the agent reports an error");
        let attempt = attempt(message);
        if will_retry.unwrap_or(attempt.is_some()) {
            let (attempt, max_attempts) = attempt.unwrap_or((1, None));
            let reason = error.text("additionalDetails").map_or_else(|| reason(message), str::to_owned);
            let status_code = info(error).1;
            self.texts.retract_unfinished(out);
            let retry = Retry { attempt, max_attempts, delay_ms: None, status_code, reason: Some(reason) };
            out.events.push(EventKind::Retry(retry));
            return;
        }
        out.events.push(EventKind::Error(failure(error)));
        self.turns.error_told(message);
        if will_retry.is_none() {
            self.turns.books.failed_for_good(message.to_owned());
        }
    }

    pub(super) fn process_over(&mut self, end: End<'_>, now: Timestamp, out: &mut Step) {
        if !self.turns.is_busy() {
            return;
        }
        let (status, error) = match end {
            End::Stopped(_) | End::InputEnded => ("interrupted", None),
            End::Exited(_) if self.turns.is_cancelling() => ("interrupted", None),
            End::Exited(exit) => {
                ("failed", Some(lost(exit).unwrap_or_else(|| track::died(AgentType::Codex, exit, true))))
            }
            End::Broken { why, .. } => ("failed", Some(why.clone())),
        };
        self.turn_over(Over { status: status.to_owned(), error, ..Over::default() }, now, out);
    }

    pub(super) fn ended(&mut self, end: End<'_>, now: Timestamp, out: &mut Step) {
        if self.turns.books.is_over() {
            return;
        }
        self.session.release(out);
        self.close_turn_work(Forgotten::All, now, out);
        let died = match end {
            End::Exited(exit) => lost(exit),
            End::Stopped(_) | End::Broken { .. } | End::InputEnded => None,
        };
        let usage = if self.turns.is_busy() { self.turns.usage.turn() } else { None };
        let announced = self.turns.announced.take().map(TurnId::from);
        let known = Known { waiting: self.turns.waiting, announced, usage, died };
        self.turns.books.end(end, known, None, out);
    }
}

/// The numbers in `Reconnecting... 1/2 (why)`.
fn attempt(message: &str) -> Option<(u32, Option<u32>)> {
    let rest = message.strip_prefix("Reconnecting")?.trim_start_matches('.').trim_start();
    let count = rest.split([' ', '(']).next()?;
    let (attempt, most) = count.split_once('/')?;
    Some((attempt.parse().ok()?, most.parse().ok()))
}

/// The reason in it.
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

/// An error as Codex describes it.
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
