//! What is known of the session itself: that it began, its id, its mode and model, what the agent can do.

use std::collections::{BTreeMap, VecDeque};

use multitap_event::{
    AgentCapabilities, AgentModel, AgentType, EventKind, McpServer, McpServerStatus, Mode, Prompt, Query, Resume,
    StatedConfig, SystemNote, SystemSubtype,
};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::decode::{AcpCodec, note};
use super::flavor::Flavor;
use super::wire::{Capabilities, ConfigOption, SessionState};
use crate::codec::Step;
use crate::emit::{AskedValues, SessionFacts, SessionMode, commands, commands_event, models, report_model};

/// How we drive it, in `sessionStarted`.
const TRANSPORT: &str = "acp";

/// How a session is to begin.
#[derive(Debug)]
pub(crate) struct Wishes {
    pub(crate) stated: StatedConfig,
    /// An absolute path.
    pub(crate) cwd: String,
    pub(crate) resume: Resume,
    pub(crate) fork: bool,
    pub(crate) add_dirs: Vec<String>,
    pub(crate) mcp_servers: BTreeMap<String, McpServer>,
    pub(crate) mode: Option<Mode>,
    pub(crate) model: Option<String>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) facts: SessionFacts,
    /// A recorded stream has none.
    pub(super) wishes: Option<Wishes>,
    pub(super) asked_models: AskedValues,
    pub(super) capabilities: Capabilities,
    /// The modes it offers, by id.
    pub(super) modes: Vec<String>,
    pub(super) has_models: bool,
    pub(super) options: Vec<ConfigOption>,
    /// What it reported about itself, word for word.
    pub(super) reported: Map<String, Value>,
    /// The ways to sign in that the agent knows.
    pub(super) sign_in: Vec<String>,
    /// Prompts that wait for the running turn to end.
    pub(super) prompts: VecDeque<Prompt>,
    /// A conversation that was resumed is being reported again.
    replay: bool,
    replayed: u64,
    /// In a recording: what comes now was said earlier.
    history: bool,
    /// Why the session has not begun.
    refusal: Option<String>,
}

impl Session {
    pub(super) fn recorded(agent: AgentType) -> Self {
        Self {
            facts: SessionFacts::new(agent, Some(TRANSPORT)),
            wishes: None,
            asked_models: AskedValues::default(),
            capabilities: Capabilities::default(),
            modes: Vec::new(),
            has_models: false,
            options: Vec::new(),
            reported: Map::new(),
            sign_in: Vec::new(),
            prompts: VecDeque::new(),
            replay: false,
            replayed: 0,
            history: false,
            refusal: None,
        }
    }

    pub(super) fn live(agent: AgentType, wishes: Wishes) -> Self {
        let mut session = Self::recorded(agent);
        session.facts.stated = Some(wishes.stated.clone());
        Self { wishes: Some(wishes), ..session }
    }

    pub(super) fn is_live(&self) -> bool {
        self.wishes.is_some()
    }

    pub(super) fn has_started(&self) -> bool {
        self.facts.has_started()
    }

    /// Whether an update belongs to another session than ours.
    pub(super) fn is_foreign(&self, id: Option<&str>) -> bool {
        self.is_live() && matches!((id, &self.facts.native_id), (Some(id), Some(ours)) if id != ours)
    }

    pub(super) fn is_replay(&self) -> bool {
        self.replay
    }

    /// From here on the agent reports what was said before.
    pub(super) fn begin_replay(&mut self) {
        self.replay = true;
    }

    pub(super) fn end_replay(&mut self) {
        self.replay = false;
    }

    /// The agent refused something; before the session began, that is why it did not.
    pub(super) fn refused(&mut self, why: &str) {
        if !self.facts.has_started() && self.refusal.is_none() {
            self.refusal = Some(why.to_owned());
        }
    }

    /// Why the session never began, if it did not.
    pub(super) fn never_began(&mut self) -> Option<String> {
        self.refusal.take().filter(|_| !self.facts.has_started())
    }

    /// Whether what a recording shows now was said earlier.
    pub(super) fn is_history(&self) -> bool {
        self.history
    }

    pub(super) fn history_told(&mut self) {
        self.history = true;
    }

    pub(super) fn history_over(&mut self) {
        self.history = false;
    }

    /// How much of the history was reported again so far.
    pub(super) fn replayed(&self) -> u64 {
        self.replayed
    }

