//! Facts about the session itself: that it began, its id, its mode and its model.

use multitap_event::{AgentType, ApprovalMode, EventKind, SandboxMode, SessionStart, StatedConfig, Timestamp};

use super::asked::AskedValues;
use crate::codec::Step;
use crate::history::StoredSession;

/// The transport of a session that is read from the agent's own store.
pub(crate) const STORED: &str = "stored";

#[derive(Debug)]
pub(crate) struct SessionFacts {
    pub(crate) agent: AgentType,
    /// The configuration that the session was started with; a recorded stream has none.
    pub(crate) stated: Option<StatedConfig>,
    pub(crate) transport: Option<&'static str>,
    /// The session is read from the agent's own store, whose entries have their own times.
    pub(crate) is_stored: bool,
    pub(crate) started: bool,
    pub(crate) native_id: Option<String>,
    pub(crate) mode: Option<SessionMode>,
    pub(crate) asked_modes: AskedValues,
    pub(crate) model: Option<String>,
    pub(crate) sandbox: Option<SandboxMode>,
    pub(crate) version: Option<String>,
    pub(crate) cwd: Option<String>,
}

/// A mode in the agent's own word, and the unified mode if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionMode {
    pub(crate) native: String,
    pub(crate) unified: Option<ApprovalMode>,
}

/// The result of comparing a reported mode with the known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModeNews {
    /// The mode was not known before.
    First,
    /// The mode is new, or confirms a requested change.
    Changed,
}

impl SessionFacts {
    pub(crate) fn new(agent: AgentType, transport: Option<&'static str>) -> Self {
        Self {
            agent,
            stated: None,
            transport,
            is_stored: false,
            started: false,
            native_id: None,
            mode: None,
            asked_modes: AskedValues::default(),
            model: None,
            sandbox: None,
            version: None,
            cwd: None,
        }
    }

    pub(crate) fn stored(agent: AgentType, session: &StoredSession) -> Self {
        Self {
            is_stored: true,
            native_id: Some(session.id.clone()),
            cwd: session.folder.as_ref().map(|folder| folder.display().to_string()),
            model: session.model.clone(),
            version: session.agent_version.clone(),
            ..Self::new(agent, Some(STORED))
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.stated.is_some()
    }

    /// The time, unless it is meaningless: a recorded stream was not written at the time at which it is read.
    pub(crate) fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        (self.is_live() || self.is_stored).then_some(now)
    }

    /// Emits `sessionStarted`, once. Returns `false` if it was emitted before.
    pub(crate) fn start(&mut self, out: &mut Step) -> bool {
        if std::mem::replace(&mut self.started, true) {
            return false;
        }
        let agent = self.agent;
        let in_schema = |mode: &ApprovalMode| agent == AgentType::Acp || mode.in_printed_schema();
        let config = self.stated.clone().unwrap_or_else(|| StatedConfig {
            agent_type: Some(agent),
            working_directory: self.cwd.clone(),
            model: self.model.clone(),
            approval_mode: self.mode.as_ref().and_then(|mode| mode.unified).filter(in_schema),
            sandbox_mode: self.sandbox,
            ..StatedConfig::default()
        });
        out.events.push(EventKind::SessionStarted(SessionStart {
            agent_type: agent,
            config: Some(config),
            native_session_id: self.native_id.clone(),
            native_mode: self.mode.as_ref().map(|mode| mode.native.clone()),
            agent_version: self.version.clone(),
            transport: self.transport.map(str::to_owned),
        }));
        true
    }

    /// The agent named the conversation; emitted if the name is new.
    pub(crate) fn identified(&mut self, id: Option<&str>, out: &mut Step) {
        let Some(id) = id.filter(|id| !id.is_empty() && self.native_id.as_deref() != Some(id)) else { return };
        self.native_id = Some(id.to_owned());
        if self.started {
            self.report_identity(out);
        }
    }

    pub(crate) fn report_identity(&self, out: &mut Step) {
        let id = self.native_id.clone();
        out.events.extend(id.map(|native_session_id| EventKind::NativeSessionChanged { native_session_id }));
    }

    pub(crate) fn learn_mode(&mut self, mode: SessionMode) -> Option<ModeNews> {
        let confirms = self.asked_modes.answered(&mode.native);
        if !confirms && self.mode.as_ref().is_some_and(|known| known.native == mode.native) {
            return None;
        }
        let is_first = self.mode.replace(mode).is_none();
        Some(if is_first && !confirms { ModeNews::First } else { ModeNews::Changed })
    }

    pub(crate) fn report_mode(&self, out: &mut Step) {
        let mode = self.mode.as_ref();
        out.events.push(EventKind::ModeChanged {
            mode: mode.and_then(|mode| mode.unified),
            native_mode: mode.map(|mode| mode.native.clone()),
            by: None,
        });
    }

    /// The agent uses that model; emitted if it has changed.
    pub(crate) fn model_is(&mut self, model: Option<String>, out: &mut Step) {
        let Some(model) = model.filter(|model| self.model.as_ref() != Some(model)) else { return };
        let is_first = self.model.is_none();
        self.model = Some(model.clone());
        if !is_first {
            report_model(model, out);
        }
    }

    pub(crate) fn model_chosen(&mut self, model: String, out: &mut Step) {
        self.model = Some(model.clone());
        report_model(model, out);
    }
}

pub(crate) fn report_model(model: String, out: &mut Step) {
    out.events.push(EventKind::ModelChanged { model, by: None });
}
