//! The entries of one conversation to events.
//!
//! Claude stores the messages of its stream, without the lines that begin and end a turn there. So a turn begins with
//! what the user typed, and ends when the user types again or no entry follows.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use multitap_event::{EventKind, Retry, Role, SystemSubtype, TextChunk, Timestamp, one_line};
use serde_json::{Map, Value};

use super::local::{Typed, inside, prompt_of, typed};
use super::turn::Turn;
use super::wire::{Entry, other_speaker, text_of};
use crate::claude::ClaudeCodec;
use crate::claude::decode::note;
use crate::claude::message::user_message;
use crate::claude::wire::{Assistant, Block, User};
use crate::codec::{Codec as _, End, Step};
use crate::history::{Entries, EntryEvents, StoredSession};
use crate::json::{JsonFields as _, one};
use crate::line::unrecognized;

/// Entries for Claude's own use: they make no event.
const SILENT: [&str; 12] = [
    "queue-operation",
    "file-history-snapshot",
    "file-history-delta",
    "last-prompt",
    "tools-used",
    "atis-latch",
    "api-request",
    "api-request-shape",
    "api-request-blob",
    "progress",
    "mode",
    "content-replacement",
];

/// Attachments that describe the environment and its features to the model.
const SURROUNDINGS: [&str; 12] = [
    "environment",
    "model",
    "deferred_tools_delta",
    "agent_listing_delta",
    "skill_listing",
    "auto_mode",
    "session_context",
    "date",
    "remote_session_change",
    "prompt_snapshot",
    "total_tokens_reminder",
    "mcp_instructions_delta",
];

/// Fields that every entry has; notices leave them out.
const FRAME: [&str; 14] = [
    "parentUuid",
    "logicalParentUuid",
    "isSidechain",
    "isMeta",
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "slug",
    "timestamp",
    "level",
    "rendered",
];

pub(crate) struct Stored {
    session: StoredSession,
    pub(super) codec: ClaudeCodec,
    pub(super) turn: Turn,
    /// The call that started each sub-agent, by the number of the sub-agent's file.
    agents: Vec<Option<String>>,
    /// The call that started a sub-agent, by the ids of its entries, for entries in the main file.
    sidechain: HashMap<String, String>,
    /// The ids of all entries but those of sub-agents, and the last one.
    seen: HashSet<String>,
    last: Option<String>,
    pub(super) cost: Option<f64>,
}

impl Stored {
    pub(crate) fn new(session: &StoredSession) -> Self {
        // A file beside the sub-agent's own names the call that started it.
        let call = |path: &PathBuf| {
            let meta = fs::read(path.with_extension("meta.json")).ok()?;
            serde_json::from_slice::<Value>(&meta).ok()?.string("toolUseId")
        };
        Self {
            session: session.clone(),
            codec: ClaudeCodec::recorded(),
            turn: Turn::default(),
            agents: session.files.iter().map(call).collect(),
            sidechain: HashMap::new(),
            seen: HashSet::new(),
            last: None,
            cost: None,
        }
    }

    /// The owner of an entry: the call that started a sub-agent, an unknown call, or the main conversation.
    fn whose(&mut self, entry: &Entry, file: usize) -> Whose {
        if file == 0 && !entry.is_sidechain() {
            return Whose::Main;
        }
        if let Some(Some(call)) = self.agents.get(file).filter(|_| file > 0) {
            return Whose::Agent(call.clone());
        }
        let above = entry.text("parentUuid").and_then(|parent| self.sidechain.get(parent)).cloned();
        let by_prompt = || self.codec.emit.tools.agent_with(&entry.words()).map(|tool| tool.id.as_str().to_owned());
        let Some(call) = above.or_else(by_prompt) else { return Whose::Unknown };
        if file > 0
            && let Some(known) = self.agents.get_mut(file)
        {
            *known = Some(call.clone());
        }
        self.sidechain.extend(entry.string("uuid").map(|uuid| (uuid, call.clone())));
        Whose::Agent(call)
    }

    fn assistant(&mut self, line: &str, entry: &Entry, parent: Option<String>, at: Timestamp, out: &mut Step) {
        let read: Assistant = match serde_json::from_str(line) {
            Ok(read) => read,
            Err(error) => return out.events.push(unrecognized(line, error.to_string())),
        };
        if parent.is_none() {
            self.begin_turn(at, out);
            self.codec.model_found(entry.model(), out);
            self.turn.model_spoke(entry, &read.message.content);
        }
        self.codec.assistant(Assistant { parent_tool_use_id: parent, ..read }, at, out);
    }

