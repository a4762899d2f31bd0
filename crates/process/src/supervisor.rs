//! What a binary runs that was started as `BINARY __child`: a small process between us and a program.
//!
//! It has a session of its own, adopts the orphans below it (on Linux), starts the program and then holds none of its
//! pipes. It ends every descendant, also those in sessions and groups of their own, when the program has ended, when
//! it is ordered to, and when the life line closes because we are gone, even by SIGKILL; then it ends itself.
//!
//! Started for every agent, so it starts quickly. Must not come in: anything that the program says.

#[cfg(unix)]
mod run;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// The first argument of a binary that is to [`supervise`].
pub const SUPERVISE: &str = "__child";

/// Called by somebody who is not us, or in a place where it cannot work.
const MISUSE: u8 = 2;

/// Supervises one program. `args` is what follows [`SUPERVISE`] on the command line: `-- PROGRAM [ARGS…]`.
///
/// To be called first in `main`, before threads, a runtime or the parsing of the command line. It returns when nothing
/// of the program is left, with the program's own code, or 128 and the signal that ended it.
pub fn supervise(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.skip_while(|arg| arg == "--");
    let program = args.next().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program was named"));
    program.and_then(|program| run(program, args)).unwrap_or_else(|error| {
        // Only a person can read this: we start it without a stderr.
        writeln!(io::stderr(), "{SUPERVISE} is how this program starts others, not for the command line: {error}").ok();
        ExitCode::from(MISUSE)
    })
}

#[cfg(unix)]
fn run(program: OsString, args: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    run::run(program, args)
}

#[cfg(not(unix))]
fn run(_: OsString, _: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no life lines"))
}
