//! Inputs of the screen: everything that can happen to it.

use std::path::PathBuf;

use crossterm::event::KeyEvent;
use multitap_event::{ClientRef, Decide, Event, Image, Prompt, Timestamp};
use multitap_hub::State;
use ratatui::layout::Size;

use crate::complete::Wanted;
use crate::effect::Edited;
use crate::host::{JoinAddress, ResumableSession};

/// The content of the clipboard.
#[derive(Debug)]
pub(crate) enum Clipped {
    Picture(Image),
    Text(String),
    Nothing,
}

#[derive(Debug)]
pub(crate) enum Msg {
    Event(Box<Event>),
    /// The events between these two are lost.
    Gap {
        after: u64,
        next: u64,
    },
    Snapshot(Box<State>),
    /// Older events. An empty list means that there are none.
    Fetched(Result<Vec<Event>, String>),
    Key(KeyEvent),
    Paste(String),
    /// The wheel was turned by that many lines, up if they are negative.
    Wheel(isize),
    Resized(Size),
    /// The terminal got or lost the focus.
    Focused(bool),
    /// The branch that is checked out.
    Branch(Option<String>),
    /// The connection to a session that runs elsewhere is lost, and why.
    ConnectionLost(String),
    /// The connection is back, with this client.
    Reconnected(ClientRef),
    Refused(String),
    /// A prompt was refused.
    NotSent {
        prompt: Prompt,
        why: String,
    },
    /// A prompt could not be withdrawn. `why` is `None` if it was already sent to the agent.
    NotWithdrawn {
        prompt: Prompt,
        why: Option<String>,
    },
    /// An answer was refused.
    NotDecided {
        decide: Decide,
        why: String,
    },
    /// A text that could not be used was saved in a file, or could not be. `why` it could not be used.
    TextSaved {
        text: String,
        why: String,
        file: Result<PathBuf, String>,
    },
    /// The editor was closed.
    Edited {
        what: Edited,
        text: String,
    },
    /// The editor failed.
    NotEdited(String),
    /// Files that match.
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
    Clipped(Result<Clipped, String>),
    Sessions(Vec<ResumableSession>),
    Agents(Vec<String>),
    /// The door is open at that address, or closed.
    Shared(Option<JoinAddress>),
    /// The time to press a key again is over.
    RepeatExpired,
    /// A question has been open long enough to be read, or closed long enough to be noticed.
    QuestionSeen,
    /// The time, while a turn runs.
    Clock(Timestamp),
    /// No more events come, and why.
    Over(String),
}
