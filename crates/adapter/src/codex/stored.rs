//! Entries of stored sessions, which are also the events that older versions wrote: `session_meta`, `turn_context`,
//! `event_msg`, `response_item`.
//!
//! Each message is stored twice, as an event and as a response item, in either order; it is reported once.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use multitap_event::{AgentCapabilities, EventKind, SystemSubtype, Timestamp, one_line};
use serde_json::{Map, Value, json};

use super::decode::CodexCodec;
use super::item::{Phase, user_message};
use super::notice::note;
use super::session::policy_word;
use super::turn::TurnOutcome;
use super::wire::Fields;
use crate::codec::Step;
use crate::emit::{More, STORED, Voice};
use crate::json::JsonFields as _;
use crate::json::present;

/// Messages whose second copy has not been read yet.
#[derive(Debug, Default)]
pub(super) struct Twins {
    hasher: RandomState,
    /// Number of unpaired copies by hash of the message: a turn may have very many messages, and long ones.
    waiting: HashMap<u64, usize>,
    count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Event,
    Response,
}

impl Source {
    fn other(self) -> Self {
        match self {
            Self::Event => Self::Response,
            Self::Response => Self::Event,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Speaker {
    User,
    Agent,
    Thought,
}

impl Twins {
    /// Whether this is the second copy of a message that was already reported.
    pub(super) fn is_second(&mut self, source: Source, speaker: Speaker, text: &str) -> bool {
        let twin = self.hasher.hash_one((source.other(), speaker, text));
        match self.waiting.get_mut(&twin) {
            Some(1) => {
                self.waiting.remove(&twin);
                true
            }
            Some(count) => {
                *count -= 1;
                true
            }
            None => {
                *self.waiting.entry(self.hasher.hash_one((source, speaker, text))).or_default() += 1;
                false
            }
        }
    }

    /// Whether the other copy was reported, so that this copy is still expected.
    pub(super) fn awaits(&self, source: Source, speaker: Speaker, text: &str) -> bool {
        self.waiting.contains_key(&self.hasher.hash_one((source.other(), speaker, text)))
    }

    /// A new id for a message without one.
    fn name(&mut self) -> String {
        self.count += 1;
        format!("stored-{}", self.count)
    }
}

impl CodexCodec {
    /// `session_meta`: the first entry.
    pub(super) fn session_meta(&mut self, payload: &Fields, out: &mut Step) {
        let id = payload.text("id").or_else(|| payload.text("sessionId")).map(str::to_owned);
        self.began(id.as_deref(), STORED, payload, out);
        let mut data = payload.0.clone();
        // Left out: longer than all other fields together, and not a setting of the session.
        data.shift_remove("base_instructions");
        let capabilities =
            AgentCapabilities { model: data.string("model"), data: present(data), ..AgentCapabilities::default() };
        out.events.push(EventKind::Capabilities(capabilities));
    }

    pub(super) fn turn_context(&mut self, payload: &Fields, out: &mut Step) {
        self.policy_is(payload.get("approvalPolicy").map(policy_word), out);
        self.emit.session.model_is(payload.string("model"), out);
    }

    /// The payload of an `event_msg`.
    pub(super) fn stored_event(&mut self, event: &Fields, now: Timestamp, out: &mut Step) {
        let kind = event.text("type").unwrap_or("event_msg").to_owned();
        let turn = event.string("turnId");
        match kind.as_str() {
            "session_configured" => self.began(event.text("sessionId"), STORED, event, out),
            "task_started" | "turn_started" => self.begin_turn(turn.as_deref(), out),
            "task_complete" | "turn_complete" => {
                let text = event.string("lastAgentMessage");
                let duration_ms = event.number("durationMs");
                self.stored_turn_over(TurnOutcome { duration_ms, text, ..TurnOutcome::of("completed") }, now, out);
            }
            "turn_aborted" => self.stored_turn_over(TurnOutcome::of("interrupted"), now, out),
            "user_message" => {
                let parts = [json!({ "text": event.text("message") })];
                self.stored_user(&parts, None, Source::Event, out);
            }
            "agent_message" => self.stored_text(Voice::Speech, event.text("message"), Source::Event, out),
            "agent_reasoning" | "agent_reasoning_raw_content" => {
                self.stored_text(Voice::Thought, event.text("text"), Source::Event, out);
            }
            "token_count" => {
                let info = event.fields("info");
                self.turn.usage.reported(if info.is_empty() { event } else { &info }, self.emit.turns.is_busy());
            }
            "plan_update" => self.todos.planned(event, out),
            "item_started" => self.item(&event.fields("item"), Phase::Started, None, now, out),
            "item_completed" => self.stored_item(event, now, out),
            "exec_command_begin"
            | "exec_command_end"
            | "patch_apply_begin"
            | "patch_apply_end"
            | "mcp_tool_call_begin"
            | "mcp_tool_call_end"
            | "web_search_begin"
            | "web_search_end" => {
                let ends = kind.ends_with("_end");
                let item = as_item(event, &kind, ends);
                self.item(&item, if ends { Phase::Completed } else { Phase::Started }, None, now, out);
            }
            "error" => self.trouble(event, Some(false), out),
            "stream_error" => self.trouble(event, Some(true), out),
            "context_compacted" => out.events.push(note(SystemSubtype::COMPACTED, None, event.0.clone())),
            // Other entries report the same as these.
            "thread_settings_applied"
            | "exec_command_output_delta"
            | "agent_message_delta"
            | "agent_message_content_delta"
            | "agent_reasoning_delta"
            | "reasoning_content_delta"
            | "turn_diff"
            | "agent_reasoning_section_break"
            | "raw_response_item"
            | "shutdown_complete" => {}
            _ => {
                let message = event.text("message").map(one_line);
                out.events.push(note(&kind, message, event.0.clone()));
            }
        }
    }

    pub(super) fn stored_turn_over(&mut self, over: TurnOutcome, now: Timestamp, out: &mut Step) {
        self.twins.waiting.clear();
        self.turn_over(over, now, out);
    }

    fn stored_item(&mut self, event: &Fields, now: Timestamp, out: &mut Step) {
        let item = event.fields("item");
        let text = texts_of(item.list("content"));
        match item.text("type") {
            Some("UserMessage") => self.stored_user(item.list("content"), item.text("id"), Source::Event, out),
            Some("AgentMessage") if self.twins.is_second(Source::Event, Speaker::Agent, &text) => {}
            _ => self.item(&item, Phase::Completed, None, now, out),
        }
    }

    fn stored_user(&mut self, parts: &[Value], id: Option<&str>, source: Source, out: &mut Step) {
        let Some(EventKind::UserMessage(message)) = user_message(parts, id) else { return };
        if (is_own(&message.content) && source == Source::Response)
            || self.emit.session.is_live()
            || self.twins.is_second(source, Speaker::User, &message.content)
        {
            return;
        }
        out.events.push(EventKind::UserMessage(message));
    }

    fn stored_text(&mut self, voice: Voice, text: Option<&str>, source: Source, out: &mut Step) {
        let Some(text) = text else { return };
        let speaker = if voice == Voice::Speech { Speaker::Agent } else { Speaker::Thought };
        if self.twins.is_second(source, speaker, text) {
            return;
        }
        if voice == Voice::Speech {
            self.turn.text = Some(text.to_owned());
        }
        let id = self.twins.name();
        self.emit.texts.whole(&id, voice, text, More::None, None, out);
    }

    /// The payload of a `response_item`: messages to the model and from it.
    pub(super) fn response_item(&mut self, item: &Fields, now: Timestamp, out: &mut Step) {
        match item.text("type") {
            Some("message") => match item.text("role") {
                Some("user") => self.stored_user(item.list("content"), None, Source::Response, out),
                Some("assistant") => {
                    let text = texts_of(item.list("content"));
                    self.stored_text(Voice::Speech, Some(&text), Source::Response, out);
                }
                _ => {}
            },
            Some("reasoning") => {
                for part in item.list("summary") {
                    self.stored_text(Voice::Thought, part.text("text"), Source::Response, out);
                }
            }
            Some("function_call" | "custom_tool_call" | "local_shell_call") => self.stored_call(item, now, out),
            Some("function_call_output" | "custom_tool_call_output") => self.stored_call_over(item, now, out),
            Some("web_search_call") => {
                let query = item.fields("action").string("query");
                let id = item.string("id").unwrap_or_else(|| self.twins.name());
                let item = json!({ "id": id, "type": "web_search", "query": query, "status": "completed" });
                self.item(&Fields::of(Some(&item)), Phase::Completed, None, now, out);
            }
            Some("ghost_snapshot" | "compaction" | "compaction_summary") => {}
            kind => out.events.push(note(kind.unwrap_or("response_item"), None, item.0.clone())),
        }
    }
}

pub(super) fn texts_of(parts: &[Value]) -> String {
    parts.iter().filter_map(|part| part.text("text")).collect::<Vec<_>>().join("\n")
}

/// Whether a user message was written by Codex itself: instructions, or text in one of its tags.
pub(super) fn is_own(text: &str) -> bool {
    let tag = text.trim_start().strip_prefix('<').and_then(|rest| rest.split(['>', ' ', '\n']).next());
    let of_codex = |tag: &str| tag.contains('_') || matches!(tag, "skill" | "permissions" | "INSTRUCTIONS");
    tag.is_some_and(of_codex) || text.starts_with("# AGENTS.md")
}

/// Converts an older event about a call to the item of today.
fn as_item(event: &Fields, kind: &str, ends: bool) -> Fields {
    let mut item = Map::new();
    let mut put = |key: &str, value: Option<Value>| item.extend(value.map(|value| (key.to_owned(), value)));
    put("id", event.get("callId").cloned());
    let word = |good: bool| Value::from(if good { "completed" } else { "failed" });
    match kind.split('_').next() {
        Some("exec") => {
            put("type", Some("command_execution".into()));
            put("command", event.get("command").cloned());
            put("cwd", event.get("cwd").cloned());
            let output = ["aggregatedOutput", "formattedOutput", "stdout"].into_iter();
            put("aggregated_output", output.into_iter().find_map(|key| event.get(key)).cloned());
            put("exit_code", event.get("exitCode").cloned());
            put("status", event.get("status").cloned());
        }
        Some("patch") => {
            put("type", Some("file_change".into()));
            put("changes", event.get("changes").cloned());
            let good = event.get("success").and_then(Value::as_bool);
            put("status", good.map(word));
            put("error", event.get("stderr").filter(|_| good == Some(false)).cloned());
        }
        Some("mcp") => {
            put("type", Some("mcp_tool_call".into()));
            let call = event.fields("invocation");
            for key in ["server", "tool", "arguments"] {
                put(key, call.get(key).cloned());
            }
            let result = event.fields("result");
            put("result", result.get("Ok").cloned());
            put("error", result.get("Err").cloned());
            put("status", ends.then(|| word(result.get("Err").is_none())));
        }
        _ => {
            put("type", Some("web_search".into()));
            put("query", event.get("query").cloned());
        }
    }
    Fields(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_copy_has_one_twin() {
        let mut twins = Twins::default();
        let mut second = |source, text| twins.is_second(source, Speaker::Agent, text);
        assert!(!second(Source::Event, "a") && !second(Source::Event, "a") && !second(Source::Event, "b"));
        assert!(second(Source::Response, "a") && second(Source::Response, "a"));
        assert!(!second(Source::Response, "a"), "a third one is new");
        assert!(twins.awaits(Source::Response, Speaker::Agent, "b"));
        assert!(
            !twins.awaits(Source::Response, Speaker::User, "b") && !twins.awaits(Source::Event, Speaker::Agent, "b")
        );
    }

    /// Regression: each message used to be compared with all unpaired ones.
    #[test]
    fn very_many_messages_may_wait_for_their_twins() {
        let mut twins = Twins::default();
        let texts: Vec<String> = (0..500_000).map(|number| number.to_string()).collect();
        assert!(!texts.iter().any(|text| twins.is_second(Source::Event, Speaker::Agent, text)));
        assert!(texts.iter().rev().all(|text| twins.is_second(Source::Response, Speaker::Agent, text)));
        assert!(twins.waiting.is_empty());
    }
}
