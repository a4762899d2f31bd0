//! Messages from handles to the session task.

use multitap_event::{AgentError, ClientRef, SessionConfig};
use tokio::sync::oneshot;

use super::{Join, Joined};
use crate::protocol::{Refusal, SessionCall, SessionReply};

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

#[derive(Debug)]
pub(crate) enum Ask {
    Join { join: Join, reply: Reply<Joined> },
    Call { call: SessionCall, by: ClientRef, reply: Reply<SessionReply> },
    Report { error: AgentError, reply: Reply<()> },
    Restart { config: Option<Box<SessionConfig>>, reply: Reply<()> },
    Finish { reply: Reply<()> },
    Stop { reply: Reply<()> },
}
