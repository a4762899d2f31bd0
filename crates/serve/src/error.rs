//! Refusals of sessions and their host as A2A errors: one place, every case.

use multitap_a2a::{Error, ErrorKind};
use multitap_event::Refused;
use multitap_hub::{JournalError, Refusal};

/// The data is that of the refusal, with its stable `code`.
pub(crate) fn from_refusal(refusal: &Refusal) -> Error {
    Error { kind: kind(refusal), message: refusal.to_string(), data: refusal.data() }
}

/// The JSON-RPC error code.
pub(crate) fn code(refusal: &Refusal) -> i64 {
    kind(refusal).code()
}

pub(crate) fn from_journal(error: &JournalError) -> Error {
    from_refusal(&error.clone().into())
}

fn kind(refusal: &Refusal) -> ErrorKind {
    match refusal {
        Refusal::Observer
        | Refusal::Kicked
        | Refusal::BeyondCeiling { .. }
        | Refusal::RuleOfOther
        | Refusal::NotOwner
        | Refusal::HostClient
        | Refusal::Answer(Refused::Observer | Refused::OwnerOnly { .. }) => ErrorKind::NotController,
        Refusal::Answer(Refused::AlreadySettled(_)) => ErrorKind::QuestionSettled,
        Refusal::NoTurn => ErrorKind::TaskNotCancelable,
        // The question may still be open for its other options.
        Refusal::Answer(
            Refused::UnknownQuestion { .. }
            | Refused::NotOffered { .. }
            | Refused::DoesNotFit { .. }
            | Refused::EditRefused { .. }
            | Refused::Withdrawn { .. },
        )
        | Refusal::PromptIdTaken { .. }
        | Refusal::PromptNotQueued { .. }
        | Refusal::UnknownRule { .. }
        | Refusal::UnknownClient { .. }
        | Refusal::UnknownSession { .. }
        | Refusal::NoSession
        | Refusal::InvalidSetting { .. }
        | Refusal::InvalidParams { .. } => ErrorKind::InvalidParams,
        Refusal::SessionEnded
        | Refusal::NoAgent
        | Refusal::AgentRunning
        | Refusal::Draining
        | Refusal::CannotSteer
        | Refusal::SavedRule { .. }
        | Refusal::NotHere
        | Refusal::LiveElsewhere { .. }
        | Refusal::LiveHere { .. }
        | Refusal::TooManySessions
        | Refusal::NotReady => ErrorKind::UnsupportedOperation,
        Refusal::UnknownMethod { .. } => ErrorKind::MethodNotFound,
        Refusal::Busy
        | Refusal::QueueFull
        | Refusal::TooManyClients
        | Refusal::Connection { .. }
        | Refusal::LogUnavailable { .. }
        | Refusal::AgentFailed { .. }
        | Refusal::ShuttingDown
        | Refusal::Unknown { .. } => ErrorKind::Internal,
    }
}
