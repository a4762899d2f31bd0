//! Sessions that rest: they end after a while, and before, where all places are taken, the one that has rested longest
//! gives way to another. What ends so is kept, and taken up again when somebody asks for it.

use std::time::Duration;

use multitap_event::Timestamp;
use multitap_hub::Session;
use tokio::time::timeout;

use crate::host::Host;

/// How long a session must have rested: whoever has just opened one is about to say something.
const RESTED: Duration = Duration::from_secs(1);
/// How long one may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends the session that has rested longest. Whether there was one.
pub(super) async fn make(host: &Host) -> bool {
    let mut longest: Option<(Timestamp, Session)> = None;
    for session in host.live() {
        if let Some(since) = rests_since(host, &session).await
            && longest.as_ref().is_none_or(|(before, _)| since < *before)
        {
            longest = Some((since, session));
        }
    }
    let Some((_, session)) = longest else { return false };
    tracing::info!(session = %session.id(), "a session that rests gives way to another");
    end(&session).await
}

/// Ends the sessions that have rested that long.
pub(super) async fn tidy(host: &Host, idle: Duration) {
    for session in host.live() {
        let rested = rests_since(host, &session).await.map(|since| Timestamp::now().millis_since(since));
        if rested.is_some_and(|millis| Duration::from_millis(millis) >= idle) {
            tracing::info!(session = %session.id(), "a session that rests is ended");
            end(&session).await;
        }
    }
}

/// Whether it ended. What somebody asks of it at this very moment is still done.
async fn end(session: &Session) -> bool {
    session.finish().await.is_ok() && timeout(PATIENCE, session.over()).await.is_ok()
}

/// Since when a session rests, if nothing is lost by ending it: nobody is connected, nothing runs, waits or is asked, and
/// it can be taken up again.
async fn rests_since(host: &Host, session: &Session) -> Option<Timestamp> {
    let state = session.snapshot().await?;
    if !state.is_at_rest() || !state.questions.open().is_empty() || !state.clients.is_empty() {
        return None;
    }
    let kept = host.journal().find(session.id().to_string()).await.ok()?;
    let record = kept.into_iter().find(|record| record.id == *session.id())?;
    let rested = Timestamp::now().millis_since(record.updated);
    (rested >= u64::try_from(RESTED.as_millis()).unwrap_or(u64::MAX)).then_some(record.updated)
}
