//! An ACP agent's lines to events: one line in, its events out.
//!
//! Here is only the fork in the road; each sort of line has its file beside this one.

use std::fmt;

use multitap_event::{Command, EventKind, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::flavor::Flavor;
use super::question::Native;
use super::rpc::{self, AgentRequest};
use super::session::{Session, Wishes};
use super::tools;
use super::turn::SessionUsage;
use super::wire::{Call, CancelRequest, Head, Update, Updated};
use crate::codec::{Codec, End, Files, NoFiles, Step, read};
use crate::emit::{self, Emitter, MessageStream};
use crate::line::unrecognized;

/// The dialect of agents that speak the Agent Client Protocol, version 1; we are the client.
pub struct AcpCodec {
    pub(super) flavor: Flavor,
    pub(super) files: Box<dyn Files>,
    pub(super) session: Session,
    pub(super) emit: Emitter<tools::Native, Native, AgentRequest>,
    pub(super) messages: MessageStream,
    pub(super) spent: SessionUsage,
}

impl fmt::Debug for AcpCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpCodec").field("flavor", &self.flavor).finish_non_exhaustive()
    }
}

impl AcpCodec {
    /// For a recorded stream: no process, no files, nothing known beforehand.
    pub(crate) fn recorded(flavor: Flavor) -> Self {
        Self {
            flavor,
            files: Box::new(NoFiles),
            session: Session::recorded(flavor.agent()),
            emit: Emitter::new(flavor.agent()),
            messages: MessageStream::default(),
            spent: SessionUsage::default(),
        }
    }

    /// For a running program.
    pub(crate) fn live(flavor: Flavor, wishes: Wishes, files: Box<dyn Files>) -> Self {
        Self { files, session: Session::live(flavor.agent(), wishes), ..Self::recorded(flavor) }
    }

    /// The line that asks something of the agent.
    pub(super) fn send_request(&mut self, asked: AgentRequest, method: &str, params: Value) -> String {
        rpc::request(self.emit.requests.open(asked), method, params)
    }

    /// The time, where it means something: a recorded stream is read at another time than it was written.
    pub(super) fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        self.session.is_live().then_some(now)
    }
}

impl Codec for AcpCodec {
    fn begin(&mut self, _now: Timestamp) -> Step {
        Step::of(|out| {
            out.lines.push(self.initialize());
        })
    }

    fn decode(&mut self, line: &str, now: Timestamp) -> Step {
        Step::of_line(line, |line, out| {
            if !line.trim_start().starts_with('{') {
                out.events.push(unrecognized(line, "not a JSON object"));
                return;
            }
            match Head::glance(line) {
                Some(piece) => self.message(piece, line, now, out),
                None => read(self, line, out, |codec, head, out| codec.message(head, line, now, out)),
            }
        })
    }

    fn encode(&mut self, command: Command, now: Timestamp) -> Step {
        Step::of(|out| self.command(command, now, out))
    }

    fn end(&mut self, end: End<'_>, now: Timestamp) -> Step {
        Step::of(|out| self.ended(end, now, out))
    }
}

impl AcpCodec {
    fn message(&mut self, head: Head<'_>, line: &str, now: Timestamp, out: &mut Step) {
        match (head.method.as_deref(), head.id) {
            (Some("session/update"), _) => {
                let params = head.params;
                let id = params.as_ref().and_then(|params| params.session_id.as_deref());
                if self.session.is_foreign(id) {
                    out.events.push(unrecognized(line, "an update of another session"));
                    return;
                }
                let update = params.and_then(|params| params.update).unwrap_or_default();
                self.session_update(update, line, now, out);
            }
            (Some("session/request_permission"), Some(id)) => self.request_permission(&id, line, now, out),
            (Some("$/cancel_request"), _) => read(self, line, out, |codec, call: Call<CancelRequest>, out| {
                codec.request_taken_back(&call.params.request_id, out);
            }),
            (Some(method), Some(id)) => {
                let message = format!("multitap does not serve {method}");
                out.lines.push(rpc::refusal(&id, rpc::NO_METHOD, &message));
                let message = self.session.is_live().then_some("refused: not served");
                self.note_line(method, message, line, out);
            }
            (Some(method), None) => self.note_line(method, None, line, out),
            (None, Some(id)) if head.result.is_some() || head.error.is_some() => {
                self.reply(&id, head.result, head.error, now, out);
            }
            (None, _) => out.events.push(unrecognized(line, "neither a request nor a reply")),
        }
    }

    /// Reads the line again, as that sort of update, and hands it on.
    fn update<U: DeserializeOwned>(&mut self, line: &str, out: &mut Step, then: impl FnOnce(&mut Self, U, &mut Step)) {
        read(self, line, out, |codec, call: Call<Updated<U>>, out| then(codec, call.params.update, out));
    }

    fn session_update(&mut self, mut update: Update<'_>, line: &str, now: Timestamp, out: &mut Step) {
        let kind = &*update.session_update.take().unwrap_or_default();
        if self.session.is_replay() && self.replayed(kind) {
            return;
        }
        match kind {
            "agent_message_chunk" => self.speech(update, now, out),
            "agent_thought_chunk" => self.thought(update, now, out),
            "user_message_chunk" => self.user_message(update, out),
            "tool_call" | "tool_call_update" => {
                self.update(line, out, |codec, call, out| codec.tool_call(call, now, out));
            }
            "plan" => self.update(line, out, |codec, plan, out| codec.plan(plan, now, out)),
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

    /// A `system` event with the parameters of a line that says something we do not act on.
    fn note_line(&mut self, method: &str, message: Option<&str>, line: &str, out: &mut Step) {
        read(self, line, out, |_, mut call: Map<String, Value>, out| {
            let data = match call.shift_remove("params") {
                Some(Value::Object(data)) => data,
                Some(Value::Null) | None => Map::new(),
                Some(other) => Map::from_iter([("params".to_owned(), other)]),
            };
            out.events.push(note(method, message.map(str::to_owned), data));
        });
    }
}

/// A `system` event.
pub(super) fn note(subtype: &str, message: Option<String>, mut data: Map<String, Value>) -> EventKind {
    for key in ["sessionUpdate", "sessionId"] {
        data.shift_remove(key);
    }
    emit::note(subtype, message, data)
}
