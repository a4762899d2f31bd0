//! The trait for an agent's dialect: lines in, events out; commands in, lines out. No I/O, no clock, no failure.

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use multitap_event::{AgentError, Command, Decide, EditedCall, EventKind, Timestamp, Unsupported};
use multitap_process::{Exit, Line};
use serde::Deserialize;

use crate::history::file;
use crate::line::{bounded, repaired, too_long, unrecognized};

/// One agent's dialect. May keep state, must not fail: a line that it does not understand becomes `unrecognized`.
pub trait Codec: Send + 'static {
    /// The program runs. Returns the first lines to send.
    fn begin(&mut self, now: Timestamp) -> Step;
    /// A line from the agent, never an empty one.
    fn decode(&mut self, line: &str, now: Timestamp) -> Step;
    /// A command for the agent. One that it cannot carry out becomes an `error` event.
    fn encode(&mut self, command: Command, now: Timestamp) -> Step;
    /// The call that an edited answer would run, or why the agent cannot run it. Changes nothing. Most agents run only
    /// the call that they asked about.
    fn edited(&self, _decide: &Decide) -> Result<EditedCall, String> {
        Err("the agent does not support edited answers".to_owned())
    }
    /// The agent's output has ended: close what is open, end the turn and the session. Only the first call has an
    /// effect.
    fn end(&mut self, end: &End, now: Timestamp) -> Step;
    /// For an agent with one process per turn: the process of this turn has ended, and the session goes on.
    fn turn_process_ended(&mut self, _end: &End, _now: Timestamp) -> Step {
        Step::default()
    }
    /// For an agent that leaves the commands of a cancelled turn running: the variable that it sets in the environment
    /// of commands, and of nothing else. The pump ends the processes that have it.
    fn command_variable(&self) -> Option<&'static str> {
        None
    }
}

/// Decodes a line of output, and returns it if it is whole. A line that is too large to read becomes `unrecognized`.
pub fn decode_line(codec: &mut (impl Codec + ?Sized), line: Line, now: Timestamp) -> (Step, Option<String>) {
    match bounded(line) {
        Line::Text(text) if text.trim().is_empty() => (Step::default(), None),
        Line::Text(text) => (codec.decode(&text, now), Some(text)),
        Line::TooLong { head, bytes } => (Step::event(too_long(&head, bytes)), None),
    }
}

/// Reads a line as `T` and hands it to `then`. A line that does not parse becomes `unrecognized`.
pub(crate) fn read<'a, C, T: Deserialize<'a>>(
    codec: &mut C,
    line: &'a str,
    out: &mut Step,
    then: impl FnOnce(&mut C, T, &mut Step),
) {
    match serde_json::from_str(line) {
        Ok(value) => then(codec, value, out),
        Err(error) => out.events.push(unrecognized(line, error.to_string())),
    }
}

/// The results of one step of a codec, in this order: events to report, lines to write to the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    pub events: Vec<EventKind>,
    pub lines: Vec<String>,
    /// The agent is up. Set at least once; meaningless after that.
    pub ready: bool,
    /// The session cannot begin, and the last error reported says why. Meaningless once the agent is up.
    pub give_up: bool,
    /// A requested setting that the agent does not support, so the session cannot begin.
    pub unsupported: Option<Unsupported>,
    /// For an agent with one process per turn: start this one.
    pub run: Option<Run>,
    /// For such an agent: end the running process.
    pub stop: bool,
}

/// One process of an agent with one process per turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub args: Vec<RunArg>,
    /// Text to write to stdin before closing it.
    pub stdin: Option<String>,
}

/// An argument: a word, or the path of a temporary file that exists as long as the process.
#[derive(Clone, PartialEq, Eq)]
pub enum RunArg {
    Word(String),
    File { suffix: String, base64: String },
}

impl RunArg {
    pub fn word(word: impl Into<String>) -> Self {
        Self::Word(word.into())
    }
}

impl fmt::Debug for RunArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "{word:?}"),
            Self::File { suffix, base64 } => write!(f, "File({suffix}, {} base64 bytes)", base64.len()),
        }
    }
}

impl Step {
    pub(crate) fn of(fill: impl FnOnce(&mut Self)) -> Self {
        // Most lines make one event. A `Vec` that grows by itself reserves room for four, and events are large.
        let mut out = Self { events: Vec::with_capacity(1), ..Self::default() };
        fill(&mut out);
        out
    }

    /// The step that `fill` makes of a line, after lone surrogates in the line were repaired.
    pub(crate) fn of_line(line: &str, fill: impl FnOnce(&str, &mut Self)) -> Self {
        Self::of(|out| fill(&repaired(line), out))
    }

    pub fn events(events: Vec<EventKind>) -> Self {
        Self { events, ..Self::default() }
    }

    pub fn event(kind: EventKind) -> Self {
        Self::events(vec![kind])
    }

    pub fn line(line: String) -> Self {
        Self { lines: vec![line], ..Self::default() }
    }

    /// The session cannot begin.
    pub(crate) fn fail(&mut self, error: AgentError) {
        self.events.push(EventKind::Error(error));
        self.give_up = true;
    }

    /// The session cannot begin: the agent does not support a setting, which only its start showed.
    pub(crate) fn fail_unsupported(&mut self, unsupported: Unsupported) {
        self.unsupported = Some(unsupported);
        self.give_up = true;
    }
}

/// Why the agent's output has ended.
#[derive(Debug, Clone)]
pub enum End {
    /// The program ended by itself, or was ended by somebody other than us.
    Exited(Exit),
    /// We asked it to end.
    Stopped(Exit),
    /// We ended it because it broke a limit or a rule of the protocol.
    Broken { exit: Exit, why: AgentError },
    /// A recorded stream is over.
    InputEnded,
}

/// A codec's access to the disk: the text of files that the agent is about to change, for diffs.
pub trait Files: Send + 'static {
    /// The file's text; `None` if there is no such file, or it is not text, or too large to show.
    fn read(&self, path: &Path) -> Option<String>;
}

/// Maximum number of files that are read for one message of an agent.
pub(crate) const MOST_READ: usize = 64;

/// No files at all: for recorded streams.
#[derive(Debug, Clone, Copy)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> Option<String> {
        None
    }
}

#[derive(Debug, Clone, Copy)]
pub struct DiskFiles;

/// Maximum size of a file that is shown whole in a question.
const LARGEST_SHOWN: u64 = 2 * 1024 * 1024;

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> Option<String> {
        let file = file::open(path).ok()?;
        let mut text = String::new();
        if file.metadata().ok()?.len() > LARGEST_SHOWN {
            return None;
        }
        file.take(LARGEST_SHOWN).read_to_string(&mut text).ok()?;
        Some(text)
    }
}
