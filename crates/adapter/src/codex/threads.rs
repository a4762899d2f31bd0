//! Conversations in one app-server: ours, and those of the sub-agents it starts.

use std::collections::HashMap;

use multitap_event::ToolId;

#[derive(Debug, Default)]
pub(super) struct Threads {
    ours: Option<String>,
    /// The call that started a sub-agent, by the sub-agent's conversation.
    began_by: HashMap<String, ToolId>,
}

impl Threads {
    pub(super) fn ours_is(&mut self, id: &str) {
        self.ours = Some(id.to_owned());
    }

    /// Whether it is our own conversation. A conversation without an id is ours.
    pub(super) fn is_ours(&self, id: Option<&str>) -> bool {
        match (id, &self.ours) {
            (Some(id), Some(ours)) => id == ours,
            _ => true,
        }
    }

    pub(super) fn began_by(&mut self, id: &str, tool: &str) {
        if !self.is_ours(Some(id)) {
            self.began_by.entry(id.to_owned()).or_insert_with(|| tool.into());
        }
    }

    /// The call that started a conversation, as the parent of its events; `None` for the session's own conversation.
    pub(super) fn parent(&self, id: Option<&str>) -> Option<ToolId> {
        let id = id.filter(|id| !self.is_ours(Some(id)))?;
        Some(self.began_by.get(id).cloned().unwrap_or_else(|| id.into()))
    }
}
