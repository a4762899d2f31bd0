//! Questions that a client of 2026-07-28 shows to its user: the result of the call contains the question, and the
//! client calls again with the answer. The state of the call is stored here, under a handle that cannot be guessed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::collect::Question;
use crate::remote::RemoteAgent;

/// The most questions that wait at a time; the oldest go first.
const MOST_WAITING: usize = 64;
/// The most bytes of text that they may take together.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A call that waits for an answer.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) agent: Arc<RemoteAgent>,
    pub(crate) task_id: Option<String>,
    pub(crate) context_id: Option<String>,
    /// The id by which the client refers to the task.
    pub(crate) shown_id: Option<String>,
    pub(crate) question: Question,
    /// How many turns had been cancelled when the call began.
    pub(crate) cancelled_turns: u32,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Arc<Mutex<VecDeque<(String, Waiting)>>>);

impl Pending {
    /// The handle under which it waits.
    pub(crate) fn put(&self, waiting: Waiting) -> String {
        let handle = uuid::Uuid::new_v4().to_string();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes: usize = all.iter().map(|(_, waiting)| waiting.question.bytes()).sum();
        while all.len() >= MOST_WAITING || bytes > MOST_BYTES {
            let Some((_, forgotten)) = all.pop_front() else { break };
            bytes -= forgotten.question.bytes();
        }
        all.push_back((handle.clone(), waiting));
        handle
    }

    /// How many turns had been cancelled when the waiting call of a handle began.
    pub(crate) fn cancelled_turns(&self, handle: &str) -> Option<u32> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(known, _)| known == handle).map(|(_, waiting)| waiting.cancelled_turns)
    }

    /// Takes the waiting call of a handle, whichever agent it was about.
    pub(crate) fn abandon(&self, handle: &str) -> Option<Waiting> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(known, _)| known == handle)?;
        all.remove(at).map(|(_, waiting)| waiting)
    }

    /// Takes the waiting call of a handle, for the agent that it was about. Each handle works once.
    pub(crate) fn take(&self, handle: &str, agent: &Arc<RemoteAgent>) -> Option<Waiting> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(known, waiting)| known == handle && Arc::ptr_eq(&waiting.agent, agent))?;
        all.remove(at).map(|(_, waiting)| waiting)
    }
}
