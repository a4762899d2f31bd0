//! What a program writes, as it comes: for output that people look at, which has no lines to wait for.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

use crate::Child;

/// How long the last bytes of a dead child may take. Longer only if something that outlived it holds the pipe.
const LAST_BYTES: Duration = Duration::from_millis(500);

impl Child {
    /// More of its stdout; 0 when all was read, or when the program has ended and nothing more comes. Cancel safe.
    ///
    /// For whoever takes all of it this way: bytes that [`Lines`](crate::Lines) has read are not given again.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Self { stdout, kept, .. } = self;
        tokio::select! {
            biased;
            read = stdout.read(into) => return read,
            // So that what it left behind is ended, and cannot keep us here by holding the pipe.
            _ = kept.wait() => {}
        }
        timeout(LAST_BYTES, stdout.read(into)).await.unwrap_or(Ok(0))
    }
}
