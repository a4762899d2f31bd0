//! Facts about the session itself: that it began, its id, its mode and model, what the agent can do.

use std::collections::{BTreeMap, VecDeque};

use multitap_event::{
    AgentCapabilities, AgentModel, EventKind, McpServer, McpServerStatus, Mode, Prompt, Query, Resume, StatedConfig,
    SystemSubtype,
};
use serde_json::{Map, Value};

use super::decode::{AcpCodec, note};
use crate::codec::Step;
use crate::emit::{self, AskedValues, SessionMode, commands, commands_event, models, report_model};
use crate::json::{JsonFields as _, one, present};

/// The value of `transport` in `sessionStarted`.
pub(super) const TRANSPORT: &str = "acp";
/// The category of the option for the level of thinking.
pub(super) const THINKING: &str = "thought_level";

/// The settings with which a session is to begin.
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

#[derive(Debug, Default)]
pub(super) struct Session {
    /// A recorded stream has none.
    pub(super) wishes: Option<Wishes>,
    pub(super) asked_models: AskedValues,
    /// The ids of the modes that the agent offers.
    pub(super) modes: Vec<String>,
    pub(super) has_models: bool,
    /// The settings that the agent offers for the session.
    options: Vec<Value>,
    /// The agent's description of itself, word for word.
    pub(super) reported: Map<String, Value>,
    /// The ways to sign in that the agent knows.
    pub(super) sign_in: Vec<String>,
    /// Prompts that wait for the running turn to end.
    pub(super) prompts: VecDeque<Prompt>,
    /// Whether the agent is replaying a resumed conversation.
    pub(super) in_replay: bool,
    /// The number of replayed updates so far.
    pub(super) replayed: u64,
    /// Whether the lines of a recording belong to a replayed conversation.
    pub(super) in_history: bool,
    /// Why the session has not begun.
    pub(super) refusal: Option<String>,
}

impl Session {
    fn capability(&self, name: &str) -> Option<&Value> {
        self.reported.field("agentCapabilities").field(name)
    }

    pub(super) fn takes_images(&self) -> bool {
        self.capability("promptCapabilities").flag("image")
    }

    pub(super) fn takes_mcp_over_http(&self) -> bool {
        self.capability("mcpCapabilities").flag("http")
    }

    pub(super) fn loads(&self) -> bool {
        self.reported.field("agentCapabilities").flag("loadSession")
    }

    /// Whether the agent has that ability for sessions. Naming it is enough.
    pub(super) fn can(&self, name: &str) -> bool {
        self.capability("sessionCapabilities").field(name).is_some_and(|entry| *entry != Value::Bool(false))
    }

    /// The agent's option for the mode or the model, if it has one.
    pub(super) fn option(&self, category: &str) -> Option<&Value> {
        self.options.iter().find(|option| option.text("category") == Some(category))
    }

    /// The modes that the agent offers, as modes or as an option.
    pub(super) fn offered_modes(&self) -> Vec<String> {
        if !self.modes.is_empty() {
            return self.modes.clone();
        }
        choices(self.option("mode").list("options")).iter().filter_map(|choice| choice.string("value")).collect()
    }

    /// The levels of thinking that the agent offers, and the current one; none if it has no such option.
    pub(super) fn thinking(&self) -> (Vec<String>, Option<String>) {
        let option = self.option(THINKING);
        let levels = choices(option.list("options")).iter().filter_map(|choice| choice.string("value")).collect();
        (levels, option.string("currentValue"))
    }

    /// The models that the agent offers, as models or as an option; `None` if it lists none.
    pub(super) fn offered_models(&self) -> Option<Vec<AgentModel>> {
        let own = self.reported.field("models").field("availableModels");
        let listed = own.or(self.option("model").field("options"))?.as_array()?;
        Some(models(&choices(listed)))
    }
}

