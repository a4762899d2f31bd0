//! Commands to Claude's lines.

use multitap_event::{AgentType, Command, EventKind, Image, Mode, Prompt, Query, Setting};
use serde_json::{Value, json};

use super::control::AgentRequest;
use super::decode::{ClaudeCodec, note};
use super::native_mode;
use crate::codec::Step;
use crate::emit::{commands_event, models, models_event};
use crate::json::one;

impl ClaudeCodec {
    pub(super) fn command(&mut self, command: Command, out: &mut Step) {
        match command {
            Command::Prompt(prompt) => {
                self.emit.turns.waiting += 1;
                out.lines.push(user_line(&prompt));
            }
            Command::Decide(decide) => self.decide(&decide, out),
            Command::Steer(_) => self.emit.refuse_steering(out),
            Command::Cancel if self.emit.turns.is_busy() => {
                self.emit.turns.cancel();
                out.lines.push(self.send_request(AgentRequest::Interrupt));
            }
            Command::Cancel => self.emit.refuse_cancel(out),
            Command::SetMode { mode } => {
                let word = Mode::parse(AgentType::Claude, &mode).map_err(|unknown| unknown.to_string());
                match word.and_then(|mode| native_mode(&mode).map_err(|unsupported| unsupported.to_string())) {
                    Ok(word) => {
                        self.emit.session.asked_modes.ask(&word);
                        out.lines.push(self.send_request(AgentRequest::Mode(word)));
                    }
                    Err(why) => out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Mode, mode))),
                }
            }
            Command::SetModel { model } => out.lines.push(self.send_request(AgentRequest::Model(model))),
            Command::SetThinking { tokens } => out.lines.push(self.send_request(AgentRequest::Thinking(tokens))),
            Command::SetThinkingLevel { level } => {
                let why = "claude cannot change its thinking level while it runs: set a limit of tokens";
                out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Thinking, level)));
            }
            Command::Query { what } => self.query(what, out),
        }
    }

    fn query(&mut self, what: Query, out: &mut Step) {
        let known = match what {
            Query::Commands | Query::Models | Query::Account => self.session.capabilities.get(what.word()),
            Query::McpStatus | Query::Context => {
                out.lines.push(self.send_request(AgentRequest::Query(what)));
                return;
            }
        };
        match (what, known) {
            (Query::Commands, Some(Value::Array(commands))) => out.events.push(commands_event(commands)),
            (Query::Models, Some(Value::Array(list))) => out.events.push(models_event(models(list))),
            (_, Some(known)) => out.events.push(note(what.word(), None, one(what.word(), known.clone()))),
            (_, None) => self.emit.refuse(format!("claude has not reported its {}", what.word()), out),
        }
    }
}

/// A prompt as Claude reads it: pictures first, then the text.
fn user_line(prompt: &Prompt) -> String {
    let mut content: Vec<Value> = prompt.images.iter().map(image_block).collect();
    if !prompt.text.is_empty() || content.is_empty() {
        content.push(json!({ "type": "text", "text": prompt.text }));
    }
    json!({
        "type": "user",
        "message": { "role": "user", "content": content },
        "parent_tool_use_id": null,
        "session_id": "",
    })
    .to_string()
}

fn image_block(image: &Image) -> Value {
    json!({
        "type": "image",
        "source": { "type": "base64", "media_type": image.media_type, "data": image.data },
    })
}
