//! The control protocol: our requests to Claude with their answers, and Claude's requests to us.

use multitap_event::{AgentError, AgentErrorKind, AgentType, EventKind, Query, Setting};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::approve::SERVER;
use super::decode::{ClaudeCodec, note};
use super::question::Via;
use super::wire::{AskedTool, ControlRequest, ControlResponse, Reply};
use crate::codec::Step;
use crate::json::{JsonFields as _, one};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentRequest {
    Initialize,
    Interrupt,
    Mode(String),
    Model(String),
    Thinking(Option<u32>),
    Query(Query),
}

impl AgentRequest {
    fn request(&self) -> Value {
        match self {
            Self::Initialize => json!({ "subtype": "initialize" }),
            Self::Interrupt => json!({ "subtype": "interrupt" }),
            Self::Mode(mode) => json!({ "subtype": "set_permission_mode", "mode": mode }),
            Self::Model(model) => json!({ "subtype": "set_model", "model": model }),
            Self::Thinking(tokens) => json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": tokens }),
            Self::Query(Query::Context) => json!({ "subtype": "get_context_usage" }),
            Self::Query(_) => json!({ "subtype": "mcp_status" }),
        }
    }

    fn setting(&self) -> Option<Setting> {
        match self {
            Self::Mode(_) => Some(Setting::Mode),
            Self::Model(_) => Some(Setting::Model),
            Self::Thinking(_) => Some(Setting::Thinking),
            Self::Initialize | Self::Interrupt | Self::Query(_) => None,
        }
    }

    /// Names the request in an error message, after the word "refused".
    fn named(&self) -> String {
        match self {
            Self::Initialize => "to begin".to_owned(),
            Self::Interrupt => "to cancel".to_owned(),
            Self::Mode(mode) => format!("mode '{mode}'"),
            Self::Model(model) => format!("model '{model}'"),
            Self::Thinking(_) => "a limit for thinking".to_owned(),
            Self::Query(what) => format!("to report {what:?}").to_lowercase(),
        }
    }
}

/// The id of the first request.
const INITIALIZE: &str = "multitap-init";

pub(super) fn success(request_id: &str, response: &Value) -> String {
    let response = json!({ "subtype": "success", "request_id": request_id, "response": response });
    json!({ "type": "control_response", "response": response }).to_string()
}

pub(super) fn refusal(request_id: &str, error: &str) -> String {
    let response = json!({ "subtype": "error", "request_id": request_id, "error": error });
    json!({ "type": "control_response", "response": response }).to_string()
}

fn request(id: &str, request: &Value) -> String {
    json!({ "type": "control_request", "request_id": id, "request": request }).to_string()
}

impl ClaudeCodec {
    /// The first line to Claude: requests everything that can be known before the first turn.
    pub(super) fn initialize(&mut self) -> String {
        self.initializing = true;
        let mut asked = AgentRequest::Initialize.request();
        if self.approver.is_some() {
            asked["sdkMcpServers"] = json!([SERVER]);
        }
        request(INITIALIZE, &asked)
    }

    pub(super) fn send_request(&mut self, asked: AgentRequest) -> String {
        let body = asked.request();
        request(&format!("multitap-{}", self.emit.requests.open(asked)), &body)
    }

    fn answered(&mut self, id: &str) -> Option<AgentRequest> {
        if id == INITIALIZE {
            return std::mem::take(&mut self.initializing).then_some(AgentRequest::Initialize);
        }
        self.emit.requests.answered(id.strip_prefix("multitap-")?.parse().ok()?)
    }

