//! Sessions whose clients use the spelling that Google's server ships. It is stored with their tasks, so it survives a
//! restart.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use multitap_a2a::devtool::coder;
use multitap_event::SessionId;
use multitap_hub::TaskRecord;

/// Its key in the metadata of a task's row.
const SPELLING: &str = "spelling";

#[derive(Debug, Default)]
pub(crate) struct Coders {
    sessions: Mutex<HashSet<SessionId>>,
}

impl Coders {
    /// Records that the client of that session uses this spelling.
    pub(crate) fn add(&self, session: &SessionId) {
        self.lock().insert(session.clone());
    }

    pub(crate) fn has(&self, session: &SessionId) -> bool {
        self.lock().contains(session)
    }

    /// Stores it with a task.
    pub(crate) fn mark(&self, task: &mut TaskRecord) {
        if self.has(&task.session) {
            task.metadata.insert(SPELLING.to_owned(), coder::KEY.into());
        }
    }

    /// Reads it from a stored task.
    pub(crate) fn recall(&self, task: &TaskRecord) {
        if task.metadata.get(SPELLING).is_some_and(|spelling| spelling == coder::KEY) {
            self.add(&task.session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
