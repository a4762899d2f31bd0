//! Housekeeping beside the writer: checkpoints the write-ahead log, and triggers the renewal of leases.
//!
//! Done by the writer itself, both would delay acknowledgements.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use tokio::sync::mpsc::WeakSender;

use super::schema;
use super::writer::Message;

/// Pages that trigger a checkpoint: 16 MiB, which is also read when the store is opened after a crash.
pub(super) const CHECKPOINT_PAGES: u32 = 4096;

/// At this size the writer waits for a checkpoint.
pub(super) const MOST_PAGES: u32 = 4 * CHECKPOINT_PAGES;

/// Pages that the writer may checkpoint itself, in about the time of a commit.
const FEW_PAGES: u32 = 64;

/// While the writer goes on writing, each round leaves less to the next.
const ROUNDS: usize = 4;

/// Interval of lease renewals; three per lease period.
pub(super) const REFRESH: Duration = Duration::from_secs(10);

/// Runs until the writer is gone.
pub(super) fn run(path: &Path, called: &Receiver<()>, writer: &WeakSender<Message>, refresh: Duration) {
    let mut next = Instant::now() + refresh;
    let mut connection = None;
    loop {
        match called.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(()) => {
                if connection.is_none() {
                    connection = connect(path).map_err(log).ok();
                }
                if let Some(connection) = &connection {
                    move_most(connection);
                    tell(writer, Message::CatchUp);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                next = Instant::now() + refresh;
                tell(writer, Message::Refresh);
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// SQLite detects the write-ahead log at its first read.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = schema::connect(path)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// Dropped if the writer's queue is full; it is sent again later.
fn tell(writer: &WeakSender<Message>, message: Message) {
    if let Some(writer) = writer.upgrade() {
        writer.try_send(message).ok();
    }
}

/// Checkpoints until only few new pages remain. The writer moves the last of them itself: SQLite restarts its log
/// only when all of it is moved, which nobody else can achieve while the writer writes.
fn move_most(connection: &Connection) {
    let mut moved = 0;
    for _ in 0..ROUNDS {
        match checkpoint(connection, CheckpointMode::PASSIVE) {
            Some(now) if now.saturating_sub(moved) > FEW_PAGES => moved = now,
            Some(_) | None => break,
        }
    }
}

/// Runs a checkpoint; returns how many pages are in the file now. `None`: it could not begin.
pub(super) fn checkpoint(connection: &Connection, mode: CheckpointMode) -> Option<u32> {
    let (_, moved) = connection.wal_checkpoint_v2(None::<&str>, mode).map_err(log).ok()?;
    // Below zero: SQLite knows of no write-ahead log.
    u32::try_from(moved).ok()
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err wants it")]
fn log(error: rusqlite::Error) {
    tracing::debug!(%error, "the write-ahead log was not moved into its file");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_moved_on_again_and_again_until_the_writer_is_gone() {
        let (tx, mut queue) = tokio::sync::mpsc::channel(8);
        let (call, called) = std::sync::mpsc::sync_channel(1);
        let weak = tx.downgrade();
        let keeper = std::thread::spawn(move || run(Path::new(""), &called, &weak, Duration::from_millis(1)));
        for _ in 0..3 {
            assert!(matches!(queue.blocking_recv(), Some(Message::Refresh)));
        }
        drop(call);
        keeper.join().unwrap();
    }
}
