//! What a host did not grant a session, until somebody prompts that session and is told.
//!
//! A session may be opened or resumed by a request that has no place for it, such as a list of commands.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use multitap_event::{AgentError, AgentErrorKind, SessionId};

/// Maximum number of sessions whose notices wait. Beyond it the notices of some other session are dropped: most of those
/// sessions were never prompted.
const MOST_SESSIONS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Notices(Mutex<HashMap<SessionId, Vec<String>>>);

impl Notices {
    /// The session was opened or resumed just now, without these.
    pub(super) fn put(&self, session: &SessionId, notices: Vec<String>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of an earlier opening do not count any more.
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

    /// For the prompt that goes to the session next.
    pub(super) fn take(&self, session: &SessionId) -> Vec<AgentError> {
        let notices = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
        let not_granted = |why: String| AgentError::new(AgentErrorKind::PermissionDenied, why).warning();
        notices.into_iter().flatten().map(not_granted).collect()
    }
}