    pub(super) fn count_replayed(&mut self) {
        self.replayed += 1;
    }

    /// What the reply to opening a session, or a later change, says of its state. The raw reply is kept for the log.
    pub(super) fn learn(&mut self, raw: &Value) {
        let state = SessionState::deserialize(raw).unwrap_or_default();
        for key in ["modes", "models", "configOptions"] {
            if let Some(value) = raw.get(key).filter(|value| !value.is_null()) {
                self.reported.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(modes) = state.modes {
            self.modes = modes.available_modes.into_iter().map(|mode| mode.id).collect();
            self.facts.mode = modes.current_mode_id.map(unnamed).or(self.facts.mode.take());
        }
        if let Some(models) = state.models {
            self.has_models = true;
            self.facts.model = models.current_model_id.or(self.facts.model.take());
        }
        if let Some(options) = state.config_options {
            self.options = options;
            let current = |options: &[ConfigOption], category: &str| {
                let option = options.iter().find(|option| option.category.as_deref() == Some(category))?;
                option.current_value.as_str().map(str::to_owned)
            };
            if self.modes.is_empty() {
                self.facts.mode = current(&self.options, "mode").map(unnamed).or(self.facts.mode.take());
            }
            if !self.has_models {
                self.facts.model = current(&self.options, "model").or(self.facts.model.take());
            }
        }
    }

    /// The option that stands for the mode or the model, where the agent has such.
    pub(super) fn option(&self, category: &str) -> Option<&ConfigOption> {
        self.options.iter().find(|option| option.category.as_deref() == Some(category))
    }

    /// The modes it offers, one way or the other.
    pub(super) fn offered_modes(&self) -> Vec<String> {
        if !self.modes.is_empty() {
            return self.modes.clone();
        }
        let choices = self.option("mode").map(|option| choices(&option.options)).unwrap_or_default();
        choices.iter().filter_map(|choice| choice.get("value")?.as_str().map(str::to_owned)).collect()
    }

    /// The models it offers, one way or the other; absent if it lists none.
    pub(super) fn offered_models(&self) -> Option<Vec<AgentModel>> {
        let own = self.reported.get("models").and_then(|models| models.get("availableModels"));
        let listed = own.or_else(|| self.option("model").map(|option| &option.options))?;
        Some(models(&choices(listed)))
    }

    /// Emits `sessionStarted`, once, and what the agent reported about itself.
    pub(super) fn start(&mut self, flavor: Flavor, out: &mut Step) {
        if let Some(mode) = &mut self.facts.mode {
            mode.unified = flavor.unified_mode(&mode.native);
        }
        if !self.facts.start(out) {
            return;
        }
        if !self.reported.is_empty() {
            let mut data = self.reported.clone();
            data.extend(self.facts.model.clone().map(|model| ("model".to_owned(), model.into())));
            let name = |key: &str| self.reported.get("agentInfo")?.get(key)?.as_str().map(str::to_owned);
            let lists_modes = self.reported.contains_key("modes") || self.option("mode").is_some();
            out.events.push(EventKind::Capabilities(AgentCapabilities {
                agent_name: name("title").or_else(|| name("name")),
                model: self.facts.model.clone(),
                images: self.reported.contains_key("agentCapabilities").then_some(self.capabilities.images()),
                steering: self.is_live().then_some(false),
                modes: lists_modes.then(|| self.offered_modes()),
                stores_empty_conversations: None,
                commands: self.reported.get("commands").map(|listed| commands(items(listed))),
                models: self.offered_models(),
                data,
            }));
        }
        // The agent never says how they are, only that it took them.
        for name in self.wishes.iter().flat_map(|wishes| wishes.mcp_servers.keys()) {
            out.events.push(EventKind::McpServerStatus(McpServerStatus::new(name, McpServerStatus::GIVEN)));
        }
        if self.replayed > 0 {
            let message = Some("replayed the conversation so far; it is not repeated here".to_owned());
            let data = Map::from_iter([("updates".to_owned(), self.replayed.into())]);
            out.events.push(EventKind::System(SystemNote { subtype: "history".to_owned(), message, data }));
        }
    }

    /// The agent is in that mode; emitted if it is new, or confirms what somebody asked for.
    pub(super) fn mode_is(&mut self, native: &str, flavor: Flavor, out: &mut Step) {
        let mode = SessionMode { native: native.to_owned(), unified: flavor.unified_mode(native) };
        if self.facts.learn_mode(mode).is_some() && self.facts.has_started() {
            self.facts.report_mode(out);
        }
    }

    /// The agent uses that model; emitted if it is new, or confirms what somebody asked for.
    pub(super) fn model_is(&mut self, model: &str, out: &mut Step) {
        let confirms = self.asked_models.answered(model);
        if !confirms && self.facts.model.as_deref() == Some(model) {
            return;
        }
        self.facts.model = Some(model.to_owned());
        if self.facts.has_started() {
            report_model(model.to_owned(), out);
        }
    }
}

/// A mode that has no word of ours yet: that depends on the flavor.
fn unnamed(native: String) -> SessionMode {
    SessionMode { native, unified: None }
}

/// The choices of an option, which may come in groups.
fn choices(options: &Value) -> Vec<Value> {
    let one = |choice: &Value| match choice.get("options") {
        Some(group) => choices(group),
        None => vec![choice.clone()],
    };
    items(options).iter().flat_map(one).collect()
}

/// The items of a list; none if it is no list.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

impl AcpCodec {
    /// Updates of the session's own state.
    pub(super) fn state_update(&mut self, kind: &str, mut update: Map<String, Value>, out: &mut Step) {
        let text = |update: &Map<String, Value>, key: &str| update.get(key).and_then(Value::as_str).map(str::to_owned);
        match kind {
            "current_mode_update" => match text(&update, "currentModeId") {
                Some(mode) => self.session.mode_is(&mode, self.flavor, out),
                None => out.events.push(note(kind, None, update)),
            },
            "config_option_update" => self.options_changed(&Value::Object(update), out),
            "available_commands_update" => {
                let commands = update.shift_remove("availableCommands").unwrap_or_default();
                self.tell_later(commands_event(items(&commands)), out);
                self.session.reported.insert(Query::Commands.word().to_owned(), commands);
            }
            "usage_update" => {
                self.spent.cost_is(&update);
                for key in ["sessionUpdate", "_meta"] {
                    update.shift_remove(key);
                }
                self.session.reported.insert(SystemSubtype::CONTEXT.to_owned(), update.clone().into());
                self.tell_later(note(SystemSubtype::CONTEXT, None, update), out);
            }
            "session_info_update" => {
                let title = text(&update, "title");
                self.tell_later(note("sessionInfo", title, update), out);
            }
            _ => {
                let message = ["message", "text", "title"].into_iter().find_map(|key| text(&update, key));
                self.tell_later(note(kind, message, update), out);
            }
        }
    }

    /// The settings that the agent offers, all of them, as they stand now.
    pub(super) fn options_changed(&mut self, raw: &Value, out: &mut Step) {
        let before = self.session.reported.get("configOptions").cloned();
        let (mode, model) = (self.session.facts.mode.take(), self.session.facts.model.take());
        self.session.learn(raw);
        let mode_now = std::mem::replace(&mut self.session.facts.mode, mode);
        let model_now = std::mem::replace(&mut self.session.facts.model, model);
        if let Some(mode) = mode_now {
            self.session.mode_is(&mode.native, self.flavor, out);
        }
        if let Some(model) = model_now {
            self.session.model_is(&model, out);
        }
        let now = self.session.reported.get("configOptions");
        if let Some(options) = now.filter(|now| before.as_ref() != Some(*now)).cloned() {
            let data = Map::from_iter([("configOptions".to_owned(), options)]);
            self.tell_later(note("configOptions", None, data), out);
        }
    }

    /// Emits something of the session, once the session itself was reported. Before that it is remembered only.
    fn tell_later(&mut self, kind: EventKind, out: &mut Step) {
        if self.session.has_started() || !self.session.is_live() {
            self.under_way(out);
            out.events.push(kind);
        }
    }

    /// A recording may lack its beginning: it is reported, with what can be known, before the first thing in it.
    pub(super) fn under_way(&mut self, out: &mut Step) {
        if !self.session.is_live() {
            self.session.start(self.flavor, out);
        }
    }

    /// An update that may belong to the history of a conversation that was resumed; true if it does.
    pub(super) fn replayed(&mut self, kind: &str) -> bool {
        let history = matches!(
            kind,
            "user_message_chunk"
                | "agent_message_chunk"
                | "agent_thought_chunk"
                | "tool_call"
                | "tool_call_update"
                | "plan"
        );
        if history {
            self.session.count_replayed();
        }
        history
    }
}
