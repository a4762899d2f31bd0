//! Keeps house beside the writer: moves the write-ahead log into the file, and says when leases are to be moved on.
//!
//! Both would make those who wait for an acknowledgement wait longer, if the writer did it by itself.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;
use tokio::sync::mpsc::WeakSender;

use super::schema;
use super::writer::Message;

/// Pages that may gather in the write-ahead log: 16 MiB. After a crash so much is read when the log is opened.
pub(super) const CHECKPOINT_PAGES: u32 = 4096;

/// With so many the writer waits until they are moved.
pub(super) const MOST_PAGES: u32 = 4 * CHECKPOINT_PAGES;

/// So few pages the writer may move itself: it takes no longer than a commit.
const FEW_PAGES: u32 = 64;

/// While the writer goes on writing, each round leaves less to the next.
const ROUNDS: usize = 4;

/// How often leases are moved on; three times before one runs out.
pub(super) const REFRESH: Duration = Duration::from_secs(10);

/// Works until the writer is gone.
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

/// SQLite finds out that there is a write-ahead log when it first reads.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = schema::connect(path)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

/// A writer with a full queue has other worries; it is called again.
fn tell(writer: &WeakSender<Message>, message: Message) {
    if let Some(writer) = writer.upgrade() {
        writer.try_send(message).ok();
    }
}

/// Moves pages until only few came in meanwhile. The last of them the writer moves itself: it starts its log anew only
/// when it finds all of it moved, and while it keeps writing nobody else can bring that about.
fn move_most(connection: &Connection) {
    let mut moved = 0;
    for _ in 0..ROUNDS {
        match checkpoint(connection, CheckpointMode::PASSIVE) {
            Some(now) if now.saturating_sub(moved) > FEW_PAGES => moved = now,
            Some(_) | None => break,
        }
    }
}

/// Moves what can be moved; tells how many pages of the log are in the file now. Nothing: it could not even begin.
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
