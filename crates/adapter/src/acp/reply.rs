//! Replies: which of our requests each answers, and what follows from it.

use multitap_event::{AgentError, AgentErrorKind, EventKind, Setting, Timestamp};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::decode::{AcpCodec, note};
use super::open::{is_not_found, said};
use super::rpc::{self, AgentRequest};
use super::wire::{RpcError, Signs};
use crate::codec::Step;

impl AcpCodec {
    pub(super) fn reply(
        &mut self,
        id: &Value,
        result: Option<&RawValue>,
        error: Option<RpcError>,
        now: Timestamp,
        out: &mut Step,
    ) {
        let asked = rpc::number(id).and_then(|number| self.emit.requests.answered(number));
        if let Some(error) = error {
            self.error_reply(asked.as_ref(), &error, now, out);
            return;
        }
        let result = result.map_or("null", RawValue::get);
        let asked = asked.or_else(|| guess(result));
        if asked == Some(AgentRequest::Prompt) {
            self.under_way(out);
            self.prompt_done(serde_json::from_str(result).unwrap_or_default(), now, out);
            return;
        }
        let raw: Value = serde_json::from_str(result).unwrap_or_default();
        match asked {
            Some(AgentRequest::Initialize) => self.initialized(&raw, out),
            Some(AgentRequest::List) if self.session.is_live() => self.listed(&raw, out),
            Some(AgentRequest::New | AgentRequest::Load(_) | AgentRequest::Resume(_) | AgentRequest::Fork(_)) => {
                self.opened(&raw, out)
            }
            Some(AgentRequest::Fence { seen }) => self.fence_answered(seen, out),
            Some(AgentRequest::Mode(mode)) => {
                self.options_changed(&raw, out);
                self.session.mode_is(&mode, self.flavor, out);
                self.set(out);
            }
            Some(AgentRequest::Model(model)) => {
                self.options_changed(&raw, out);
                self.session.model_is(&model, out);
                self.set(out);
            }
            Some(AgentRequest::Prompt | AgentRequest::List) | None => {
                let data = match raw {
                    Value::Object(data) => data,
                    Value::Null => Map::new(),
                    other => Map::from_iter([("result".to_owned(), other)]),
                };
                // An empty reply in a recording says that something was done, but not what.
                if !data.is_empty() {
                    out.events.push(note("reply", None, data));
                }
            }
        }
    }

    /// Something that was wished for is set; on to the next, if the session has not begun.
    fn set(&mut self, out: &mut Step) {
        if self.session.is_live() && !self.session.has_started() {
            self.next_wish(out);
        }
    }

    fn error_reply(&mut self, asked: Option<&AgentRequest>, error: &RpcError, now: Timestamp, out: &mut Step) {
        match asked {
            Some(AgentRequest::Fence { seen }) => self.fence_answered(*seen, out),
            Some(AgentRequest::Prompt) => self.prompt_failed(error, now, out),
            Some(asked) if !self.session.has_started() => self.cannot_begin(asked, error, out),
            // A recording does not show what was asked. An HTTP status is what the model's server said.
            None if self.emit.turns.is_open() || (self.session.has_started() && error.code > 0) => {
                self.prompt_failed(error, now, out);
            }
            _ => {
                let (agent, said) = (self.flavor.agent(), said(error));
                let what = asked.map_or_else(|| "a request".to_owned(), AgentRequest::named);
                let message = format!("{agent} refused {what}: {said}");
                let kind = match is_not_found(error, &said) {
                    true => AgentErrorKind::SessionNotFound,
                    false => AgentErrorKind::ProtocolError,
                };
                self.session.refused(&message);
                let mut refused = AgentError::new(kind, message).of(agent).native(said).code(error.code.to_string());
                match asked {
                    Some(AgentRequest::Mode(mode)) => {
                        self.session.facts.asked_modes.answered(mode);
                        refused = refused.refusing(Setting::Mode, mode);
                    }
                    Some(AgentRequest::Model(model)) => {
                        self.session.asked_models.answered(model);
                        refused = refused.refusing(Setting::Model, model);
                    }
                    _ => {}
                }
                out.events.push(EventKind::Error(refused));
            }
        }
    }
}

/// What a recorded reply answers, when the request is not in the recording.
fn guess(result: &str) -> Option<AgentRequest> {
    match serde_json::from_str(result).ok()? {
        Signs { protocol_version: Some(_), .. } => Some(AgentRequest::Initialize),
        Signs { stop_reason: Some(_), .. } => Some(AgentRequest::Prompt),
        Signs { session_id: Some(_), .. } => Some(AgentRequest::New),
        Signs { modes: Some(_), .. } | Signs { models: Some(_), .. } => Some(AgentRequest::Load(String::new())),
        Signs { .. } => None,
    }
}
