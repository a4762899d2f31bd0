//! Commands to Codex's lines.

use multitap_event::{
    AgentType, Command, EventKind, Image, Mode, Prompt, Query, SandboxMode, Setting, SystemSubtype, Timestamp,
};
use serde_json::{Map, Value, json};

use super::decode::CodexCodec;
use super::notice::note;
use super::rpc::{AgentRequest, Steered};
use super::session::mode_of;
use super::settings::{Rules, sandbox_policy};
use crate::codec::Step;

impl CodexCodec {
    pub(super) fn command(&mut self, command: Command, now: Timestamp, out: &mut Step) {
        match command {
            Command::Prompt(prompt) => self.prompt(&prompt, now, out),
            Command::Steer(prompt) => match self.steer(&input(&prompt).into(), Steered::Prompt(prompt.clone())) {
                Some(line) => out.lines.push(line),
                None => self.prompt(&prompt, now, out),
            },
            Command::Decide(decide) => self.decide(&decide, out),
            Command::Cancel if self.emit.turns.is_busy() => {
                self.emit.turns.cancel();
                self.cancel_if_wanted(out);
            }
            Command::Cancel => self.emit.refuse_cancel(out),
            Command::SetMode { mode } => self.set_mode(&mode, out),
            Command::SetModel { model } => {
                self.settings.model = Some(model.clone());
                self.changed.model = true;
                // Whoever hears of the new model knows its levels.
                self.emit.session.model = Some(model.clone());
                self.thinking_of_new_model(out);
                self.emit.session.model_chosen(model, out);
            }
            Command::SetThinking { .. } => {
                let why = "codex does not support a limit for thinking: it has effort levels instead";
                out.events.push(EventKind::Error(self.emit.refused(why).about(Setting::Thinking)));
            }
            Command::SetThinkingLevel { level } => self.set_thinking_level(level, out),
            Command::Query { what } => self.query(what, out),
        }
    }

    pub(super) fn prompt(&mut self, prompt: &Prompt, now: Timestamp, out: &mut Step) {
        if self.exec.is_some() {
            self.prompt_by_process(prompt, now, out);
            return;
        }
        self.prompted();
        let Some(thread) = self.emit.session.native_id.clone() else {
            self.turn_refused(self.emit.refused("codex has not opened the conversation"), now, out);
            return;
        };
        let words = prompt.text.trim().split_once(char::is_whitespace).unwrap_or((prompt.text.trim(), ""));
        if matches!(words, ("/compact", "") | ("/review", _)) && (self.changed.rules || self.changed.model) {
            let why = format!("codex applies a new mode or model with the next prompt: send one before {}", words.0);
            self.turn_refused(self.emit.refused(why), now, out);
            return;
        }
        let line = match words {
            ("/compact", "") => {
                self.send_request(AgentRequest::Turn, "thread/compact/start", json!({ "threadId": thread }))
            }
            ("/review", about) => {
                let target = match about.trim() {
                    "" => json!({ "type": "uncommittedChanges" }),
                    about => json!({ "type": "custom", "instructions": about }),
                };
                self.send_request(AgentRequest::Turn, "review/start", json!({ "threadId": thread, "target": target }))
            }
            _ => {
                let mut params = Map::from_iter([("threadId".to_owned(), thread.into())]);
                params.insert("input".to_owned(), input(prompt).into());
                params.extend(self.overrides());
                self.send_request(AgentRequest::Turn, "turn/start", params)
            }
        };
        out.lines.push(line);
    }

    /// The settings that change with this turn; they also apply to the turns after it.
    fn overrides(&mut self) -> Map<String, Value> {
        let mut params = Map::new();
        let mut add = |key: &str, value: Option<Value>| params.extend(value.map(|value| (key.to_owned(), value)));
        let raised = self.raises_sandbox();
        let changed = std::mem::take(&mut self.changed);
        self.sent = changed;
        if changed.model {
            add("model", self.settings.model.clone().map(Value::String));
        }
        if changed.thinking {
            add("effort", self.thinking.level.clone().map(Value::String));
        }
        if changed.rules {
            add("approvalPolicy", self.settings.rules.policy.clone().map(Value::String));
        }
        if changed.rules || raised {
            let sandbox = if raised { Some(SandboxMode::WorkspaceWrite) } else { self.settings.rules.sandbox };
            let sandbox = sandbox.map(|sandbox| sandbox_policy(sandbox, &self.settings.add_dirs));
            add("sandboxPolicy", sandbox.or_else(|| self.own_policy()));
        }
        add("outputSchema", self.settings.output_schema.clone());
        params
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
                self.emit.session.mode = mode_of(&rules);
                self.emit.session.report_mode(out);
                self.settings.rules = rules;
                self.changed.rules = true;
            }
            Err(why) => out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Mode, word))),
        }
    }

    /// Asks for the end of the turn, as soon as it has begun.
    pub(super) fn cancel_if_wanted(&mut self, out: &mut Step) {
        if !self.emit.turns.is_cancelling() {
            return;
        }
        if self.exec.is_some() {
            out.stop = true;
            return;
        }
        let (Some(thread), Some(turn)) = (&self.emit.session.native_id, self.begun_turn()) else { return };
        let params = json!({ "threadId": thread, "turnId": turn });
        if self.interrupted.as_deref() != Some(turn) {
            self.interrupted = Some(turn.to_owned());
            out.lines.push(self.send_request(AgentRequest::Interrupt, "turn/interrupt", params));
        }
    }

    fn query(&mut self, what: Query, out: &mut Step) {
        if self.exec.is_some() {
            self.emit.refuse(format!("codex exec cannot report {what:?}; the app-server can").to_lowercase(), out);
            return;
        }
        let (method, params) = match what {
            Query::Models => ("model/list", json!({})),
            Query::Commands => {
                let folders: Vec<&String> = self.emit.session.cwd.iter().collect();
                ("skills/list", json!({ "cwds": folders }))
            }
            Query::McpStatus => ("mcpServerStatus/list", json!({ "threadId": self.emit.session.native_id })),
            Query::Account => ("account/read", json!({})),
            Query::Context => {
                let context = self.turn.usage.context();
                out.events.push(match context.is_empty() {
                    true => EventKind::Error(self.emit.refused("codex has not reported its context yet")),
                    false => note(SystemSubtype::CONTEXT, None, context),
                });
                return;
            }
        };
        out.lines.push(self.send_request(AgentRequest::Query(what), method, params));
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
