//! Becoming another program: for a process of ours that only prepares the ground for it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Becomes that program, in the same process: with its number, pipes, folder and environment. Comes back only with the
/// reason why it could not.
pub fn replace(program: OsString, args: impl Iterator<Item = OsString>) -> io::Error {
    #[expect(clippy::disallowed_methods, reason = "no child: it takes our own place")]
    let mut command = Command::new(program);
    command.args(args).exec()
}