    fn user(&mut self, line: &str, entry: &Entry, parent: Option<String>, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        let read: User = match serde_json::from_str(line) {
            Ok(read) => read,
            Err(error) => {
                out.events.push(unrecognized(line, error.to_string()));
                return emitted.own(at, out);
            }
        };
        let results = read.message.content.iter().filter_map(|block| block.tool_use_id.clone()).collect::<Vec<_>>();
        if entry.field("permissionDecision").text("decision") == Some("reject") {
            for id in &results {
                self.codec.emit.tools.deny(id);
            }
        }
        if parent.is_some() || !results.is_empty() {
            if parent.is_none() {
                self.begin_turn(at, &mut out);
                self.turn.is_idle = false;
            }
            // A call that started a sub-agent in the background.
            let launched = entry.field("toolUseResult");
            if let ([call], true) = (results.as_slice(), launched.flag("isAsync")) {
                self.codec.background.task_began(launched.text("agentId").unwrap_or_default(), call, true);
            }
            let synthetic = parent.is_none() || entry.is_meta();
            let read = User { parent_tool_use_id: parent, is_synthetic: Some(synthetic), ..read };
            self.codec.user(read, at, &mut out);
        } else if entry.flag("isCompactSummary") {
            let data = one("summary", entry.words());
            out.events.push(note("compactSummary", Some("what was said before, in short".to_owned()), data));
        } else if let Some(origin) = other_speaker(entry) {
            // Background work reports, and a new turn begins.
            self.next_turn(at, emitted, &mut out);
            self.turn.origin = Some(origin.to_owned());
            let text = entry.words();
            if let Some(task) = inside(text.trim(), "task-id") {
                self.codec.background.task_ended(task.trim());
            }
            let summary = one_line(inside(text.trim(), "summary").unwrap_or(&text));
            out.events.push(note(origin, Some(summary), one("content", text)));
        } else if !entry.is_meta() {
            self.typed(entry, &read.message.content, at, emitted, &mut out);
        }
        emitted.own(at, out);
    }

    fn typed(&mut self, entry: &Entry, blocks: &[Block], at: Timestamp, emitted: &mut EntryEvents, out: &mut Step) {
        match typed(&entry.words()) {
            Typed::Stopped => {
                self.turn.stopped = self.codec.emit.turns.is_open();
                self.turn.at = Some(at);
            }
            Typed::Printed(text) => self.printed(text, at, out),
            // A prompt may be an image without text.
            Typed::Nothing if user_message(blocks, None).is_none() || entry.words().starts_with('<') => {}
            typed => {
                let above = entry.text("parentUuid");
                if let Some(to) = above.filter(|to| Some(*to) != self.last.as_deref() && self.seen.contains(*to)) {
                    let message = "the conversation continues from an earlier message".to_owned();
                    out.events.push(note("rewound", Some(message), one("messageId", to)));
                }
                self.next_turn(at, emitted, out);
                self.codec.mode_is(entry.string("permissionMode"), out);
                if let Some(EventKind::UserMessage(mut message)) = user_message(blocks, entry.string("uuid")) {
                    if let Typed::Prompt(text) = typed {
                        message.content = text;
                    }
                    out.events.push(EventKind::UserMessage(message));
                }
            }
        }
    }

    /// Treats the output of a command as the answer to it.
    fn printed(&mut self, text: String, at: Timestamp, out: &mut Step) {
        self.begin_turn(at, out);
        self.turn.is_idle = true;
        if text.is_empty() {
            return;
        }
        self.turn.words = Some(text.clone());
        let (role, parent_tool_id) = (Some(Role::Assistant), None);
        let chunk = TextChunk { content: text, is_partial: false, role, message_id: None, parent_tool_id };
        out.events.push(EventKind::TextChunk(chunk));
    }

    fn system(&mut self, entry: &Entry, at: Timestamp, out: &mut Step) {
        match entry.text("subtype") {
            Some("turn_duration") => self.turn.duration = entry.number("durationMs"),
            Some("local_command") => match typed(entry.text("content").unwrap_or_default()) {
                Typed::Printed(text) => self.printed(text, at, out),
                Typed::Prompt(content) => {
                    self.begin_turn(at, out);
                    out.events.extend(user_message(&[Block::text(content)], entry.string("uuid")));
                }
                Typed::Stopped | Typed::Nothing => {}
            },
            Some("api_error") => {
                let error = entry.field("error");
                out.events.push(EventKind::Retry(Retry {
                    attempt: entry.small("retryAttempt").unwrap_or(1),
                    max_attempts: entry.small("maxRetries"),
                    delay_ms: entry.number("retryInMs"),
                    status_code: error.small("status"),
                    reason: error.string("message").or(entry.string("error")),
                }));
            }
            Some("compact_boundary") => {
                let about = entry.object("compactMetadata").cloned().unwrap_or_default();
                out.events.push(note(SystemSubtype::COMPACTED, None, about));
            }
            subtype => {
                let message = entry.text("content").map(one_line);
                out.events.push(note(subtype.unwrap_or("note"), message, entry.without_frame()));
            }
        }
    }

