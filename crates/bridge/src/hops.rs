//! Counts how many agents the calling agent's current prompt has passed through.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The source of the number.
#[derive(Debug, Clone, Default)]
pub enum Hops {
    /// A person prompts the agent: the number is 0.
    #[default]
    None,
    /// The number is set by the code that sends prompts to the agent.
    Shared(Arc<AtomicU32>),
    /// Another process sends prompts to the agent, and writes the number to this file, in decimal.
    File(PathBuf),
}

impl Hops {
    /// The current number. An unreadable file counts as 0: it is written before the first prompt that has hops.
    pub(crate) fn now(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Shared(hops) => hops.load(Ordering::Acquire),
            Self::File(path) => {
                std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = Hops::File(folder.path().join("hops"));
        assert_eq!(file.now(), 0);
        std::fs::write(folder.path().join("hops"), "2\n").unwrap();
        assert_eq!(file.now(), 2);
        let shared = Arc::new(AtomicU32::new(0));
        let hops = Hops::Shared(shared.clone());
        shared.store(3, Ordering::Release);
        assert_eq!(hops.now(), 3);
    }
}
