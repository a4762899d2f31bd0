//! For tests: a scripted model server, the pinned real CLIs, a place to run them in, fake agents, fixtures.
//!
//! A dev-dependency only; nothing here is shipped.

pub mod cli;
pub mod fake;
pub mod fixture;
pub mod install;
pub mod interop;
pub mod model;
pub mod record;
mod scratch;
mod script;
pub mod wait;

pub use self::scratch::{MARKER, Scratch};

/// The one place where tests start a program without our own supervision: what they start is under test.
#[expect(clippy::disallowed_methods, reason = "testkit does not depend on the crates it tests")]
pub(crate) fn command(program: &std::ffi::OsStr) -> std::process::Command {
    std::process::Command::new(program)
}
