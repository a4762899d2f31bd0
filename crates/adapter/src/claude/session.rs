//! What is known of the session itself: that it began, its id, its mode, its model, what Claude can do.

use multitap_event::{
    AgentType, ApprovalMode, EventKind, SessionConfig, SessionStart, StatedConfig, SystemNote, SystemSubtype, Timestamp,
};
use serde_json::{Map, Value};

use super::decode::note;
use crate::codec::Step;
use crate::emit::AskedValues;
use crate::history::StoredSession;

/// How we drive it, in `sessionStarted`; or that we do not.
const TRANSPORT: &str = "stream-json";
const STORED: &str = "stored";

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The configuration it was started with; a recorded stream has none.
    stated: Option<StatedConfig>,
    started: bool,
    /// It is read from Claude's own store.
    stored: bool,
    native_id: Option<String>,
    mode: Option<String>,
    awaited_modes: AskedValues,
    model: Option<String>,
    /// The model was chosen by a name that Claude may resolve to another one.
    model_by_alias: bool,
    version: Option<String>,
    pub(super) cwd: Option<String>,
    /// Parts of the reply to `initialize`, for questions about them.
    pub(super) capabilities: Map<String, Value>,
    /// The last `system/init`, to tell only what is new.
    init: Option<Map<String, Value>>,
}

/// What of the reply to `initialize` is told and remembered.
const CAPABILITIES: [&str; 6] = ["commands", "models", "account", "agents", "output_style", "available_output_styles"];

impl Session {
    pub(super) fn recorded() -> Self {
        Self::default()
    }

    pub(super) fn live(config: &SessionConfig, native_id: Option<String>) -> Self {
        Self {
            stated: Some(config.stated()),
            native_id,
            cwd: config.working_directory.as_ref().map(|path| path.display().to_string()),
            ..Self::default()
        }
    }

    /// A session of Claude's own store begins.
    pub(super) fn stored(&mut self, session: &StoredSession, out: &mut Step) {
        self.stored = true;
        self.native_id = Some(session.id.clone());
        self.cwd = session.folder.as_ref().map(|folder| folder.display().to_string());
        self.model.clone_from(&session.model);
        self.version.clone_from(&session.agent_version);
        self.start(out);
    }

    /// Whether a running Claude is in plan mode. What a recorded one asked was asked.
    pub(super) fn is_planning(&self) -> bool {
        self.is_live() && self.mode.as_deref() == Some("plan")
    }

    pub(super) fn is_live(&self) -> bool {
        self.stated.is_some()
    }

