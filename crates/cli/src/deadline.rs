//! SIGTERM ends this process in time, whatever the rest of it is doing.
//!
//! The usual end goes through the runtime: sessions close, agents are asked to stop. That waits for ever if every thread
//! of the runtime is busy or blocked, such as in a write to a pipe that nobody reads. So a thread with a runtime of its
//! own listens as well, and ends the process when its time is over or a second signal comes. The supervisors of our
//! children notice, and end them.

use std::sync::Once;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

/// How long the usual end may take. With what follows it stays below five seconds.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long giving the terminal back may take: somebody may hold stdout.
const GIVE_BACK: Duration = Duration::from_millis(300);
/// How long the C library and `std` may take to end the process: they flush stdout.
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
        // Listened to only now: an earlier Ctrl+C may have been meant for an editor.
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
    // Not logged: whoever holds stderr may be the one that is stuck.
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    thread::spawn(move || {
        multitap_tui::restore_terminal();
        done.send(()).ok(); // nobody waits any more
    });
    is_done.recv_timeout(GIVE_BACK).ok();
    thread::spawn(|| {
        thread::sleep(EXIT);
        multitap_process::kill_self();
    });
    std::process::exit(i32::from(Exit::Interrupted.code()));
}
