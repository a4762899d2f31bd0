//! A program that has the terminal for a while, such as the user's editor.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use tokio::process::Command;

/// Runs a program on this terminal, and comes back when it has ended. It gets what is typed, signals too; it is the
/// user's own and ends when the user ends it, or when nobody waits for it any more.
pub async fn foreground(program: OsString, args: impl IntoIterator<Item = OsString>) -> io::Result<ExitStatus> {
    #[expect(clippy::disallowed_methods, reason = "it has the terminal, which a supervised child never has")]
    let mut command = Command::new(program);
    command.args(args).kill_on_drop(true).status().await
}
