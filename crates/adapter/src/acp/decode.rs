//! An ACP agent's lines to events: one line in, its events out. Each kind of line has a module of its own.

use std::fmt;

use multitap_event::{Command, EventKind, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::flavor::Flavor;
use super::question::Native;
use super::rpc::{self, AgentRequest};
use super::session::{Session, TRANSPORT, Wishes};
use super::tools;
use super::turn::SessionUsage;
use super::wire::{Call, CancelRequest, Completed, Head, Request, Update, Updated};
use crate::codec::{Codec, End, Files, NoFiles, Step, read};
use crate::emit::{self, Emitter, SessionFacts};
use crate::json::one;
use crate::line::unrecognized;

/// The dialect of agents that speak the Agent Client Protocol, version 1; we are the client.
pub struct AcpCodec {
    pub(super) flavor: Flavor,
    pub(super) files: Box<dyn Files>,
    pub(super) session: Session,
    pub(super) emit: Emitter<tools::Native, Native, AgentRequest>,
    pub(super) spent: SessionUsage,
}

impl fmt::Debug for AcpCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpCodec").field("flavor", &self.flavor).finish_non_exhaustive()
    }
}

impl AcpCodec {
    /// A codec for a recorded stream: no process, no files, nothing known beforehand.
    pub(crate) fn recorded(flavor: Flavor) -> Self {
        Self {
            flavor,
            files: Box::new(NoFiles),
            session: Session::default(),
            emit: Emitter::new(SessionFacts::new(flavor.agent(), Some(TRANSPORT))),
            spent: SessionUsage::default(),
        }
    }

    /// A codec for a running program.
    pub(crate) fn live(flavor: Flavor, wishes: Wishes, files: Box<dyn Files>) -> Self {
        let mut codec = Self::recorded(flavor);
        codec.files = files;
        codec.emit.session.stated = Some(wishes.stated.clone());
        codec.session.wishes = Some(wishes);
        codec
    }

    pub(super) fn send_request(&mut self, asked: AgentRequest, method: &str, params: Value) -> String {
        rpc::request(self.emit.requests.open(asked), method, params)
    }
}

impl Codec for AcpCodec {
    fn begin(&mut self, _now: Timestamp) -> Step {
        Step::line(self.initialize())
    }

    fn decode(&mut self, line: &str, now: Timestamp) -> Step {
        Step::of_line(line, |line, out| {
            if !line.trim_start().starts_with('{') {
                out.events.push(unrecognized(line, "not a JSON object"));
                return;
            }
            match Head::piece(line) {
                Some(piece) => self.message(piece, line, now, out),
                None => match serde_json::from_str(line) {
                    Ok(head) => self.message(head, line, now, out),
                    Err(error) => unreadable(line, &error, out),
                },
            }
        })
    }

    fn encode(&mut self, command: Command, now: Timestamp) -> Step {
        Step::of(|out| self.command(command, now, out))
    }

    fn end(&mut self, end: &End, now: Timestamp) -> Step {
        Step::of(|out| self.ended(end, now, out))
    }
}

