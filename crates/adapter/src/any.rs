//! A codec of any of the agents, for whoever reads a stream without knowing whose it is.

use multitap_event::{Command, Timestamp};

use crate::acp::AcpCodec;
use crate::claude::ClaudeCodec;
use crate::codec::{Codec, End, Step};
use crate::codex::CodexCodec;
use crate::gemini::GeminiCodec;

/// One of the codecs.
#[derive(Debug)]
pub enum AnyCodec {
    Claude(Box<ClaudeCodec>),
    Codex(Box<CodexCodec>),
    Gemini(Box<GeminiCodec>),
    Acp(Box<AcpCodec>),
}

impl AnyCodec {
    fn codec(&mut self) -> &mut dyn Codec {
        match self {
            Self::Claude(codec) => codec.as_mut(),
            Self::Codex(codec) => codec.as_mut(),
            Self::Gemini(codec) => codec.as_mut(),
            Self::Acp(codec) => codec.as_mut(),
        }
    }
}

impl Codec for AnyCodec {
    fn begin(&mut self, now: Timestamp) -> Step {
        self.codec().begin(now)
    }

    fn decode(&mut self, line: &str, now: Timestamp) -> Step {
        self.codec().decode(line, now)
    }

    fn encode(&mut self, command: Command, now: Timestamp) -> Step {
        self.codec().encode(command, now)
    }

    fn end(&mut self, end: End<'_>, now: Timestamp) -> Step {
        self.codec().end(end, now)
    }

    fn turn_process_ended(&mut self, end: End<'_>, now: Timestamp) -> Step {
        self.codec().turn_process_ended(end, now)
    }

    fn command_variable(&self) -> Option<&'static str> {
        match self {
            Self::Claude(codec) => codec.command_variable(),
            Self::Codex(codec) => codec.command_variable(),
            Self::Gemini(codec) => codec.command_variable(),
            Self::Acp(codec) => codec.command_variable(),
        }
    }
}
