//! Which sessions are told in the spelling that Google's server ships: those of clients that showed it. It is kept
//! with their tasks, so that they are told so after a restart too.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use multitap_a2a::devtool::coder;
use multitap_event::SessionId;
use multitap_hub::TaskRecord;

/// Where a task's record has it.
const SPELLING: &str = "spelling";

#[derive(Debug, Default)]
pub(crate) struct Coders {
    sessions: Mutex<HashSet<SessionId>>,
}

impl Coders {
    /// The client of that session showed it.
    pub(crate) fn add(&self, session: &SessionId) {
        self.lock().insert(session.clone());
    }

    pub(crate) fn has(&self, session: &SessionId) -> bool {
        self.lock().contains(session)
    }

    /// Notes it with a task that is to be kept.
    pub(crate) fn mark(&self, task: &mut TaskRecord) {
        if self.has(&task.session) {
            task.metadata.insert(SPELLING.to_owned(), coder::KEY.into());
        }
    }

    /// Takes it from a task that was kept.
    pub(crate) fn recall(&self, task: &TaskRecord) {
        if task.metadata.get(SPELLING).is_some_and(|spelling| spelling == coder::KEY) {
            self.add(&task.session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
