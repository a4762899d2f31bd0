//! Archives a stored conversation by asking Codex's app-server.

use std::time::Duration;

use multitap_event::{AgentError, AgentErrorKind, AgentType};
use multitap_process::{Child, Patience};
use serde_json::json;
use tokio::time::timeout;

use super::probe::ask;

const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const ARGS: [&str; 1] = ["app-server"];

/// Asks a running app-server to archive the conversation, and ends it.
pub(crate) async fn archive(mut child: Child, id: &str) -> Result<(), AgentError> {
    let reply = timeout(ANSWER_PATIENCE, ask(&mut child, "thread/archive", &json!({ "threadId": id }))).await;
    let stderr = child.stderr_tail();
    child.stop(Patience::default()).await;
    let (kind, message) = match reply {
        Ok(Some(reply)) => match reply.error {
            None => return Ok(()),
            Some(error) => {
                let why = error.message.as_deref().unwrap_or("it did not say why");
                (AgentErrorKind::ProtocolError, format!("codex did not archive {id}: {why}"))
            }
        },
        Ok(None) => (AgentErrorKind::ProcessExitError, format!("codex ended before it archived {id}")),
        Err(_) => (AgentErrorKind::Timeout, format!("codex did not answer whether it archived {id}")),
    };
    Err(AgentError::new(kind, message).of(AgentType::Codex).native(stderr))
}
