//! What sessions and their host refuse, in A2A's words: one place, every case.

use multitap_a2a::{Error, ErrorKind};
use multitap_event::Refused;
use multitap_hub::{
    CancelError, CommandError, DecideError, JoinError, JournalError, KickError, PromptError, RevokeError, WithdrawError,
};
use serde_json::json;

use crate::host::HostError;

pub(crate) fn from_host(error: &HostError) -> Error {
    let kind = match error {
        HostError::Setting { .. } | HostError::NoSuchSession(_) => ErrorKind::InvalidParams,
        HostError::LiveElsewhere { .. } | HostError::TooMany | HostError::NotYet => ErrorKind::UnsupportedOperation,
        HostError::Agent(_) | HostError::ShutDown => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn from_prompt(error: &PromptError) -> Error {
    let kind = match error {
        PromptError::Observer | PromptError::SentAway => ErrorKind::NotController,
        PromptError::SameId(_) => ErrorKind::InvalidParams,
        PromptError::CannotSteer | PromptError::Finishing | PromptError::SessionEnded => {
            ErrorKind::UnsupportedOperation
        }
        PromptError::QueueFull | PromptError::Busy | PromptError::Elsewhere(_) => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn from_decide(error: &DecideError) -> Error {
    match error {
        DecideError::SentAway => Error::new(ErrorKind::NotController, error.to_string()),
        DecideError::SessionEnded => Error::new(ErrorKind::UnsupportedOperation, error.to_string()),
        DecideError::Busy | DecideError::Elsewhere(_) => Error::internal(error.to_string()),
        DecideError::Refused(refused) => from_refused(refused),
    }
}

fn from_refused(refused: &Refused) -> Error {
    let message = refused.to_string();
    match refused {
        Refused::Observer => Error::new(ErrorKind::NotController, message),
        Refused::OwnerOnly { question, offered, .. } => {
            let offered: Vec<&str> = offered.iter().map(|option| option.as_str()).collect();
            Error::new(ErrorKind::NotController, message).with("questionId", question.as_str()).with("offered", offered)
        }
        Refused::AlreadySettled(ruling) => Error::new(ErrorKind::QuestionSettled, message)
            .with("questionId", ruling.question_id.as_str())
            .with("settledBy", json!({ "client": ruling.settled_by.client, "door": ruling.settled_by.door }))
            .with("selectedOptionId", ruling.selected_option_id.as_str())
            .with("kind", json!(ruling.kind))
            .with("at", ruling.at.to_string()),
        Refused::NotOffered { question, offered, .. } => {
            let offered: Vec<&str> = offered.iter().map(|option| option.as_str()).collect();
            Error::invalid_params(message).with("questionId", question.as_str()).with("offered", offered)
        }
        // The question waits: any of its options still counts.
        Refused::EditRefused { question, why, offered } => {
            let offered: Vec<&str> = offered.iter().map(|option| option.as_str()).collect();
            Error::invalid_params(message)
                .with("questionId", question.as_str())
                .with("editRefused", why.as_str())
                .with("offered", offered)
        }
        Refused::UnknownQuestion { question }
        | Refused::DoesNotFit { question, .. }
        | Refused::Withdrawn { question, .. } => Error::invalid_params(message).with("questionId", question.as_str()),
    }
}

pub(crate) fn from_cancel(error: &CancelError) -> Error {
    match error {
        CancelError::NoTurn => Error::new(ErrorKind::TaskNotCancelable, error.to_string()),
        CancelError::Command(error) => from_command(error),
    }
}

pub(crate) fn from_command(error: &CommandError) -> Error {
    let kind = match error {
        CommandError::Observer | CommandError::SentAway | CommandError::Beyond { .. } => ErrorKind::NotController,
        CommandError::SessionEnded | CommandError::NoAgent => ErrorKind::UnsupportedOperation,
        CommandError::Busy | CommandError::Elsewhere(_) => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn from_withdraw(error: &WithdrawError) -> Error {
    let kind = match error {
        WithdrawError::Observer | WithdrawError::SentAway => ErrorKind::NotController,
        WithdrawError::NotWaiting(_) => ErrorKind::InvalidParams,
        WithdrawError::SessionEnded => ErrorKind::UnsupportedOperation,
        WithdrawError::Elsewhere(_) => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn from_revoke(error: &RevokeError) -> Error {
    let kind = match error {
        RevokeError::Observer | RevokeError::SentAway | RevokeError::NotYours => ErrorKind::NotController,
        RevokeError::NoSuchRule(_) => ErrorKind::InvalidParams,
        RevokeError::Saved(_) | RevokeError::SessionEnded => ErrorKind::UnsupportedOperation,
        RevokeError::Elsewhere(_) => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn from_kick(error: &KickError) -> Error {
    let kind = match error {
        KickError::Observer | KickError::SentAway | KickError::NotOwner | KickError::AtHome => ErrorKind::NotController,
        KickError::NoSuchClient(_) => ErrorKind::InvalidParams,
        KickError::SessionEnded => ErrorKind::UnsupportedOperation,
        KickError::Elsewhere(_) => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

pub(crate) fn from_join(error: &JoinError) -> Error {
    match error {
        JoinError::SessionEnded => Error::new(ErrorKind::UnsupportedOperation, error.to_string()),
        JoinError::Full => Error::internal(error.to_string()),
    }
}

pub(crate) fn from_journal(error: &JournalError) -> Error {
    match error {
        JournalError::NoSuchSession(_) => Error::new(ErrorKind::TaskNotFound, error.to_string()),
        JournalError::LiveElsewhere { .. } | JournalError::LiveHere(_) => {
            Error::new(ErrorKind::UnsupportedOperation, error.to_string())
        }
        JournalError::Full
        | JournalError::Locked
        | JournalError::Damaged(_)
        | JournalError::Newer { .. }
        | JournalError::Lost(_)
        | JournalError::Other(_) => Error::internal(error.to_string()),
    }
}
