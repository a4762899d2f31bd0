//! The sandbox of Codex's commands: the one that was chosen for the session, else the one in the user's own settings,
//! else Codex's default.
//!
//! Only the default is ever raised. Codex's settings (`config/read`) show whether the default is in use.

use multitap_event::{AgentError, AgentErrorKind, AgentType, ApprovalMode, EventKind, SandboxMode};
use serde_json::{Value, json};

use super::decode::CodexCodec;
use super::notice::note;
use super::rpc::AgentRequest;
use super::session::sandbox_mode;
use super::settings::sandbox_policy;
use super::wire::Fields;
use crate::codec::Step;
use crate::json::{JsonFields as _, one};

/// The sandbox in the user's own settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OwnSandbox {
    /// The settings could not be read.
    #[default]
    Unknown,
    /// Not set: Codex uses its default.
    Unset,
    /// Set, with our name for it if there is one.
    Set(Option<SandboxMode>),
}

impl OwnSandbox {
    /// From the reply to `config/read`.
    pub(super) fn read(reply: &Fields) -> Self {
        if reply.get("config").is_none() {
            return Self::Unknown;
        }
        let config = reply.fields("config");
        match config.text("sandboxMode") {
            Some(word) => Self::Set(sandbox_mode(&json!({ "type": word }))),
            None if config.get("defaultPermissions").is_some() => Self::Set(None),
            None => Self::Unset,
        }
    }
}

/// The result of a probe before a session with one process per turn.
#[derive(Debug, Default)]
pub(crate) struct SandboxProbe {
    /// Why no sandbox works on this machine.
    pub(crate) no_sandbox: Option<String>,
    pub(crate) own_sandbox: OwnSandbox,
}

/// Request for the user's settings, as they apply in that folder.
pub(super) fn settings_request(cwd: Option<&str>) -> (&'static str, Value) {
    ("config/read", json!({ "cwd": cwd, "includeLayers": false }))
}

impl CodexCodec {
    /// The conversation is open. Requests the user's own settings if they matter; otherwise the session can begin.
    pub(super) fn learn_sandbox(&mut self, out: &mut Step) {
        let only_reads = self.sandbox.as_ref().and_then(sandbox_mode) == Some(SandboxMode::ReadOnly);
        if self.chosen_sandbox.is_none() && (only_reads || self.opened_implied) {
            let (method, params) = settings_request(self.settings.cwd.as_deref());
            out.lines.push(self.send_request(AgentRequest::OwnSettings, method, params));
        } else {
            self.sandbox_known(self.own_sandbox, out);
        }
    }

    /// The sandbox is known as far as possible, and the session can begin.
    pub(super) fn sandbox_known(&mut self, own: OwnSandbox, out: &mut Step) {
        self.own_sandbox = own;
        if self.emit.session.is_live() {
            out.ready = true;
            self.tell_sandbox(out);
        }
    }

    /// Whether the sandbox defeats the mode: the mode allows changes and no sandbox was chosen for the session, but
    /// Codex's sandbox is read-only.
    ///
    /// Even an approved command runs in the sandbox. Codex runs it again without one if it fails fast enough, which is
    /// not reliable.
    fn is_held_back(&self) -> bool {
        matches!(self.settings.rules.mode, Some(ApprovalMode::Ask | ApprovalMode::AutoAll))
            && self.settings.rules.sandbox.is_none()
            && self.only_reads()
    }

    /// Whether Codex's own sandbox is, or may be, read-only.
    fn only_reads(&self) -> bool {
        match (&self.exec, self.own_sandbox) {
            (None, _) => self.sandbox.as_ref().and_then(sandbox_mode) == Some(SandboxMode::ReadOnly),
            (Some(_), OwnSandbox::Set(own)) => own == Some(SandboxMode::ReadOnly),
            // Per-turn processes do not report it, and it depends on whether Codex trusts the folder.
            (Some(_), OwnSandbox::Unset | OwnSandbox::Unknown) => true,
        }
    }

    /// Whether to raise the sandbox to writing in the workspace: it would defeat the mode, and nobody chose it.
    pub(super) fn raises_sandbox(&self) -> bool {
        self.is_held_back() && self.own_sandbox == OwnSandbox::Unset
    }

    /// The user's own sandbox, to restore it after a mode that implied another one.
    pub(super) fn own_policy(&self) -> Option<Value> {
        match self.own_sandbox {
            OwnSandbox::Set(Some(own)) if self.opened_implied => Some(sandbox_policy(own, &self.settings.add_dirs)),
            _ => self.sandbox.clone().filter(|_| !self.opened_implied),
        }
    }

    /// Reports if Codex's sandbox does not work here, or defeats the mode or the added folders.
    pub(super) fn tell_sandbox(&mut self, out: &mut Step) {
        let known = match (self.settings.rules.sandbox, &self.exec, self.own_sandbox) {
            (Some(chosen), ..) => Some(chosen),
            (None, None, _) => self.sandbox.as_ref().and_then(sandbox_mode),
            (None, Some(_), OwnSandbox::Set(own)) => own,
            (None, Some(_), OwnSandbox::Unset | OwnSandbox::Unknown) => None,
        };
        let needed = match known {
            Some(SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite) => true,
            Some(SandboxMode::None | SandboxMode::FullAccess) => false,
            // Any default of Codex is a sandbox.
            None => self.exec.is_some() && self.own_sandbox == OwnSandbox::Unset,
        };
        if let Some(why) = self.no_sandbox.clone().filter(|_| needed) {
            let message = "codex cannot set up its sandbox here, so every command it runs will fail; \
                           `--sandbox full-access` with `--approval-mode ask` runs without one";
            let mut data = one("works", false);
            data.insert("output".to_owned(), why.into());
            out.events.push(note("sandbox", Some(message.to_owned()), data));
        }
        match self.own_sandbox {
            OwnSandbox::Unset if self.is_held_back() => {
                let message = match &self.exec {
                    Some(_) => "codex's commands may write in the workspace; its own settings choose no sandbox",
                    None => "codex's default sandbox here is read-only; approved commands may write in the workspace",
                };
                out.events.push(sandbox_note(message, "workspaceWrite"));
            }
            OwnSandbox::Set(_) if self.is_held_back() => {
                let message = "codex's own settings choose a read-only sandbox, so even approved commands cannot write; use `--sandbox workspace-write` to let them";
                out.events.push(sandbox_note(message, "readOnly"));
            }
            OwnSandbox::Unknown if self.is_held_back() => {
                let why = "codex did not report whether its own settings choose a sandbox: it stays unchanged and may be read-only; use `--sandbox workspace-write` to let commands write";
                out.events.push(warning(why));
            }
            _ => {}
        }
        if !self.settings.add_dirs.is_empty() && known == Some(SandboxMode::ReadOnly) && !self.raises_sandbox() {
            let why = "the added directories have no effect: codex's sandbox is read-only and reads everywhere; use `--sandbox workspace-write` to let it write in them";
            out.events.push(warning(why));
        }
    }
}

fn sandbox_note(message: &str, sandbox: &str) -> EventKind {
    note("sandbox", Some(message.to_owned()), one("sandbox", sandbox))
}

fn warning(why: &str) -> EventKind {
    EventKind::Error(AgentError::new(AgentErrorKind::PermissionDenied, why).of(AgentType::Codex).warning())
}
