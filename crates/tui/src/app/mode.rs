//! The approval modes that Shift+Tab goes through, as far as the agent takes them. Pure.

use multitap_event::{ApprovalMode, ClientRole};
use serde_json::{Map, Value};

use super::Model;
use crate::effect::Effect;

/// The modes that Shift+Tab goes through.
const MODES: [ApprovalMode; 4] = [ApprovalMode::Ask, ApprovalMode::AutoEdit, ApprovalMode::Plan, ApprovalMode::AutoAll];

impl Model {
    /// The modes that work here: the running agent can be switched to them, and this client may do so.
    pub(crate) fn modes(&self) -> Vec<ApprovalMode> {
        if self.me.role == Some(ClientRole::Observer) {
            return Vec::new();
        }
        let Some(start) = &self.state.start else { return ApprovalMode::ALL.to_vec() };
        let most = (!self.me.is_owner()).then(|| self.ceiling.unwrap_or(ApprovalMode::Ask));
        let works = |mode: &ApprovalMode| {
            mode.works_for(start, self.offered_modes.as_deref())
                && most.is_none_or(|most| mode.is_within(most, start.agent_type))
        };
        ApprovalMode::ALL.into_iter().filter(works).collect()
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
        model.notice = Some("there is no other approval mode that works here".to_owned());
        return Vec::new();
    };
    model.wished = Some(next);
    vec![Effect::SetMode(next.to_string())]
}

/// The agent's own words for its modes, as it lists them at its start.
pub(super) fn offered(capabilities: &Map<String, Value>) -> Option<Vec<String>> {
    let words = |list: &Value, key: &str| {
        let words = list.as_array()?.iter().filter_map(|one| one.get(key)?.as_str().map(str::to_owned));
        Some(words.collect())
    };
    let listed = capabilities.get("modes").and_then(|modes| words(modes.get("availableModes")?, "id"));
    listed.or_else(|| {
        let options = capabilities.get("configOptions")?.as_array()?;
        let option = options.iter().find(|option| option.get("category").is_some_and(|category| category == "mode"))?;
        words(option.get("options")?, "value")
    })
}

/// The agent did not take it: it is not asked for it again and again.
pub(super) fn give_up(model: &mut Model) {
    model.refused.extend(model.wished.take());
}
