//! A live session on the screen.
//!
//! Data walks in a circle: keys and events become messages, `app::update` is the only place where the model changes,
//! what it wants done comes back as effects, and `view` draws the model and nothing else. The session is a
//! [`multitap_hub::Session`], wherever it runs.
//!
//! Must not come in: agents, doors, settings files, the log.

mod app;
mod around;
mod choose;
mod clean;
mod commands;
mod complete;
mod composer;
mod effect;
mod figures;
mod files;
mod highlight;
mod history;
mod keep;
mod keys;
mod markdown;
mod msg;
mod picture;
mod preferences;
mod run;
mod seat;
#[doc(hidden)]
pub mod stage;
mod terminal;
#[cfg(test)]
mod tests;
mod theme;
mod transcript;
mod view;
mod wrap;

pub use around::{Address, Answer, Around, Clip, Clipboard, Earlier, Elsewhere, Share};
pub use choose::{Choosing, choose};
pub use effect::Outcome;
pub use picture::{LARGEST as LARGEST_PICTURE, PictureError, read as read_picture};
pub use preferences::{Notify, Preferences};
pub use run::{Branch, Editing, Editor, Options, RunError, run};
pub use seat::{GaveUp, Seat};
pub use terminal::{give_back, let_go};
