//! The screen's requests to the program that shows it: other sessions, agents, the door, the clipboard.

use std::pin::Pin;
use std::sync::Arc;

/// A reply that may take a while. An error is text for the user.
pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Reads the clipboard of this machine's desktop, wherever the session runs.
pub type ReadClipboard = Arc<dyn Fn() -> HostFuture<'static, ClipboardContent> + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClipboardContent<P = Vec<u8>> {
    /// The bytes of a file that the desktop calls a picture, or the picture that they are.
    Picture(P),
    Text(String),
    Nothing,
}

/// The program around the screen. By default it can do nothing for a session that runs elsewhere.
pub trait TerminalHost: Send + Sync {
    /// Sessions that can be resumed instead of this one, the newest first.
    fn sessions(&self) -> HostFuture<'_, Vec<ResumableSession>> {
        elsewhere()
    }

    /// The agents of this machine, one line each.
    fn agents(&self) -> HostFuture<'_, Vec<String>> {
        elsewhere()
    }

    /// Opens or closes the door. Returns its address if it is open now.
    fn share(&self, _: ShareRequest) -> HostFuture<'_, Option<JoinAddress>> {
        elsewhere()
    }
}

/// The host of a session that runs elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct DetachedHost;

impl TerminalHost for DetachedHost {}

fn elsewhere<T: Send + 'static>() -> HostFuture<'static, T> {
    Box::pin(async { Err("not available: this session runs elsewhere".to_owned()) })
}

/// An earlier session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumableSession {
    pub id: String,
    pub title: String,
    /// Its agent and its age.
    pub about: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareRequest {
    /// Open it, at that port if there is one. An open door stays as it is.
    On {
        port: Option<u16>,
    },
    Off,
}

/// Where others join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinAddress {
    pub url: String,
    /// The token that clients need, if it may be shown.
    pub token: Option<String>,
    /// Who can reach it, and what they need.
    pub note: String,
}
