//! Progress notifications of one call: what the remote agent says while it works, a few times a second at most, and a
//! sign of life when it says nothing. Clients give up on calls that are silent for too long.

use std::time::Duration;

use multitap_event::visible_line;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use tokio::time::{Instant, timeout};

/// The shortest time between two notifications.
const SPACING: Duration = Duration::from_millis(250);
/// Maximum time without a notification.
pub(crate) const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// How long a client may take to read one.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most characters of a message.
const SHOWN: usize = 200;

pub(crate) struct Reporter {
    peer: Peer<RoleServer>,
    /// `None` if the client wants no progress.
    token: Option<ProgressToken>,
    count: f64,
    last: Option<(Instant, String)>,
}

impl Reporter {
    pub(crate) fn new(context: &RequestContext<RoleServer>) -> Self {
        Self { peer: context.peer.clone(), token: context.meta.get_progress_token(), count: 0.0, last: None }
    }

    /// Reports a note unless it was reported already, or another one just before. Returns when to call again at the
    /// latest.
    pub(crate) async fn note(&mut self, note: &str) -> Instant {
        let Some(token) = self.token.clone() else { return Instant::now() + SIGN_OF_LIFE };
        let note: String = visible_line(note.trim()).chars().take(SHOWN).collect();
        let now = Instant::now();
        if let Some((at, before)) = &self.last {
            let due = *at + if *before == note { SIGN_OF_LIFE } else { SPACING };
            if now < due {
                return due;
            }
        }
        self.count += 1.0;
        self.last = Some((now, note.clone()));
        let progress = ProgressNotificationParam::new(token, self.count).with_message(note);
        // A client that does not read is not waited for: the answer matters more.
        timeout(PATIENCE, self.peer.notify_progress(progress)).await.ok();
        now + SIGN_OF_LIFE
    }
}