impl AcpCodec {
    fn message(&mut self, head: Head<'_>, line: &str, now: Timestamp, out: &mut Step) {
        match (head.method.as_deref(), head.id) {
            (Some("session/update"), _) => {
                let params = head.params;
                let id = params.as_ref().and_then(|params| params.session_id.as_deref());
                if self.is_foreign(id) {
                    out.events.push(unrecognized(line, "an update of another session"));
                    return;
                }
                let update = params.and_then(|params| params.update).unwrap_or_default();
                self.session_update(&update, line, now, out);
            }
            (Some("session/request_permission"), Some(id)) => self.request_permission(&id, line, now, out),
            (Some("elicitation/create"), Some(id)) => self.elicit(&id, line, now, out),
            (Some(method @ "elicitation/complete"), _) => read(self, line, out, |codec, call: Call<Completed>, out| {
                if !codec.elicitation_completed(&call.params, out) {
                    codec.note_line(method, Some("completed at the address"), line, out);
                }
            }),
            (Some("$/cancel_request"), _) => read(self, line, out, |codec, call: Call<CancelRequest>, out| {
                codec.request_withdrawn(&call.params.request_id, out);
            }),
            (Some(method), Some(id)) => {
                let message = format!("multitap does not serve {method}");
                out.lines.push(rpc::refusal(&id, rpc::NO_METHOD, &message));
                let message = self.emit.session.is_live().then_some("refused: not served");
                self.note_line(method, message, line, out);
            }
            (Some(method), None) => self.note_line(method, None, line, out),
            (None, Some(id)) => match (head.result, head.error) {
                (_, Some(error)) => self.error_reply(&id, &error, now, out),
                (Some(result), None) => self.reply(&id, result, now, out),
                (None, None) => out.events.push(unrecognized(line, "neither a request nor a reply")),
            },
            (None, None) => out.events.push(unrecognized(line, "neither a request nor a reply")),
        }
    }

    /// Parses the line again, as that kind of update, and handles it.
    fn update<U: DeserializeOwned>(&mut self, line: &str, out: &mut Step, then: impl FnOnce(&mut Self, U, &mut Step)) {
        read(self, line, out, |codec, call: Call<Updated<U>>, out| then(codec, call.params.update, out));
    }

    fn session_update(&mut self, update: &Update<'_>, line: &str, now: Timestamp, out: &mut Step) {
        let kind = update.session_update.as_deref().unwrap_or_default();
        if self.session.in_replay && is_of_history(kind) {
            self.session.replayed += 1;
            return;
        }
        match kind {
            "agent_message_chunk" => self.speech(update, now, out),
            "agent_thought_chunk" => self.thought(update, now, out),
            "user_message_chunk" => self.user_message(update, out),
            "tool_call" | "tool_call_update" => {
                self.update(line, out, |codec, call, out| codec.tool_call(call, now, out));
            }
            "plan" => self.update(line, out, |codec, plan, out| codec.plan(&plan, line, now, out)),
            "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update"
            | "usage_update"
            | "notice"
            | "compaction_update"
            | "compaction_summary_chunk"
            | "plan_update"
            | "plan_removed"
            | "subagent_update"
            | "session_message"
            | "session_message_chunk" => {
                self.update(line, out, |codec, state, out| codec.state_update(kind, state, out));
            }
            "" => out.events.push(unrecognized(line, "an update without a kind")),
            _ => out.events.push(unrecognized(line, format!("unknown update '{kind}'"))),
        }
    }

    /// Reports a message that we do not act on as a `system` event with its parameters.
    fn note_line(&mut self, method: &str, message: Option<&str>, line: &str, out: &mut Step) {
        read(self, line, out, |_, mut call: Map<String, Value>, out| {
            let data = match call.shift_remove("params") {
                Some(Value::Object(data)) => data,
                Some(Value::Null) | None => Map::new(),
                Some(other) => one("params", other),
            };
            out.events.push(note(method, message.map(str::to_owned), data));
        });
    }
}

/// Reports a line that cannot be read. If it is a request, the agent waits for its answer.
fn unreadable(line: &str, error: &serde_json::Error, out: &mut Step) {
    if let Ok(Request { id: Some(id), method: Some(_) }) = serde_json::from_str(line) {
        out.lines.push(rpc::refusal(&id, rpc::INVALID_PARAMS, &format!("multitap cannot read it: {error}")));
    }
    out.events.push(unrecognized(line, error.to_string()));
}

/// Whether an update belongs to the conversation, not to the session's own state.
fn is_of_history(kind: &str) -> bool {
    matches!(
        kind,
        "user_message_chunk"
            | "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
    )
}

pub(super) fn note(subtype: &str, message: Option<String>, mut data: Map<String, Value>) -> EventKind {
    for key in ["sessionUpdate", "sessionId"] {
        data.shift_remove(key);
    }
    emit::note(subtype, message, data)
}
