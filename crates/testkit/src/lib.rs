//! For tests: a scripted model server, the pinned real CLIs and A2A and ACP clients, a place to run them in,
//! fake agents, fixtures.
//!
//! A dev-dependency only; nothing here is shipped.
//!
//! A test that drives the real Claude Code:
//!
//! ```no_run
//! use multitap_testkit::cli::CLAUDE;
//! use multitap_testkit::model::{ModelServer, Reply, Tool};
//! use multitap_testkit::{Scratch, interop};
//!
//! # fn main() -> anyhow::Result<()> {
//! let Some(claude) = interop::find(CLAUDE) else { return Ok(()) };
//! let server = ModelServer::start([Reply::call(Tool::shell("touch made.txt")), Reply::text("made it")])?;
//! let scratch = Scratch::new(&server)?;
//! let output = scratch.command(&claude).args(["-p", "go", "--permission-mode", "bypassPermissions"]).output()?;
//! assert_eq!(output.stdout, b"made it\n");
//! assert!(scratch.path("made.txt").exists());
//! assert_eq!(server.conversation()[1].tool_results().len(), 1);
//! # Ok(())
//! # }
//! ```

pub mod agent;
pub mod cli;
pub mod fake;
pub mod fixture;
pub mod http;
pub mod install;
pub mod interop;
pub mod model;
pub mod peer;
pub mod record;
mod scratch;
pub mod script;
mod shell;
pub mod sut;
pub mod terminal;
pub mod wait;
pub mod webhook;
pub mod ws;

pub use self::scratch::{MARKER, Scratch};
pub use self::shell::executable;

/// The only function that starts programs in tests without our own supervision, which is under test.
#[expect(clippy::disallowed_methods, reason = "what tests start must not be started by the code under test")]
pub(crate) fn command(program: &std::ffi::OsStr) -> std::process::Command {
    std::process::Command::new(program)
}
