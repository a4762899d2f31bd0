//! Turns, and the end of it all.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, MessageId, Retry, SessionEnd, SessionEndReason, Timestamp,
    TokenUsage, TurnEnd, TurnId, TurnStatus,
};
use multitap_process::Exit;
use serde_json::Value;

use super::decode::CodexCodec;
use super::tools::Forgotten;
use super::usage::Usage;
use super::wire::Fields;
use crate::codec::{End, Finish, Step};

/// The turn that runs, and what the ones before it came to.
#[derive(Debug, Default)]
pub(super) struct Turns {
    count: u64,
    open: Option<Open>,
    /// A prompt was handed over and its turn has not begun.
    waiting: bool,
    /// Codex's id of the turn that will begin, once it has said so.
    announced: Option<String>,
    cancelling: bool,
    /// An error that this turn already told; its end is not told as another.
    told: Option<String>,
    /// The last item that was an error, and its text.
    error_item: Option<(String, String)>,
    /// The last message of the turn.
    text: Option<String>,
    /// How the last turn ended, and why if it failed.
    last: Option<(TurnStatus, Option<String>)>,
    pub(super) usage: Usage,
    /// An error that ended the session as such.
    fatal: Option<String>,
    /// Each turn is a process of its own, which counts its items from nought.
    processes: bool,
    /// The answer is to fit a schema.
    structured: bool,
    ended: bool,
}

#[derive(Debug)]
struct Open {
    id: TurnId,
    native: Option<String>,
    /// The turn that it is part of, which is another one only in a review.
    root: Option<String>,
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
        if let Some(open) = &mut self.open {
            if open.native.is_none() {
                open.native = native.map(str::to_owned);
            }
            return;
        }
        self.count += 1;
        self.waiting = false;
        self.told = None;
        self.text = None;
        let native = native.map(str::to_owned).or(self.announced.take());
        let id = native.clone().map_or_else(|| TurnId::from(format!("turn-{}", self.count)), TurnId::from);
        self.open = Some(Open { id: id.clone(), native, root: None });
        out.events.push(EventKind::TurnStarted { turn_id: id });
    }

    /// The turn under way is part of that one.
    pub(super) fn is_part_of(&mut self, root: Option<String>) {
        if let Some(open) = &mut self.open {
            open.root = root;
        }
    }

    /// Whether Codex means the turn under way. One that is not told is it.
    pub(super) fn is_current(&self, native: Option<&str>) -> bool {
        let known = |known: &Option<String>| known.is_some() && known.as_deref() == native;
        match &self.open {
            Some(open) => native.is_none() || known(&open.native) || known(&open.root),
            None => known(&self.announced),
        }
    }

    pub(super) fn prompted(&mut self) {
        self.waiting = true;
        self.announced = None;
    }

    /// Codex says under which id the turn runs or will.
    pub(super) fn announce(&mut self, native: Option<&str>) {
        match &mut self.open {
            Some(open) if open.native.is_none() => open.native = native.map(str::to_owned),
            Some(_) => {}
            None => self.announced = native.map(str::to_owned),
        }
    }

    /// Whether there is work to cancel.
    pub(super) fn is_busy(&self) -> bool {
        self.open.is_some() || self.waiting
    }

    /// Codex's id of the turn under way, once it has begun: no interrupt is taken before.
    pub(super) fn begun(&self) -> Option<&str> {
        self.open.as_ref()?.native.as_deref()
    }

    pub(super) fn cancel(&mut self) {
        self.cancelling = true;
    }

    /// Somebody wants the turn to end, whose id was not known then.
    pub(super) fn is_cancelling(&self) -> bool {
        self.cancelling
    }

    pub(super) fn said(&mut self, text: &str) {
        self.text = Some(text.to_owned());
    }

    /// The name of the turn, where items are counted anew in each.
    pub(super) fn scope(&self) -> Option<&str> {
        self.open.as_ref().filter(|_| self.processes).map(|open| open.id.as_str())
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
        let open = self.turns.open.take();
        let text = over.text.or(self.turns.text.take()).filter(|text| !text.is_empty());
        let text = text.filter(|_| status == TurnStatus::Completed);
        let why = error.map(|error| error.message);
        let structured =
            text.as_deref().filter(|_| self.turns.structured).and_then(|text| serde_json::from_str(text).ok());
        out.events.push(EventKind::TurnCompleted(TurnEnd {
            usage: over.usage.or_else(|| self.turns.usage.turn()),
            duration_ms: over.duration_ms,
            text,
            error: why.clone(),
            native_status: Some(over.status),
            structured_output: structured,
            denials: self.tools.take_denials(),
            message_id: open.as_ref().and_then(|open| open.native.as_deref()).map(MessageId::from),
            turn_id: open.map(|open| open.id),
            ..TurnEnd::of(status)
        }));
        self.turns.last = Some((status, why));
        self.turns.cancelling = false;
        self.turns.told = None;
        self.turns.fatal = None;
        self.reviewing = false;
    }

    /// The turn could not even begin.
    pub(super) fn turn_refused(&mut self, error: AgentError, now: Timestamp, out: &mut Step) {
        let over = Over { status: "failed".to_owned(), error: Some(error), ..Over::default() };
        self.turn_over(over, now, out);
    }

    /// Ends what must not outlive a turn: calls without an end, questions without an answer.
    fn close_turn_work(&mut self, which: Forgotten<'_>, now: Timestamp, out: &mut Step) {
        let clock = self.session.is_live().then_some(now);
        self.tools.close_forgotten(which, clock, out);
        self.questions.withdraw_all("the turn is over", out);
    }

    /// An error, or word that Codex tries again.
    pub(super) fn trouble(&mut self, error: &Fields, will_retry: Option<bool>, out: &mut Step) {
        let message = error.text("message").unwrap_or("the agent reports an error");
        let attempt = attempt(message);
        if will_retry.unwrap_or(attempt.is_some()) {
            let (attempt, max_attempts) = attempt.unwrap_or((1, None));
            let reason = error.text("additionalDetails").map_or_else(|| reason(message), str::to_owned);
            let status_code = info(error).1;
            self.texts.cut_off(out);
            let retry = Retry { attempt, max_attempts, delay_ms: None, status_code, reason: Some(reason) };
            out.events.push(EventKind::Retry(retry));
            return;
        }
        out.events.push(EventKind::Error(failure(error)));
        self.turns.error_told(message);
        if will_retry.is_none() {
            self.turns.fatal = Some(message.to_owned());
        }
    }
}

