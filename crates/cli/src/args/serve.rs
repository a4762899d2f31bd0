//! The options of `multitap serve`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::door::{AccessArgs, DOOR, PublicArgs, PushArgs};
use super::{AgentArgs, seconds};

const EXAMPLES: &str = "\
Examples:
  multitap serve                              host sessions in the current folder, on
                                              a free port of this machine
  multitap serve --port 4100 --root ~/work --agent claude
  multitap serve --host 0.0.0.0 --port 4100 --token-file tokens --allow-host box.example

When it is ready it prints one line: `multitap listening on http://HOST:PORT`.
Ctrl+C ends all sessions and then the host; a second Ctrl+C ends it at once.
docs/security.md describes who can connect.

Exit codes:
    0  ended by a signal
    1  it cannot listen, for example because the port is in use
    2  invalid options, settings or tokens
  130  ended by a second signal";

const HOST: &str = "Sessions";

#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Port to listen on; 0 picks a free port
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = DOOR)]
    pub(crate) port: u16,

    /// Name or address to listen on; requires tokens if other machines can reach it
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", help_heading = DOOR)]
    pub(crate) host: String,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    #[command(flatten)]
    pub(crate) public: PublicArgs,

    #[command(flatten)]
    pub(crate) push: PushArgs,

    /// Folder that sessions may work in or below (repeatable) [default: the current folder]
    #[arg(long, value_name = "DIR", help_heading = HOST)]
    pub(crate) root: Vec<PathBuf>,

    /// Accept allowed tools, MCP servers and environment variables from any client, not only from owners
    #[arg(long, help_heading = HOST)]
    pub(crate) trust_client_settings: bool,

    /// Maximum number of open sessions
    ///
    /// When the limit is reached, a new session closes the one that has been idle longest without clients. The closed
    /// session stays stored; the next message resumes it.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..), help_heading = HOST)]
    pub(crate) max_sessions: u32,

    /// Close sessions idle for N minutes; the next message resumes them
    #[arg(long, value_name = "MINUTES", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..), help_heading = HOST)]
    pub(crate) idle: u32,

    /// Deny a question after S seconds without an answer
    #[arg(long, value_name = "S", value_parser = seconds, help_heading = HOST)]
    pub(crate) question_timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) with: AgentArgs,
}
