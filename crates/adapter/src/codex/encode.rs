//! Commands to Codex's lines.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, ApprovalMode, Command, EventKind, Image, Mode, Prompt, Query, SandboxMode,
    SystemSubtype, Timestamp,
};
use serde_json::{Map, Value, json};

use super::decode::CodexCodec;
use super::notice::note;
use super::rpc::{Asked, Steered};
use super::session::sandbox_mode;
use super::settings::{Rules, sandbox_policy};
use crate::codec::{Encode, Step};

/// A command that cannot be carried out.
pub(super) fn refused(why: impl Into<String>) -> AgentError {
    AgentError::new(AgentErrorKind::ProtocolError, why).of(AgentType::Codex)
}

impl Encode for CodexCodec {
    fn greet(&mut self, _now: Timestamp, out: &mut Step) {
        if self.exec.is_some() {
            out.ready = true;
        } else {
            out.lines.push(self.initialize());
        }
    }

    fn command(&mut self, command: Command, now: Timestamp, out: &mut Step) {
        match command {
            Command::Prompt(prompt) => self.prompt(&prompt, now, out),
            Command::Steer(prompt) => match self.steer(&input(&prompt).into(), Steered::Prompt(prompt.clone())) {
                Some(line) => out.lines.push(line),
                None => self.prompt(&prompt, now, out),
            },
            Command::Decide(decide) => self.decide(&decide, out),
            Command::Cancel if self.turns.is_busy() => {
                self.turns.cancel();
                self.cancel_if_wanted(out);
            }
            Command::Cancel => out.events.push(EventKind::Error(refused("there is no turn to cancel").warning())),
            Command::SetMode { mode } => self.set_mode(&mode, out),
            Command::SetModel { model } => {
                self.settings.model = Some(model.clone());
                self.changed.model = true;
                self.session.model_chosen(model, out);
            }
            Command::SetThinking { .. } => {
                let why = "codex cannot honour a limit for thinking: it thinks by levels of effort, not by tokens";
                out.events.push(EventKind::Error(refused(why)));
            }
            Command::Query { what } => self.query(what, out),
        }
    }
}

impl CodexCodec {
    pub(super) fn prompt(&mut self, prompt: &Prompt, now: Timestamp, out: &mut Step) {
        if self.exec.is_some() {
            self.prompt_by_process(prompt, out);
            return;
        }
        let Some(thread) = self.session.native_id().map(str::to_owned) else {
            self.turns.prompted();
            self.turn_refused(refused("codex has not opened the conversation"), now, out);
            return;
        };
        self.turns.prompted();
        let line = match prompt.text.trim().split_once(char::is_whitespace).unwrap_or((prompt.text.trim(), "")) {
            ("/compact", "") => self.requests.ask(Asked::Turn, "thread/compact/start", json!({ "threadId": thread })),
            ("/review", about) => {
                let target = match about.trim() {
                    "" => json!({ "type": "uncommittedChanges" }),
                    about => json!({ "type": "custom", "instructions": about }),
                };
                self.requests.ask(Asked::Turn, "review/start", json!({ "threadId": thread, "target": target }))
            }
            _ => {
                let mut params = Map::from_iter([("threadId".to_owned(), thread.into())]);
                params.insert("input".to_owned(), input(prompt).into());
                params.extend(self.overrides());
                self.requests.ask(Asked::Turn, "turn/start", params)
            }
        };
        out.lines.push(line);
    }

    /// What is other in this turn than in the conversation so far; it holds for the turns after it too.
    fn overrides(&mut self) -> Map<String, Value> {
        let mut params = Map::new();
        let mut add = |key: &str, value: Option<Value>| params.extend(value.map(|value| (key.to_owned(), value)));
        let raised = self.raises_sandbox();
        let changed = std::mem::take(&mut self.changed);
        if changed.model {
            add("model", self.settings.model.clone().map(Value::String));
        }
        if changed.rules {
            add("approvalPolicy", self.settings.rules.policy.clone().map(Value::String));
        }
        if changed.rules || raised {
            let own = self.session.sandbox().filter(|_| !self.opened_implied).cloned();
            let sandbox = if raised { Some(SandboxMode::WorkspaceWrite) } else { self.settings.rules.sandbox };
            add("sandboxPolicy", sandbox.map(|sandbox| sandbox_policy(sandbox, &self.settings.add_dirs)).or(own));
        }
        add("outputSchema", self.settings.output_schema.clone());
        params
    }

