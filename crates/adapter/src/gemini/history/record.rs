//! The records of one conversation to events.
//!
//! A message may be written again with more content, and all messages again when Gemini rewrites its history: a part
//! that was emitted is not emitted again. No record ends a turn: it ends when the user writes again or no record
//! follows.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, Draft, EventKind, Image, MessageId, Timestamp, TokenUsage, TurnEnd,
    TurnStatus, UserMessage,
};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::wire::{StoredMessage as _, ToolCall, text_of};
use crate::codec::{End, Step};
use crate::emit::{Emitter, EndFacts, NoEnd, SessionFacts, Voice, note};
use crate::history::file::Lines;
use crate::history::{Entries, EntryEvents, StoredSession};
use crate::json::{JsonFields as _, one};
use crate::line::unrecognized;

pub(crate) struct Stored {
    pub(super) emit: Emitter,
    /// The emitted part of each message.
    messages: HashMap<String, Known>,
    /// Calls whose end was reported.
    pub(super) ended: HashSet<String>,
    nameless: u64,
    pub(super) turn: Turn,
}

/// The emitted part of a message.
#[derive(Default)]
struct Known {
    text: String,
    thoughts: usize,
    counted: bool,
}

#[derive(Default)]
pub(super) struct Turn {
    /// The time of its last record.
    at: Option<Timestamp>,
    used: Option<TokenUsage>,
    pub(super) words: Option<String>,
    /// The model has answered, and no call is open.
    pub(super) is_idle: bool,
    error: Option<String>,
}

impl Stored {
    pub(crate) fn new(session: &StoredSession) -> Self {
        Self {
            emit: Emitter::new(SessionFacts::stored(AgentType::Gemini, session)),
            messages: HashMap::new(),
            ended: HashSet::new(),
            nameless: 0,
            turn: Turn::default(),
        }
    }

    pub(super) fn begin_turn(&mut self, at: Timestamp, out: &mut Step) {
        if !self.emit.turns.is_open() {
            self.turn = Turn::default();
            self.emit.turns.begin(at, out);
        }
        self.turn.at = Some(at);
    }

    /// Emits the end of the turn, with the time of its last record.
    fn end_turn(&mut self, emitted: &mut Vec<Draft>) {
        if !self.emit.turns.is_open() {
            return;
        }
        let turn = std::mem::take(&mut self.turn);
        let at = turn.at.unwrap_or_else(|| Timestamp::from_millis(0));
        let mut out = Step::default();
        let open = !self.emit.tools.is_empty();
        self.emit.close_tools(|_| true, NoEnd::of_silent_agent(false), at, &mut out);
        let status = match &turn.error {
            Some(_) => TurnStatus::Failed,
            None if turn.is_idle && !open => TurnStatus::Completed,
            None => TurnStatus::Interrupted,
        };
        let end = TurnEnd {
            usage: turn.used,
            text: turn.words.filter(|_| status == TurnStatus::Completed),
            error: turn.error,
            ..TurnEnd::of(status)
        };
        self.emit.complete_turn(end, at, &mut out);
        emitted.extend(out.events.into_iter().map(|kind| Draft::new(at, kind)));
    }

    fn record(&mut self, record: &Value, at: Timestamp, emitted: &mut EntryEvents) {
        for message in record.list("messages") {
            self.message(message, at, emitted);
        }
        if let Some(set) = record.field("$set") {
            self.record(set, at, emitted);
        }
        if let Some(id) = record.text("$rewindTo") {
            self.end_turn(&mut emitted.before);
            let message = "the conversation continues from before this message".to_owned();
            emitted.own.push(Draft::new(at, note("rewound", Some(message), one("messageId", id))));
        }
        if record.speaker().is_some() {
            self.message(record, at, emitted);
        }
    }

    fn message(&mut self, message: &Value, at: Timestamp, emitted: &mut EntryEvents) {
        let own = message.text("timestamp").and_then(Timestamp::parse);
        // A message that is written again keeps its first time; its new part is emitted only now.
        let is_known = message.text("id").is_some_and(|id| self.messages.contains_key(id));
        let at = own.filter(|_| !is_known).or(self.turn.at).unwrap_or(at);
        let id = message.string("id").unwrap_or_else(|| {
            self.nameless += 1;
            format!("stored-{}", self.nameless)
        });
        let mut out = Step::default();
        match message.speaker() {
            Some("user") => self.user(message, &id, at, emitted, &mut out),
            Some("gemini" | "model" | "assistant") => self.gemini(message, &id, at, &mut out),
            Some("error") => {
                self.messages.entry(id).or_default();
                self.begin_turn(at, &mut out);
                let text = message.words();
                self.turn.error = Some(text.clone());
                let error = AgentError::new(AgentErrorKind::Unknown, text).of(AgentType::Gemini);
                out.events.push(EventKind::Error(error));
            }
            Some(word) if !self.messages.contains_key(&id) => {
                self.messages.entry(id).or_default();
                let (message, data) = (Some(message.words()).filter(|text| !text.is_empty()), Map::new());
                out.events.push(note(word, message, data));
            }
            _ => {}
        }
        emitted.own(at, out);
    }

