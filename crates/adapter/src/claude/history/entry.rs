//! The entries of one conversation to events.
//!
//! Claude stores the messages of its stream, without the lines that begin and end a turn there: a turn begins with
//! what the user typed, and is over when the user types again or nothing follows.

use std::collections::{HashMap, HashSet};
use std::fs;

use multitap_event::{EventKind, Retry, Role, SystemSubtype, TextChunk, Timestamp};
use serde_json::{Map, Value};

use super::local::{Typed, inside, prompt_of, typed};
use super::turn::Turn;
use super::wire::{AgentMeta, Entry, Origin, text_of};
use crate::claude::ClaudeCodec;
use crate::claude::decode::note;
use crate::claude::message::user_message;
use crate::claude::wire::{Assistant, Block, User};
use crate::codec::{Codec as _, End, Step};
use crate::history::{Entries, EntryEvents, StoredSession};
use crate::line::unrecognized;
use crate::words::one_line;

/// What Claude keeps for itself.
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

/// Attachments that inform the model where it is and what it can do.
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

/// What every entry has, and reports nothing.
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

/// A conversation in Claude's store.
pub(crate) struct Stored {
    session: StoredSession,
    pub(super) codec: ClaudeCodec,
    pub(super) turn: Turn,
    /// The call that began each sub-agent, by the file it has.
    agents: Vec<Option<String>>,
    /// The same where a sub-agent's entries stand among the others: by their ids.
    sidechain: HashMap<String, String>,
    /// The ids of all entries but those of sub-agents, and the last one.
    seen: HashSet<String>,
    last: Option<String>,
    pub(super) cost: Option<f64>,
}

