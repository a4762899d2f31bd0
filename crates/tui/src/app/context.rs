//! How full the context of the agent is, as far as it reports that. Pure.

use multitap_event::{Event, EventKind, SystemSubtype};
use serde_json::Value;

/// Tokens in use, and how many there could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) used: u64,
    pub(crate) window: Option<u64>,
}

impl Context {
    /// Reads it from an event: with our field names, those of ACP, or Claude's.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let EventKind::System(note) = &event.kind else { return None };
        let number = |keys: [&str; 3]| keys.iter().find_map(|key| note.data.get(*key).and_then(Value::as_u64));
        let used = number(["usedTokens", "used", "totalTokens"]).filter(|_| note.subtype == SystemSubtype::CONTEXT)?;
        Some(Self { used, window: number(["contextWindow", "size", "maxTokens"]).filter(|window| *window > 0) })
    }
}
