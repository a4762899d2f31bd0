//! What lies around the session, which the screen asks for and cannot do itself: other sessions, agents, the door.

use std::pin::Pin;
use std::sync::Arc;

/// An answer that may take a while; what went wrong comes as words for whoever sits here.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Reads the clipboard of this machine's desktop, wherever the session runs.
pub type Clipboard = Arc<dyn Fn() -> Answer<'static, Clip> + Send + Sync>;

/// What lies in the clipboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clip {
    /// The bytes of a picture, as far as the desktop knows.
    Picture(Vec<u8>),
    Text(String),
    Nothing,
}

/// The world outside the session, as far as the screen reaches.
pub trait Around: Send + Sync {
    /// Sessions that could be taken up instead of this one, the newest first.
    fn sessions(&self) -> Answer<'_, Vec<Earlier>>;
    /// The agents of this machine, one line each.
    fn agents(&self) -> Answer<'_, Vec<String>>;
    /// Opens the door, or closes it. Says where it is then.
    fn share(&self, share: Share) -> Answer<'_, Option<Address>>;
}

/// A session of before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    pub id: String,
    /// What it was about.
    pub title: String,
    /// Its agent and how long ago it was.
    pub about: String,
}

/// What is to become of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Open, at that port if one is named; one that is open stays as it is.
    On {
        port: Option<u16>,
    },
    Off,
}

/// Where others join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub url: String,
    /// What they must bring, if it may be shown.
    pub token: Option<String>,
    /// In words: who can reach it, and what they need.
    pub note: String,
}

/// For a session that runs elsewhere: nothing of this can be done from here.
#[derive(Debug, Clone, Copy, Default)]
pub struct Elsewhere;

impl Around for Elsewhere {
    fn sessions(&self) -> Answer<'_, Vec<Earlier>> {
        elsewhere()
    }

    fn agents(&self) -> Answer<'_, Vec<String>> {
        elsewhere()
    }

    fn share(&self, _: Share) -> Answer<'_, Option<Address>> {
        elsewhere()
    }
}

fn elsewhere<T: Send + 'static>() -> Answer<'static, T> {
    Box::pin(async { Err("this session runs elsewhere: that can be done only where it does".to_owned()) })
}
