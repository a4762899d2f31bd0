//! Commands to the agent's lines.

use multitap_event::{
    AgentError, AgentErrorKind, Command, EventKind, Mode, Prompt, Query, Setting, Timestamp, TurnEnd, TurnStatus,
};
use serde_json::{Value, json};

use super::decode::{AcpCodec, note};
use super::rpc::{self, AgentRequest};
use super::session::items;
use crate::codec::Step;
use crate::emit::{commands_event, models_event};

impl AcpCodec {
    pub(super) fn command(&mut self, command: Command, now: Timestamp, out: &mut Step) {
        match command {
            Command::Prompt(prompt) => {
                self.session.prompts.push_back(prompt);
                self.prompt_next(now, out);
            }
            Command::Decide(decide) => self.decide(&decide, now, out),
            // Never asked: the link says that it cannot.
            Command::Steer(_) => {
                out.events.push(EventKind::Error(self.refused("it cannot add a prompt to a running turn")))
            }
            Command::Cancel if self.emit.turns.is_open() => {
                self.emit.turns.cancel();
                let params = json!({ "sessionId": self.session.facts.native_id });
                out.lines.push(rpc::notification("session/cancel", params));
                self.withdraw_all("the turn was cancelled", out);
            }
            Command::Cancel => out.events.push(EventKind::Error(self.refused("there is no turn to cancel").warning())),
            Command::SetMode { mode } => {
                let agent = self.flavor.agent();
                let offered = self.session.offered_modes().contains(&mode);
                let parsed = if offered { Ok(Mode::Native(mode.clone())) } else { Mode::parse(agent, &mode) };
                let parsed = parsed.map_err(|unknown| unknown.to_string());
                match parsed.and_then(|mode| self.ask_mode(&mode).map_err(|unsupported| unsupported.to_string())) {
                    Ok(line) => out.lines.push(line),
                    Err(why) => out.events.push(EventKind::Error(self.refused(why).refusing(Setting::Mode, mode))),
                }
            }
            Command::SetModel { model } => match self.ask_model(&model) {
                Ok(line) => out.lines.push(line),
                Err(unsupported) => {
                    let refused = self.refused(unsupported.to_string()).refusing(Setting::Model, model);
                    out.events.push(EventKind::Error(refused));
                }
            },
            Command::SetThinking { .. } => {
                let unsupported = self.unsupported("a limit for thinking", "ACP has no such thing");
                let refused = self.refused(unsupported.to_string()).about(Setting::Thinking);
                out.events.push(EventKind::Error(refused));
            }
            Command::Query { what } => self.query(what, out),
        }
    }

    /// Hands over the next prompt, unless a turn runs: a second one in it would end the first with some agents.
    pub(super) fn prompt_next(&mut self, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_open() {
            return;
        }
        let Some(prompt) = self.session.prompts.pop_front() else { return };
        self.emit.turns.begin(now, out);
        if !prompt.images.is_empty() && !self.session.capabilities.images() {
            let why = self.unsupported("pictures in a prompt", "it takes text only").to_string();
            out.events.push(EventKind::Error(self.refused(&why)));
            self.turn_over(TurnEnd { error: Some(why), ..TurnEnd::of(TurnStatus::Failed) }, now, out);
            return;
        }
        let params = json!({ "sessionId": self.session.facts.native_id, "prompt": blocks(&prompt) });
        out.lines.push(self.send_request(AgentRequest::Prompt, "session/prompt", params));
    }

    fn query(&mut self, what: Query, out: &mut Step) {
        let word = what.word();
        let known = match what {
            Query::Commands => self.session.reported.get(word).map(|commands| commands_event(items(commands))),
            Query::Models => self.session.offered_models().map(models_event),
            Query::Context => match self.session.reported.get(word) {
                Some(Value::Object(data)) => Some(note(word, None, data.clone())),
                _ => None,
            },
            Query::McpStatus | Query::Account => None,
        };
        out.events.push(known.unwrap_or_else(|| {
            let why = format!("{} has not reported its {word}", self.flavor.agent());
            EventKind::Error(self.refused(why))
        }));
    }

    /// A command that cannot be carried out.
    pub(super) fn refused(&self, why: impl Into<String>) -> AgentError {
        AgentError::new(AgentErrorKind::ProtocolError, why).of(self.flavor.agent())
    }
}

/// A prompt as content blocks: pictures first, then the text.
fn blocks(prompt: &Prompt) -> Vec<Value> {
    let image =
        |image: &multitap_event::Image| json!({ "type": "image", "mimeType": image.media_type, "data": image.data });
    let mut blocks: Vec<Value> = prompt.images.iter().map(image).collect();
    if !prompt.text.is_empty() || blocks.is_empty() {
        blocks.push(json!({ "type": "text", "text": prompt.text }));
    }
    blocks
}
