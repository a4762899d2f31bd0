//! Raw output of a program, for live output that is not split into lines.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

use crate::Child;

/// How long the last bytes of a dead child may take. Longer only if a descendant holds the pipe.
const LAST_BYTES: Duration = Duration::from_millis(500);

impl Child {
    /// Reads more of its stdout; 0 at its end, or when the program has ended and nothing more comes. Cancel safe.
    ///
    /// Do not mix with [`Lines`](crate::Lines): bytes it has read are not returned again.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Self { stdout, handle, .. } = self;
        tokio::select! {
            biased;
            read = stdout.read(into) => return read,
            // Ends leftovers, which cannot keep us here by holding the pipe.
            _ = handle.wait() => {}
        }
        timeout(LAST_BYTES, stdout.read(into)).await.unwrap_or(Ok(0))
    }
}
