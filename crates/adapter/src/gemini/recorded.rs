//! A recorded stream of Gemini, in either of its formats; the lines show which.

use multitap_event::{Command, Timestamp};

use super::decode::StreamCodec;
use crate::acp::{AcpCodec, Flavor};
use crate::codec::{Codec, End, Step};

/// Reads a recorded stream. Lines of ACP name the version of JSON-RPC, the others have a type.
#[derive(Debug)]
pub struct GeminiCodec {
    acp: Box<AcpCodec>,
    stream: StreamCodec,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unknown,
    Acp,
    Stream,
}

impl GeminiCodec {
    pub(crate) fn recorded() -> Self {
        let acp = Box::new(AcpCodec::recorded(Flavor::Gemini));
        Self { acp, stream: StreamCodec::recorded(), form: Form::Unknown }
    }

    fn codec(&mut self) -> &mut dyn Codec {
        match self.form {
            Form::Acp => self.acp.as_mut(),
            Form::Unknown | Form::Stream => &mut self.stream,
        }
    }
}

impl Codec for GeminiCodec {
    fn begin(&mut self, now: Timestamp) -> Step {
        self.codec().begin(now)
    }

    fn decode(&mut self, line: &str, now: Timestamp) -> Step {
        if self.form == Form::Unknown && line.trim_start().starts_with('{') {
            self.form = if line.contains(r#""jsonrpc""#) { Form::Acp } else { Form::Stream };
        }
        self.codec().decode(line, now)
    }

    fn encode(&mut self, command: Command, now: Timestamp) -> Step {
        self.codec().encode(command, now)
    }

    fn end(&mut self, end: &End, now: Timestamp) -> Step {
        self.codec().end(end, now)
    }
}
