//! Settings that a host did not grant to a session, until its next prompt reports them.
//!
//! A session may be opened or resumed by a request without room for them, such as a list of commands.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use multitap_event::{AgentError, AgentErrorKind, SessionId};

/// Maximum number of sessions with notices. Beyond it, those of another session are dropped; most such sessions were
/// never prompted.
const MOST_SESSIONS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<HashMap<SessionId, Vec<String>>>);

impl Notices {
    /// Stores the notices of a session that was just opened or resumed.
    pub(super) fn put(&self, session: &SessionId, notices: Vec<String>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Notices of an earlier opening no longer apply.
        waiting.remove(session);
        if notices.is_empty() {
            return;
        }
        if waiting.len() >= MOST_SESSIONS
            && let Some(other) = waiting.keys().next().cloned()
        {
            waiting.remove(&other);
        }
        waiting.insert(session.clone(), notices);
    }

    /// Takes the notices for the session's next prompt.
    pub(super) fn take(&self, session: &SessionId) -> Vec<AgentError> {
        let notices = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
        let not_granted = |why: String| AgentError::new(AgentErrorKind::PermissionDenied, why).warning();
        notices.into_iter().flatten().map(not_granted).collect()
    }
}
