//! Requests of MCP servers to the user while a call of theirs runs. Each becomes a question of the session, and ends
//! with the call at the latest.

use multitap_event::{Decide, Elicitation, ElicitationAnswer, EventKind, Question, QuestionId, Withdrawal};

use super::call::Active;
use super::{Effect, Machine, Phase, Turn};

/// The most questions of one call at a time.
const MOST_OPEN: usize = 8;

impl Machine {
    /// A server asks the user. Only accepted while the server runs a call of this turn: at other times nobody expects
    /// its question.
    pub(super) fn elicited(&mut self, id: QuestionId, elicitation: &Elicitation, out: &mut Vec<Effect>) {
        let running = match &mut self.turn {
            Some(Turn { stage: Phase::Working(work), .. }) => work.running_of(&elicitation.server),
            Some(_) | None => None,
        };
        match running.filter(|active| active.elicited.len() < MOST_OPEN) {
            Some(active) => {
                let question = elicitation.question(id, None);
                active.elicited.push(question.clone());
                out.push(Effect::Tell(EventKind::PermissionAsked(question)));
            }
            None => out.push(Effect::Answer(id, ElicitationAnswer::Cancel)),
        }
    }

    /// The server no longer waits for an answer.
    pub(super) fn withdrawn(&mut self, id: &QuestionId, out: &mut Vec<Effect>) {
        let question = self.work().and_then(|work| work.take_elicited(id));
        withdraw(question, "the MCP server no longer asks", out);
    }

    /// Whether the answer was for a server.
    pub(super) fn answered(&mut self, decide: &Decide, out: &mut Vec<Effect>) -> bool {
        let Some(question) = self.work().and_then(|work| work.take_elicited(&decide.question_id)) else { return false };
        // The owner of the session has checked that the answer fits. If it does not, it accepts nothing.
        let answer = ElicitationAnswer::of(&question, decide).unwrap_or(ElicitationAnswer::Cancel);
        out.push(Effect::Answer(question.question_id, answer));
        true
    }
}

impl Active {
    /// The call has ended or was asked to stop: withdraws its questions.
    pub(super) fn withdraw_elicited(&mut self, why: &str, out: &mut Vec<Effect>) {
        withdraw(std::mem::take(&mut self.elicited), why, out);
    }
}

fn withdraw(questions: impl IntoIterator<Item = Question>, why: &str, out: &mut Vec<Effect>) {
    for Question { question_id, .. } in questions {
        let withdrawal = Withdrawal { question_id: question_id.clone(), reason: Some(why.to_owned()) };
        out.push(Effect::Tell(EventKind::PermissionWithdrawn(withdrawal)));
        out.push(Effect::Answer(question_id, ElicitationAnswer::Cancel));
    }
}
