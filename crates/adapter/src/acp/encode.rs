//! Commands to the agent's lines.

use multitap_event::{Command, EventKind, Image, Mode, Prompt, Query, Setting, Timestamp, TurnEnd, TurnStatus};
use serde_json::{Value, json};

use super::decode::{AcpCodec, note};
use super::rpc::{self, AgentRequest};
use crate::codec::Step;
use crate::emit::{commands_event, models_event};
use crate::json::JsonFields as _;

impl AcpCodec {
    pub(super) fn command(&mut self, command: Command, now: Timestamp, out: &mut Step) {
        match command {
            Command::Prompt(prompt) => {
                self.session.prompts.push_back(prompt);
                self.prompt_next(now, out);
            }
            Command::Decide(decide) => self.decide(&decide, now, out),
            Command::Steer(_) => self.emit.refuse_steering(out),
            Command::Cancel if self.emit.turns.is_open() => {
                self.emit.turns.cancel();
                let params = json!({ "sessionId": self.emit.session.native_id });
                out.lines.push(rpc::notification("session/cancel", params));
                self.withdraw_all("the turn was cancelled", out);
            }
            Command::Cancel => self.emit.refuse_cancel(out),
            Command::SetMode { mode } => {
                let offered = self.session.offered_modes().contains(&mode);
                let agent = self.flavor.agent();
                let parsed = if offered { Ok(Mode::Native(mode.clone())) } else { Mode::parse(agent, &mode) };
                let parsed = parsed.map_err(|unknown| unknown.to_string());
                match parsed.and_then(|mode| self.ask_mode(&mode).map_err(|unsupported| unsupported.to_string())) {
                    Ok(line) => out.lines.push(line),
                    Err(why) => out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Mode, mode))),
                }
            }
            Command::SetModel { model } => match self.ask_model(&model) {
                Ok(line) => out.lines.push(line),
                Err(unsupported) => {
                    let refused = self.emit.refused(unsupported.to_string()).refusing(Setting::Model, model);
                    out.events.push(EventKind::Error(refused));
                }
            },
            Command::SetThinking { .. } => {
                let unsupported = self.emit.unsupported("a limit for thinking", "ACP has no such thing");
                let refused = self.emit.refused(unsupported.to_string()).about(Setting::Thinking);
                out.events.push(EventKind::Error(refused));
            }
            Command::SetThinkingLevel { level } => match self.ask_thinking(&level) {
                Ok(line) => out.lines.push(line),
                Err(unsupported) => {
                    let refused = self.emit.refused(unsupported.to_string()).refusing(Setting::Thinking, level);
                    out.events.push(EventKind::Error(refused));
                }
            },
            Command::Query { what } => self.query(what, out),
        }
    }

    /// Sends the next prompt, unless a turn runs: some agents would end the running turn.
    pub(super) fn prompt_next(&mut self, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_open() {
            return;
        }
        let Some(prompt) = self.session.prompts.pop_front() else { return };
        self.emit.turns.begin(now, out);
        if !prompt.images.is_empty() && !self.session.takes_images() {
            let why = self.emit.unsupported("pictures in a prompt", "it takes text only").to_string();
            self.emit.refuse(&why, out);
            self.turn_over(TurnEnd { error: Some(why), ..TurnEnd::of(TurnStatus::Failed) }, now, out);
            return;
        }
        let params = json!({ "sessionId": self.emit.session.native_id, "prompt": blocks(&prompt) });
        out.lines.push(self.send_request(AgentRequest::Prompt, "session/prompt", params));
    }

    fn query(&mut self, what: Query, out: &mut Step) {
        let (session, word) = (&self.session, what.word());
        let known = match what {
            Query::Commands => session.reported.get(word).map(|_| commands_event(session.reported.list(word))),
            Query::Models => session.offered_models().map(models_event),
            Query::Context => session.reported.object(word).map(|data| note(word, None, data.clone())),
            Query::McpStatus | Query::Account => None,
        };
        match known {
            Some(known) => out.events.push(known),
            None => self.emit.refuse(format!("{} has not reported its {word}", self.flavor.agent()), out),
        }
    }
}

/// A prompt as content blocks: pictures first, then the text.
fn blocks(prompt: &Prompt) -> Vec<Value> {
    let image = |image: &Image| json!({ "type": "image", "mimeType": image.media_type, "data": image.data });
    let mut blocks: Vec<Value> = prompt.images.iter().map(image).collect();
    if !prompt.text.is_empty() || blocks.is_empty() {
        blocks.push(json!({ "type": "text", "text": prompt.text }));
    }
    blocks
}