    fn user(&mut self, message: &Value, id: &str, at: Timestamp, emitted: &mut EntryEvents, out: &mut Step) {
        for answer in message.parts("functionResponse") {
            self.answered(answer, at, out);
        }
        if self.messages.contains_key(id) {
            return;
        }
        self.messages.entry(id.to_owned()).or_default();
        if !message.is_prompt() {
            return;
        }
        if emitted.own.is_empty() {
            self.end_turn(&mut emitted.before);
        } else {
            // In a single document, the earlier messages are in the same record.
            self.end_turn(&mut emitted.own);
        }
        self.begin_turn(at, out);
        let images = message.parts("inlineData").into_iter().filter_map(image).collect();
        let (content, message_id) = (message.words(), Some(MessageId::from(id)));
        let message = UserMessage { content, images, message_id, ..UserMessage::default() };
        out.events.push(EventKind::UserMessage(message));
    }

    fn gemini(&mut self, message: &Value, id: &str, at: Timestamp, out: &mut Step) {
        let known = self.messages.remove(id).unwrap_or_default();
        let text = text_of(message.field("content"));
        let thoughts = message.list("thoughts");
        let tool_calls: Vec<ToolCall> =
            message.field("toolCalls").and_then(|calls| Vec::deserialize(calls).ok()).unwrap_or_default();
        let tokens = message.field("tokens").filter(|tokens| tokens.is_object());
        let more = text.strip_prefix(known.text.as_str()).unwrap_or_default();
        let calls = message.parts("functionCall");
        let new_call = |call: &ToolCall| !self.ended.contains(&call.id);
        let is_news = !more.is_empty()
            || thoughts.len() > known.thoughts
            || tool_calls.iter().any(new_call)
            || (!known.counted && tokens.is_some());
        if is_news {
            self.begin_turn(at, out);
        }
        self.emit.session.model_is(message.string("model"), out);
        for thought in thoughts.iter().skip(known.thoughts) {
            let content = match (thought.text("subject"), thought.text("description").unwrap_or_default()) {
                (None | Some(""), description) => description.to_owned(),
                (Some(subject), "") => format!("**{subject}**"),
                (Some(subject), description) => format!("**{subject}**\n{description}"),
            };
            let message_id = Some(MessageId::from(format!("{id}:thought")));
            out.events.push(Voice::Thought.event(content, false, message_id, None));
        }
        if !more.is_empty() {
            out.events.push(Voice::Speech.event(more.to_owned(), false, Some(MessageId::from(id)), None));
            self.turn.words = Some(text.clone());
        }
        if is_news {
            self.turn.is_idle = !text.is_empty() && calls.is_empty();
        }
        if let Some(tokens) = tokens.filter(|_| !known.counted) {
            let sum = TokenUsage::of(tokens.count("input"), tokens.count("output"));
            let usage = TokenUsage {
                cached_tokens: Some(tokens.count("cached")),
                reasoning_tokens: tokens.number("thoughts").filter(|count| *count > 0),
                total_tokens: tokens.number("total").unwrap_or(sum.total_tokens),
                ..sum
            };
            self.turn.used = TokenUsage::sum(self.turn.used, Some(usage));
        }
        for call in &tool_calls {
            self.call(call, at, out);
        }
        for call in calls {
            let word = |key: &str| call.string(key).unwrap_or_default();
            let args = call.object("args").cloned();
            self.call(&ToolCall { id: word("id"), name: word("name"), args, ..ToolCall::default() }, at, out);
        }
        let counted = known.counted || tokens.is_some();
        let thoughts = known.thoughts.max(thoughts.len());
        let text = if more.is_empty() { known.text } else { text };
        self.messages.insert(id.to_owned(), Known { text, thoughts, counted });
    }
}

fn image(part: &Map<String, Value>) -> Option<Image> {
    let media_type = part.string("mimeType").filter(|kind| kind.starts_with("image/"))?;
    Some(Image { media_type, data: part.string("data")? })
}

impl Entries for Stored {
    fn open(&self, path: &Path) -> io::Result<Lines> {
        super::lines(path)
    }

    fn begin(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        self.emit.session.start(&mut out);
        emitted.own(at, out);
    }

    fn entry(&mut self, line: &str, _file: usize, at: Timestamp, emitted: &mut EntryEvents) {
        match serde_json::from_str::<Value>(line) {
            Ok(record) if is_known(&record) => self.record(&record, at, emitted),
            Ok(_) => emitted.own(at, Step::event(unrecognized(line, "a record of no known kind"))),
            Err(error) => emitted.own(at, Step::event(unrecognized(line, error.to_string()))),
        }
    }

    fn end(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        self.end_turn(&mut emitted.before);
        let mut out = Step::default();
        self.emit.close_tools(|_| true, NoEnd::of_silent_agent(false), at, &mut out);
        self.emit.end_session(&End::InputEnded, EndFacts::default(), at, &mut out);
        emitted.own(at, out);
    }
}

fn is_known(record: &Value) -> bool {
    let is_text = |key| record.text(key).is_some();
    is_text("sessionId") || record.object("$set").is_some() || is_text("$rewindTo") || is_text("type")
}
