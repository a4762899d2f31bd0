//! How many agents the prompt has passed through that the calling agent works on now.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the number comes from.
#[derive(Debug, Clone, Default)]
pub enum Hops {
    /// A person prompts the agent.
    #[default]
    None,
    /// Whoever hands prompts to the agent sets it.
    Shared(Arc<AtomicU32>),
    /// Whoever hands prompts to the agent is another process, and writes it to this file as a decimal number.
    File(PathBuf),
}

impl Hops {
    /// The number now. A file that cannot be read counts as 0: it is written before the first prompt that has hops.
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
