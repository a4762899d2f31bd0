//! The options of `multitap sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const SESSIONS: &str = "\
Examples:
  multitap sessions                           list the sessions of this folder
  multitap sessions list --all                list the sessions of all folders
  multitap sessions list --agent codex --all  list what Codex stored itself
  multitap sessions show latest               show the newest session
  multitap sessions export ID > talk.jsonl    save its events as JSON lines
  multitap -p \"go on\" -r ID                   resume it

ID is Multitap's id, the agent's own, a prefix of either, or `latest` for the newest
in the folder. With --agent gemini, ID may also be the number that
`gemini --list-sessions` shows.

With --agent, multitap reads the files of Claude Code, Codex or Gemini CLI, even
of conversations that it did not run.";

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
    /// List sessions, newest first (the default)
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
