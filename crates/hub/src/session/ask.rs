//! What handles ask of the session task.

use multitap_event::{AgentError, ClientId, ClientRef, Command, Decide, Prompt, PromptId, Ruling, SessionConfig};
use tokio::sync::oneshot;

use super::error::{
    CancelError, CommandError, DecideError, JoinError, KickError, PromptError, RestartError, RevokeError, WithdrawError,
};
use super::{Join, Joined, WhenBusy};
use crate::state::State;

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<T>;

#[derive(Debug)]
pub(crate) enum Ask {
    Join { join: Join, reply: Reply<Result<Joined, JoinError>> },
    Snapshot { reply: Reply<Box<State>> },
    Prompt { prompt: Prompt, when_busy: WhenBusy, from: ClientRef, reply: Reply<Result<PromptId, PromptError>> },
    Withdraw { prompt: PromptId, by: ClientRef, reply: Reply<Result<(), WithdrawError>> },
    Decide { decide: Decide, by: ClientRef, reply: Reply<Result<Ruling, DecideError>> },
    Cancel { by: ClientRef, reply: Reply<Result<(), CancelError>> },
    Pass { command: Command, by: ClientRef, reply: Reply<Result<(), CommandError>> },
    Revoke { rule_id: String, by: ClientRef, reply: Reply<Result<(), RevokeError>> },
    Kick { client: ClientId, by: ClientRef, reply: Reply<Result<(), KickError>> },
    Report { error: AgentError, reply: Reply<Result<(), CommandError>> },
    Restart { config: Option<Box<SessionConfig>>, reply: Reply<Result<(), RestartError>> },
    Finish { reply: Reply<Result<(), CommandError>> },
    Stop { reply: Reply<Result<(), CommandError>> },
}
