//! A live session on the screen.
//!
//! Data flows in a circle: keys and events become messages, `app::update` is the only place where the model changes, it
//! returns effects, and `view` draws the model. The session is a [`multitap_hub::Session`], local or remote.
//!
//! Must not come in: agents, doors, settings files, the log.

mod ansi;
mod app;
#[doc(hidden)]
pub mod bench_screen;
mod choice;
mod clean;
mod commands;
mod complete;
mod composer;
mod diff;
mod effect;
mod files;
mod highlight;
mod history;
mod host;
mod keys;
mod lease;
mod markdown;
mod msg;
mod number;
mod picture;
mod preferences;
mod run;
mod saved_text;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod transcript;
mod view;
mod wrap;

pub use choice::{ChoiceDialog, choose};
pub use effect::ScreenExit;
pub use files::FileIndex;
pub use host::{
    ClipboardContent, DetachedHost, HostFuture, JoinAddress, ReadClipboard, ResumableSession, ShareRequest,
    TerminalHost,
};
pub use lease::{TerminalLease, WaitInterrupted};
pub use picture::{LARGEST as LARGEST_PICTURE, PictureError, read as read_picture};
pub use preferences::{Colours, Notifications, TerminalPreferences, supports_links};
pub use run::{EditFuture, OpenEditor, ReadBranch, ScreenError, ScreenOptions, run};
pub use terminal::{detach_stdin, restore_terminal};
