//! Removes a secret from our environment.
//!
//! `/proc/PID/environ` shows every program of the same user what a process was started with, and nothing that the
//! process does afterwards changes that. So the process executes its own binary again without the variable: same id,
//! same arguments. The secret is passed through a socket, which replaces stdin until it was read; the real stdin is
//! passed through it as well.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::net::RecvFlags;

use crate::life_line::{receive_attached, send_with};

/// The variable that names the one whose value is passed through stdin.
pub const HANDED_OVER: &str = "MULTITAP_HANDED_OVER";

/// Longer than any secret.
const LONGEST: usize = 64 * 1024;

/// Removes a variable from our environment, as we and other processes see it, and returns its value.
///
/// Call it first in `main`, before threads: this process may execute its own binary again.
pub fn take_from_environment(variable: &str) -> io::Result<Option<OsString>> {
    if std::env::var_os(HANDED_OVER).is_some_and(|handed| handed == variable)
        && let Some(secret) = receive()?
    {
        return Ok(Some(secret));
    }
    match std::env::var_os(variable) {
        Some(secret) => Err(reexec(variable, &secret)?),
        None => Ok(None),
    }
}

/// Returns only on failure.
fn reexec(variable: &str, secret: &OsStr) -> io::Result<io::Error> {
    if secret.len() > LONGEST {
        return Ok(io::Error::new(io::ErrorKind::InvalidInput, format!("{variable} is too long")));
    }
    let (ours, theirs) = UnixStream::pair()?;
    send(&ours, secret)?;
    drop(ours);
    let running = Path::new("/proc/self/exe");
    let binary = if running.exists() { running.to_owned() } else { std::env::current_exe()? };
    #[expect(clippy::disallowed_methods, reason = "no child: it takes our own place")]
    let mut command = Command::new(binary);
    let mut args = std::env::args_os();
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    command.args(args).env_remove(variable).env(HANDED_OVER, variable).stdin(OwnedFd::from(theirs));
    Ok(command.exec())
}

/// Sends one byte, so that an empty secret makes a message too, then the secret; with our stdin attached.
fn send(line: &UnixStream, secret: &OsStr) -> io::Result<()> {
    let parts = [IoSlice::new(b"s"), IoSlice::new(secret.as_bytes())];
    let sent = send_with(line, &parts, &[io::stdin().as_fd()])?;
    if sent == secret.len() + 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives the secret; `None` if stdin is a normal stdin. The variable may have reached us through another program.
fn receive() -> io::Result<Option<OsString>> {
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Peek first, so that no data of a foreign socket is lost.
    let attached = |flags| receive_attached(&line, flags | RecvFlags::DONTWAIT).ok()?.pop();
    let Some(stdin) = attached(RecvFlags::PEEK) else { return Ok(None) };
    attached(RecvFlags::empty());
    rustix::stdio::dup2_stdin(stdin)?;
    let mut secret = Vec::new();
    line.read_to_end(&mut secret)?;
    Ok(Some(OsString::from_vec(secret)))
}

/// Prevents other programs of this user from reading our memory and environment, where the system can.
pub fn hide_from_others() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Ends this process at once, whatever its threads do.
pub fn kill_self() {
    // A failure cannot be reported: other threads may hold stderr.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
}
