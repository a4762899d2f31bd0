//! The approval modes that Shift+Tab goes through, as far as the agent takes them. Pure.

use multitap_event::{AgentType, ApprovalMode};

use super::Model;
use crate::effect::Effect;

/// The modes that Shift+Tab goes through.
const MODES: [ApprovalMode; 4] = [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Plan, ApprovalMode::AutoAll];

impl Model {
    /// The modes that the agent has, as far as that is known: those of an ACP agent are its own.
    pub(crate) fn modes(&self) -> Vec<ApprovalMode> {
        let agent = self.state.start.as_ref().map(|start| start.agent_type).filter(|agent| *agent != AgentType::Acp);
        let has = |mode: &ApprovalMode| agent.is_none_or(|agent| mode.native(agent).is_some());
        ApprovalMode::ALL.into_iter().filter(has).collect()
    }
}

/// The next of those that the agent takes, also when this is pressed faster than modes change.
pub(super) fn next(model: &mut Model) -> Vec<Effect> {
    let has = model.modes();
    let modes: Vec<ApprovalMode> =
        MODES.into_iter().filter(|mode| has.contains(mode) && !model.refused.contains(mode)).collect();
    let now = model.wished.or(model.state.mode);
    let place = |mode: ApprovalMode| MODES.iter().position(|known| *known == mode);
    let after = |mode: &&ApprovalMode| now.and_then(place) < place(**mode);
    let Some(next) = modes.iter().find(after).or(modes.first()).copied().filter(|next| Some(*next) != now) else {
        model.notice = Some("this agent takes no other mode".to_owned());
        return Vec::new();
    };
    model.wished = Some(next);
    vec![Effect::SetMode(next.to_string())]
}

/// The agent did not take it: it is not asked for it again and again.
pub(super) fn give_up(model: &mut Model) {
    model.refused.extend(model.wished.take());
}