impl Stored {
    pub(crate) fn new(session: &StoredSession) -> Self {
        let call = |path: &std::path::PathBuf| {
            let meta = fs::read(path.with_extension("meta.json")).ok()?;
            serde_json::from_slice::<AgentMeta>(&meta).ok()?.tool_use_id
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

    /// Whose entry it is: the call that began the sub-agent, or nobody knows which, or the main conversation's.
    fn whose(&mut self, entry: &Entry, file: usize) -> Whose {
        if file == 0 && !entry.is_sidechain {
            return Whose::Main;
        }
        if let Some(Some(call)) = self.agents.get(file).filter(|_| file > 0) {
            return Whose::Agent(call.clone());
        }
        let above = entry.parent_uuid.as_ref().and_then(|parent| self.sidechain.get(parent)).cloned();
        let by_prompt = || self.codec.emit.tools.agent_with(&entry.text()).map(|tool| tool.id.as_str().to_owned());
        let Some(call) = above.or_else(by_prompt) else { return Whose::Unknown };
        if file > 0
            && let Some(known) = self.agents.get_mut(file)
        {
            *known = Some(call.clone());
        }
        if let Some(uuid) = &entry.uuid {
            self.sidechain.insert(uuid.clone(), call.clone());
        }
        Whose::Agent(call)
    }

    fn assistant(&mut self, line: &str, entry: &Entry, parent: Option<String>, at: Timestamp, out: &mut Step) {
        let read: Assistant = match serde_json::from_str(line) {
            Ok(read) => read,
            Err(error) => return out.events.push(unrecognized(line, error.to_string())),
        };
        if parent.is_none() {
            self.begin_turn(at, out);
            self.codec.session.model_found(entry.model(), out);
            self.turn.heard(entry, &read.message.content);
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
        if entry.permission_decision.as_ref().is_some_and(|decision| decision.decision == "reject") {
            results.iter().for_each(|id| {
                self.codec.emit.tools.deny(id);
            });
        }
        if parent.is_some() || !results.is_empty() {
            if parent.is_none() {
                self.begin_turn(at, &mut out);
                self.turn.is_idle = false;
            }
            if let (Some(launched), [call]) = (&entry.tool_use_result, results.as_slice())
                && launched.is_async
            {
                self.codec.background.task_began(&launched.agent_id, call, true);
            }
            let synthetic = parent.is_none() || entry.is_meta;
            let read = User { parent_tool_use_id: parent, is_synthetic: Some(synthetic), ..read };
            self.codec.user(read, at, &mut out);
        } else if entry.is_compact_summary {
            let data = Map::from_iter([("summary".to_owned(), entry.text().into())]);
            out.events.push(note("compactSummary", Some("what was said before, in short".to_owned()), data));
        } else if let Some(origin) = entry.origin.as_ref().filter(|origin| !origin.is_user()) {
            // Work in the background reports, and a turn of its own begins.
            self.next_turn(at, emitted, &mut out);
            self.turn.origin = Some(origin.kind.clone());
            let text = entry.text();
            if let Some(task) = inside(text.trim(), "task-id") {
                self.codec.background.task_ended(task.trim());
            }
            let summary = one_line(inside(text.trim(), "summary").unwrap_or(&text));
            let data = Map::from_iter([("content".to_owned(), text.into())]);
            out.events.push(note(&origin.kind, Some(summary), data));
        } else if !entry.is_meta {
            self.typed(entry, &read.message.content, at, emitted, &mut out);
        }
        emitted.own(at, out);
    }

    /// The user typed something.
    fn typed(&mut self, entry: &Entry, blocks: &[Block], at: Timestamp, emitted: &mut EntryEvents, out: &mut Step) {
        match typed(&entry.text()) {
            Typed::Stopped => {
                self.turn.stopped = self.codec.emit.turns.is_open();
                self.turn.at = Some(at);
            }
            Typed::Printed(text) => self.printed(text, at, out),
            // A picture may come without a word.
            Typed::Nothing if user_message(blocks, None).is_none() || entry.text().starts_with('<') => {}
            typed => {
                if let (Some(to), false) = (&entry.parent_uuid, entry.parent_uuid == self.last)
                    && self.seen.contains(to)
                {
                    let data = Map::from_iter([("messageId".to_owned(), to.as_str().into())]);
                    let message = "the conversation continues from an earlier message".to_owned();
                    out.events.push(note("rewound", Some(message), data));
                }
                self.next_turn(at, emitted, out);
                self.codec.session.mode_is(entry.permission_mode.clone(), out);
                if let Some(EventKind::UserMessage(mut message)) = user_message(blocks, entry.uuid.clone()) {
                    if let Typed::Prompt(text) = typed {
                        message.content = text;
                    }
                    out.events.push(EventKind::UserMessage(message));
                }
            }
        }
    }

    /// What a command printed is the answer to it.
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

    fn system(&mut self, line: &str, entry: &Entry, at: Timestamp, out: &mut Step) {
        let mut data: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
        match entry.subtype.as_deref() {
            Some("turn_duration") => self.turn.duration = entry.duration_ms,
            Some("local_command") => match typed(entry.content.as_str().unwrap_or_default()) {
                Typed::Printed(text) => self.printed(text, at, out),
                Typed::Prompt(content) => {
                    self.begin_turn(at, out);
                    out.events.extend(user_message(&[Block::text(content)], entry.uuid.clone()));
                }
                Typed::Stopped | Typed::Nothing => {}
            },
            Some("api_error") => {
                let number = |key: &str| data.get(key).and_then(Value::as_u64);
                let small = |key: &str| number(key).and_then(|number| u32::try_from(number).ok());
                let error = data.get("error");
                let status = error.and_then(|error| error.get("status")?.as_u64());
                let reason = error.and_then(|error| error.get("message").unwrap_or(error).as_str());
                out.events.push(EventKind::Retry(Retry {
                    attempt: small("retryAttempt").unwrap_or(1),
                    max_attempts: small("maxRetries"),
                    delay_ms: number("retryInMs"),
                    status_code: status.and_then(|status| u16::try_from(status).ok()),
                    reason: reason.map(str::to_owned),
                }));
            }
            Some("compact_boundary") => {
                let about = data.shift_remove("compactMetadata");
                let about = about.and_then(|about| about.as_object().cloned()).unwrap_or_default();
                out.events.push(note(SystemSubtype::COMPACTED, None, about));
            }
            _ => {
                let subtype = entry.subtype.as_deref().unwrap_or("note");
                out.events.push(note(subtype, entry.content.as_str().map(one_line), without_frame(line)));
            }
        }
    }

    fn attachment(&mut self, line: &str, entry: &Entry, at: Timestamp, out: &mut Step) {
        let Some(attachment) = &entry.attachment else { return };
        let prompt = text_of(&attachment.prompt);
        let by_user = !attachment.is_meta && attachment.origin.as_ref().is_none_or(Origin::is_user);
        if attachment.kind == "queued_command" && by_user && !prompt.is_empty() {
            // It joined the turn that ran, and waits for an answer.
            self.begin_turn(at, out);
            self.turn.is_idle = false;
            out.events.extend(user_message(&[Block::text(prompt)], entry.uuid.clone()));
            return;
        }
        if SURROUNDINGS.contains(&attachment.kind.as_str()) {
            return;
        }
        let mut data: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
        let data = data.shift_remove("attachment").and_then(|data| data.as_object().cloned()).unwrap_or_default();
        out.events.push(note("attachment", Some(attachment.kind.clone()), data));
    }
}

/// The fields of an entry that are its own.
fn without_frame(line: &str) -> Map<String, Value> {
    let mut data: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    for key in FRAME {
        data.shift_remove(key);
    }
    data
}

/// Whose an entry is.
enum Whose {
    Main,
    Agent(String),
    Unknown,
}

impl Entries for Stored {
    fn begin(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        self.codec.session.stored(&self.session, &mut out);
        emitted.own(at, out);
    }

    fn entry(&mut self, line: &str, file: usize, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        let entry: Entry = match serde_json::from_str(line) {
            Ok(entry) => entry,
            Err(_) => return emitted.own(at, self.codec.decode(line, at)),
        };
        let parent = match (self.whose(&entry, file), entry.kind.as_str()) {
            (Whose::Main, _) => None,
            (Whose::Agent(call), _) => Some(call),
            (Whose::Unknown, "user" | "assistant") => {
                // Nobody is known to have begun this sub-agent.
                out.events.push(note("sidechain", None, without_frame(line)));
                return emitted.own(at, out);
            }
            (Whose::Unknown, _) => None,
        };
        let main = parent.is_none() && file == 0;
        match entry.kind.as_str() {
            "assistant" => self.assistant(line, &entry, parent, at, &mut out),
            "user" if entry.message.is_some() => self.user(line, &entry, parent, at, emitted),
            // A line as it stands in the stream, where it begins a turn.
            "system" if entry.subtype.as_deref() == Some("init") => {
                self.codec.session.init(serde_json::from_str(line).unwrap_or_default(), &mut out);
            }
            "system" => self.system(line, &entry, at, &mut out),
            // What surrounds a sub-agent is not the user's.
            "attachment" if main => self.attachment(line, &entry, at, &mut out),
            "attachment" => {}
            "cost-state" => self.cost = entry.total_cost_usd.or(self.cost),
            "summary" | "ai-title" | "custom-title" => {
                let names = [&entry.custom_title, &entry.ai_title, &entry.summary];
                let title = names.into_iter().flatten().next().cloned();
                out.events.push(note("title", title, Map::new()));
            }
            "permission-mode" => self.codec.session.mode_is(entry.permission_mode.clone(), &mut out),
            kind if SILENT.contains(&kind) => {}
            // The names of what Claude notes about a conversation have a hyphen; those of its stream have none.
            kind if kind.contains('-') => out.events.push(note(kind, None, without_frame(line))),
            "message" if prompt_of(&entry).is_some() => {
                self.next_turn(at, emitted, &mut out);
                out.events.extend(user_message(&[Block::text(entry.text())], entry.uuid.clone()));
            }
            "message" | "tool_use" | "tool_result" => {
                self.begin_turn(at, &mut out);
                self.turn.is_idle = entry.kind == "message";
                out.events.extend(self.codec.decode(line, at).events);
            }
            // Lines as they stand in the stream.
            _ => out.events.extend(self.codec.decode(line, at).events),
        }
        if main && let Some(uuid) = entry.uuid {
            self.seen.insert(uuid.clone());
            self.last = Some(uuid);
        }
        emitted.own(at, out);
    }

    fn end(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        if let Some((at, step)) = self.end_turn(at) {
            emitted.before(at, step);
        }
        emitted.own(at, self.codec.end(End::InputEnded, at));
    }
}
