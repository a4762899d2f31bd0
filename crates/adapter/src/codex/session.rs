//! Facts about the session: whether it has begun, its id, approval policy and model.

use multitap_event::{AgentCapabilities, AgentType, ApprovalMode, EventKind, SandboxMode};
use serde_json::Value;

use super::decode::CodexCodec;
use super::settings::Rules;
use super::wire::Fields;
use crate::codec::Step;
use crate::emit::SessionMode;
use crate::json::JsonFields as _;
use crate::json::present;

impl CodexCodec {
    /// The reply to `initialize`: `multitap/0.166.0 (Debian 12.0.0; x86_64) …`.
    pub(super) fn greeted(&mut self, user_agent: Option<&str>) {
        let version = user_agent.and_then(|text| text.split_once('/')?.1.split(' ').next());
        self.emit.session.version = version.map(str::to_owned);
    }

    /// Codex opened the conversation and reports its configuration.
    pub(super) fn set_up_as(&mut self, reply: &Fields, transport: &'static str, out: &mut Step) {
        let thread = reply.fields("thread");
        self.sandbox = reply.field("sandbox").cloned().or(self.sandbox.take());
        let model = reply.string("model").or_else(|| thread.string("model"));
        self.thinking.level = reply.string("reasoningEffort").or(self.thinking.level.take());
        let policy = reply.field("approvalPolicy").map(policy_word);
        let id = thread.string("id").or_else(|| thread.string("sessionId"));
        let facts = &mut self.emit.session;
        facts.version = facts.version.take().or_else(|| thread.string("cliVersion"));
        facts.cwd = reply.string("cwd").or_else(|| thread.string("cwd")).or(facts.cwd.take());
        facts.transport.get_or_insert(transport);
        if facts.started {
            facts.identified(id.as_deref(), out);
            self.policy_is(policy, out);
            self.emit.session.model_is(model, out);
        } else {
            facts.native_id = id.or(facts.native_id.take());
            facts.model = model.or(facts.model.take());
            if facts.mode.is_none() {
                facts.mode = policy.map(mode_of_policy);
            }
            self.start(out);
        }
        let mut data = present(reply.0.clone());
        if let Some(thread) = data.get_mut("thread").and_then(Value::as_object_mut) {
            thread.shift_remove("turns");
        }
        let (model, steering) = (data.string("model"), self.emit.session.is_live().then_some(true));
        let data = present(data);
        let capabilities = AgentCapabilities { model, steering, data, ..AgentCapabilities::default() };
        out.events.push(EventKind::Capabilities(capabilities));
    }

    /// An older or shorter report that the session began.
    pub(super) fn began(&mut self, id: Option<&str>, transport: &'static str, about: &Fields, out: &mut Step) {
        let facts = &mut self.emit.session;
        facts.transport.get_or_insert(transport);
        if facts.started {
            facts.identified(id, out);
            return;
        }
        facts.cwd = about.string("cwd").or(facts.cwd.take());
        facts.version = about.string("cliVersion").or(facts.version.take());
        facts.model = about.string("model").or(facts.model.take());
        facts.native_id = id.map(str::to_owned).or(facts.native_id.take());
        self.start(out);
    }

    /// Emits `sessionStarted` before the first event of a recording that lacks its beginning.
    pub(super) fn under_way(&mut self, id: Option<&str>, transport: &'static str, out: &mut Step) {
        if !self.emit.session.started {
            self.began(id, transport, &Fields::default(), out);
        }
    }

    fn start(&mut self, out: &mut Step) {
        self.emit.session.sandbox = self.sandbox.as_ref().and_then(sandbox_mode);
        self.emit.session.start(out);
        out.events.append(&mut self.held);
    }

    /// Holds notices back until `sessionStarted` was emitted.
    pub(super) fn hold_notes(&mut self, out: &mut Step) {
        if !self.emit.session.started {
            self.held.extend(out.events.extract_if(.., |kind| matches!(kind, EventKind::System(_))));
        }
    }

    /// Codex uses that approval policy; emitted if it has changed.
    pub(super) fn policy_is(&mut self, policy: Option<String>, out: &mut Step) {
        let Some(policy) = policy else { return };
        let facts = &mut self.emit.session;
        let known = facts.mode.as_ref().and_then(|mode| mode.native.split('/').next());
        let was_known = known.is_some();
        if known == Some(policy.as_str()) {
            return;
        }
        facts.mode = Some(mode_of_policy(policy));
        if was_known {
            facts.report_mode(out);
        }
    }
}

pub(super) fn mode_of(rules: &Rules) -> Option<SessionMode> {
    Some(SessionMode { native: rules.native_mode()?, unified: rules.mode })
}

fn mode_of_policy(policy: String) -> SessionMode {
    SessionMode { unified: ApprovalMode::from_native(AgentType::Codex, &policy), native: policy }
}

/// The name of a policy, which is a word, or an object with one key.
pub(super) fn policy_word(policy: &Value) -> String {
    match policy {
        Value::String(word) => word.clone(),
        Value::Object(map) => map.keys().next().cloned().unwrap_or_default(),
        other => other.to_string(),
    }
}

/// The unified word for a sandbox as Codex describes it.
pub(super) fn sandbox_mode(sandbox: &Value) -> Option<SandboxMode> {
    match sandbox.text("type")? {
        "dangerFullAccess" | "danger-full-access" => Some(SandboxMode::FullAccess),
        "readOnly" | "read-only" => Some(SandboxMode::ReadOnly),
        "workspaceWrite" | "workspace-write" => Some(SandboxMode::WorkspaceWrite),
        "externalSandbox" | "external-sandbox" => Some(SandboxMode::None),
        _ => None,
    }
}
