//! `system` lines: the beginning of a turn, its mode, retries, background work, and other notices.

use multitap_event::{AuthStatus, EventKind, Retry, SystemSubtype, ToolProgress, one_line};
use serde_json::{Map, Value};

use super::decode::{ClaudeCodec, note};
use crate::codec::Step;
use crate::emit::commands_event;
use crate::json::JsonFields as _;

fn text<'a>(line: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    line.text(key).filter(|text| !text.is_empty())
}

impl ClaudeCodec {
    pub(super) fn system(&mut self, mut line: Map<String, Value>, out: &mut Step) {
        let subtype = text(&line, "subtype").unwrap_or("note").to_owned();
        if subtype != "init" {
            self.under_way(text(&line, "session_id"), out);
        }
        match subtype.as_str() {
            "init" => {
                out.ready = true;
                self.init(line, out);
                self.begin_turn(out);
            }
            "status" => self.status_line(line, out),
            "api_retry" => out.events.push(EventKind::Retry(retry(&line))),
            "compact_boundary" => {
                let data = match line.shift_remove("compact_metadata") {
                    Some(Value::Object(data)) => data,
                    _ => line,
                };
                out.events.push(note(SystemSubtype::COMPACTED, None, data));
            }
            // The tool's result reports the same, and ends the call.
            "permission_denied" if text(&line, "tool_use_id").is_some_and(|id| self.emit.tools.deny(id)) => {}
            "task_started" | "task_progress" | "task_updated" | "task_notification" => self.task(&subtype, line, out),
            // The result reports the number of thinking tokens.
            "thinking_tokens" => {}
            _ => {
                if let Some(Value::Array(commands)) = line.get("commands").filter(|_| subtype == "commands_changed") {
                    out.events.push(commands_event(commands));
                    self.session.capabilities.insert("commands".to_owned(), commands.clone().into());
                    return;
                }
                let message = ["message", "content", "text", "summary"].into_iter().find_map(|key| text(&line, key));
                out.events.push(note(&subtype, message.map(one_line), line));
            }
        }
    }

    fn status_line(&mut self, line: Map<String, Value>, out: &mut Step) {
        let mode = text(&line, "permissionMode").map(str::to_owned);
        let only_mode = mode.is_some() && !line.contains_key("compact_result") && line.field("status").is_none();
        self.mode_is(mode, out);
        if !only_mode {
            let message = text(&line, "status").map(str::to_owned);
            out.events.push(note("status", message, line));
        }
    }

    /// A background shell or sub-agent. While its call is open, this is the call's progress.
    fn task(&mut self, subtype: &str, line: Map<String, Value>, out: &mut Step) {
        let task = text(&line, "task_id").unwrap_or_default().to_owned();
        let tool = text(&line, "tool_use_id").or(self.background.call_of(&task)).map(str::to_owned);
        match (subtype, &tool) {
            ("task_started", Some(tool)) => {
                self.background.task_began(&task, tool, line.flag("is_backgrounded"));
            }
            ("task_notification", _) => self.background.task_ended(&task),
            _ => {}
        }
        let patch = line.field("patch").text("status");
        let said = text(&line, "summary").or(text(&line, "description"));
        let said = match (text(&line, "status").or(patch), said) {
            (Some(status), Some(said)) => Some(format!("{status}: {}", one_line(said))),
            (status, said) => said.or(status).map(one_line),
        };
        match tool.filter(|tool| self.emit.tools.find(tool).is_some()) {
            Some(tool) => out.events.push(EventKind::ToolProgress(ToolProgress {
                elapsed_ms: line.field("usage").number("duration_ms"),
                message: said,
                ..ToolProgress::of(tool.into())
            })),
            None => out.events.push(note(subtype, said, line)),
        }
    }
}

pub(super) fn auth_status(line: &Map<String, Value>) -> EventKind {
    EventKind::AuthStatus(AuthStatus {
        is_authenticating: line.flag("isAuthenticating"),
        output: line.list("output").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        error: text(line, "error").map(str::to_owned),
    })
}

fn retry(line: &Map<String, Value>) -> Retry {
    Retry {
        attempt: line.small("attempt").unwrap_or(1),
        max_attempts: line.small("max_retries"),
        delay_ms: line.number("retry_delay_ms"),
        status_code: line.small("error_status"),
        reason: text(line, "error").map(str::to_owned),
    }
}