impl Finish for CodexCodec {
    fn process_over(&mut self, end: End<'_>, now: Timestamp, out: &mut Step) {
        if !self.turns.is_busy() {
            return;
        }
        let (status, error) = match end {
            End::Stopped(_) | End::InputEnded => ("interrupted", None),
            End::Exited(_) if self.turns.cancelling => ("interrupted", None),
            End::Exited(exit) => ("failed", Some(died(exit, true))),
            End::Broken { why, .. } => ("failed", Some(why.clone())),
        };
        self.turn_over(Over { status: status.to_owned(), error, ..Over::default() }, now, out);
    }

    fn ended(&mut self, end: End<'_>, now: Timestamp, out: &mut Step) {
        if std::mem::replace(&mut self.turns.ended, true) {
            return;
        }
        self.session.release(out);
        let (exit, asked) = match end {
            End::Exited(exit) | End::Broken { exit, .. } => (Some(exit), false),
            End::Stopped(exit) => (Some(exit), true),
            End::InputEnded => (None, false),
        };
        let in_turn = self.turns.is_busy();
        self.close_turn_work(Forgotten::All, now, out);
        let mut error = self.turns.fatal.clone();
        let failed_before = self.turns.last.as_ref().is_some_and(|(status, _)| *status != TurnStatus::Completed);
        let died = match end {
            End::Broken { why, .. } => Some(why.clone()),
            End::Exited(exit) if in_turn || !(exit.success() || failed_before) => Some(died(exit, in_turn)),
            End::Exited(_) | End::Stopped(_) | End::InputEnded => None,
        };
        if let Some(died) = died {
            error.get_or_insert_with(|| died.message.clone());
            out.events.push(EventKind::Error(died));
        }
        if in_turn {
            self.turns.begin(None, out);
            let status = match (&self.turns.fatal, asked) {
                (Some(_), _) => TurnStatus::Failed,
                (None, true) => TurnStatus::Cancelled,
                (None, false) => TurnStatus::Interrupted,
            };
            let turn_id = self.turns.open.take().map(|open| open.id);
            let usage = self.turns.usage.turn();
            let turn = TurnEnd { turn_id, usage, error: error.clone(), ..TurnEnd::of(status) };
            out.events.push(EventKind::TurnCompleted(turn));
            self.turns.last = Some((status, error.clone()));
        }
        let (reason, why) = match (&error, self.turns.last.take()) {
            (Some(_), _) => (SessionEndReason::Failed, None),
            (None, Some((status, why))) => (status.into(), why),
            (None, None) => (SessionEndReason::Completed, None),
        };
        out.events.push(EventKind::SessionEnded(SessionEnd {
            reason,
            error: error.or(why),
            final_usage: self.turns.usage.of_session(),
            exit_code: exit.and_then(|exit| exit.code),
        }));
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

fn died(exit: &Exit, in_turn: bool) -> AgentError {
    let lost = ["no rollout found", "No saved session", "no saved session", "thread not found", "session not found"];
    if lost.iter().any(|words| exit.stderr_tail.contains(words)) {
        let said = exit.stderr_tail.lines().last().unwrap_or_default().trim_start_matches("Error: ").to_owned();
        return AgentError::new(AgentErrorKind::SessionNotFound, said).of(AgentType::Codex).exited(exit.code);
    }
    let when = if in_turn { " in the middle of a turn" } else { "" };
    let error = AgentError::new(AgentErrorKind::ProcessExitError, format!("codex ended{when} with {exit}"))
        .of(AgentType::Codex)
        .exited(exit.code);
    if exit.stderr_tail.is_empty() { error } else { error.native(exit.stderr_tail.clone()) }
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
