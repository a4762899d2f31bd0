//! The records of one conversation to events.
//!
//! A message may be written again with more in it, and all of them at once when Gemini puts its history in order:
//! what was emitted of a message is not emitted again. No record ends a turn: it is over when the user speaks again or
//! nothing follows.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, Draft, EventKind, Image, MessageId, Timestamp, TokenUsage, TurnEnd,
    TurnStatus, UserMessage,
};
use serde_json::{Map, Value};

use super::wire::{Record, ToolCall, text_of};
use crate::codec::{End, Step};
use crate::emit::{DENIED, Emitter, EndFacts, NoEnd, SessionFacts, Voice, note, report_model};
use crate::history::file::Lines;
use crate::history::{Entries, EntryEvents, StoredSession};
use crate::line::unrecognized;

/// Why a call has no end.
const NO_END: NoEnd<'_> = NoEnd { why: "the agent did not report how this call ended", why_denied: Some(DENIED) };

/// A conversation in Gemini's store.
pub(crate) struct Stored {
    session: StoredSession,
    pub(super) emit: Emitter,
    /// What was emitted of each message.
    messages: HashMap<String, Known>,
    /// Calls whose end was reported.
    pub(super) ended: HashSet<String>,
    nameless: u64,
    model: Option<String>,
    pub(super) turn: Turn,
}

/// What was emitted of a message.
#[derive(Default)]
struct Known {
    text: String,
    thoughts: usize,
    counted: bool,
}

/// The running turn.
#[derive(Default)]
pub(super) struct Turn {
    /// When the last of it was written.
    at: Option<Timestamp>,
    used: Option<TokenUsage>,
    pub(super) words: Option<String>,
    /// The model has answered, and nothing is waited for.
    pub(super) is_idle: bool,
    error: Option<String>,
}

