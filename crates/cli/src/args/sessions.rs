//! The options of `multitap sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const SESSIONS: &str = "\
Examples:
  multitap sessions                           ours of this folder, newest first
  multitap sessions list --all                ours of every folder
  multitap sessions list --agent codex --all  Codex's own, of every folder
  multitap sessions show latest               who said what
  multitap sessions export ID > talk.jsonl    as events, one JSON line each
  multitap -p \"go on\" -r ID                   take it up again

An ID is ours or the agent's own, or the beginning of one; `latest` is the
newest in the folder; with --agent gemini it may be the number that Gemini gives
it (1 is the oldest). With --agent the files of Claude Code, Codex or Gemini CLI
are read, whether multitap knows the conversation or not.";

#[derive(Debug, Args)]
#[command(after_long_help = SESSIONS)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<SessionsSub>,

    /// The agent's own conversations: of claude, codex or gemini; of builtin, those that multitap keeps [default: the
    /// sessions that multitap keeps]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) agent: Option<String>,

    /// The folder in which they were had [default: this one]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,

    /// Print JSON, for scripts: a list as one array, a conversation as one event a line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Those of every folder, and archived ones too
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSub {
    /// List them, newest first (this is what `multitap sessions` does)
    List {
        /// Those of every folder, and archived ones too
        #[arg(long)]
        all: bool,
    },
    /// Show a conversation: who said what, which tools ran and how they ended
    Show {
        /// Its id, or how it begins; `latest` is the newest in the folder
        id: String,
        /// With --json: keep every line of the agent's files in the `raw` field of an event
        #[arg(long, requires = "json")]
        raw: bool,
    },
    /// Print a conversation as events, one JSON line each
    Export {
        /// Its id, or how it begins; `latest` is the newest in the folder
        id: String,
        /// Keep every line of the agent's files in the `raw` field of an event
        #[arg(long)]
        raw: bool,
    },
    /// Forget a session of ours; with --agent, put a conversation away where the agent can (codex archives it)
    Rm {
        /// Its id, or how it begins; `latest` is the newest in the folder
        id: String,
    },
}
