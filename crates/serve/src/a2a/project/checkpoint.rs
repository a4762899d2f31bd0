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
struct Kept {
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
        let kept = Kept {
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
        Some(Checkpoint { seq: self.seq, state: serde_json::to_string(&kept).ok()? })
    }

    /// The projector that made this checkpoint; `None` if another version made it, in a form that this one cannot read.
    pub(crate) fn resume(session: &str, checkpoint: &Checkpoint) -> Option<Self> {
        let kept: Kept = serde_json::from_str(&checkpoint.state).ok()?;
        let mut projector = Self::new(session);
        projector.seq = checkpoint.seq;
        projector.last = Cursor::new(kept.last.0, kept.last.1);
        projector.in_flight = kept.in_flight;
        projector.has_own_tasks = kept.has_own_tasks;
        projector.queued = kept.queued;
        projector.folder = kept.folder;
        let scope = projector.scope_mut();
        scope.task = kept.task.into();
        scope.turn = kept.turn.map(Into::into);
        scope.state = TaskState::of_word(&kept.state)?;
        scope.model = kept.model.map(Into::into);
        scope.tier = kept.tier.map(Into::into);
        Some(projector)
    }
}
