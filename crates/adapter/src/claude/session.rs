//! What is known of the session itself: that it began, its id, its mode, its model, what Claude can do.

use multitap_event::{
    AgentCapabilities, AgentType, ApprovalMode, EventKind, McpServerStatus, SessionConfig, Timestamp,
};
use serde_json::{Map, Value};

use super::decode::strip_envelope;
use crate::codec::Step;
use crate::emit::{ModeNews, SessionFacts, SessionMode, commands, models};
use crate::history::StoredSession;

/// How we drive it, in `sessionStarted`.
const TRANSPORT: &str = "stream-json";

#[derive(Debug)]
pub(super) struct Session {
    facts: SessionFacts,
    /// The model was chosen by a name that Claude may resolve to another one.
    model_by_alias: bool,
    /// Parts of the reply to `initialize`, for questions about them.
    pub(super) capabilities: Map<String, Value>,
    /// The last `system/init`, to emit only what is new.
    init: Option<Map<String, Value>>,
}

/// What of the reply to `initialize` is reported and remembered.
const CAPABILITIES: [&str; 6] = ["commands", "models", "account", "agents", "output_style", "available_output_styles"];

impl Session {
    pub(super) fn recorded() -> Self {
        let facts = SessionFacts::new(AgentType::Claude, Some(TRANSPORT));
        Self { facts, model_by_alias: false, capabilities: Map::new(), init: None }
    }

    pub(super) fn live(config: &SessionConfig, native_id: Option<String>) -> Self {
        let facts = SessionFacts {
            stated: Some(config.stated()),
            native_id,
            cwd: config.working_directory.as_ref().map(|path| path.display().to_string()),
            ..SessionFacts::new(AgentType::Claude, Some(TRANSPORT))
        };
        Self { facts, ..Self::recorded() }
    }

    pub(super) fn cwd(&self) -> Option<&str> {
        self.facts.cwd.as_deref()
    }

    /// A session of Claude's own store begins.
    pub(super) fn stored(&mut self, session: &StoredSession, out: &mut Step) {
        self.facts = SessionFacts::stored(AgentType::Claude);
        self.facts.native_id = Some(session.id.clone());
        self.facts.cwd = session.folder.as_ref().map(|folder| folder.display().to_string());
        self.facts.model.clone_from(&session.model);
        self.facts.version.clone_from(&session.agent_version);
        self.facts.start(out);
    }

    /// Whether a running Claude is in plan mode. What a recorded one asked was asked.
    pub(super) fn is_planning(&self) -> bool {
        self.facts.is_live() && self.facts.mode.as_ref().is_some_and(|mode| mode.native == "plan")
    }

