//! Facts about the session: whether it has begun, its id, approval policy and model.

use multitap_event::{AgentCapabilities, AgentType, ApprovalMode, EventKind, SandboxMode, SessionConfig, Timestamp};
use serde_json::Value;

use super::settings::Rules;
use super::wire::{Fields, present};
use crate::codec::Step;
use crate::emit::{SessionFacts, SessionMode};

#[derive(Debug)]
pub(super) struct Session {
    facts: SessionFacts,
    /// As Codex describes it.
    sandbox: Option<Value>,
    /// Notices from before the session began.
    held: Vec<EventKind>,
}

impl Session {
    pub(super) fn recorded() -> Self {
        Self { facts: SessionFacts::new(AgentType::Codex, None), sandbox: None, held: Vec::new() }
    }

    pub(super) fn live(config: &SessionConfig, rules: &Rules, transport: &'static str) -> Self {
        let facts = SessionFacts {
            stated: Some(config.stated()),
            mode: mode_of(rules),
            model: config.model.clone(),
            ..SessionFacts::new(AgentType::Codex, Some(transport))
        };
        Self { facts, ..Self::recorded() }
    }

    pub(super) fn stored() -> Self {
        Self { facts: SessionFacts::stored(AgentType::Codex), ..Self::recorded() }
    }

    pub(super) fn is_live(&self) -> bool {
        self.facts.is_live()
    }

    /// The time, where it means something.
    pub(super) fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        self.facts.clock(now)
    }

    pub(super) fn native_id(&self) -> Option<&str> {
        self.facts.native_id.as_deref()
    }

    pub(super) fn cwd(&self) -> Option<&str> {
        self.facts.cwd.as_deref()
    }

    pub(super) fn has_started(&self) -> bool {
        self.facts.has_started()
    }

    /// The sandbox that Codex says it uses.
    pub(super) fn sandbox(&self) -> Option<&Value> {
        self.sandbox.as_ref()
    }

    /// The reply to `initialize`: `multitap/0.166.0 (Debian 12.0.0; x86_64) …`.
    pub(super) fn greeted(&mut self, user_agent: Option<&str>) {
        let version = user_agent.and_then(|text| text.split_once('/')?.1.split(' ').next());
        self.facts.version = version.map(str::to_owned);
    }

    /// Codex opened the conversation, and says how it is set up.
    pub(super) fn opened(&mut self, reply: &Fields, transport: &'static str, out: &mut Step) {
        let thread = reply.fields("thread");
        self.facts.version = self.facts.version.take().or_else(|| thread.string("cliVersion"));
        self.facts.cwd = reply.string("cwd").or_else(|| thread.string("cwd")).or(self.facts.cwd.take());
        self.sandbox = reply.get("sandbox").cloned().or(self.sandbox.take());
        let model = reply.string("model").or_else(|| thread.string("model"));
        let policy = reply.get("approvalPolicy").map(policy_word);
        let id = thread.string("id").or_else(|| thread.string("sessionId"));
        self.facts.transport.get_or_insert(transport);
        if self.facts.has_started() {
            self.identified(id.as_deref(), out);
            self.policy_is(policy, out);
            self.model_is(model, out);
        } else {
            self.facts.native_id = id.or(self.facts.native_id.take());
            self.facts.model = model.or(self.facts.model.take());
            if self.facts.mode.is_none() {
                self.facts.mode = policy.map(mode_of_policy);
            }
            self.start(out);
        }
        let mut data = present(reply.0.clone());
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
        self.facts.transport.get_or_insert(transport);
        if self.facts.has_started() {
            self.identified(id, out);
            return;
        }
        self.facts.cwd = about.string("cwd").or(self.facts.cwd.take());
        self.facts.version = about.string("cliVersion").or(self.facts.version.take());
        self.facts.model = about.string("model").or(self.facts.model.take());
        self.facts.native_id = id.map(str::to_owned).or(self.facts.native_id.take());
        self.start(out);
    }

    /// Something of the session came before its beginning was reported; now it is, with what can be known.
    pub(super) fn under_way(&mut self, id: Option<&str>, transport: &'static str, out: &mut Step) {
        if !self.facts.has_started() {
            self.began(id, transport, &Fields::default(), out);
        }
    }

    fn start(&mut self, out: &mut Step) {
        self.facts.sandbox = self.sandbox.as_ref().and_then(sandbox_mode);
        self.facts.start(out);
        out.events.append(&mut self.held);
    }

    /// Keeps notes back until the session has begun: it is reported first.
    pub(super) fn hold(&mut self, out: &mut Step) {
        if !self.facts.has_started() {
            self.held.extend(out.events.extract_if(.., |kind| matches!(kind, EventKind::System(_))));
        }
    }

    /// The session never began: what was kept back is reported after all.
    pub(super) fn release(&mut self, out: &mut Step) {
        out.events.append(&mut self.held);
    }

    /// Codex named the conversation; emitted if that is new.
    pub(super) fn identified(&mut self, id: Option<&str>, out: &mut Step) {
        self.facts.identified(id, out);
    }

    /// Somebody chose other rules; they hold from the next turn on.
    pub(super) fn rules_chosen(&mut self, rules: &Rules, out: &mut Step) {
        self.facts.mode = mode_of(rules);
        self.facts.report_mode(out);
    }

    /// Codex asks by that policy; emitted if it is another one than before.
    pub(super) fn policy_is(&mut self, policy: Option<String>, out: &mut Step) {
        let Some(policy) = policy else { return };
        let known = self.facts.mode.as_ref().and_then(|mode| mode.native.split('/').next());
        let was_known = known.is_some();
        if known == Some(policy.as_str()) {
            return;
        }
        self.facts.mode = Some(mode_of_policy(policy));
        if was_known {
            self.facts.report_mode(out);
        }
    }

    /// The model is that one; emitted if it is another one than before.
    pub(super) fn model_is(&mut self, model: Option<String>, out: &mut Step) {
        self.facts.model_is(model, out);
    }

    /// Somebody chose that model; it answers from the next turn on.
    pub(super) fn model_chosen(&mut self, model: String, out: &mut Step) {
        self.facts.model_chosen(model, out);
    }
}

/// The mode that rules mean.
fn mode_of(rules: &Rules) -> Option<SessionMode> {
    Some(SessionMode { native: rules.native_mode()?, unified: rules.mode })
}

fn mode_of_policy(policy: String) -> SessionMode {
    SessionMode { unified: ApprovalMode::from_native(AgentType::Codex, &policy), native: policy }
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
