//! Starts a process that dies with its supervisor.
//!
//! The kernel sends a process a signal when its parent dies, if the process itself asked for it; the request survives
//! `exec`, but not `fork`. So the supervisor starts its own binary once more, in the role [`BECOME`]: it asks for the
//! signal and then executes the program. Linux only; elsewhere the program starts directly.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid};

use super::{BECOME, SUPERVISE};
use crate::life_line;

/// A shell's exit code for a program that it cannot start.
pub(super) const NOT_STARTED: u8 = 127;

/// Our own binary in another role, as a child.
pub(super) fn ourselves(role: &str, program: &OsStr, args: &[OsString]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this is where children start")]
    let mut command = Command::new("/proc/self/exe");
    // Process lists should show our name, not the path of our binary.
    if let Some(name) = std::env::args_os().next() {
        command.arg0(name);
    }
    command.args([SUPERVISE, role, &getpid().as_raw_nonzero().to_string(), "--"]).arg(program).args(args);
    command
}

/// Starts the program in a group of its own; no other process holds its stdio afterwards. Where possible it dies with
/// us.
pub(super) fn program(program: &OsStr, args: &[OsString], stdio: life_line::Stdio) -> io::Result<Pid> {
    if cfg!(target_os = "linux")
        && let Ok((pid, mut line)) = start_ourselves(program, args, &stdio)
    {
        drop(stdio);
        let mut errno = String::new();
        line.read_to_string(&mut errno)?;
        // The pipe closes without output when the program runs, or was killed before.
        let number = || errno.parse().unwrap_or(Errno::INVAL.raw_os_error());
        return if errno.is_empty() { Ok(pid) } else { Err(io::Error::from_raw_os_error(number())) };
    }
    let [stdin, stdout, stderr] = stdio.map(Stdio::from);
    #[expect(clippy::disallowed_methods, reason = "this is where children start")]
    let mut command = Command::new(program);
    command.args(args).process_group(0).stdin(stdin).stdout(stdout).stderr(stderr);
    Ok(Pid::from_child(&command.spawn()?))
}

fn start_ourselves(program: &OsStr, args: &[OsString], stdio: &life_line::Stdio) -> io::Result<(Pid, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    life_line::hand_over(&ours, stdio)?;
    let mut command = ourselves(BECOME, program, args);
    command.process_group(0).stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((Pid::from_child(&command.spawn()?), ours))
}

/// Executes the program, which dies with the inner supervisor. Returns only on failure, and reports the reason.
pub(super) fn become_program(inner: &OsStr, program: &OsStr, args: &[OsString]) -> io::Result<ExitCode> {
    // Closed by `exec`.
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let become_it = || {
        let [stdin, stdout, stderr] = life_line::take_over(&line)?;
        rustix::stdio::dup2_stdin(stdin)?;
        rustix::stdio::dup2_stdout(stdout)?;
        rustix::stdio::dup2_stderr(stderr)?;
        end_with(inner, Signal::KILL)?;
        #[expect(clippy::disallowed_methods, reason = "no child: it takes our own place")]
        Err(Command::new(program).args(args).exec())
    };
    let Err(error): io::Result<std::convert::Infallible> = become_it();
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    write!(line, "{errno}").ok(); // the supervisor may be gone
    Ok(ExitCode::from(NOT_STARTED))
}

/// Asks the kernel for a signal when our parent dies. Fails if the parent has died already.
#[cfg(target_os = "linux")]
pub(super) fn end_with(parent: &OsStr, signal: Signal) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(signal))?;
    let found = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if found.is_some_and(|found| *found == *parent) { Ok(()) } else { Err(io::Error::other("the supervisor is gone")) }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_with(_: &OsStr, _: Signal) -> io::Result<()> {
    Ok(())
}