    /// The time, where it means something.
    pub(super) fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        self.facts.clock(now)
    }

    /// The reply to `initialize`.
    pub(super) fn initialized(&mut self, mut reply: Map<String, Value>, out: &mut Step) {
        out.ready = true;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        self.facts.version = text(reply.get("claude_code_version")).or(self.facts.version.take());
        if self.facts.mode.is_none() {
            self.facts.mode = text(reply.get("current_permission_mode")).map(mode);
        }
        self.capabilities =
            CAPABILITIES.into_iter().filter_map(|key| Some((key.to_owned(), reply.shift_remove(key)?))).collect();
        self.facts.start(out);
        let mut data = self.capabilities.clone();
        let mut list = |key: &str| match data.shift_remove(key) {
            Some(Value::Array(list)) => Some(list),
            _ => None,
        };
        out.events.push(EventKind::Capabilities(AgentCapabilities {
            steering: Some(false),
            commands: list("commands").map(|list| commands(&list)),
            models: list("models").map(|list| models(&list)),
            data,
            ..AgentCapabilities::default()
        }));
    }

    /// Something of a recorded session came before its beginning was reported; now it is, with what can be known. A
    /// running program is asked about its beginning, and reports more.
    pub(super) fn under_way(&mut self, id: Option<&str>, out: &mut Step) {
        if !self.facts.has_started() && !self.facts.is_live() {
            self.facts.native_id = id.filter(|id| !id.is_empty()).map(str::to_owned).or(self.facts.native_id.take());
            self.facts.start(out);
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.facts.has_started()
    }

    /// `system/init`, which comes with every turn. Only what is new is reported.
    pub(super) fn init(&mut self, mut init: Map<String, Value>, out: &mut Step) {
        let text = |init: &Map<String, Value>, key: &str| init.get(key).and_then(Value::as_str).map(str::to_owned);
        let (native_mode, model) = (text(&init, "permissionMode"), text(&init, "model"));
        let id = text(&init, "session_id");
        self.facts.cwd = text(&init, "cwd").or(self.facts.cwd.take());
        self.facts.version = text(&init, "claude_code_version").or(self.facts.version.take());
        if self.facts.has_started() {
            self.identified(id.as_deref(), out);
            self.mode_is(native_mode, out);
            self.model_found(model, out);
        } else {
            self.facts.native_id = id.or(self.facts.native_id.take());
            self.facts.mode = native_mode.map(mode);
            self.facts.model = model;
            self.facts.start(out);
        }
        init.shift_remove("uuid");
        let servers = self.changed_servers(&init);
        if self.init.as_ref() != Some(&init) {
            self.init = Some(init.clone());
            out.events.push(described(init));
        }
        out.events.extend(servers);
    }

    /// The MCP servers of an `init` of which the last one reported nothing, or something else.
    fn changed_servers(&self, init: &Map<String, Value>) -> Vec<EventKind> {
        let list = |init: &Map<String, Value>| init.get("mcp_servers").and_then(Value::as_array).cloned();
        let before = self.init.as_ref().and_then(list).unwrap_or_default();
        let now = list(init).unwrap_or_default().into_iter().filter(|server| !before.contains(server));
        now.filter_map(|server| {
            let word = |key: &str| server.get(key).and_then(Value::as_str);
            let error = word("error").map(str::to_owned);
            let status = McpServerStatus { error, ..McpServerStatus::new(word("name")?, word("status")?) };
            Some(EventKind::McpServerStatus(status))
        })
        .collect()
    }

    /// An `init` line of the older kind, which says no more than that the session began.
    pub(super) fn plain_init(&mut self, init: Map<String, Value>, out: &mut Step) {
        let text = |key: &str| init.get(key).and_then(Value::as_str).map(str::to_owned);
        if self.facts.has_started() {
            self.identified(text("session_id").as_deref(), out);
            out.events.push(described(init));
            return;
        }
        self.facts.native_id = text("session_id").or(self.facts.native_id.take());
        self.facts.model = text("model").or(self.facts.model.take());
        self.facts.cwd = text("cwd").or(self.facts.cwd.take());
        self.facts.start(out);
    }

    /// Claude named the conversation; emitted if that is new.
    pub(super) fn identified(&mut self, id: Option<&str>, out: &mut Step) {
        self.facts.identified(id, out);
    }

    /// Somebody asked for that mode.
    pub(super) fn mode_asked(&mut self, mode: &str) {
        self.facts.asked_modes.ask(mode);
    }

    /// Claude stays in the mode it was in.
    pub(super) fn mode_refused(&mut self, mode: &str) {
        self.facts.asked_modes.answered(mode);
    }

    /// Claude is in that mode; emitted if it is new, or confirms what somebody asked for.
    pub(super) fn mode_is(&mut self, native: Option<String>, out: &mut Step) {
        if native.and_then(|native| self.facts.learn_mode(mode(native))) == Some(ModeNews::Changed) {
            self.facts.report_mode(out);
        }
    }

    /// Somebody chose that model, and Claude took it.
    pub(super) fn model_chosen(&mut self, model: String, out: &mut Step) {
        self.model_by_alias = true;
        self.facts.model_chosen(model, out);
    }

    /// Claude says which model it uses. The first word of it, and the full name of one just chosen, are no change.
    pub(super) fn model_found(&mut self, model: Option<String>, out: &mut Step) {
        if model.is_some() && std::mem::take(&mut self.model_by_alias) {
            self.facts.model = model;
        } else {
            self.facts.model_is(model, out);
        }
    }
}

/// A mode by Claude's word for it.
fn mode(native: String) -> SessionMode {
    SessionMode { unified: ApprovalMode::from_native(AgentType::Claude, &native), native }
}

/// What an `init` line says of Claude and its set-up.
fn described(mut init: Map<String, Value>) -> EventKind {
    strip_envelope(&mut init);
    let model = init.get("model").and_then(Value::as_str).map(str::to_owned);
    EventKind::Capabilities(AgentCapabilities { model, data: init, ..AgentCapabilities::default() })
}