/// The levels of thinking, as the agent has them now.
pub(super) fn thinking_event((levels, level): (Vec<String>, Option<String>)) -> EventKind {
    let (thinking_levels, thinking_level) = (Some(levels), level);
    EventKind::Capabilities(AgentCapabilities { thinking_levels, thinking_level, ..AgentCapabilities::default() })
}

/// The values of an option, which may be grouped.
fn choices(options: &[Value]) -> Vec<Value> {
    let one = |choice: &Value| match choice.field("options").and_then(Value::as_array) {
        Some(group) => choices(group),
        None => vec![choice.clone()],
    };
    options.iter().flat_map(one).collect()
}

impl AcpCodec {
    /// Whether an update belongs to another session than ours.
    pub(super) fn is_foreign(&self, id: Option<&str>) -> bool {
        let session = &self.emit.session;
        session.is_live() && matches!((id, &session.native_id), (Some(id), Some(ours)) if id != ours)
    }

    /// What the reply to opening a session, or a later change, says of its state; returns the mode and the model. The raw
    /// reply is kept for the log.
    pub(super) fn learn(&mut self, raw: &Value) -> (Option<String>, Option<String>) {
        let session = &mut self.session;
        let (mut mode, mut model) = (None, None);
        for key in ["modes", "models", "configOptions"] {
            session.reported.extend(raw.field(key).map(|value| (key.to_owned(), value.clone())));
        }
        if let Some(modes) = raw.field("modes") {
            session.modes = modes.list("availableModes").iter().filter_map(|mode| mode.string("id")).collect();
            mode = modes.string("currentModeId");
        }
        if let Some(models) = raw.field("models") {
            session.has_models = true;
            model = models.string("currentModelId");
        }
        if let Some(options) = raw.field("configOptions").and_then(Value::as_array) {
            session.options.clone_from(options);
            // Some agents have both, and report a change by the option only.
            let is_mode = |mode: &String| session.modes.is_empty() || session.modes.contains(mode);
            mode = session.option("mode").string("currentValue").filter(is_mode).or(mode);
            if !session.has_models {
                model = session.option("model").string("currentValue").or(model);
            }
        }
        (mode, model)
    }

    /// Emits `sessionStarted`, once, and the agent's description of itself.
    pub(super) fn start(&mut self, out: &mut Step) {
        let (session, facts) = (&self.session, &mut self.emit.session);
        if let Some(mode) = &mut facts.mode {
            mode.unified = self.flavor.unified_mode(&mode.native);
        }
        if !facts.start(out) {
            return;
        }
        if !session.reported.is_empty() {
            let mut data = present(session.reported.clone());
            data.extend(facts.model.clone().map(|model| ("model".to_owned(), model.into())));
            let info = session.reported.field("agentInfo");
            let lists_modes = session.reported.contains_key("modes") || session.option("mode").is_some();
            let thinking = session.option(THINKING).map(|_| session.thinking());
            let reports_abilities = session.reported.contains_key("agentCapabilities");
            out.events.push(EventKind::Capabilities(AgentCapabilities {
                agent_name: info.string("title").or(info.string("name")),
                model: facts.model.clone(),
                images: reports_abilities.then(|| session.takes_images()),
                steering: facts.is_live().then_some(false),
                modes: lists_modes.then(|| session.offered_modes()),
                stores_empty_conversations: None,
                commands: session.reported.get("commands").map(|_| commands(session.reported.list("commands"))),
                models: session.offered_models(),
                thinking_levels: thinking.as_ref().map(|(levels, _)| levels.clone()),
                thinking_level: thinking.and_then(|(_, level)| level),
                data,
            }));
        }
        // The agent never reports the status of its servers, only that it accepted them.
        for name in session.wishes.iter().flat_map(|wishes| wishes.mcp_servers.keys()) {
            out.events.push(EventKind::McpServerStatus(McpServerStatus::new(name, McpServerStatus::GIVEN)));
        }
        if session.replayed > 0 {
            let message = Some("replayed the conversation so far; it is not repeated here".to_owned());
            out.events.push(emit::note("history", message, one("updates", session.replayed)));
        }
    }

