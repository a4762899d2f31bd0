//! What a door refused, as the hub's own errors. Pure.
//!
//! A code that says all there is becomes that error; of what several errors share a code the words are kept, which the
//! door took from the same errors: by them it is known which it was, or at least what to say.

use multitap_event::{ClientId, Decide, OptionId, PromptId, Refused};
use multitap_hub::{
    CancelError, CommandError, DecideError, JournalError, KickError, PromptError, RevokeError, WithdrawError,
};
use serde_json::Value;

use crate::calls::Failed;
use crate::wire::Problem;

const INVALID_PARAMS: i64 = -32602;
const NOT_CANCELABLE: i64 = -32002;
const QUESTION_SETTLED: i64 = -32011;
const NOT_CONTROLLER: i64 = -32012;

/// Whether somebody was refused who may not do something, in the words of that error.
fn says(problem: &Problem, error: &impl ToString) -> bool {
    problem.code == NOT_CONTROLLER && problem.message == error.to_string()
}

pub(crate) fn prompt(failed: Failed) -> PromptError {
    match failed {
        Failed::Refused(problem) if says(&problem, &PromptError::Observer) => PromptError::Observer,
        Failed::Refused(problem) if says(&problem, &PromptError::SentAway) => PromptError::SentAway,
        other => PromptError::Elsewhere(other.to_string()),
    }
}

pub(crate) fn command(failed: Failed) -> CommandError {
    match failed {
        Failed::Refused(problem) if says(&problem, &CommandError::Observer) => CommandError::Observer,
        Failed::Refused(problem) if says(&problem, &CommandError::SentAway) => CommandError::SentAway,
        other => CommandError::Elsewhere(other.to_string()),
    }
}

pub(crate) fn cancel(failed: Failed) -> CancelError {
    match failed {
        Failed::Refused(problem) if problem.code == NOT_CANCELABLE => CancelError::NoTurn,
        other => CancelError::Command(command(other)),
    }
}

pub(crate) fn withdraw(failed: Failed, prompt: PromptId) -> WithdrawError {
    match failed {
        Failed::Refused(problem) if says(&problem, &WithdrawError::Observer) => WithdrawError::Observer,
        Failed::Refused(problem) if says(&problem, &WithdrawError::SentAway) => WithdrawError::SentAway,
        Failed::Refused(problem) if problem.code == INVALID_PARAMS => WithdrawError::NotWaiting(prompt),
        other => WithdrawError::Elsewhere(other.to_string()),
    }
}

pub(crate) fn revoke(failed: Failed, rule_id: String) -> RevokeError {
    match failed {
        Failed::Refused(problem) if says(&problem, &RevokeError::Observer) => RevokeError::Observer,
        Failed::Refused(problem) if says(&problem, &RevokeError::SentAway) => RevokeError::SentAway,
        Failed::Refused(problem) if problem.code == INVALID_PARAMS => RevokeError::NoSuchRule(rule_id),
        other => RevokeError::Elsewhere(other.to_string()),
    }
}

pub(crate) fn kick(failed: Failed, client: ClientId) -> KickError {
    match failed {
        Failed::Refused(problem) if says(&problem, &KickError::Observer) => KickError::Observer,
        Failed::Refused(problem) if says(&problem, &KickError::SentAway) => KickError::SentAway,
        Failed::Refused(problem) if problem.code == INVALID_PARAMS => KickError::NoSuchClient(client),
        other => KickError::Elsewhere(other.to_string()),
    }
}

pub(crate) fn page(failed: &Failed) -> JournalError {
    JournalError::Other(failed.to_string())
}

pub(crate) fn decide(failed: Failed, decide: &Decide) -> DecideError {
    match failed {
        Failed::Refused(problem) if says(&problem, &DecideError::SentAway) => DecideError::SentAway,
        Failed::Refused(problem) => answer(problem, decide),
        other => DecideError::Elsewhere(other.to_string()),
    }
}

fn answer(problem: Problem, decide: &Decide) -> DecideError {
    let Problem { code, message, data } = problem;
    let refused = match code {
        NOT_CONTROLLER => Some(match offered(&data) {
            Some(offered) => {
                Refused::OwnerOnly { question: decide.question_id.clone(), option: decide.option_id.clone(), offered }
            }
            None => Refused::Observer,
        }),
        QUESTION_SETTLED => serde_json::from_value(data).ok().map(Refused::AlreadySettled),
        INVALID_PARAMS => offered(&data).map(|offered| {
            let (question, option) = (decide.question_id.clone(), decide.option_id.clone());
            match data.get("editRefused").and_then(Value::as_str) {
                Some(why) => Refused::EditRefused { question, why: why.to_owned(), offered },
                None => Refused::NotOffered { question, option, offered },
            }
        }),
        _ => None,
    };
    refused.map_or(DecideError::Elsewhere(message), DecideError::Refused)
}

fn offered(data: &Value) -> Option<Vec<OptionId>> {
    let ids = data.get("offered")?.as_array()?.iter();
    Some(ids.filter_map(Value::as_str).map(OptionId::from).collect())
}
