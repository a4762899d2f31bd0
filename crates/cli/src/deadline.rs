//! Ends this process in time after SIGTERM, whatever its other threads do.
//!
//! The normal shutdown runs on the runtime: sessions close, agents are asked to stop. It never finishes if every
//! thread of the runtime is busy or blocked, such as in a write to a pipe that nobody reads. So a thread with its own
//! runtime listens as well, and ends the process after a time limit or at a second signal. The supervisors notice,
//! and end our children.

use std::sync::Once;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

/// Time limit of the normal shutdown. With the steps below it stays under five seconds.
const PATIENCE: Duration = Duration::from_secs(4);
/// Time limit for restoring the terminal: stdout may be locked.
const GIVE_BACK: Duration = Duration::from_millis(300);
/// Time limit for the C library and `std` to exit: they flush stdout.
const EXIT: Duration = Duration::from_millis(300);

/// Starts the thread, once.
pub(crate) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let started = thread::Builder::new().name("deadline".to_owned()).spawn(watch);
        if let Err(error) = started {
            tracing::warn!(%error, "SIGTERM may take long to end this process");
        }
    });
}

fn watch() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return };
    let waited = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).ok()?;
        terminate.recv().await?;
        // Registered only now: an earlier Ctrl+C may have been meant for an editor.
        let mut interrupt = signal(SignalKind::interrupt()).ok()?;
        tokio::select! {
            () = tokio::time::sleep(PATIENCE) => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Some(())
    });
    if waited.is_some() {
        end();
    }
}

/// Ends the process. Nothing here waits for another thread.
fn end() {
    // Not logged: stderr may be what is stuck.
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    thread::spawn(move || {
        multitap_tui::restore_terminal();
        done.send(()).ok(); // `end` no longer waits
    });
    is_done.recv_timeout(GIVE_BACK).ok();
    thread::spawn(|| {
        thread::sleep(EXIT);
        multitap_process::kill_self();
    });
    std::process::exit(i32::from(Exit::Interrupted.code()));
}
