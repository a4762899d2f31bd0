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

    /// Conversations stored by this agent: claude, codex, gemini or builtin [default: sessions stored by multitap]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) agent: Option<String>,

    /// Folder of the conversations [default: the current folder]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) cwd: Option<PathBuf>,

    /// Print JSON: a list as one array, a conversation as one event per line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Include all folders and archived conversations
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsSub {
    /// List them, newest first (the default)
    List {
        /// Include all folders and archived conversations
        #[arg(long)]
        all: bool,
    },
    /// Show a conversation: messages, tool calls and their results
    Show {
        /// Id or a prefix of it; `latest` is the newest in the folder
        id: String,
        /// With --json: include each native line in the `raw` field of an event
        #[arg(long, requires = "json")]
        raw: bool,
    },
    /// Print a conversation as events, one JSON line each
    Export {
        /// Id or a prefix of it; `latest` is the newest in the folder
        id: String,
        /// Include each native line in the `raw` field of an event
        #[arg(long)]
        raw: bool,
    },
    /// Delete a session; with --agent, archive a conversation where the agent supports it (codex)
    Rm {
        /// Id or a prefix of it; `latest` is the newest in the folder
        id: String,
    },
}
