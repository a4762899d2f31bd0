//! The levels of thinking (effort): Codex lists them for each model, and takes one with a turn.

use multitap_event::{AgentCapabilities, EventKind, Setting};
use serde_json::Value;

use super::decode::CodexCodec;
use crate::codec::Step;
use crate::json::JsonFields as _;

/// What is known of the levels.
#[derive(Debug, Default)]
pub(super) struct Thinking {
    /// Those of each model, once Codex has listed its models.
    models: Option<Vec<ModelLevels>>,
    /// The level that was chosen, or that Codex reports; without one it uses the default of the model.
    pub(super) level: Option<String>,
}

#[derive(Debug)]
struct ModelLevels {
    id: String,
    levels: Vec<String>,
    default: Option<String>,
}

impl Thinking {
    /// Codex listed its models.
    pub(super) fn listed(&mut self, models: &[Value]) {
        let levels = |model: &Value| {
            let levels = model.list("supportedReasoningEfforts").iter();
            let levels = levels.filter_map(|level| level.string("reasoningEffort")).collect();
            Some(ModelLevels { id: model.string("id")?, levels, default: model.string("defaultReasoningEffort") })
        };
        self.models = Some(models.iter().filter_map(levels).collect());
    }

    fn of(&self, model: Option<&str>) -> Option<&ModelLevels> {
        self.models.as_ref()?.iter().find(|known| Some(known.id.as_str()) == model)
    }
}

impl CodexCodec {
    /// The levels of the current model and the current one, if Codex has listed its models.
    pub(super) fn thinking_levels(&self) -> AgentCapabilities {
        let Some(_) = &self.thinking.models else { return AgentCapabilities::default() };
        let known = self.thinking.of(self.emit.session.model.as_deref());
        let level = self.thinking.level.clone().or_else(|| known?.default.clone());
        AgentCapabilities {
            thinking_levels: Some(known.map(|known| known.levels.clone()).unwrap_or_default()),
            thinking_level: level,
            ..AgentCapabilities::default()
        }
    }

    pub(super) fn set_thinking_level(&mut self, level: String, out: &mut Step) {
        let offered = self.thinking_levels().thinking_levels.unwrap_or_default();
        if !offered.contains(&level) {
            let why = match offered.as_slice() {
                [] => "codex has not reported thinking levels of its model".to_owned(),
                offered => format!("codex has no thinking level '{level}': its model knows {}", offered.join(", ")),
            };
            out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Thinking, level)));
            return;
        }
        self.thinking.level = Some(level);
        self.changed.thinking = true;
        out.events.push(EventKind::Capabilities(self.thinking_levels()));
    }

    /// Another model was chosen: it may have other levels.
    pub(super) fn thinking_of_new_model(&mut self, out: &mut Step) {
        if self.thinking.models.is_none() {
            return;
        }
        let known = self.thinking.of(self.emit.session.model.as_deref());
        let is_known = |level: &String| known.is_some_and(|known| known.levels.contains(level));
        if self.thinking.level.as_ref().is_some_and(|level| !is_known(level)) {
            self.thinking.level = known.and_then(|known| known.default.clone());
            self.changed.thinking = self.thinking.level.is_some();
        }
        out.events.push(EventKind::Capabilities(self.thinking_levels()));
    }
}