    fn attachment(&mut self, entry: &Entry, at: Timestamp, out: &mut Step) {
        let Some(attachment) = entry.object("attachment") else { return };
        let (kind, prompt) = (attachment.text("type").unwrap_or_default(), text_of(attachment.field("prompt")));
        let by_user = !attachment.flag("isMeta") && other_speaker(attachment).is_none();
        if kind == "queued_command" && by_user && !prompt.is_empty() {
            // The prompt joined the running turn, and waits for an answer.
            self.begin_turn(at, out);
            self.turn.is_idle = false;
            out.events.extend(user_message(&[Block::text(prompt)], entry.string("uuid")));
        } else if !SURROUNDINGS.contains(&kind) {
            out.events.push(note("attachment", Some(kind.to_owned()), attachment.clone()));
        }
    }
}

impl Entry {
    /// The fields of an entry that are its own.
    fn without_frame(&self) -> Map<String, Value> {
        let own = self.0.iter().filter(|(key, _)| !FRAME.contains(&key.as_str()));
        own.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

enum Whose {
    Main,
    Agent(String),
    Unknown,
}

impl Entries for Stored {
    fn begin(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        self.codec.begin_stored(&self.session, &mut out);
        emitted.own(at, out);
    }

    fn entry(&mut self, line: &str, file: usize, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        let entry: Entry = match serde_json::from_str(line) {
            Ok(entry) => entry,
            Err(_) => return emitted.own(at, self.codec.decode(line, at)),
        };
        let parent = match (self.whose(&entry, file), entry.kind()) {
            (Whose::Main, _) => None,
            (Whose::Agent(call), _) => Some(call),
            (Whose::Unknown, "user" | "assistant") => {
                // The call that started this sub-agent is not known.
                out.events.push(note("sidechain", None, entry.without_frame()));
                return emitted.own(at, out);
            }
            (Whose::Unknown, _) => None,
        };
        let main = parent.is_none() && file == 0;
        match entry.kind() {
            "assistant" => self.assistant(line, &entry, parent, at, &mut out),
            "user" if entry.message().is_some() => self.user(line, &entry, parent, at, emitted),
            // A line in the stream's format, where it begins a turn.
            "system" if entry.text("subtype") == Some("init") => self.codec.init(entry.0.clone(), &mut out),
            "system" => self.system(&entry, at, &mut out),
            // Attachments of a sub-agent do not come from the user.
            "attachment" if main => self.attachment(&entry, at, &mut out),
            "attachment" => {}
            "cost-state" => self.cost = entry.field("totalCostUSD").and_then(Value::as_f64).or(self.cost),
            // The title of the conversation: by the user, by Claude, or in the form of older versions.
            "summary" | "ai-title" | "custom-title" => {
                let title = ["customTitle", "aiTitle", "summary"].into_iter().find_map(|key| entry.string(key));
                out.events.push(note("title", title, Map::new()));
            }
            "permission-mode" => self.codec.mode_is(entry.string("permissionMode"), &mut out),
            kind if SILENT.contains(&kind) => {}
            // Entries about a conversation have a hyphen in their names; lines of the stream do not.
            kind if kind.contains('-') => out.events.push(note(kind, None, entry.without_frame())),
            "message" if prompt_of(&entry).is_some() => {
                self.next_turn(at, emitted, &mut out);
                out.events.extend(user_message(&[Block::text(entry.words())], entry.string("uuid")));
            }
            "message" | "tool_use" | "tool_result" => {
                self.begin_turn(at, &mut out);
                self.turn.is_idle = entry.kind() == "message";
                out.events.extend(self.codec.decode(line, at).events);
            }
            // Lines in the stream's format.
            _ => out.events.extend(self.codec.decode(line, at).events),
        }
        if main && let Some(uuid) = entry.string("uuid") {
            self.seen.insert(uuid.clone());
            self.last = Some(uuid);
        }
        emitted.own(at, out);
    }

    fn end(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        if let Some((at, step)) = self.end_turn(at) {
            emitted.before(at, step);
        }
        emitted.own(at, self.codec.end(&End::InputEnded, at));
    }
}
