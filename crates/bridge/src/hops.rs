//! What the bridge learns about the prompts of the calling agent: how many agents the current one has passed through,
//! and that a turn was cancelled.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// Interval at which an open call looks whether its turn was cancelled.
const LOOK: Duration = Duration::from_millis(250);

/// The source of the number.
#[derive(Debug, Clone, Default)]
pub enum Hops {
    /// A person prompts the agent: the number is 0.
    #[default]
    None,
    /// The number is set by the code that sends prompts to the agent. The agent cancels the calls of a cancelled turn.
    Shared(Arc<AtomicU32>),
    /// Another process sends prompts to the agent, and writes the number to this file, in decimal. After a space, the
    /// file may contain how many turns that process has cancelled: not every agent cancels its calls then.
    File(PathBuf),
}

impl Hops {
    /// The current number. An unreadable file counts as 0: it is written before the first prompt that has hops.
    pub(crate) fn now(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Shared(hops) => hops.load(Ordering::Acquire),
            Self::File(path) => read(path).unwrap_or_default().0,
        }
    }

    /// How many turns were cancelled so far.
    pub(crate) fn cancelled_turns(&self) -> u32 {
        match self {
            Self::None | Self::Shared(_) => 0,
            Self::File(path) => read(path).unwrap_or_default().1,
        }
    }

    /// Returns when more turns than `before` were cancelled.
    pub(crate) async fn turn_cancelled(&self, before: u32) {
        let Self::File(path) = self else { return pending().await };
        // The file disappears with its session.
        while read(path).is_none_or(|(_, cancelled)| cancelled == before) {
            sleep(LOOK).await;
        }
    }
}

/// The number of hops, and that of cancelled turns.
fn read(path: &Path) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or_default());
    Some((numbers.next()?, numbers.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn the_number_is_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = Hops::File(folder.path().join("hops"));
        assert_eq!(file.now(), 0);
        std::fs::write(folder.path().join("hops"), "2\n").unwrap();
        assert_eq!(file.now(), 2);
        std::fs::write(folder.path().join("hops"), "4 1").unwrap();
        assert_eq!(file.now(), 4);
        let shared = Arc::new(AtomicU32::new(0));
        let hops = Hops::Shared(shared.clone());
        shared.store(3, Ordering::Release);
        assert_eq!(hops.now(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_turn_that_is_cancelled_later_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hops");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        let hops = Hops::File(path.clone());
        let wait = async |cancelled: &mut std::pin::Pin<Box<_>>| timeout(LOOK * 3, cancelled).await.is_ok();
        let mut first = Box::pin(hops.turn_cancelled(hops.cancelled_turns()));
        assert!(!wait(&mut first).await, "there is no file yet");
        write("2");
        assert!(!wait(&mut first).await, "the number of hops changed");
        write("2 1");
        let mut second = Box::pin(hops.turn_cancelled(hops.cancelled_turns()));
        assert!(!wait(&mut second).await, "it began later");
        assert!(wait(&mut first).await);
        std::fs::remove_file(&path).unwrap();
        assert!(!wait(&mut second).await, "the session ended");
        write("0 2");
        assert!(wait(&mut second).await);
    }
}