impl Stored {
    pub(crate) fn new(session: &StoredSession) -> Self {
        Self {
            session: session.clone(),
            emit: Emitter::new(AgentType::Gemini),
            messages: HashMap::new(),
            ended: HashSet::new(),
            nameless: 0,
            model: session.model.clone(),
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

    /// Emits the end of the turn, at the time of the last that belonged to it.
    fn end_turn(&mut self, emitted: &mut Vec<Draft>) {
        if !self.emit.turns.is_open() {
            return;
        }
        let turn = std::mem::take(&mut self.turn);
        let at = turn.at.unwrap_or_else(|| Timestamp::from_millis(0));
        let mut out = Step::default();
        let open = !self.emit.tools.is_empty();
        self.emit.tools.close(|_| true, NO_END, Some(at), &mut out);
        let status = match &turn.error {
            Some(_) => TurnStatus::Failed,
            None if turn.is_idle && !open => TurnStatus::Completed,
            None => TurnStatus::Interrupted,
        };
        let end = TurnEnd {
            usage: turn.used,
            text: turn.words.filter(|_| status == TurnStatus::Completed),
            error: turn.error,
            denials: self.emit.tools.take_denials(),
            ..TurnEnd::of(status)
        };
        self.emit.turns.complete(end, Some(at), &mut out);
        emitted.extend(out.events.into_iter().map(|kind| Draft::new(at, kind)));
    }

    fn record(&mut self, record: &Record, at: Timestamp, emitted: &mut EntryEvents) {
        for message in record.messages.iter().flatten() {
            self.message(message, at, emitted);
        }
        if let Some(set) = &record.set {
            self.record(set, at, emitted);
        }
        if let Some(id) = &record.rewind_to {
            self.end_turn(&mut emitted.before);
            let data = Map::from_iter([("messageId".to_owned(), id.as_str().into())]);
            let message = "the conversation continues from before this message".to_owned();
            emitted.own.push(Draft::new(at, note("rewound", Some(message), data)));
        }
        if record.speaker.is_some() {
            self.message(record, at, emitted);
        }
    }

    fn message(&mut self, message: &Record, at: Timestamp, emitted: &mut EntryEvents) {
        let own = message.timestamp.as_deref().and_then(Timestamp::parse);
        // What is written again keeps its first time, but is news only now.
        let is_known = message.id.as_ref().is_some_and(|id| self.messages.contains_key(id));
        let at = own.filter(|_| !is_known).or(self.turn.at).unwrap_or(at);
        let id = message.id.clone().unwrap_or_else(|| {
            self.nameless += 1;
            format!("stored-{}", self.nameless)
        });
        let mut out = Step::default();
        match message.speaker.as_deref() {
            Some("user") => self.user(message, &id, at, emitted, &mut out),
            Some("gemini" | "model" | "assistant") => self.gemini(message, &id, at, &mut out),
            Some("error") => {
                self.messages.entry(id).or_default();
                self.begin_turn(at, &mut out);
                let text = message.text();
                self.turn.error = Some(text.clone());
                let error = AgentError::new(AgentErrorKind::Unknown, text).of(AgentType::Gemini);
                out.events.push(EventKind::Error(error));
            }
            Some(word) if !self.messages.contains_key(&id) => {
                self.messages.entry(id).or_default();
                let (message, data) = (Some(message.text()).filter(|text| !text.is_empty()), Map::new());
                out.events.push(note(word, message, data));
            }
            _ => {}
        }
        emitted.own(at, out);
    }

    fn user(&mut self, message: &Record, id: &str, at: Timestamp, emitted: &mut EntryEvents, out: &mut Step) {
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
            // All in one document: what came before is in the same record.
            self.end_turn(&mut emitted.own);
        }
        self.begin_turn(at, out);
        let images = message.parts("inlineData").into_iter().filter_map(image).collect();
        let (content, message_id) = (message.text(), Some(MessageId::from(id)));
        let message = UserMessage { content, images, message_id, ..UserMessage::default() };
        out.events.push(EventKind::UserMessage(message));
    }

    fn gemini(&mut self, message: &Record, id: &str, at: Timestamp, out: &mut Step) {
        let known = self.messages.remove(id).unwrap_or_default();
        let text = text_of(&message.content);
        let more = text.strip_prefix(known.text.as_str()).unwrap_or_default();
        let calls = message.parts("functionCall");
        let new_call = |call: &ToolCall| !self.ended.contains(&call.id);
        let is_news = !more.is_empty()
            || message.thoughts.len() > known.thoughts
            || message.tool_calls.iter().any(new_call)
            || (!known.counted && message.tokens.is_some());
        if is_news {
            self.begin_turn(at, out);
        }
        if let Some(model) = message.model.as_ref().filter(|model| self.model.as_ref() != Some(model))
            && self.model.replace(model.clone()).is_some()
        {
            report_model(model.clone(), out);
        }
        for thought in message.thoughts.iter().skip(known.thoughts) {
            let content = match (thought.subject.as_str(), thought.description.as_str()) {
                ("", description) => description.to_owned(),
                (subject, "") => format!("**{subject}**"),
                (subject, description) => format!("**{subject}**\n{description}"),
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
        if let Some(tokens) = message.tokens.as_ref().filter(|_| !known.counted) {
            let sum = TokenUsage::of(tokens.input, tokens.output);
            let usage = TokenUsage {
                cached_tokens: Some(tokens.cached),
                reasoning_tokens: Some(tokens.thoughts).filter(|count| *count > 0),
                total_tokens: tokens.total.unwrap_or(sum.total_tokens),
                ..sum
            };
            self.turn.used = Some(self.turn.used.map_or(usage, |before| before.plus(usage)));
        }
        for call in &message.tool_calls {
            self.call(call, at, out);
        }
        for call in calls {
            let word = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let args = call.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
            self.call(&ToolCall { id: word("id"), name: word("name"), args, ..ToolCall::default() }, at, out);
        }
        let counted = known.counted || message.tokens.is_some();
        let thoughts = known.thoughts.max(message.thoughts.len());
        let text = if more.is_empty() { known.text } else { text };
        self.messages.insert(id.to_owned(), Known { text, thoughts, counted });
    }
}

fn image(part: &Map<String, Value>) -> Option<Image> {
    let word = |key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Image { media_type: word("mimeType").filter(|kind| kind.starts_with("image/"))?, data: word("data")? })
}

impl Entries for Stored {
    fn open(&self, path: &Path) -> io::Result<Lines> {
        super::lines(path)
    }

    fn begin(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        let session = &self.session;
        let mut facts = SessionFacts {
            native_id: Some(session.id.clone()),
            cwd: session.folder.as_ref().map(|folder| folder.display().to_string()),
            model: session.model.clone(),
            ..SessionFacts::stored(AgentType::Gemini)
        };
        emitted.own(
            at,
            Step::of(|out| {
                facts.start(out);
            }),
        );
    }

    fn entry(&mut self, line: &str, _file: usize, at: Timestamp, emitted: &mut EntryEvents) {
        match serde_json::from_str::<Record>(line) {
            Ok(record) if record.is_known() => self.record(&record, at, emitted),
            Ok(_) => emitted.own(at, Step::event(unrecognized(line, "a record of no known kind"))),
            Err(error) => emitted.own(at, Step::event(unrecognized(line, error.to_string()))),
        }
    }

    fn end(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        self.end_turn(&mut emitted.before);
        let mut out = Step::default();
        self.emit.tools.close(|_| true, NO_END, Some(at), &mut out);
        self.emit.turns.end(End::InputEnded, EndFacts::default(), Some(at), &mut out);
        emitted.own(at, out);
    }
}

impl Record {
    /// Whether we know what it is for.
    fn is_known(&self) -> bool {
        self.session_id.is_some() || self.set.is_some() || self.rewind_to.is_some() || self.speaker.is_some()
    }
}