    /// Nobody chose a sandbox, and Codex's own would let nothing write, neither what was asked for and allowed nor
    /// what runs unasked: then it may write in the workspace.
    ///
    /// A command that was allowed runs in the sandbox all the same. Codex runs it again without one if it fails
    /// fast enough, which is no rule to live by.
    pub(super) fn raises_sandbox(&self) -> bool {
        matches!(self.settings.rules.mode, Some(ApprovalMode::Ask | ApprovalMode::AutoAll))
            && self.settings.rules.sandbox.is_none()
            && self.session.sandbox().and_then(sandbox_mode) == Some(SandboxMode::ReadOnly)
    }

    fn set_mode(&mut self, word: &str, out: &mut Step) {
        let rules = Mode::parse(AgentType::Codex, word).map_err(|unknown| unknown.to_string()).and_then(|mode| {
            let rules = Rules::of(Some(&mode), self.chosen_sandbox).map_err(|unsupported| unsupported.to_string())?;
            match &self.exec {
                Some(_) => super::exec::can_run(&rules).map(|()| rules).map_err(|unsupported| unsupported.to_string()),
                None => Ok(rules),
            }
        });
        match rules {
            Ok(rules) => {
                self.session.rules_chosen(&rules, out);
                self.settings.rules = rules;
                self.changed.rules = true;
            }
            Err(why) => out.events.push(EventKind::Error(refused(why))),
        }
    }

    /// Asks for the end of the turn, as soon as it has begun.
    pub(super) fn cancel_if_wanted(&mut self, out: &mut Step) {
        if !self.turns.is_cancelling() {
            return;
        }
        if self.exec.is_some() {
            out.stop = true;
            return;
        }
        let (Some(thread), Some(turn)) = (self.session.native_id(), self.turns.begun()) else { return };
        let params = json!({ "threadId": thread, "turnId": turn });
        if self.interrupted.as_deref() != Some(turn) {
            self.interrupted = Some(turn.to_owned());
            out.lines.push(self.requests.ask(Asked::Interrupt, "turn/interrupt", params));
        }
    }

    fn query(&mut self, what: Query, out: &mut Step) {
        if self.exec.is_some() && what != Query::Context {
            let why = format!("codex exec cannot tell {what:?}; the app-server can").to_lowercase();
            out.events.push(EventKind::Error(refused(why)));
            return;
        }
        let (method, params) = match what {
            Query::Models => ("model/list", json!({})),
            Query::Commands => {
                let folders: Vec<&str> = self.session.cwd().into_iter().collect();
                ("skills/list", json!({ "cwds": folders }))
            }
            Query::McpStatus => ("mcpServerStatus/list", json!({ "threadId": self.session.native_id() })),
            Query::Account => ("account/read", json!({})),
            Query::Context => {
                out.events.push(note(SystemSubtype::CONTEXT, None, self.turns.usage.context()));
                return;
            }
        };
        out.lines.push(self.requests.ask(Asked::Query(what), method, params));
    }
}

/// A prompt as the app-server reads it: pictures first, then the text.
fn input(prompt: &Prompt) -> Vec<Value> {
    let image = |image: &Image| {
        let url = format!("data:{};base64,{}", image.media_type, image.data);
        json!({ "type": "image", "url": url })
    };
    let mut input: Vec<Value> = prompt.images.iter().map(image).collect();
    if !prompt.text.is_empty() || input.is_empty() {
        input.push(json!({ "type": "text", "text": prompt.text, "text_elements": [] }));
    }
    input
}
