//! Answers to questions, and which of them become rulings.
//!
//! An edited answer runs something that the question did not show, so the agent checks it first. The session continues
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

/// Maximum number of concurrent reviews; further edited answers are refused.
const REVIEWS: usize = 16;
/// Time limit of a review; then the edit is refused.
const REVIEW_PATIENCE: Duration = Duration::from_secs(10);

/// Edited answers under review.
#[derive(Debug, Default)]
pub(super) struct Reviews(JoinSet<Reviewed>);

/// A reviewed answer and the verdict.
#[derive(Debug)]
pub(super) struct Reviewed {
    /// The question and mode that the review was based on.
    question: Box<Question>,
    mode: Option<ApprovalMode>,
    decide: Decide,
    by: ClientRef,
    reply: Reply<SessionReply>,
    verdict: Result<EditedCall, String>,
}

impl Reviews {
    /// The next reviewed answer; never completes without reviews. Cancel safe.
    pub(super) async fn next(&mut self) -> Reviewed {
        loop {
            match self.0.join_next().await {
                Some(Ok(reviewed)) => return reviewed,
                // Its reply is dropped, which the caller sees as an error.
                Some(Err(error)) => tracing::error!(%error, "the review of an edited answer failed"),
                None => std::future::pending().await,
            }
        }
    }
}

impl SessionTask {
    /// Handles an answer to a question.
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

    /// Handles an answer without an edit.
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

    /// Sends an edited answer to review. The question stays open meanwhile.
    fn review(&mut self, decide: Decide, by: ClientRef, reply: Reply<SessionReply>) {
        let Some(question) = self.state.questions.question(&decide.question_id).cloned().map(Box::new) else {
            let unknown = Refused::UnknownQuestion { question: decide.question_id };
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

    /// Handles the verdict on an edited answer. The question or mode may have changed meanwhile.
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
        // Reserve a place in the agent's queue first: every ruling must reach the agent.
        let permit = self.agent.permit()?;
        let rule = self.state.questions.question(&decide.question_id).and_then(|asked| Rule::of(asked, &ruling));
        self.deadlines.retain(|(question, _)| *question != decide.question_id);
        // Later changes come from this answer, not from the slash command.
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