    pub(super) fn control_response(&mut self, line: ControlResponse, out: &mut Step) {
        let Reply { subtype, request_id, response, error, error_code } = line.response;
        let asked = self.answered(&request_id);
        if subtype == "error" {
            let what = asked.as_ref().map_or_else(|| "a request".to_owned(), AgentRequest::named);
            let why = error.unwrap_or_else(|| "no reason given".to_owned());
            let mut error = AgentError::new(AgentErrorKind::ProtocolError, format!("claude refused {what}: {why}"))
                .of(AgentType::Claude)
                .native(why);
            error.native_code = error_code;
            error.refused_setting = asked.as_ref().and_then(AgentRequest::setting);
            match &asked {
                Some(AgentRequest::Mode(mode)) => {
                    self.emit.session.asked_modes.answered(mode);
                    error.refused_value = Some(mode.clone());
                }
                Some(AgentRequest::Model(model)) => error.refused_value = Some(model.clone()),
                _ => {}
            }
            // Without the greeting there is no session.
            out.give_up = asked == Some(AgentRequest::Initialize);
            out.events.push(EventKind::Error(error));
            return;
        }
        let response = response.unwrap_or_default();
        match asked.or_else(|| guess(&response)) {
            Some(AgentRequest::Initialize) => self.initialized(response, out),
            Some(AgentRequest::Mode(mode)) => {
                let now = response.string("mode").unwrap_or_else(|| mode.clone());
                if now != mode {
                    self.emit.session.asked_modes.answered(&mode);
                    let why = format!("claude refused mode '{mode}': it is in mode '{now}'");
                    out.events.push(EventKind::Error(self.emit.refused(why).refusing(Setting::Mode, mode)));
                }
                self.mode_is(Some(now), out);
            }
            Some(AgentRequest::Model(model)) => self.model_chosen(model, out),
            Some(AgentRequest::Thinking(tokens)) => {
                out.events.push(note("thinkingLimit", None, one("tokens", tokens)));
            }
            Some(AgentRequest::Query(what)) => out.events.push(answer(what, response)),
            Some(AgentRequest::Interrupt) => {}
            None => out.events.push(note("controlResponse", None, response)),
        }
    }

    pub(super) fn control_request(&mut self, line: ControlRequest, out: &mut Step) {
        let ControlRequest { request_id, request } = line;
        let subtype = request.text("subtype").unwrap_or("control_request").to_owned();
        if subtype != "mcp_message" {
            self.under_way(None, out);
        }
        match subtype.as_str() {
            "can_use_tool" => match AskedTool::deserialize(Value::Object(request.clone())) {
                Ok(asked) => self.ask(asked, request_id, Via::Control, out),
                Err(error) => {
                    out.lines.push(refusal(&request_id, "the request could not be read"));
                    out.events.push(note(&subtype, Some(format!("refused: {error}")), request));
                }
            },
            "mcp_message" => self.mcp_message(&request_id, request, out),
            "hook_callback" => {
                out.lines.push(success(&request_id, &json!({})));
                out.events.push(note(&subtype, None, request));
            }
            "elicitation" => self.ask_for_server(&request, request_id, out),
            _ => {
                out.lines.push(refusal(&request_id, &format!("multitap does not serve '{subtype}'")));
                out.events.push(note(&subtype, Some("refused: not served".to_owned()), request));
            }
        }
    }
}

/// The request that a recorded answer belongs to, guessed when the recording lacks the request.
fn guess(response: &Map<String, Value>) -> Option<AgentRequest> {
    if response.contains_key("commands") {
        Some(AgentRequest::Initialize)
    } else if response.contains_key("still_queued") {
        Some(AgentRequest::Interrupt)
    } else if response.contains_key("mcpServers") {
        Some(AgentRequest::Query(Query::McpStatus))
    } else if response.contains_key("categories") {
        Some(AgentRequest::Query(Query::Context))
    } else if response.len() == 1 {
        response.string("mode").map(AgentRequest::Mode).or_else(|| response.string("model").map(AgentRequest::Model))
    } else {
        None
    }
}

/// The answer to a question about Claude itself.
fn answer(what: Query, mut data: Map<String, Value>) -> EventKind {
    // A drawing for a terminal; it is larger than the data it shows.
    data.shift_remove("gridRows");
    note(what.word(), None, data)
}
