//! Derives the exit code from the events.

use multitap_event::{AgentErrorKind, Event, EventKind, SessionEndReason, Severity, TurnStatus};

use crate::exit::Exit;

/// The facts on which the exit code depends.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// The user or a signal ended the session.
    pub(super) interrupted: bool,
    /// A question was left unanswered and denied.
    pub(super) denied: bool,
    prompted: bool,
    last_turn: Option<TurnStatus>,
    ended: Option<SessionEndReason>,
    timed_out: bool,
}

impl Tally {
    pub(super) fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::UserMessage(_) => {
                self.prompted = true;
                self.last_turn = None;
                self.timed_out = false;
            }
            EventKind::TurnCompleted(end) => self.last_turn = Some(end.status),
            EventKind::SessionEnded(end) => self.ended = Some(end.reason),
            EventKind::Error(error) if error.severity == Severity::Error => {
                self.timed_out = error.kind == AgentErrorKind::Timeout;
            }
            _ => {}
        }
    }

    /// Whether the session reported its end.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn exit(&self) -> Exit {
        if self.interrupted {
            return Exit::Interrupted;
        }
        if self.denied {
            return Exit::Denied;
        }
        let failed =
            if self.timed_out || self.ended == Some(SessionEndReason::Timeout) { Exit::Timeout } else { Exit::Failed };
        match (self.last_turn, self.ended) {
            (Some(TurnStatus::Cancelled), _) => Exit::Interrupted,
            (Some(TurnStatus::Failed | TurnStatus::Interrupted), _) => failed,
            (_, Some(SessionEndReason::Failed | SessionEndReason::Timeout)) => failed,
            (Some(TurnStatus::Completed), _) => Exit::Completed,
            // Without a turn, a prompt did not succeed, whatever the agent says.
            (None, _) if self.prompted => failed,
            (None, _) => Exit::Completed,
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{AgentError, Draft, SessionEnd, Timestamp, TurnEnd, UserMessage};

    use super::*;

    fn prompt() -> EventKind {
        EventKind::UserMessage(UserMessage {
            content: String::new(),
            images: Vec::new(),
            prompt_id: None,
            from: None,
            steering: false,
            message_id: None,
            ..UserMessage::default()
        })
    }

    fn turn(status: TurnStatus) -> EventKind {
        EventKind::TurnCompleted(TurnEnd::of(status))
    }

    fn end(reason: SessionEndReason) -> EventKind {
        EventKind::SessionEnded(SessionEnd::of(reason))
    }

    #[track_caller]
    fn check(kinds: &[EventKind], expected: Exit) {
        let mut tally = Tally::default();
        for kind in kinds {
            tally.apply(&Draft::new(Timestamp::from_millis(0), kind.clone()).stamp("s".into(), 1));
        }
        assert_eq!(tally.exit(), expected);
        tally.denied = true;
        assert_eq!(tally.exit(), Exit::Denied);
        tally.interrupted = true;
        assert_eq!(tally.exit(), Exit::Interrupted);
    }

    #[test]
    fn each_end_has_its_code() {
        let timeout = || EventKind::Error(AgentError::new(AgentErrorKind::Timeout, "too slow"));
        check(&[prompt(), turn(TurnStatus::Completed), end(SessionEndReason::Completed)], Exit::Completed);
        check(&[prompt(), turn(TurnStatus::Failed), end(SessionEndReason::Failed)], Exit::Failed);
        check(&[prompt(), turn(TurnStatus::Cancelled), end(SessionEndReason::Cancelled)], Exit::Interrupted);
        check(&[prompt(), timeout(), turn(TurnStatus::Failed), end(SessionEndReason::Failed)], Exit::Timeout);
        check(&[prompt(), end(SessionEndReason::Completed)], Exit::Failed);
        check(&[prompt(), turn(TurnStatus::Completed), end(SessionEndReason::Failed)], Exit::Failed);
        check(&[end(SessionEndReason::Completed)], Exit::Completed);
        check(&[prompt(), end(SessionEndReason::Timeout)], Exit::Timeout);
    }
}
