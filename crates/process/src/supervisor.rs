//! The supervisor, which a binary runs as `BINARY __child`: a small process between us and a program.
//!
//! It has a session of its own, adopts the orphans below it (on Linux), starts the program and then holds none of its
//! pipes. It ends every descendant, also those in sessions and groups of their own, when the program has ended, when
//! it is ordered to, and when the life line closes because we are gone, even by SIGKILL; then it ends itself.
//!
//! On Linux there are two of them, one above the other, both subreapers: the outer one started by us, the inner one
//! by the outer one. The inner one has the life line and does the work. If it is killed, its descendants are
//! reparented to the outer one, which ends them; if the outer one is killed, the inner one ends everything. If
//! somebody stopped them and then killed us, the kernel continues the outer one, and it continues the inner one. If
//! both are killed together with us, the program dies with the inner one; what else is left is ended by the next host
//! ([`end_leftovers`](crate::end_leftovers)). Elsewhere there are no subreapers, and one supervisor alone.
//!
//! Started for every agent, so it starts quickly. Must not come in: the program's data.

#[cfg(unix)]
mod commands;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod start;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::process::ExitCode;

/// The first argument of a binary that is to call [`supervise`].
pub const SUPERVISE: &str = "__child";

/// Exit code for a direct call by a user, or in an unsuitable environment.
const MISUSE: u8 = 2;

/// The option with the process id of the outer supervisor, for the inner one.
const INNER: &str = "--inner";

/// The option with the process id of the inner supervisor, for a process that becomes the program.
const BECOME: &str = "--become";

/// Whether that process is a supervisor of any Multitap.
#[cfg(target_os = "linux")]
pub(crate) fn is_supervisor(pid: rustix::process::Pid) -> bool {
    let command = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(SUPERVISE.as_bytes())
}

/// Supervises one program. `args` is what follows [`SUPERVISE`] on the command line: `-- PROGRAM [ARGS…]`.
///
/// Call it first in `main`, before threads, a runtime or argument parsing. It returns when nothing of the program is
/// left, with the program's own exit code, or 128 plus the signal that ended it.
pub fn supervise(args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut args = args.peekable();
    let role = args.next_if(|arg| arg == INNER || arg == BECOME);
    let role = role.map(|role| (role, args.next().unwrap_or_default()));
    let mut args = args.skip_while(|arg| arg == "--");
    let program = args.next().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program was named"));
    program.and_then(|program| run(role, &program, args)).unwrap_or_else(|error| {
        // Only a person sees this: we start it without stderr.
        writeln!(io::stderr(), "{SUPERVISE} is how this program starts others, not for the command line: {error}").ok();
        ExitCode::from(MISUSE)
    })
}

/// An option and the process id of the parent; `None` for the outer supervisor.
type Role = Option<(OsString, OsString)>;

#[cfg(unix)]
fn run(role: Role, program: &OsStr, args: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    crate::unblock_signals()?;
    let args: Vec<OsString> = args.collect();
    match role {
        None if cfg!(target_os = "linux") => run::outer(program, &args),
        None => run::inner(None, program, &args),
        Some((role, inner)) if role == BECOME => start::become_program(&inner, program, &args),
        Some((_, outer)) => run::inner(Some(&outer), program, &args),
    }
}

#[cfg(not(unix))]
fn run(_: Role, _: &OsStr, _: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no life lines"))
}
