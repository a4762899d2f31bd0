//! Claude Code: how it is started.

mod decode;

use multitap_event::{SessionConfig, Unsupported};
use multitap_process::StdinMode;

pub use decode::ClaudeCodec;

use crate::codec::Files;
use crate::spec::Plan;

/// The arguments and the codec for one Claude session.
pub(crate) fn plan(_config: &SessionConfig, _files: Box<dyn Files>) -> Result<Plan<ClaudeCodec>, Unsupported> {
    let args = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    Ok(Plan {
        args: args.map(str::to_owned).to_vec(),
        env: Vec::new(),
        stdin: StdinMode::Piped,
        codec: ClaudeCodec::recorded(),
    })
}