    /// The time, where it means something: a recorded stream is read at another time than it was written.
    pub(super) fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        (self.is_live() || self.stored).then_some(now)
    }

    /// The reply to `initialize`.
    pub(super) fn initialized(&mut self, mut reply: Map<String, Value>, out: &mut Step) {
        out.ready = true;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        self.version = text(reply.get("claude_code_version")).or(self.version.take());
        if self.mode.is_none() {
            self.mode = text(reply.get("current_permission_mode"));
        }
        self.capabilities =
            CAPABILITIES.into_iter().filter_map(|key| Some((key.to_owned(), reply.shift_remove(key)?))).collect();
        self.start(out);
        out.events.push(note(SystemSubtype::CAPABILITIES, None, self.capabilities.clone()));
    }

    /// Tells `sessionStarted`, once.
    fn start(&mut self, out: &mut Step) {
        if self.started {
            return;
        }
        self.started = true;
        let config = self.stated.clone().unwrap_or_else(|| StatedConfig {
            agent_type: Some(AgentType::Claude),
            working_directory: self.cwd.clone(),
            model: self.model.clone(),
            approval_mode: self
                .mode
                .as_deref()
                .and_then(|mode| ApprovalMode::from_native(AgentType::Claude, mode))
                .filter(|mode| mode.in_printed_schema()),
            ..StatedConfig::default()
        });
        out.events.push(EventKind::SessionStarted(SessionStart {
            agent_type: AgentType::Claude,
            config: Some(config),
            native_session_id: self.native_id.clone(),
            native_mode: self.mode.clone(),
            agent_version: self.version.clone(),
            transport: Some(if self.stored { STORED } else { TRANSPORT }.to_owned()),
        }));
    }

    /// Something of a recorded session came before its beginning was told; now it is, with what can be known. A
    /// running program is asked about its beginning, and tells more.
    pub(super) fn under_way(&mut self, id: Option<&str>, out: &mut Step) {
        if !self.started && !self.is_live() {
            self.native_id = id.filter(|id| !id.is_empty()).map(str::to_owned).or(self.native_id.take());
            self.start(out);
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.started
    }

    /// `system/init`, which comes with every turn. Only what is new is told.
    pub(super) fn init(&mut self, mut init: Map<String, Value>, out: &mut Step) {
        let text = |init: &Map<String, Value>, key: &str| init.get(key).and_then(Value::as_str).map(str::to_owned);
        let (mode, model) = (text(&init, "permissionMode"), text(&init, "model"));
        let id = text(&init, "session_id");
        self.cwd = text(&init, "cwd").or(self.cwd.take());
        self.version = text(&init, "claude_code_version").or(self.version.take());
        if self.started {
            self.identified(id, out);
            self.mode_is(mode, out);
            self.model_found(model, out);
        } else {
            self.native_id = id.or(self.native_id.take());
            self.mode = mode;
            self.model = model;
            self.start(out);
        }
        init.shift_remove("uuid");
        let servers = self.changed_servers(&init);
        if self.init.as_ref() != Some(&init) {
            self.init = Some(init.clone());
            out.events.push(note(SystemSubtype::INIT, None, init));
        }
        out.events.extend(servers);
    }

    /// The MCP servers of an `init` of which the last one told nothing, or something else.
    fn changed_servers(&self, init: &Map<String, Value>) -> Vec<EventKind> {
        let list = |init: &Map<String, Value>| init.get("mcp_servers").and_then(Value::as_array).cloned();
        let before = self.init.as_ref().and_then(list).unwrap_or_default();
        let now = list(init).unwrap_or_default().into_iter().filter(|server| !before.contains(server));
        now.filter_map(|server| {
            let Value::Object(data) = server else { return None };
            let word = |key: &str| data.get(key).and_then(Value::as_str);
            let message = format!("MCP server {}: {}", word("name")?, word("status")?);
            Some(note(SystemSubtype::MCP_SERVER, Some(message), data))
        })
        .collect()
    }

    /// An `init` line of the older kind, which says no more than that the session began.
    pub(super) fn plain_init(&mut self, init: Map<String, Value>, out: &mut Step) {
        let text = |key: &str| init.get(key).and_then(Value::as_str).map(str::to_owned);
        if self.started {
            self.identified(text("session_id"), out);
            out.events.push(note(SystemSubtype::INIT, None, init));
            return;
        }
        self.native_id = text("session_id").or(self.native_id.take());
        self.model = text("model").or(self.model.take());
        self.cwd = text("cwd").or(self.cwd.take());
        self.start(out);
    }

    /// Claude named the conversation; told if that is news.
    pub(super) fn identified(&mut self, id: Option<String>, out: &mut Step) {
        let Some(id) = id.filter(|id| !id.is_empty() && self.native_id.as_ref() != Some(id)) else { return };
        self.native_id = Some(id.clone());
        if self.started {
            let mut data = Map::new();
            data.insert("nativeSessionId".to_owned(), id.into());
            out.events.push(EventKind::System(SystemNote {
                subtype: SystemSubtype::NATIVE_SESSION.to_owned(),
                message: None,
                data,
            }));
        }
    }

    /// Somebody asked for that mode.
    pub(super) fn mode_asked(&mut self, mode: &str) {
        self.awaited_modes.ask(mode);
    }

    /// Claude stays in the mode it was in.
    pub(super) fn mode_refused(&mut self, mode: &str) {
        self.awaited_modes.answered(mode);
    }

    /// Claude is in that mode; emitted if it is new, or confirms what somebody asked for.
    pub(super) fn mode_is(&mut self, mode: Option<String>, out: &mut Step) {
        let Some(mode) = mode else { return };
        let confirms = self.awaited_modes.answered(&mode);
        if !confirms && self.mode.as_ref() == Some(&mode) {
            return;
        }
        if self.mode.replace(mode.clone()).is_some() || confirms {
            out.events.push(EventKind::ModeChanged {
                mode: ApprovalMode::from_native(AgentType::Claude, &mode),
                native_mode: Some(mode),
                by: None,
            });
        }
    }

    /// Somebody chose that model, and Claude took it.
    pub(super) fn model_chosen(&mut self, model: String, out: &mut Step) {
        self.model_by_alias = true;
        self.model = Some(model.clone());
        out.events.push(EventKind::ModelChanged { model, by: None });
    }

    /// Claude says which model it uses. The first word of it, and the full name of one just chosen, are no change.
    pub(super) fn model_found(&mut self, model: Option<String>, out: &mut Step) {
        let Some(model) = model else { return };
        let by_alias = std::mem::take(&mut self.model_by_alias);
        match self.model.replace(model.clone()) {
            Some(before) if before != model && !by_alias => {
                out.events.push(EventKind::ModelChanged { model, by: None });
            }
            _ => {}
        }
    }
}
