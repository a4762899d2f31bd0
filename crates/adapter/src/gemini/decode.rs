//! The lines of `gemini -o stream-json` to events: one line in, its events out.

use std::collections::BTreeMap;
use std::fmt;

use multitap_event::{AgentType, Command, EventKind, ModelUsage, Retry, Timestamp};

use super::run::Runs;
use super::wire::{Content, Init, Message, Retried};
use crate::codec::{Codec, End, Files, NoFiles, Step, read};
use crate::emit::{Emitter, SessionFacts, SessionMode, Voice};
use crate::json::text_of;
use crate::line::{typed, unrecognized};

/// The value of `transport` in `sessionStarted`.
const TRANSPORT: &str = "stream-json";

/// Gemini CLI's dialect without ACP: one process per turn, and questions cannot be asked.
pub struct StreamCodec {
    pub(super) files: Box<dyn Files>,
    /// The arguments of its processes; a recorded stream has none.
    pub(super) runs: Option<Runs>,
    pub(super) emit: Emitter,
    /// What the session has used so far, by model.
    pub(super) spent: BTreeMap<String, ModelUsage>,
    /// Number of calls that came with their result.
    pub(super) calls: u64,
}

impl fmt::Debug for StreamCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamCodec").finish_non_exhaustive()
    }
}

impl StreamCodec {
    /// A codec for a recorded stream: no process, no files, nothing known beforehand.
    pub(crate) fn recorded() -> Self {
        Self {
            files: Box::new(NoFiles),
            runs: None,
            emit: Emitter::new(SessionFacts::new(AgentType::Gemini, Some(TRANSPORT))),
            spent: BTreeMap::new(),
            calls: 0,
        }
    }

    /// A codec for a session with one process per turn.
    pub(super) fn live(runs: Runs, native_id: String, files: Box<dyn Files>) -> Self {
        let session = SessionFacts {
            stated: Some(runs.stated.clone()),
            native_id: Some(native_id),
            ..SessionFacts::new(AgentType::Gemini, Some(TRANSPORT))
        };
        Self { files, runs: Some(runs), emit: Emitter::new(session), ..Self::recorded() }
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
                "message" => read(self, line, out, |codec, message: Message, out| {
                    // A message of the user repeats the prompt.
                    if message.role.as_deref() != Some("user") {
                        codec.speech(message.content, message.delta, now, out);
                    }
                }),
                "tool_use" => read(self, line, out, |codec, call, out| codec.tool_use(call, now, out)),
                "tool_result" => read(self, line, out, |codec, result, out| codec.tool_result(result, now, out)),
                "result" => read(self, line, out, |codec, done, out| codec.result(done, now, out)),
                "error" => read(self, line, out, |codec, trouble, out| codec.trouble(trouble, now, out)),
                // Of older versions.
                "content" => read(self, line, out, |codec, content: Content, out| {
                    codec.speech(text_of(&content.value), true, now, out);
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

    fn end(&mut self, end: &End, now: Timestamp) -> Step {
        Step::of(|out| self.ended(end, now, out))
    }

    fn turn_process_ended(&mut self, end: &End, now: Timestamp) -> Step {
        Step::of(|out| self.process_over(end, now, out))
    }
}

impl StreamCodec {
    fn init(&mut self, init: Init, now: Timestamp, out: &mut Step) {
        let facts = &mut self.emit.session;
        let news = init.session_id.filter(|id| facts.native_id.as_ref() != Some(id));
        // A new conversation has the id that we chose, which counts only once Gemini has accepted it.
        let changed = facts.started && (news.is_some() || self.runs.as_ref().is_some_and(|runs| !runs.begun));
        facts.native_id = news.or(facts.native_id.take());
        if !facts.started {
            facts.model = init.model.or(facts.model.take());
        }
        self.start(out);
        if changed {
            self.emit.session.report_identity(out);
        }
        if let Some(runs) = &mut self.runs {
            runs.begun = true;
        }
        self.emit.turns.begin(now, out);
    }

    /// Emits `sessionStarted`, once.
    pub(super) fn start(&mut self, out: &mut Step) {
        let facts = &mut self.emit.session;
        let Some(runs) = &self.runs else {
            facts.start(out);
            return;
        };
        let unified = None; // The configuration states it.
        facts.mode = runs.mode_word().map(|native| SessionMode { native, unified });
        // The id of a new conversation counts only once Gemini has accepted it.
        let native_id = facts.native_id.take();
        facts.native_id = native_id.clone().filter(|_| runs.begun);
        facts.start(out);
        facts.native_id = native_id;
    }

    /// Begins a turn when something in it arrives; a recording may lack its beginning.
    pub(super) fn at_work(&mut self, now: Timestamp, out: &mut Step) {
        self.start(out);
        self.emit.turns.begin(now, out);
    }

    fn speech(&mut self, content: String, is_partial: bool, now: Timestamp, out: &mut Step) {
        self.at_work(now, out);
        // Some versions end a streamed message with its whole text.
        if content.is_empty() || (!is_partial && self.emit.messages.is(&content)) {
            return;
        }
        let id = self.emit.messages.id(Voice::Speech, None, self.emit.turns.count());
        self.emit.messages.said(&content, is_partial);
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
