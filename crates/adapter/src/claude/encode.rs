//! Commands to Claude's lines.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, Command, EventKind, Image, Mode, Prompt, Query, Setting, Timestamp,
};
use serde_json::{Map, Value, json};

use super::control::AgentRequest;
use super::decode::{ClaudeCodec, note};
use super::native_mode;
use crate::codec::Step;
use crate::emit::{commands_event, models, models_event};

impl ClaudeCodec {
    pub(super) fn command(&mut self, command: Command, _now: Timestamp, out: &mut Step) {
        match command {
            Command::Prompt(prompt) => {
                self.emit.turns.waiting += 1;
                out.lines.push(user_line(&prompt));
            }
            Command::Decide(decide) => self.decide(&decide, out),
            // Never asked: the link says that it cannot.
            Command::Steer(_) => out.events.push(EventKind::Error(refused("it cannot add a prompt to a running turn"))),
            Command::Cancel if self.emit.turns.is_busy() => {
                self.emit.turns.cancel();
                out.lines.push(self.send_request(AgentRequest::Interrupt));
            }
            Command::Cancel => out.events.push(EventKind::Error(refused("there is no turn to cancel").warning())),
            Command::SetMode { mode } => {
                let word = Mode::parse(AgentType::Claude, &mode).map_err(|unknown| unknown.to_string());
                match word.and_then(|mode| native_mode(&mode).map_err(|unsupported| unsupported.to_string())) {
                    Ok(word) => {
                        self.session.mode_asked(&word);
                        out.lines.push(self.send_request(AgentRequest::Mode(word)));
                    }
                    Err(why) => out.events.push(EventKind::Error(refused(why).refusing(Setting::Mode, mode))),
                }
            }
            Command::SetModel { model } => out.lines.push(self.send_request(AgentRequest::Model(model))),
            Command::SetThinking { tokens } => out.lines.push(self.send_request(AgentRequest::Thinking(tokens))),
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
        out.events.push(match (what, known) {
            (Query::Commands, Some(Value::Array(commands))) => commands_event(commands),
            (Query::Models, Some(Value::Array(list))) => models_event(models(list)),
            (_, Some(known)) => note(what.word(), None, Map::from_iter([(what.word().to_owned(), known.clone())])),
            (_, None) => EventKind::Error(refused(format!("claude has not reported its {}", what.word()))),
        });
    }
}

/// A command that cannot be carried out.
pub(super) fn refused(why: impl Into<String>) -> AgentError {
    AgentError::new(AgentErrorKind::ProtocolError, why).of(AgentType::Claude)
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
