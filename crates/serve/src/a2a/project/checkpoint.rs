//! A projector as JSON, to read a long log from its middle after a restart.

use std::collections::BTreeSet;
use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_event::PromptId;
use multitap_hub::Checkpoint;
use serde::{Deserialize, Serialize};

use super::{Cursor, Projector};

/// Number of events between two checkpoints, roughly: whoever comes back after a restart waits for as many to be read.
pub(crate) const SPACING: u64 = 4096;

/// What the next frames need, where nothing is shown in part.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    /// The last frame.
    last: (u64, u32),
    task: String,
    turn: Option<String>,
    state: String,
    model: Option<String>,
    tier: Option<String>,
    in_flight: Option<PromptId>,
    has_own_tasks: bool,
    queued: BTreeSet<PromptId>,
    folder: Option<String>,
}

impl Projector {
    /// The projector at its last event; `None` while something is shown in part, or if it began amid the log: it may
    /// not know all that came before.
    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        if self.began_amid || !self.is_clear() {
            return None;
        }
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let stored = Stored {
            last: (self.last.seq, self.last.part),
            task: self.scope.task.to_string(),
            turn: text(&self.scope.turn),
            state: self.scope.state.word().to_owned(),
            model: text(&self.scope.model),
            tier: text(&self.scope.tier),
            in_flight: self.in_flight.clone(),
            has_own_tasks: self.has_own_tasks,
            queued: self.queued.clone(),
            folder: self.folder.clone(),
        };
        Some(Checkpoint { seq: self.seq, state: serde_json::to_string(&stored).ok()? })
    }

    /// The projector that made this checkpoint; `None` if another version made it, in a form that this one cannot read.
    pub(crate) fn resume(session: &str, checkpoint: &Checkpoint) -> Option<Self> {
        let stored: Stored = serde_json::from_str(&checkpoint.state).ok()?;
        let mut projector = Self::new(session);
        projector.seq = checkpoint.seq;
        projector.last = Cursor::new(stored.last.0, stored.last.1);
        projector.in_flight = stored.in_flight;
        projector.has_own_tasks = stored.has_own_tasks;
        projector.queued = stored.queued;
        projector.folder = stored.folder;
        let scope = projector.scope_mut();
        scope.task = stored.task.into();
        scope.turn = stored.turn.map(Into::into);
        scope.state = TaskState::of_word(&stored.state)?;
        scope.model = stored.model.map(Into::into);
        scope.tier = stored.tier.map(Into::into);
        Some(projector)
    }
}
