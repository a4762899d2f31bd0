//! Claude's lines to events.

use multitap_event::{Command, Timestamp};

use crate::codec::{Codec, End, Step};
use crate::pump::unrecognized;

/// Claude Code's dialect.
#[derive(Debug, Default)]
pub struct ClaudeCodec {}

impl ClaudeCodec {
    /// For a recorded stream.
    pub fn recorded() -> Self {
        Self::default()
    }
}

impl Codec for ClaudeCodec {
    fn begin(&mut self, _now: Timestamp) -> Step {
        Step::default()
    }

    fn decode(&mut self, line: &str, _now: Timestamp) -> Step {
        Step::event(unrecognized(line, "not known yet"))
    }

    fn encode(&mut self, _command: Command, _now: Timestamp) -> Step {
        Step::default()
    }

    fn end(&mut self, _end: End<'_>, _now: Timestamp) -> Step {
        Step::default()
    }
}
