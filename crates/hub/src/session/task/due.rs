//! Timeouts of a session.

use std::sync::atomic::Ordering;

use multitap_event::{Command, Decide, EventKind, QuestionId};
use tokio::time::Instant;

use super::{FirstReader, SWEEP, SessionTask, host};

impl SessionTask {
    /// The next deadline.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let questions = self.deadlines.iter().map(|(_, due)| *due).min();
        let first_reader = match self.first_reader {
            FirstReader::AwaitedUntil(due) => Some(due),
            FirstReader::NotYet | FirstReader::Joined => None,
        };
        questions.into_iter().chain(self.next_sweep).chain(first_reader).min()
    }

    /// Handles deadlines: unanswered questions, stuck clients, a session without a first reader.
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

    /// Denies an unanswered question. One that was closed meanwhile is skipped.
    fn deny(&mut self, id: &QuestionId) {
        let Some(question) = self.state.questions.question(id) else { return };
        let patience = self.question_timeout.unwrap_or_default().as_secs_f32();
        match question.refusal() {
            Some(choice) => {
                let why = format!("nobody answered within {patience} s");
                let decide = Decide::new(id, choice.id.clone()).with_feedback(why);
                if self.decide(decide, host()).is_err() {
                    // The agent's queue is full; try again soon.
                    self.deadlines.push((id.clone(), Instant::now() + SWEEP));
                }
            }
            // No option denies, so the turn has to end.
            None => {
                if let Ok(permit) = self.agent.permit() {
                    self.hand(permit, Command::Cancel);
                }
            }
        }
    }

    /// Emits `clientLeft` for clients that left or were disconnected.
    pub(super) fn sweep(&mut self) {
        for reader in self.tail.sweep() {
            let Some(client) = self.state.client(&reader.client).cloned() else { continue };
            let cut = reader.cut.load(Ordering::Acquire);
            let reason = cut.then(|| format!("cut off after event {}", reader.cursor()));
            self.tell(EventKind::ClientLeft { client, reason });
        }
    }
}
