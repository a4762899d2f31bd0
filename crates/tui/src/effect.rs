//! Effects that `update` requests: data, carried out by `run`.

use multitap_event::{ClientId, Decide, Prompt, Query, QuestionId};

use crate::complete::Wanted;
use crate::host::ShareRequest;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    Prompt(Prompt),
    Decide(Decide),
    Cancel,
    Withdraw(Prompt),
    SetMode(String),
    SetModel(String),
    /// Ask the agent about itself. The reply is an event.
    Query(Query),
    Snapshot,
    Kick(ClientId),
    Find(Wanted),
    /// Read an image. If the file is not an image and its path was pasted, insert the path as text.
    Picture {
        path: String,
        pasted: Option<String>,
    },
    Paste,
    /// Save a text in a file. `why` it could not be used.
    SaveText {
        text: String,
        why: String,
    },
    Remember(String),
    Sessions,
    Agents,
    Share(ShareRequest),
    /// Open a text in the user's editor, which has the terminal until it is closed.
    Edit {
        what: Edited,
        text: String,
    },
    Fetch {
        before: u64,
    },
    Copy(String),
    Notify {
        words: String,
        /// The user looks elsewhere; otherwise that depends on when the last key was pressed.
        is_sure: bool,
    },
    /// Read which branch is checked out.
    Branch,
    /// Stop this process until the shell continues it.
    Suspend,
    Leave(ScreenExit),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edited {
    Composer,
    /// The command or file of a question, and what it was before.
    Answer {
        question: QuestionId,
        before: String,
    },
}

/// How the user left a screen, and what to do with its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenExit {
    /// The session ends if it is ours.
    Quit,
    /// The session goes on for other clients, without a screen.
    KeepServing,
    TerminalGone,
    Resume(String),
    NewSession,
}
