//! Idle sessions: they are closed after a while, or earlier if the limit of sessions is reached, the longest idle
//! first. A closed session stays stored and is resumed on demand.

use std::time::Duration;

use multitap_event::Timestamp;
use multitap_hub::Session;
use tokio::time::timeout;

use crate::host::Host;

/// Minimum idle time: a client that has just opened a session is about to send something.
const RESTED: Duration = Duration::from_secs(1);
/// Time limit for a session to close.
const PATIENCE: Duration = Duration::from_secs(5);

/// Closes the session that has been idle longest. Returns whether there was one.
pub(super) async fn close_longest_idle(host: &Host) -> bool {
    let mut longest: Option<(Timestamp, Session)> = None;
    for session in host.live() {
        if let Some(since) = idle_since(host, &session).await
            && longest.as_ref().is_none_or(|(before, _)| since < *before)
        {
            longest = Some((since, session));
        }
    }
    let Some((_, session)) = longest else { return false };
    tracing::info!(session = %session.id(), "closing an idle session to open another");
    end(&session).await
}

/// Closes the sessions that have been idle that long.
pub(super) async fn close_idle(host: &Host, idle: Duration) {
    for session in host.live() {
        let rested = idle_since(host, &session).await.map(|since| Timestamp::now().millis_since(since));
        if rested.is_some_and(|millis| Duration::from_millis(millis) >= idle) {
            tracing::info!(session = %session.id(), "closing an idle session");
            end(&session).await;
        }
    }
}

/// Whether the session ended. Requests that arrive at this moment are still served.
async fn end(session: &Session) -> bool {
    session.finish().await.is_ok() && timeout(PATIENCE, session.over()).await.is_ok()
}

/// Since when a session is idle, if nothing is lost by closing it: no clients, no turn, no queued prompts, no open
/// questions, and it can be resumed.
async fn idle_since(host: &Host, session: &Session) -> Option<Timestamp> {
    let state = session.snapshot().await?;
    if !state.is_idle() || !state.questions.open().is_empty() || !state.clients.is_empty() {
        return None;
    }
    let kept = host.journal().find(session.id().to_string()).await.ok()?;
    let record = kept.into_iter().find(|record| record.id == *session.id())?;
    let rested = Timestamp::now().millis_since(record.updated);
    (rested >= u64::try_from(RESTED.as_millis()).unwrap_or(u64::MAX)).then_some(record.updated)
}
