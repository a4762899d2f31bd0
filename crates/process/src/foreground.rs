//! A program that gets the terminal for a while, such as the user's editor.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use tokio::process::Command;

/// Runs a program on this terminal, and returns when it has ended. It gets key presses and signals; it ends when the
/// user ends it, or when the future is dropped.
pub async fn foreground(program: OsString, args: impl IntoIterator<Item = OsString>) -> io::Result<ExitStatus> {
    #[expect(clippy::disallowed_methods, reason = "it has the terminal, which a supervised child never has")]
    let mut command = Command::new(program);
    command.args(args).kill_on_drop(true).status().await
}
