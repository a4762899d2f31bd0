//! Replaces a process of ours by another program.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Executes that program in this process, with the same id, pipes, folder and environment. Returns only on failure.
pub fn replace(program: OsString, args: impl Iterator<Item = OsString>) -> io::Error {
    #[expect(clippy::disallowed_methods, reason = "no child: it takes our own place")]
    let mut command = Command::new(program);
    command.args(args).exec()
}