    /// The agent is in that mode. An event reports it if it is new, or if it confirms a requested change.
    pub(super) fn mode_is(&mut self, native: &str, out: &mut Step) {
        let facts = &mut self.emit.session;
        let mode = SessionMode { native: native.to_owned(), unified: self.flavor.unified_mode(native) };
        if facts.learn_mode(mode).is_some() && facts.started {
            facts.report_mode(out);
        }
    }

    /// The agent uses that model. An event reports it if it is new, or if it confirms a requested change.
    pub(super) fn model_is(&mut self, model: &str, out: &mut Step) {
        let facts = &mut self.emit.session;
        let confirms = self.session.asked_models.answered(model);
        if !confirms && facts.model.as_deref() == Some(model) {
            return;
        }
        facts.model = Some(model.to_owned());
        if facts.started {
            report_model(model.to_owned(), out);
        }
    }

    pub(super) fn state_update(&mut self, kind: &str, mut update: Map<String, Value>, out: &mut Step) {
        match kind {
            "current_mode_update" => match update.text("currentModeId") {
                Some(mode) => self.mode_is(mode, out),
                None => out.events.push(note(kind, None, update)),
            },
            "config_option_update" => self.options_changed(&Value::Object(update), out),
            "available_commands_update" => {
                let commands = update.shift_remove("availableCommands").unwrap_or_default();
                self.session.reported.insert(Query::Commands.word().to_owned(), commands);
                let listed = commands_event(self.session.reported.list(Query::Commands.word()));
                self.report_later(listed, out);
            }
            "usage_update" => {
                self.spent.cost_is(&update);
                for key in ["sessionUpdate", "_meta"] {
                    update.shift_remove(key);
                }
                self.session.reported.insert(SystemSubtype::CONTEXT.to_owned(), update.clone().into());
                self.report_later(note(SystemSubtype::CONTEXT, None, update), out);
            }
            "notice" => {
                let parts = ["title", "description"].into_iter().filter_map(|key| update.text(key));
                let message = parts.collect::<Vec<_>>().join(": ");
                self.report_later(note(kind, Some(message).filter(|message| !message.is_empty()), update), out);
            }
            "session_info_update" => self.report_later(note("sessionInfo", update.string("title"), update), out),
            _ => {
                let message = ["message", "text", "title"].into_iter().find_map(|key| update.string(key));
                self.report_later(note(kind, message, update), out);
            }
        }
    }

    /// The agent sent all its settings with their current values.
    pub(super) fn options_changed(&mut self, raw: &Value, out: &mut Step) {
        let before = self.session.reported.get("configOptions").cloned();
        let thinking = self.session.thinking();
        let (mode, model) = self.learn(raw);
        if let Some(mode) = mode {
            self.mode_is(&mode, out);
        }
        if let Some(model) = model {
            self.model_is(&model, out);
        }
        let now = self.session.thinking();
        if now != thinking {
            self.report_later(thinking_event(now), out);
        }
        let now = self.session.reported.get("configOptions");
        if let Some(options) = now.filter(|now| before.as_ref() != Some(*now)).cloned() {
            self.report_later(note("configOptions", None, one("configOptions", options)), out);
        }
    }

    /// Emits an event about the session if `sessionStarted` was emitted; until then the fact is only stored.
    fn report_later(&mut self, kind: EventKind, out: &mut Step) {
        if self.emit.session.started || !self.emit.session.is_live() {
            self.under_way(out);
            out.events.push(kind);
        }
    }

    /// Emits `sessionStarted` before the first event of a recording that lacks its beginning.
    pub(super) fn under_way(&mut self, out: &mut Step) {
        if !self.emit.session.is_live() {
            self.start(out);
        }
    }
}
