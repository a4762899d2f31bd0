//! Requested settings that the agent has neither confirmed nor refused yet.

use std::collections::VecDeque;

/// Maximum number of values that an agent may leave unanswered.
const UNANSWERED: usize = 64;

/// Values of one setting that were asked for and not answered yet.
///
/// An agent reports a new value in its answer, in a notification before the answer, or in both. The first report is the
/// confirmation and is emitted, also if the value is not new; the second one is not.
#[derive(Debug, Default)]
pub(crate) struct AskedValues(VecDeque<String>);

impl AskedValues {
    pub(crate) fn ask(&mut self, value: &str) {
        if self.0.len() == UNANSWERED {
            self.0.pop_front();
        }
        self.0.push_back(value.to_owned());
    }

    /// The agent reports or refuses that value. Returns whether a client waits for it.
    pub(crate) fn answered(&mut self, value: &str) -> bool {
        let at = self.0.iter().position(|asked| asked == value);
        at.and_then(|at| self.0.remove(at)).is_some()
    }
}
