//! The options of `multitap acp`.

use std::time::Duration;

use clap::Args;

use super::{AgentArgs, seconds};

const EXAMPLES: &str = "\
Examples:
  multitap acp                                an ACP agent for an editor, which
                                              starts this command itself
  multitap acp --agent codex                  the same with Codex
  multitap acp --attach 0197                  join a running session by its id
  multitap acp --attach http://localhost:4100

docs/editors.md shows what to write into the settings of each editor.
stdout carries the protocol only; messages go to stderr.";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct AcpArgs {
    /// Join a running session instead of opening new ones: its id, a prefix of it, or a URL
    ///
    /// A URL gets the token in `MULTITAP_TOKEN`. Options of the agent do not apply to a running session.
    #[arg(long, value_name = "URL|SESSION")]
    pub(crate) attach: Option<String>,

    /// Deny a question after S seconds without an answer
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "attach")]
    pub(crate) question_timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) with: AgentArgs,
}
