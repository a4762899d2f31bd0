//! Timers of a session.

use std::sync::atomic::Ordering;

use multitap_event::{Command, Decide, EventKind, QuestionId};
use tokio::time::Instant;

use super::{FirstReader, SWEEP, SessionTask, host};

impl SessionTask {
    /// The time of the next timer.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let questions = self.deadlines.iter().map(|(_, due)| *due).min();
        let first_reader = match self.first_reader {
            FirstReader::AwaitedUntil(due) => Some(due),
            FirstReader::NotYet | FirstReader::Joined => None,
        };
        questions.into_iter().chain(self.next_sweep).chain(first_reader).min()
    }

    /// Handles what is due: unanswered questions, clients that do not read, a session that nobody joined.
    pub(super) fn on_due(&mut self) {
        let now = Instant::now();
        let due: Vec<QuestionId> =
            self.deadlines.extract_if(.., |(_, due)| *due <= now).map(|(question, _)| question).collect();
        for question in due {
            self.deny(&question);
        }
        if matches!(self.first_reader, FirstReader::AwaitedUntil(due) if due <= now) {
            self.first_reader = FirstReader::NotYet;
        }
        if self.next_sweep.is_some_and(|due| due <= now) {
            self.next_sweep = Some(now + SWEEP);
            self.sweep();
        }
    }

    /// Denies a question that nobody answered. A settled or withdrawn question needs no answer.
    fn deny(&mut self, id: &QuestionId) {
        let Some(question) = self.state.questions.question(id) else { return };
        let patience = self.question_timeout.unwrap_or_default().as_secs_f32();
        match question.refusal() {
            Some(choice) => {
                let why = format!("nobody answered within {patience} s");
                let decide = Decide::new(id, choice.id.clone()).with_feedback(why);
                if self.decide(decide, host()).is_err() {
                    // The agent accepts no command now; another attempt follows soon.
                    self.deadlines.push((id.clone(), Instant::now() + SWEEP));
                }
            }
            // None of the question's options denies: the turn itself has to end.
            None => {
                if let Ok(permit) = self.agent.permit() {
                    self.hand(permit, Command::Cancel);
                }
            }
        }
    }

    /// Reports clients that left or were disconnected.
    pub(super) fn sweep(&mut self) {
        for reader in self.tail.sweep() {
            let Some(client) = self.state.client(&reader.client).cloned() else { continue };
            let cut = reader.cut.load(Ordering::Acquire);
            let reason = cut.then(|| format!("disconnected after event {}", reader.cursor()));
            self.tell(EventKind::ClientLeft { client, reason });
        }
    }
}
