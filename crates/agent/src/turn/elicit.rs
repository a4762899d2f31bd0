//! Requests of MCP servers to the user while a call of theirs runs. Each becomes a question of the session, and ends
//! with the call at the latest.

use multitap_event::{Decide, Elicitation, ElicitationAnswer, EventKind, Question, QuestionId, Withdrawal};

use super::call::Active;
use super::{Effect, Machine, Phase, Step, Turn};

const MOST_OPEN: usize = 8;

impl Machine {
    /// A server asks the user. Only accepted while the server runs a call of this turn: at other times nobody expects
    /// its question.
    pub(super) fn elicited(&mut self, id: QuestionId, elicitation: &Elicitation, step: &mut Step<'_>) {
        let running = match &mut self.turn {
            Some(Turn { stage: Phase::Working(work), .. }) => work.running_of(&elicitation.server),
            Some(_) | None => None,
        };
        match running.filter(|active| active.elicited.len() < MOST_OPEN) {
            Some(active) => {
                let question = elicitation.question(id, None);
                active.elicited.push(question.clone());
                step.tell(EventKind::PermissionAsked(question));
            }
            None => step.out.push(Effect::Answer(id, ElicitationAnswer::Cancel)),
        }
    }

    /// The server no longer waits for an answer.
    pub(super) fn withdrawn(&mut self, id: &QuestionId, step: &mut Step<'_>) {
        let question = self.work().and_then(|work| work.take_elicited(id));
        withdraw(question, "the MCP server no longer asks", step);
    }

    /// Whether the answer was for a server.
    pub(super) fn answered(&mut self, decide: &Decide, step: &mut Step<'_>) -> bool {
        let Some(question) = self.work().and_then(|work| work.take_elicited(&decide.question_id)) else { return false };
        // The owner of the session has checked that the answer fits. If it does not, it accepts nothing.
        let answer = ElicitationAnswer::of(&question, decide).unwrap_or(ElicitationAnswer::Cancel);
        step.out.push(Effect::Answer(question.question_id, answer));
        true
    }
}

impl Active {
    /// The call has ended or was asked to stop: withdraws its questions.
    pub(super) fn withdraw_elicited(&mut self, why: &str, step: &mut Step<'_>) {
        withdraw(std::mem::take(&mut self.elicited), why, step);
    }
}

fn withdraw(questions: impl IntoIterator<Item = Question>, why: &str, step: &mut Step<'_>) {
    for Question { question_id, .. } in questions {
        let withdrawal = Withdrawal { question_id: question_id.clone(), reason: Some(why.to_owned()) };
        step.tell(EventKind::PermissionWithdrawn(withdrawal));
        step.out.push(Effect::Answer(question_id, ElicitationAnswer::Cancel));
    }
}
