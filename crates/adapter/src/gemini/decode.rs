//! The lines of `gemini -o stream-json` to events: one line in, its events out.

use std::fmt;

use multitap_event::{AgentType, Command, EventKind, Retry, Timestamp};
use serde_json::Value;

use super::run::Runs;
use super::turn::SessionUsage;
use super::wire::{Content, Init, Message, Retried};
use crate::codec::{Codec, End, Files, NoFiles, Step, read};
use crate::emit::{Emitter, MessageStream, SessionFacts, SessionMode, Voice, native_session_changed};
use crate::line::{typed, unrecognized};

/// How we drive it, in `sessionStarted`.
const TRANSPORT: &str = "stream-json";

/// Gemini CLI's dialect without ACP: a process for each turn, and nobody can be asked.
pub struct StreamCodec {
    pub(super) files: Box<dyn Files>,
    /// What its processes are started with; a recorded stream has none.
    pub(super) runs: Option<Runs>,
    pub(super) emit: Emitter,
    pub(super) messages: MessageStream,
    pub(super) spent: SessionUsage,
    pub(super) session: SessionFacts,
    /// How many calls came whole.
    pub(super) calls: u64,
}

impl fmt::Debug for StreamCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamCodec").finish_non_exhaustive()
    }
}

impl StreamCodec {
    /// For a recorded stream: no process, no files, nothing known beforehand.
    pub(crate) fn recorded() -> Self {
        Self {
            files: Box::new(NoFiles),
            runs: None,
            emit: Emitter::new(AgentType::Gemini),
            messages: MessageStream::default(),
            spent: SessionUsage::default(),
            session: SessionFacts::new(AgentType::Gemini, Some(TRANSPORT)),
            calls: 0,
        }
    }

    /// For a session whose turns are run one by one.
    pub(super) fn live(runs: Runs, native_id: String, files: Box<dyn Files>) -> Self {
        let session = SessionFacts {
            stated: Some(runs.stated.clone()),
            native_id: Some(native_id),
            ..SessionFacts::new(AgentType::Gemini, Some(TRANSPORT))
        };
        Self { files, runs: Some(runs), session, ..Self::recorded() }
    }

    /// The time, where it means something: a recorded stream is read at another time than it was written.
    pub(super) fn clock(&self, now: Timestamp) -> Option<Timestamp> {
        self.session.clock(now)
    }
}

impl Codec for StreamCodec {
    fn begin(&mut self, _now: Timestamp) -> Step {
        Step::of(|out| {
            out.ready = true;
            self.start(out);
            self.warn(out);
        })
    }

    fn decode(&mut self, line: &str, now: Timestamp) -> Step {
        Step::of_line(line, |line, out| {
            let Some(kind) = typed(line, out) else { return };
            match kind.as_ref() {
                "init" => read(self, line, out, |codec, init, out| codec.init(init, now, out)),
                "message" => read(self, line, out, |codec, message, out| codec.message(message, now, out)),
                "tool_use" => read(self, line, out, |codec, call, out| codec.tool_use(call, now, out)),
                "tool_result" => read(self, line, out, |codec, result, out| codec.tool_result(result, now, out)),
                "result" => read(self, line, out, |codec, done, out| codec.result(done, now, out)),
                "error" => read(self, line, out, |codec, trouble, out| codec.trouble(trouble, now, out)),
                // Of older versions.
                "content" => read(self, line, out, |codec, content: Content, out| {
                    let text = content.value.as_str().map_or_else(|| content.value.to_string(), str::to_owned);
                    codec.speech(text, true, now, out);
                }),
                "tool_call" => read(self, line, out, |codec, call, out| codec.whole_call(call, now, out)),
                "retry" => read(self, line, out, |codec, retried, out| codec.retry(retried, now, out)),
                _ => out.events.push(unrecognized(line, format!("unknown type '{kind}'"))),
            }
        })
    }

    fn encode(&mut self, command: Command, now: Timestamp) -> Step {
        Step::of(|out| self.command(command, now, out))
    }

    fn end(&mut self, end: End<'_>, now: Timestamp) -> Step {
        Step::of(|out| self.ended(end, now, out))
    }

    fn turn_process_ended(&mut self, end: End<'_>, now: Timestamp) -> Step {
        Step::of(|out| self.process_over(end, now, out))
    }
}

impl StreamCodec {
    fn init(&mut self, init: Init, now: Timestamp, out: &mut Step) {
        let news = init.session_id.filter(|id| self.session.native_id.as_ref() != Some(id));
        // A new conversation has the id that we gave it, which means nothing before Gemini has taken it.
        let changed =
            self.session.has_started() && (news.is_some() || self.runs.as_ref().is_some_and(|runs| !runs.begun));
        self.session.native_id = news.or(self.session.native_id.take());
        if !self.session.has_started() {
            self.session.model = init.model.or(self.session.model.take());
        }
        self.start(out);
        if let Some(id) = self.session.native_id.as_ref().filter(|_| changed) {
            native_session_changed(id, out);
        }
        if let Some(runs) = &mut self.runs {
            runs.begun = true;
        }
        self.emit.turns.begin(now, out);
    }

    /// Emits `sessionStarted`, once.
    pub(super) fn start(&mut self, out: &mut Step) {
        let Some(runs) = &self.runs else {
            self.session.start(out);
            return;
        };
        let unified = None; // The configuration states it.
        self.session.mode = runs.mode_word().map(|native| SessionMode { native, unified });
        // A new conversation has an id only when Gemini has taken it.
        let native_id = self.session.native_id.take();
        self.session.native_id = native_id.clone().filter(|_| runs.begun);
        self.session.start(out);
        self.session.native_id = native_id;
    }

    /// Something of a turn comes; a recording may lack its beginning.
    pub(super) fn at_work(&mut self, now: Timestamp, out: &mut Step) {
        self.start(out);
        self.emit.turns.begin(now, out);
    }

    fn message(&mut self, message: Message, now: Timestamp, out: &mut Step) {
        // The prompt again.
        if message.role.as_deref() == Some("user") {
            return;
        }
        self.speech(message.content, message.delta, now, out);
    }

    fn speech(&mut self, content: String, is_partial: bool, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        // Some versions end a message that came in pieces with the whole of it.
        if content.is_empty() || (!is_partial && self.messages.is(&content)) {
            return;
        }
        let id = self.messages.id(Voice::Speech, None, self.emit.turns.count());
        self.messages.said(&content, is_partial);
        out.events.push(Voice::Speech.event(content, is_partial, Some(id), None));
    }

    fn retry(&mut self, retried: Retried, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        out.events.push(EventKind::Retry(Retry {
            attempt: retried.attempt.unwrap_or(1),
            max_attempts: retried.max_attempts,
            delay_ms: retried.delay_ms,
            status_code: None,
            reason: retried.reason,
        }));
    }
}

/// A JSON value as text for people.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
