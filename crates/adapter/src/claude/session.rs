//! Facts about the session itself: that it began, its id, its mode, its model, what Claude can do.

use multitap_event::{AgentCapabilities, AgentType, ApprovalMode, EventKind, McpServerStatus};
use serde_json::{Map, Value};

use super::decode::{ClaudeCodec, own_fields};
use crate::codec::Step;
use crate::emit::{ModeNews, SessionFacts, SessionMode, commands, models};
use crate::history::StoredSession;
use crate::json::JsonFields as _;

/// The value of `transport` in `sessionStarted`.
pub(super) const TRANSPORT: &str = "stream-json";

#[derive(Debug, Default)]
pub(super) struct Session {
    /// Whether the model was chosen by an alias, which Claude resolves to another name.
    model_by_alias: bool,
    /// Parts of the reply to `initialize`, for later queries.
    pub(super) capabilities: Map<String, Value>,
    /// The last `system/init`, to emit only what is new.
    init: Option<Map<String, Value>>,
}

/// The fields of the reply to `initialize` that are reported and remembered.
const CAPABILITIES: [&str; 6] = ["commands", "models", "account", "agents", "output_style", "available_output_styles"];

impl ClaudeCodec {
    pub(super) fn begin_stored(&mut self, session: &StoredSession, out: &mut Step) {
        self.emit.session = SessionFacts::stored(AgentType::Claude, session);
        self.emit.session.start(out);
    }

    /// Whether a running Claude is in plan mode. Questions in a recording were asked already.
    pub(super) fn is_planning(&self) -> bool {
        let facts = &self.emit.session;
        facts.is_live() && facts.mode.as_ref().is_some_and(|mode| mode.native == "plan")
    }

    pub(super) fn initialized(&mut self, mut reply: Map<String, Value>, out: &mut Step) {
        out.ready = true;
        let facts = &mut self.emit.session;
        facts.version = reply.string("claude_code_version").or(facts.version.take());
        if facts.mode.is_none() {
            facts.mode = reply.string("current_permission_mode").map(mode);
        }
        self.session.capabilities =
            CAPABILITIES.into_iter().filter_map(|key| Some((key.to_owned(), reply.shift_remove(key)?))).collect();
        facts.start(out);
        let mut data = self.session.capabilities.clone();
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

    /// Emits `sessionStarted` before the first event of a recording that lacks its beginning. A running program reports
    /// its beginning when asked.
    pub(super) fn under_way(&mut self, id: Option<&str>, out: &mut Step) {
        let facts = &mut self.emit.session;
        if !facts.started && !facts.is_live() {
            facts.native_id = id.filter(|id| !id.is_empty()).map(str::to_owned).or(facts.native_id.take());
            facts.start(out);
        }
    }

    /// `system/init`, which comes with every turn. Emits only the changes.
    pub(super) fn init(&mut self, mut init: Map<String, Value>, out: &mut Step) {
        let (native_mode, model) = (init.string("permissionMode"), init.string("model"));
        let facts = &mut self.emit.session;
        facts.cwd = init.string("cwd").or(facts.cwd.take());
        facts.version = init.string("claude_code_version").or(facts.version.take());
        if facts.started {
            facts.identified(init.text("session_id"), out);
            self.mode_is(native_mode, out);
            self.model_found(model, out);
        } else {
            facts.native_id = init.string("session_id").or(facts.native_id.take());
            facts.mode = native_mode.map(mode);
            facts.model = model;
            facts.start(out);
        }
        init.shift_remove("uuid");
        let servers = self.session.changed_servers(&init);
        if self.session.init.as_ref() != Some(&init) {
            self.session.init = Some(init.clone());
            out.events.push(described(init));
        }
        out.events.extend(servers);
    }

    /// An `init` line in the older format, which says only that the session began.
    pub(super) fn plain_init(&mut self, init: Map<String, Value>, out: &mut Step) {
        out.ready = true;
        let facts = &mut self.emit.session;
        if facts.started {
            facts.identified(init.text("session_id"), out);
            out.events.push(described(init));
            return;
        }
        facts.native_id = init.string("session_id").or(facts.native_id.take());
        facts.model = init.string("model").or(facts.model.take());
        facts.cwd = init.string("cwd").or(facts.cwd.take());
        facts.start(out);
    }

    /// Claude is in that mode. An event reports it if it is new, or if it confirms a requested change.
    pub(super) fn mode_is(&mut self, native: Option<String>, out: &mut Step) {
        let facts = &mut self.emit.session;
        if native.and_then(|native| facts.learn_mode(mode(native))) == Some(ModeNews::Changed) {
            facts.report_mode(out);
        }
    }

    pub(super) fn model_chosen(&mut self, model: String, out: &mut Step) {
        self.session.model_by_alias = true;
        self.emit.session.model_chosen(model, out);
    }

    /// Claude reports its model. The first report, and the full name of a model chosen by alias, are not changes.
    pub(super) fn model_found(&mut self, model: Option<String>, out: &mut Step) {
        if model.is_some() && std::mem::take(&mut self.session.model_by_alias) {
            self.emit.session.model = model;
        } else {
            self.emit.session.model_is(model, out);
        }
    }
}

impl Session {
    /// The MCP servers of an `init` whose status is new or has changed.
    fn changed_servers(&self, init: &Map<String, Value>) -> Vec<EventKind> {
        let before = self.init.as_ref().map_or(&[][..], |init| init.list("mcp_servers"));
        let changed = init.list("mcp_servers").iter().filter(|server| !before.contains(server));
        let status = |server: &Value| {
            let status = McpServerStatus::new(server.text("name")?, server.text("status")?);
            Some(EventKind::McpServerStatus(McpServerStatus { error: server.string("error"), ..status }))
        };
        changed.filter_map(status).collect()
    }
}

fn mode(native: String) -> SessionMode {
    SessionMode { unified: ApprovalMode::from_native(AgentType::Claude, &native), native }
}

/// The description of Claude and its set-up in an `init` line.
fn described(init: Map<String, Value>) -> EventKind {
    let model = init.string("model");
    EventKind::Capabilities(AgentCapabilities { model, data: own_fields(init), ..AgentCapabilities::default() })
}
