//! What is known of the session itself: that it began, its id, its rules, its model.

use multitap_event::{
    AgentCapabilities, AgentType, ApprovalMode, EventKind, SandboxMode, SessionConfig, SessionStart, StatedConfig,
    Timestamp,
};
use serde_json::Value;

use super::settings::Rules;
use super::wire::Fields;
use crate::codec::Step;

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The configuration it was started with; a recorded stream has none.
    stated: Option<StatedConfig>,
    started: bool,
    /// It is read from Codex's own store.
    stored: bool,
    transport: Option<&'static str>,
    native_id: Option<String>,
    /// Codex's word for when it asks, with the sandbox where the mode means one.
    native_mode: Option<String>,
    mode: Option<ApprovalMode>,
    sandbox: Option<Value>,
    model: Option<String>,
    version: Option<String>,
    cwd: Option<String>,
    /// Told before the session began.
    held: Vec<EventKind>,
}

impl Session {
    pub(super) fn live(config: &SessionConfig, rules: &Rules, transport: &'static str) -> Self {
        Self {
            stated: Some(config.stated()),
            transport: Some(transport),
            mode: rules.mode,
            native_mode: rules.native_mode(),
            model: config.model.clone(),
            ..Self::default()
        }
    }

    pub(super) fn stored() -> Self {
        Self { stored: true, ..Self::default() }
    }

    pub(super) fn is_live(&self) -> bool {
        self.stated.is_some()
    }

