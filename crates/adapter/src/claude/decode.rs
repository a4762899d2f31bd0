//! Claude's lines to events: one line in, its events out. Each kind of line has a module of its own.

use std::fmt;

use multitap_event::{AgentType, Command, Decide, EditedCall, EventKind, PermissionPath, SessionConfig, Timestamp};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::approve::Approver;
use super::control::AgentRequest;
use super::message::Texts;
use super::question::Native;
use super::session::{Session, TRANSPORT};
use super::system::auth_status;
use super::todo::Todos;
use super::tools::Background;
use super::turn::TurnFacts;
use super::wire::{Block, ControlCancel};
use crate::codec::{Codec, End, Files, NoFiles, Step, read};
use crate::emit::{self, Emitter, SessionFacts};
use crate::json::JsonFields as _;
use crate::line::{typed, unrecognized};

/// Claude Code's dialect: `stream-json` in both directions, with the control protocol.
pub struct ClaudeCodec {
    pub(super) files: Box<dyn Files>,
    pub(super) session: Session,
    pub(super) emit: Emitter<(), Native, AgentRequest>,
    /// `initialize` was sent and not answered yet.
    pub(super) initializing: bool,
    pub(super) turn: TurnFacts,
    pub(super) texts: Texts,
    pub(super) background: Background,
    pub(super) todos: Todos,
    /// The file with the plan that waits for approval.
    pub(super) plan_file: Option<String>,
    /// Serves the permission tool: set if Claude asks that way, or if a recording shows that it did.
    pub(super) approver: Option<Approver>,
}

impl fmt::Debug for ClaudeCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaudeCodec").finish_non_exhaustive()
    }
}

impl ClaudeCodec {
    /// A codec for a recorded stream: no process, no files, nothing known beforehand.
    pub fn recorded() -> Self {
        Self {
            files: Box::new(NoFiles),
            session: Session::default(),
            emit: Emitter::new(SessionFacts::new(AgentType::Claude, Some(TRANSPORT))),
            initializing: false,
            turn: TurnFacts::default(),
            texts: Texts::default(),
            background: Background::default(),
            todos: Todos::default(),
            plan_file: None,
            approver: Some(Approver::default()),
        }
    }

    /// A codec for a running program. `native_id` is the conversation's id, if it is known before the start.
    pub fn live(config: &SessionConfig, native_id: Option<String>, files: Box<dyn Files>) -> Self {
        let approver = (config.permission_path == PermissionPath::Mcp).then(Approver::default);
        let mut codec = Self { files, approver, ..Self::recorded() };
        codec.emit.session.stated = Some(config.stated());
        codec.emit.session.native_id = native_id;
        codec.emit.session.cwd = config.working_directory.as_ref().map(|path| path.display().to_string());
        codec
    }
}

impl Codec for ClaudeCodec {
    fn begin(&mut self, _now: Timestamp) -> Step {
        Step::line(self.initialize())
    }

    fn decode(&mut self, line: &str, now: Timestamp) -> Step {
        Step::of_line(line, |line, out| {
            let Some(kind) = typed(line, out) else { return };
            // A recording may lack its beginning. The result of a session that failed to start must not start one.
            if !self.emit.session.started
                && matches!(
                    kind.as_ref(),
                    "stream_event"
                        | "assistant"
                        | "user"
                        | "tool_progress"
                        | "auth_status"
                        | "message"
                        | "tool_use"
                        | "tool_result"
                        | "error"
                )
            {
                let head: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
                self.under_way(head.text("session_id"), out);
            }
            match kind.as_ref() {
                "stream_event" => read(self, line, out, Self::stream_event),
                "assistant" => read(self, line, out, |codec, read, out| codec.assistant(read, now, out)),
                "user" => read(self, line, out, |codec, read, out| codec.user(read, now, out)),
                // The number of thinking tokens so far. It comes with every piece of a thought, and again in the
                // result.
                "system" if self.emit.session.started && line.starts_with(THINKING_TOKENS) => {
                    read(self, line, out, |_, _: IgnoredAny, _| {});
                }
                "system" => read(self, line, out, Self::system),
                "result" => read(self, line, out, |codec, read, out| codec.result(&read, now, out)),
                "tool_progress" => read(self, line, out, Self::tool_progress),
                "control_request" => read(self, line, out, Self::control_request),
                "control_response" => read(self, line, out, Self::control_response),
                "control_cancel_request" => read(self, line, out, |codec, read: ControlCancel, out| {
                    codec.withdraw(|asked| asked.request_id == read.request_id, out);
                }),
                "auth_status" => read(self, line, out, |_, data: Map<String, Value>, out| {
                    out.events.push(auth_status(&data));
                }),
                // Older formats, and formats of other descriptions of this stream.
                "init" => read(self, line, out, Self::plain_init),
                "message" => read(self, line, out, |codec, read, out| codec.plain_message(read, now, out)),
                "tool_use" => read(self, line, out, |codec, block: Block, out| match (&block.id, &block.name) {
                    (Some(_), Some(_)) => codec.tool_use(block, None, now, out),
                    _ => out.events.push(unrecognized(line, "a tool call without an id or a name")),
                }),
                "tool_result" => read(self, line, out, |codec, block: Block, out| match block.tool_use_id {
                    Some(_) => codec.tool_result(block, None, None, now, out),
                    None => out.events.push(unrecognized(line, "a tool result that names no call")),
                }),
                "error" => read(self, line, out, |codec, read, out| codec.plain_error(&read, out)),
                // Internal messages about requests to the model, which other lines report as well.
                "keep_alive" | "api_metrics" | "stream_mode" | "stream_request_start" | "transcript_mirror" => {}
                "command_lifecycle"
                | "conversation_reset"
                | "rate_limit_event"
                | "prompt_suggestion"
                | "tool_use_summary"
                | "active_goal"
                | "autocompact_state"
                | "compact_progress"
                | "os_notification"
                | "session_notice"
                | "queued_notification"
                | "attachment" => {
                    read(self, line, out, |codec, data: Map<String, Value>, out| {
                        codec.under_way(data.text("session_id"), out);
                        out.events.push(note(&kind, None, data));
                    });
                }
                _ => out.events.push(unrecognized(line, format!("unknown type '{kind}'"))),
            }
        })
    }

    fn encode(&mut self, command: Command, _now: Timestamp) -> Step {
        Step::of(|out| self.command(command, out))
    }

    fn edited(&self, decide: &Decide) -> Result<EditedCall, String> {
        self.edit(decide)
    }

    fn end(&mut self, end: &End, now: Timestamp) -> Step {
        Step::of(|out| self.ended(end, now, out))
    }
}

/// The beginning of a line that reports the number of thinking tokens.
const THINKING_TOKENS: &str = r#"{"type":"system","subtype":"thinking_tokens""#;

/// A `system` event with a line's own fields.
pub(super) fn note(subtype: &str, message: Option<String>, data: Map<String, Value>) -> EventKind {
    emit::note(subtype, message, own_fields(data))
}

/// A line's fields, except for those that only the transport needs.
pub(super) fn own_fields(mut line: Map<String, Value>) -> Map<String, Value> {
    for key in ["type", "subtype", "uuid", "session_id"] {
        line.shift_remove(key);
    }
    line
}
