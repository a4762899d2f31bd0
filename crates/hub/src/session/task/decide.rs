//! Answers to questions: which of them become rulings.
//!
//! An edited answer runs something that nobody asked about, so the agent judges it first. The session goes on
//! meanwhile: another answer may win, and a refused edit leaves the question open for everybody.

use std::time::Duration;

use multitap_event::{
    ApprovalMode, ClientRef, Command, Decide, EditReview, EditedCall, EventKind, Question, Refused, Rule, Ruling,
    Timestamp,
};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::SessionTask;
use super::agent::NotReviewed;
use crate::protocol::{Refusal, SessionReply};
use crate::session::ask::Reply;

/// Most edited answers of a session under review; one more is refused.
const REVIEWS: usize = 16;
/// Time limit for the agent to judge one. After that it is refused.
const REVIEW_PATIENCE: Duration = Duration::from_secs(10);

/// Edited answers that the agent judges.
#[derive(Debug, Default)]
pub(super) struct Reviews(JoinSet<Reviewed>);

/// An edited answer and the agent's judgement.
#[derive(Debug)]
pub(super) struct Reviewed {
    /// The question and the mode at the time of the review.
    question: Box<Question>,
    mode: Option<ApprovalMode>,
    decide: Decide,
    by: ClientRef,
    reply: Reply<SessionReply>,
    verdict: Result<EditedCall, String>,
}

impl Reviews {
    /// The next judged answer. Pending while none is under review. Cancel safe.
    pub(super) async fn next(&mut self) -> Reviewed {
        loop {
            match self.0.join_next().await {
                Some(Ok(reviewed)) => return reviewed,
                // The failed review dropped the reply: the caller learns that the session has no answer.
                Some(Err(error)) => tracing::error!(%error, "the review of an edited answer failed"),
                None => std::future::pending().await,
            }
        }
    }
}

impl SessionTask {
    pub(super) fn answer(&mut self, decide: Decide, by: ClientRef, reply: Reply<SessionReply>) {
        match self.judge(&decide, by.clone()) {
            Ok(ruling) if ruling.edited => self.review(decide, by, reply),
            Ok(_) => {
                let ruling = self.decide(decide, by).map(ruled);
                self.reply(reply, ruling);
            }
            Err(error) => self.reply(reply, Err(error)),
        }
    }

    /// Accepts an answer without an edit.
    pub(super) fn decide(&mut self, decide: Decide, by: ClientRef) -> Result<Ruling, Refusal> {
        let ruling = self.judge(&decide, by)?;
        match ruling.edited {
            true => Err(refused(self.state.questions.question(&decide.question_id), &decide, "nobody reviewed it")),
            false => self.settle(decide, ruling),
        }
    }

    fn judge(&self, decide: &Decide, by: ClientRef) -> Result<Ruling, Refusal> {
        self.rights.may_act(&by)?;
        if let Some(question) = self.state.questions.question(&decide.question_id) {
            self.rights.may_answer(question, decide, &by)?;
        }
        Ok(self.state.questions.judge(decide, by, Timestamp::now())?)
    }

    /// Has the agent judge an edited answer. The question stays open meanwhile.
    fn review(&mut self, decide: Decide, by: ClientRef, reply: Reply<SessionReply>) {
        let Some(question) = self.state.questions.question(&decide.question_id).cloned().map(Box::new) else {
            let unknown = self.state.questions.unknown(decide.question_id);
            return self.reply(reply, Err(unknown.into()));
        };
        if self.reviews.0.len() >= REVIEWS {
            return self.reply(reply, Err(Refusal::Busy));
        }
        let (verdict, answer) = oneshot::channel();
        let mode = self.state.mode;
        let review = EditReview { question: question.clone(), decide: decide.clone(), mode, reply: verdict };
        if let Err(why) = self.agent.review(review) {
            let error = match why {
                NotReviewed::NoAgent => Refusal::NoAgent,
                NotReviewed::Busy => Refusal::Busy,
                NotReviewed::TakesNone => {
                    refused(Some(&question), &decide, "the agent does not support edited answers")
                }
            };
            return self.reply(reply, Err(error));
        }
        self.reviews.0.spawn(async move {
            let verdict = match timeout(REVIEW_PATIENCE, answer).await {
                Ok(Ok(verdict)) => verdict,
                Ok(Err(_)) => Err("the agent did not check the edit".to_owned()),
                Err(_) => Err(format!("the agent did not check the edit within {} s", REVIEW_PATIENCE.as_secs())),
            };
            Reviewed { question, mode, decide, by, reply, verdict }
        });
    }

    /// The agent has judged an edited answer. Others may have answered meanwhile, and the state may have changed.
    pub(super) fn on_reviewed(&mut self, reviewed: Reviewed) {
        let Reviewed { question, mode, decide, by, reply, verdict } = reviewed;
        let ruling = self.judge(&decide, by).and_then(|ruling| {
            let refused = |why: &str| Err(refused(Some(&question), &decide, why));
            if self.state.questions.question(&decide.question_id) != Some(&*question) {
                return refused("the agent asked something else meanwhile");
            }
            if self.state.mode != mode {
                return refused("the mode of the session changed meanwhile: answer again");
            }
            match verdict {
                Ok(runs) => self.settle(decide.clone(), Ruling { runs: Some(Box::new(runs)), ..ruling }),
                Err(why) => refused(&why),
            }
        });
        self.reply(reply, ruling.map(ruled));
    }

    fn settle(&mut self, decide: Decide, ruling: Ruling) -> Result<Ruling, Refusal> {
        self.room()?;
        // Reserve a place in the agent's queue first: the ruling must reach the agent.
        let permit = self.agent.permit()?;
        let rule = self.state.questions.question(&decide.question_id).and_then(|asked| Rule::of(asked, &ruling));
        self.deadlines.retain(|(question, _)| *question != decide.question_id);
        // A later change of the mode follows from this answer, not from the slash command.
        self.forget_slash_command();
        self.tell(EventKind::PermissionSettled(ruling.clone()));
        if let Some(rule) = rule {
            self.tell(EventKind::RuleAdded(rule));
        }
        self.hand(permit, Command::Decide(decide));
        Ok(ruling)
    }
}

fn ruled(ruling: Ruling) -> SessionReply {
    SessionReply::Decide(Box::new(ruling))
}

fn refused(question: Option<&Question>, decide: &Decide, why: &str) -> Refusal {
    let offered = question.map(Question::option_ids).unwrap_or_default();
    Refusal::Answer(Refused::EditRefused { question: decide.question_id.clone(), why: why.to_owned(), offered })
}
