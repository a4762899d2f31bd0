//! Replies to our requests, and what follows from each.

use multitap_event::{AgentError, AgentErrorKind, EventKind, Setting, Timestamp};
use serde_json::{Map, Value};

use super::decode::{AcpCodec, note};
use super::open::{is_not_found, said};
use super::rpc::{self, AgentRequest};
use super::session::thinking_event;
use super::wire::RpcError;
use crate::codec::Step;
use crate::json::{JsonFields as _, one};

impl AcpCodec {
    pub(super) fn reply(&mut self, id: &Value, result: Value, now: Timestamp, out: &mut Step) {
        let asked = rpc::number(id).and_then(|number| self.emit.requests.answered(number));
        match asked.or_else(|| guess(&result)) {
            Some(AgentRequest::Initialize) => self.initialized(&result, out),
            Some(AgentRequest::List) if self.emit.session.is_live() => self.listed(&result, out),
            Some(AgentRequest::New | AgentRequest::Load(_) | AgentRequest::Resume(_) | AgentRequest::Fork(_)) => {
                self.opened(&result, out)
            }
            Some(AgentRequest::Fence { seen }) => self.fence_answered(seen, out),
            Some(AgentRequest::Mode(mode)) => {
                self.options_changed(&result, out);
                self.mode_is(&mode, out);
                self.wish_granted(out);
            }
            Some(AgentRequest::Model(model)) => {
                self.options_changed(&result, out);
                self.model_is(&model, out);
                self.wish_granted(out);
            }
            Some(AgentRequest::Thinking(_)) => {
                let before = self.session.thinking();
                self.options_changed(&result, out);
                if self.session.thinking() == before {
                    // It was in that level already.
                    out.events.push(thinking_event(before));
                }
            }
            Some(AgentRequest::Prompt) => {
                self.under_way(out);
                self.prompt_done(&result, now, out);
            }
            Some(AgentRequest::List) | None => {
                let data = match result {
                    Value::Object(data) => data,
                    Value::Null => Map::new(),
                    other => one("result", other),
                };
                // An empty reply in a recording does not show which request succeeded.
                if !data.is_empty() {
                    out.events.push(note("reply", None, data));
                }
            }
        }
    }

    /// A requested setting was accepted; requests the next one, if the session has not begun.
    fn wish_granted(&mut self, out: &mut Step) {
        if self.emit.session.is_live() && !self.emit.session.started {
            self.next_wish(out);
        }
    }

    pub(super) fn error_reply(&mut self, id: &Value, error: &RpcError, now: Timestamp, out: &mut Step) {
        let asked = rpc::number(id).and_then(|number| self.emit.requests.answered(number));
        let started = self.emit.session.started;
        match asked {
            Some(AgentRequest::Fence { seen }) => self.fence_answered(seen, out),
            Some(AgentRequest::Prompt) => self.prompt_failed(error, now, out),
            Some(asked) if !started => self.cannot_begin(&asked, error, out),
            // A recording does not show the request. An error with an HTTP status comes from the model's server.
            None if self.emit.turns.is_open() || (started && error.code > 0) => self.prompt_failed(error, now, out),
            asked => {
                let (agent, said) = (self.flavor.agent(), said(error));
                let what = asked.as_ref().map_or_else(|| "a request".to_owned(), AgentRequest::named);
                let message = format!("{agent} refused {what}: {said}");
                let kind = match is_not_found(error, &said) {
                    true => AgentErrorKind::SessionNotFound,
                    false => AgentErrorKind::ProtocolError,
                };
                if !started {
                    self.session.refusal.get_or_insert(message.clone());
                }
                let mut refused = AgentError::new(kind, message).of(agent).native(said).code(error.code.to_string());
                match asked {
                    Some(AgentRequest::Mode(mode)) => {
                        self.emit.session.asked_modes.answered(&mode);
                        refused = refused.refusing(Setting::Mode, mode);
                    }
                    Some(AgentRequest::Model(model)) => {
                        self.session.asked_models.answered(&model);
                        refused = refused.refusing(Setting::Model, model);
                    }
                    Some(AgentRequest::Thinking(level)) => refused = refused.refusing(Setting::Thinking, level),
                    _ => {}
                }
                out.events.push(EventKind::Error(refused));
            }
        }
    }
}

/// The request that a recorded reply belongs to, guessed when the recording lacks the request.
fn guess(result: &Value) -> Option<AgentRequest> {
    let has = |key: &str| result.field(key).is_some();
    if has("protocolVersion") {
        Some(AgentRequest::Initialize)
    } else if has("stopReason") {
        Some(AgentRequest::Prompt)
    } else if has("sessionId") {
        Some(AgentRequest::New)
    } else if has("modes") || has("models") {
        Some(AgentRequest::Load(String::new()))
    } else {
        None
    }
}