    /// The time, where it means something: a recorded stream is read at another time than it was written.
    pub(super) fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        (self.is_live() || self.stored).then_some(now)
    }

    pub(super) fn native_id(&self) -> Option<&str> {
        self.native_id.as_deref()
    }

    pub(super) fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    pub(super) fn has_started(&self) -> bool {
        self.started
    }

    /// The sandbox that Codex says it uses.
    pub(super) fn sandbox(&self) -> Option<&Value> {
        self.sandbox.as_ref()
    }

    /// The reply to `initialize`: `multitap/0.166.0 (Debian 12.0.0; x86_64) …`.
    pub(super) fn greeted(&mut self, user_agent: Option<&str>) {
        let version = user_agent.and_then(|text| text.split_once('/')?.1.split(' ').next());
        self.version = version.map(str::to_owned);
    }

    /// Codex opened the conversation, and says how it is set up.
    pub(super) fn opened(&mut self, reply: &Fields, transport: &'static str, out: &mut Step) {
        let thread = reply.fields("thread");
        self.version = self.version.take().or_else(|| thread.string("cliVersion"));
        self.cwd = reply.string("cwd").or_else(|| thread.string("cwd")).or(self.cwd.take());
        self.sandbox = reply.get("sandbox").cloned().or(self.sandbox.take());
        let model = reply.string("model").or_else(|| thread.string("model"));
        let policy = reply.get("approvalPolicy").map(policy_word);
        let id = thread.string("id").or_else(|| thread.string("sessionId"));
        self.transport.get_or_insert(transport);
        if self.started {
            self.identified(id.as_deref(), out);
            self.policy_is(policy, out);
            self.model_is(model, out);
        } else {
            self.native_id = id.or(self.native_id.take());
            self.model = model.or(self.model.take());
            if self.native_mode.is_none() {
                self.mode = policy.as_deref().and_then(|word| ApprovalMode::from_native(AgentType::Codex, word));
                self.native_mode = policy;
            }
            self.start(out);
        }
        let mut data = reply.0.clone();
        if let Some(thread) = data.get_mut("thread").and_then(Value::as_object_mut) {
            thread.shift_remove("turns");
        }
        let model = data.get("model").and_then(Value::as_str).map(str::to_owned);
        let steering = self.is_live().then_some(true);
        out.events.push(EventKind::Capabilities(AgentCapabilities {
            model,
            steering,
            data,
            ..AgentCapabilities::default()
        }));
    }

    /// An older or shorter word that the session began.
    pub(super) fn began(&mut self, id: Option<&str>, transport: &'static str, about: &Fields, out: &mut Step) {
        self.transport.get_or_insert(transport);
        if self.started {
            self.identified(id, out);
            return;
        }
        self.cwd = about.string("cwd").or(self.cwd.take());
        self.version = about.string("cliVersion").or(self.version.take());
        self.model = about.string("model").or(self.model.take());
        self.native_id = id.map(str::to_owned).or(self.native_id.take());
        self.start(out);
    }

    /// Something of the session came before its beginning was told; now it is, with what can be known.
    pub(super) fn under_way(&mut self, id: Option<&str>, transport: &'static str, out: &mut Step) {
        if !self.started {
            self.began(id, transport, &Fields::default(), out);
        }
    }

    fn start(&mut self, out: &mut Step) {
        self.started = true;
        let config = self.stated.clone().unwrap_or_else(|| StatedConfig {
            agent_type: Some(AgentType::Codex),
            working_directory: self.cwd.clone(),
            model: self.model.clone(),
            approval_mode: self.mode.filter(|mode| mode.in_printed_schema()),
            sandbox_mode: self.sandbox.as_ref().and_then(sandbox_mode),
            ..StatedConfig::default()
        });
        out.events.push(EventKind::SessionStarted(SessionStart {
            agent_type: AgentType::Codex,
            config: Some(config),
            native_session_id: self.native_id.clone(),
            native_mode: self.native_mode.clone(),
            agent_version: self.version.clone(),
            transport: self.transport.map(str::to_owned),
        }));
        out.events.append(&mut self.held);
    }

    /// Keeps notes back until the session has begun: it is told first.
    pub(super) fn hold(&mut self, out: &mut Step) {
        if !self.started {
            self.held.extend(out.events.extract_if(.., |kind| matches!(kind, EventKind::System(_))));
        }
    }

    /// The session never began: what was kept back is told after all.
    pub(super) fn release(&mut self, out: &mut Step) {
        out.events.append(&mut self.held);
    }

    /// Codex named the conversation; told if that is news.
    pub(super) fn identified(&mut self, id: Option<&str>, out: &mut Step) {
        let Some(id) = id.filter(|id| !id.is_empty() && self.native_id.as_deref() != Some(id)) else { return };
        self.native_id = Some(id.to_owned());
        out.events.push(EventKind::NativeSessionChanged { native_session_id: id.to_owned() });
    }

    /// Somebody chose other rules; they hold from the next turn on.
    pub(super) fn rules_chosen(&mut self, rules: &Rules, out: &mut Step) {
        let native = rules.native_mode();
        self.native_mode.clone_from(&native);
        self.mode = rules.mode;
        out.events.push(EventKind::ModeChanged { mode: rules.mode, native_mode: native, by: None });
    }

    /// Codex asks by that policy; told if that is news.
    pub(super) fn policy_is(&mut self, policy: Option<String>, out: &mut Step) {
        let Some(policy) = policy else { return };
        let known = self.native_mode.as_deref().and_then(|mode| mode.split('/').next());
        if known == Some(policy.as_str()) {
            return;
        }
        let was_known = known.is_some();
        self.mode = ApprovalMode::from_native(AgentType::Codex, &policy);
        self.native_mode = Some(policy.clone());
        if was_known {
            out.events.push(EventKind::ModeChanged { mode: self.mode, native_mode: Some(policy), by: None });
        }
    }

    /// The model is that one; told if that is news.
    pub(super) fn model_is(&mut self, model: Option<String>, out: &mut Step) {
        let Some(model) = model.filter(|model| self.model.as_ref() != Some(model)) else { return };
        if self.model.replace(model.clone()).is_some() {
            out.events.push(EventKind::ModelChanged { model, by: None });
        }
    }

    /// Somebody chose that model; it answers from the next turn on.
    pub(super) fn model_chosen(&mut self, model: String, out: &mut Step) {
        self.model = Some(model.clone());
        out.events.push(EventKind::ModelChanged { model, by: None });
    }
}

/// A policy is a word, or an object with one key that is its word.
pub(super) fn policy_word(policy: &Value) -> String {
    match policy {
        Value::String(word) => word.clone(),
        Value::Object(map) => map.keys().next().cloned().unwrap_or_default(),
        other => other.to_string(),
    }
}

/// The unified word for a sandbox as Codex describes it.
pub(super) fn sandbox_mode(sandbox: &Value) -> Option<SandboxMode> {
    match sandbox.get("type")?.as_str()? {
        "dangerFullAccess" | "danger-full-access" => Some(SandboxMode::FullAccess),
        "readOnly" | "read-only" => Some(SandboxMode::ReadOnly),
        "workspaceWrite" | "workspace-write" => Some(SandboxMode::WorkspaceWrite),
        "externalSandbox" | "external-sandbox" => Some(SandboxMode::None),
        _ => None,
    }
}
