//! Why a session did not do what it was asked. One small enum an operation.

use multitap_event::{ApprovalMode, ClientId, LaunchError, PromptId, Refused};

/// The client could not join.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("too many clients have joined")]
    Full,
}

/// The agent was not told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("an observer may not do that")]
    Observer,
    /// By an owner, and it has not joined again since.
    #[error("you were sent away from this session: join it again first")]
    SentAway,
    /// Only owners go beyond what owners chose.
    #[error(
        "mode {word} may let more run unasked than {most}, which is as far as the owner of this session lets you go"
    )]
    Beyond { word: String, most: ApprovalMode },
    #[error("the agent is not running")]
    NoAgent,
    #[error("too much is waiting for the agent or for the reader of its events")]
    Busy,
    /// In the words of the process that has the session, or why it cannot be reached.
    #[error("{0}")]
    Elsewhere(String),
}

/// The prompt was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("an observer may not prompt")]
    Observer,
    /// By an owner, and it has not joined again since.
    #[error("you were sent away from this session: join it again first")]
    SentAway,
    #[error("the session takes no more prompts: it ends when the running turn does")]
    Finishing,
    #[error("too many prompts are waiting (at most 64, of 32 MiB together): send it again once the agent is idle")]
    QueueFull,
    #[error("a prompt {0} is waiting or being worked on already: give this one another id")]
    SameId(PromptId),
    #[error("the agent takes no prompt into a running turn: let it wait, or interrupt")]
    CannotSteer,
    #[error("too much is waiting for the agent or for the reader of its events")]
    Busy,
    /// In the words of the process that has the session, or why it cannot be reached.
    #[error("{0}")]
    Elsewhere(String),
}

/// Nothing was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    #[error("no turn is running")]
    NoTurn,
    #[error(transparent)]
    Command(#[from] CommandError),
}

/// The prompt was not withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WithdrawError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("an observer may not withdraw prompts")]
    Observer,
    /// By an owner, and it has not joined again since.
    #[error("you were sent away from this session: join it again first")]
    SentAway,
    #[error("no prompt {0} is waiting")]
    NotWaiting(PromptId),
    /// In the words of the process that has the session, or why it cannot be reached.
    #[error("{0}")]
    Elsewhere(String),
}

/// The answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    #[error("the session has ended")]
    SessionEnded,
    /// By an owner, and it has not joined again since.
    #[error("you were sent away from this session: join it again first")]
    SentAway,
    #[error("too much is waiting for the agent or for the reader of its events")]
    Busy,
    #[error(transparent)]
    Refused(#[from] Refused),
    /// In the words of the process that has the session, or why it cannot be reached.
    #[error("{0}")]
    Elsewhere(String),
}

/// The rule still holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RevokeError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("an observer may not revoke rules")]
    Observer,
    /// By an owner, and it has not joined again since.
    #[error("you were sent away from this session: join it again first")]
    SentAway,
    #[error("somebody else answered that for good: only they, or an owner of this session, may take it back")]
    NotYours,
    #[error("there is no rule {0}")]
    NoSuchRule(String),
    #[error("rule {0} stands in the agent's own settings: it can only be removed there")]
    Saved(String),
    /// In the words of the process that has the session, or why it cannot be reached.
    #[error("{0}")]
    Elsewhere(String),
}

/// The client is still there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KickError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("an observer may not send others away")]
    Observer,
    /// By an owner, and it has not joined again since.
    #[error("you were sent away from this session: join it again first")]
    SentAway,
    #[error("only an owner of this session may send others away")]
    NotOwner,
    /// It has the session: nobody takes it from it.
    #[error("that is where this session runs: it can only be left there")]
    AtHome,
    #[error("there is no client {0}")]
    NoSuchClient(ClientId),
    /// In the words of the process that has the session, or why it cannot be reached.
    #[error("{0}")]
    Elsewhere(String),
}

/// The agent was not started again.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RestartError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("the agent is running")]
    Running,
    #[error(transparent)]
    Launch(Box<LaunchError>),
    /// In the words of the process that has the session, or why it cannot be reached.
    #[error("{0}")]
    Elsewhere(String),
}

impl From<CommandError> for PromptError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::SessionEnded | CommandError::NoAgent => Self::SessionEnded,
            CommandError::Observer => Self::Observer,
            CommandError::SentAway => Self::SentAway,
            CommandError::Busy => Self::Busy,
            CommandError::Beyond { .. } => Self::Elsewhere(error.to_string()),
            CommandError::Elsewhere(why) => Self::Elsewhere(why),
        }
    }
}

impl From<CommandError> for DecideError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::SessionEnded | CommandError::NoAgent => Self::SessionEnded,
            CommandError::Observer => Self::Refused(Refused::Observer),
            CommandError::SentAway => Self::SentAway,
            CommandError::Busy => Self::Busy,
            CommandError::Beyond { .. } => Self::Elsewhere(error.to_string()),
            CommandError::Elsewhere(why) => Self::Elsewhere(why),
        }
    }
}

/// Why a client may only look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Barred {
    Observer,
    SentAway,
}

macro_rules! barred_from {
    ($($operation:ty),*) => {$(
        impl From<Barred> for $operation {
            fn from(barred: Barred) -> Self {
                match barred {
                    Barred::Observer => Self::Observer,
                    Barred::SentAway => Self::SentAway,
                }
            }
        }
    )*};
}

barred_from!(CommandError, PromptError, WithdrawError, RevokeError, KickError);

impl From<Barred> for CancelError {
    fn from(barred: Barred) -> Self {
        Self::Command(barred.into())
    }
}

impl From<Barred> for DecideError {
    fn from(barred: Barred) -> Self {
        match barred {
            Barred::Observer => Self::Refused(Refused::Observer),
            Barred::SentAway => Self::SentAway,
        }
    }
}
