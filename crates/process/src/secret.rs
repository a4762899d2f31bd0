//! A secret of our environment, moved out of it.
//!
//! `/proc/PID/environ` shows every program of the same user what a process was started with, and nothing that the process
//! does afterwards changes that. So the process executes its own binary again without the variable: same id, same
//! arguments. The secret comes along through a socket, which stands in for stdin until it was read; stdin comes
//! through it as well.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The variable that names the one whose value comes through stdin.
pub const HANDED_OVER: &str = "MULTITAP_HANDED_OVER";

/// Longer than any secret.
const LONGEST: usize = 64 * 1024;

/// Takes a variable out of our environment, also as others see it, and gives back its value.
///
/// To be called first in `main`, before threads: this process may execute its own binary again.
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

/// Comes back only with the reason why it could not.
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

/// A byte, so that there is a message also for an empty secret, and the secret; with our stdin.
fn send(line: &UnixStream, secret: &OsStr) -> io::Result<()> {
    let stdin = io::stdin();
    let fds = [stdin.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let parts = [IoSlice::new(b"s"), IoSlice::new(secret.as_bytes())];
    let sent = sendmsg(line, &parts, &mut control, SendFlags::empty())?;
    if sent == secret.len() + 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// What was handed over; none if stdin is just stdin. The variable may have reached us through another program.
fn receive() -> io::Result<Option<OsString>> {
    let mut line = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Looked at first, so that nothing of somebody else's socket is lost.
    let Some(stdin) = attached(&line, RecvFlags::PEEK | RecvFlags::DONTWAIT) else { return Ok(None) };
    attached(&line, RecvFlags::DONTWAIT);
    rustix::stdio::dup2_stdin(stdin)?;
    let mut secret = Vec::new();
    line.read_to_end(&mut secret)?;
    Ok(Some(OsString::from_vec(secret)))
}

/// The descriptor that comes with the next byte.
fn attached(line: &UnixStream, flags: RecvFlags) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(line, &mut [IoSliceMut::new(&mut [0])], &mut control, flags).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    })
}

/// Keeps other programs of this user from looking into our memory and environment, where the system can.
pub fn hide_from_others() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Ends this process at once, whatever its threads hold.
pub fn kill_self() {
    // A failure cannot be reported: other threads may hold stderr.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
}
