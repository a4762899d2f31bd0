//! The agent's offers: its commands, models and approval modes, as far as it reports them. Pure.

use multitap_event::{AgentCapabilities, AgentModel, ApprovalMode, ClientRef, ClientRole};

use super::SessionView;
use crate::commands::Offered;
use crate::complete::Item;

const MODES: [ApprovalMode; 4] = [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Plan, ApprovalMode::AutoAll];

#[derive(Debug, Default)]
pub(super) struct AgentOffer {
    /// The agent's commands; `None` until it lists them.
    pub(super) commands: Option<Vec<Offered>>,
    pub(super) has_asked_commands: bool,
    pub(super) models: Vec<Item>,
    /// Whether the user waits for the list of models.
    pub(super) wants_models: bool,
    /// The mode that was requested last, until the agent confirms it.
    requested: Option<ApprovalMode>,
    /// Modes that the agent refused.
    refused: Vec<ApprovalMode>,
    /// The mode that an owner chose last: other clients may not go beyond it.
    pub(super) ceiling: Option<ApprovalMode>,
}

impl AgentOffer {
    /// The agent was restarted: the lists of the previous one no longer count. Refused modes stay refused.
    pub(super) fn restarted(&mut self, mode: Option<ApprovalMode>) {
        (self.commands, self.has_asked_commands) = (None, false);
        self.ceiling = mode;
    }

    /// Learns from a report of the agent; absent fields have not changed.
    pub(super) fn learn(&mut self, capabilities: &AgentCapabilities) {
        if let Some(commands) = &capabilities.commands {
            self.commands = Some(commands.iter().map(Offered::from).collect());
        }
        if let Some(models) = &capabilities.models {
            let item = |model: &AgentModel| {
                let does = [model.name.as_deref(), Some(model.description.as_str())].into_iter().flatten();
                let does = does.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" · ");
                Item::new(&model.id, does)
            };
            self.models = models.iter().map(item).collect();
        }
    }

    pub(super) fn can_clear(&self) -> bool {
        self.commands.iter().flatten().any(|offered| offered.name == "clear")
    }

    /// The modes that the running agent can be switched to, and that this client may choose.
    pub(super) fn modes(&self, session: &SessionView) -> Vec<ApprovalMode> {
        if session.me.role == Some(ClientRole::Observer) {
            return Vec::new();
        }
        let Some(start) = &session.state.start else { return ApprovalMode::ALL.to_vec() };
        let most = (!session.me.is_owner()).then(|| self.ceiling.unwrap_or(ApprovalMode::Ask));
        let works = |mode: &ApprovalMode| {
            mode.works_for(start, session.state.capabilities.modes.as_deref())
                && most.is_none_or(|most| mode.is_within(most, start.agent_type))
        };
        ApprovalMode::ALL.into_iter().filter(works).collect()
    }

    /// The mode after the current one, even if the key is pressed faster than modes change.
    pub(super) fn next_mode(&mut self, session: &SessionView) -> Option<ApprovalMode> {
        let available = self.modes(session);
        let now = self.requested.or(session.state.mode);
        let place = |mode: ApprovalMode| MODES.iter().position(|known| *known == mode);
        let modes = || MODES.into_iter().filter(|mode| available.contains(mode) && !self.refused.contains(mode));
        let after = modes().find(|mode| now.and_then(place) < place(*mode));
        let next = after.or_else(|| modes().next()).filter(|next| Some(*next) != now);
        self.requested = next.or(self.requested);
        next
    }

    pub(super) fn mode_changed(&mut self, mode: Option<ApprovalMode>, by: Option<&ClientRef>) {
        self.requested = None;
        if by.is_none_or(ClientRef::is_owner) {
            self.ceiling = mode;
        }
    }

    /// The agent refused the requested mode: it is not offered again.
    pub(super) fn mode_refused(&mut self) {
        self.refused.extend(self.requested.take());
    }

    /// A request was refused, and perhaps this one.
    pub(super) fn refused(&mut self) {
        self.wants_models = false;
        self.mode_refused();
    }
}
