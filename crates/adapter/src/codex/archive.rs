//! Archives a stored conversation the way Codex itself does it: its app-server is asked to.

use std::time::Duration;

use multitap_event::{AgentError, AgentErrorKind, AgentType};
use multitap_process::{Child, Line, Patience};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::json::JsonFields as _;

/// How long Codex may take to answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
const STDIN_PATIENCE: Duration = Duration::from_secs(5);
/// The request that counts.
const REQUEST: u64 = 2;

/// The arguments of the server that is asked.
pub(crate) const ARGS: [&str; 1] = ["app-server"];

/// Asks a running app-server to archive the conversation, and ends it.
pub(crate) async fn archive(mut child: Child, id: &str) -> Result<(), AgentError> {
    let asked = timeout(ANSWER_PATIENCE, ask(&mut child, id)).await;
    let stderr = child.stderr_tail();
    child.stop(Patience::default()).await;
    let failed = |kind, message: String| AgentError::new(kind, message).of(AgentType::Codex).native(stderr.clone());
    match asked {
        Ok(Some(reply)) => match reply.get("error") {
            None => Ok(()),
            Some(error) => {
                let why = error.text("message").unwrap_or("it did not say why");
                Err(failed(AgentErrorKind::ProtocolError, format!("codex did not archive {id}: {why}")))
            }
        },
        Ok(None) => Err(failed(AgentErrorKind::ProcessExitError, format!("codex ended before it archived {id}"))),
        Err(_) => Err(failed(AgentErrorKind::Timeout, format!("codex did not answer whether it archived {id}"))),
    }
}

/// What Codex answered; nothing if it ended first.
async fn ask(child: &mut Child, id: &str) -> Option<Value> {
    let client = json!({ "name": "multitap", "title": "Multitap", "version": env!("CARGO_PKG_VERSION") });
    let lines = [
        json!({ "id": 1, "method": "initialize", "params": { "clientInfo": client } }),
        json!({ "method": "initialized" }),
        json!({ "id": REQUEST, "method": "thread/archive", "params": { "threadId": id } }),
    ];
    for line in lines {
        child.stdin.write(line.to_string(), STDIN_PATIENCE).await.ok()?;
    }
    loop {
        let Line::Text(line) = child.stdout.next().await.ok()?? else { continue };
        let reply: Value = serde_json::from_str(&line).unwrap_or_default();
        if reply.number("id") == Some(REQUEST) && reply.get("method").is_none() {
            return Some(reply);
        }
    }
}
