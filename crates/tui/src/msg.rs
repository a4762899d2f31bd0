//! Inputs of the screen: everything that can happen to it.

use std::path::PathBuf;

use crossterm::event::KeyEvent;
use multitap_event::{ClientRef, Decide, Event, Image, Prompt, Timestamp};
use multitap_hub::State;
use ratatui::layout::Size;

use crate::complete::Wanted;
use crate::effect::Edited;
use crate::host::{ClipboardContent, JoinAddress, ResumableSession};

#[derive(Debug)]
pub(crate) enum Msg {
    Event(Box<Event>),
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
    Focused(bool),
    Branch(Option<String>),
    ConnectionLost(String),
    /// The connection is back, with this client.
    Reconnected(ClientRef),
    Refused(String),
    NotSent {
        prompt: Prompt,
        why: String,
    },
    /// A prompt could not be withdrawn. `why` is `None` if it was already sent to the agent.
    NotWithdrawn {
        prompt: Prompt,
        why: Option<String>,
    },
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
    Edited {
        what: Edited,
        text: String,
    },
    NotEdited(String),
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
    Clipped(Result<ClipboardContent<Image>, String>),
    Sessions(Vec<ResumableSession>),
    Agents(Vec<String>),
    /// The door is open at that address, or closed.
    Shared(Option<JoinAddress>),
    /// The time to press a key again is over.
    RepeatExpired,
    /// A question has been open long enough to be read, or closed long enough to be noticed.
    QuestionSeen,
    Clock(Timestamp),
    Over(String),
}
