//! Resets signals to their default actions for the programs we start, whatever our parent made us ignore or block.
//!
//! A shell starts background jobs with SIGINT and SIGQUIT ignored, `nohup` with SIGHUP. Ignored signals stay ignored
//! over `exec`, and a child that inherits them cannot be interrupted. A signal with a *handler* gets its default
//! action back at `exec`. So each ignored signal gets an empty handler here.

use std::io;

use nix::sys::signal::SigSet;
use tokio::signal::unix::{SignalKind, signal};

/// Programs that this process starts from now on begin with default actions. Must run inside a runtime.
///
/// Nothing changes for this process: ignored signals still do nothing, others keep their default action.
pub(crate) fn for_children() {
    for number in ignored() {
        // Fails for signals that the C library reserves, which programs do not use.
        signal(SignalKind::from_raw(number)).ok();
    }
}

/// Unblocks every signal in this thread, and so in the programs it starts.
pub fn unblock_signals() -> io::Result<()> {
    Ok(SigSet::empty().thread_set_mask()?)
}

/// The signals that this process ignores and that can have a handler.
#[cfg(target_os = "linux")]
fn ignored() -> Vec<i32> {
    /// `std` resets this one in children itself; here it must stay ignored.
    const PIPE: i32 = 13;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    let mask = mask.unwrap_or_default();
    (1..=64).filter(|number| *number != PIPE && mask & (1 << (number - 1)) != 0).collect()
}

/// Other systems do not say what a process ignores.
#[cfg(not(target_os = "linux"))]
fn ignored() -> Vec<i32> {
    Vec::new()
}
