//! What can happen to the screen.

use std::path::PathBuf;

use crossterm::event::KeyEvent;
use multitap_event::{ClientRef, Decide, Event, Image, Prompt, Timestamp};
use multitap_hub::State;
use ratatui::layout::Size;

use crate::around::{Address, Earlier};
use crate::complete::Wanted;

/// What the clipboard had.
#[derive(Debug)]
pub(crate) enum Clipped {
    Picture(Image),
    Text(String),
    Nothing,
}

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Msg {
    /// In the session.
    Event(Box<Event>),
    /// Events are lost between these two.
    Gap {
        after: u64,
        next: u64,
    },
    /// The session as it is now.
    Snapshot(Box<State>),
    /// What came before the first event that is known; nothing if that is the first there is.
    Fetched(Result<Vec<Event>, String>),
    Key(KeyEvent),
    Paste(String),
    /// Lines up, or down where it is positive.
    Wheel(isize),
    Resized(Size),
    Focused(bool),
    /// This branch is checked out.
    Branch(Option<String>),
    /// The connection to a session that runs elsewhere is lost, and why.
    ConnectionLost(String),
    /// It is back, with this client.
    Reconnected(ClientRef),
    /// Something that was asked for was not done.
    Refused(String),
    /// A prompt was not taken, and why.
    NotSent {
        prompt: Prompt,
        why: String,
    },
    /// A prompt was not taken back, and why, unless that is because it waits no longer.
    NotWithdrawn {
        prompt: Prompt,
        why: Option<String>,
    },
    /// An answer was not taken, and why.
    NotDecided {
        decide: Decide,
        why: String,
    },
    /// What was written is kept in that file, or could not be; and why it was not used.
    Kept {
        text: String,
        why: String,
        file: Result<PathBuf, String>,
    },
    /// An editor was closed with this text.
    Edited {
        what: crate::effect::Edited,
        text: String,
    },
    /// An editor failed, and what became of the text.
    NotEdited(String),
    /// These files match.
    Found {
        wanted: Wanted,
        paths: Vec<String>,
    },
    /// A file was read that may be a picture.
    Picture {
        name: String,
        image: Result<Image, String>,
        pasted: Option<String>,
    },
    /// The clipboard was read.
    Clipped(Result<Clipped, String>),
    Sessions(Vec<Earlier>),
    Agents(Vec<String>),
    /// Where others can join now.
    Shared(Option<Address>),
    /// The time to press a key again is over.
    RepeatExpired,
    /// A question has been open long enough to be read, or closed long enough to be noticed.
    QuestionSeen,
    /// The time, while a turn runs.
    Clock(Timestamp),
    /// No more comes: the session is over, or this client was sent away.
    Over(String),
}
