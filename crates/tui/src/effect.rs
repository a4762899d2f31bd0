//! What the screen wants done: data, carried out by `run`.

use multitap_event::{ClientId, Decide, Prompt, Query, QuestionId};

use crate::around::Share;
use crate::complete::Wanted;

/// One thing to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Prompt(Prompt),
    Decide(Decide),
    Cancel,
    /// Take back a prompt that waits.
    Withdraw(Prompt),
    SetMode(String),
    SetModel(String),
    /// Ask the agent about itself; the answer comes as an event.
    Query(Query),
    /// Ask the session how it is now; the answer comes as a message.
    Snapshot,
    /// Send a client away.
    Kick(ClientId),
    /// Look for files.
    Find(Wanted),
    /// Read a picture. If it is none, and was pasted, what was pasted is text.
    Picture {
        path: String,
        pasted: Option<String>,
    },
    /// Read the clipboard.
    Paste,
    /// Keep what somebody wrote in a file: it could not be used, and why.
    Keep {
        text: String,
        why: String,
    },
    /// Keep what was sent, for other sessions.
    Remember(String),
    Sessions,
    Agents,
    Share(Share),
    /// Open the user's editor with that text; they have the terminal until it is closed.
    Edit {
        what: Edited,
        text: String,
    },
    /// Read what came before that event.
    Fetch {
        before: u64,
    },
    /// Put that into the clipboard.
    Copy(String),
    /// Somebody who looks elsewhere should look here.
    Notify {
        words: String,
        /// They do; else only who has not touched a key for a while is called.
        is_sure: bool,
    },
    /// Look which branch is checked out.
    Branch,
    /// Stop, until the shell lets this program go on.
    Suspend,
    Leave(Outcome),
}

/// What is being edited.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edited {
    Composer,
    /// What a question is about, before it is allowed; and what that was.
    Answer {
        question: QuestionId,
        before: String,
    },
}

/// How a screen was left, and so what is to become of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Somebody wants to go, and the session ends if it is ours.
    Left,
    /// It goes on for the others, without a screen.
    KeepServing,
    /// The terminal is gone.
    Gone,
    /// Go on with that session instead.
    Resume(String),
    /// Begin a new session instead.
    New,
}
