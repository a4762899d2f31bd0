//! The tool calls that ended, so that a late line begins none of them again.

use std::collections::hash_map::RandomState;
use std::collections::{HashSet, VecDeque};
use std::hash::BuildHasher as _;

/// Ended calls that are remembered. A late line for an older one would begin a second call: agents send such lines a few
/// calls later at most.
const REMEMBERED: usize = 16 * 1024;

/// The last ids that ended, by their hashes: an id may be long.
#[derive(Debug, Default)]
pub(super) struct Ended {
    hasher: RandomState,
    known: HashSet<u64>,
    /// The same, the oldest first.
    order: VecDeque<u64>,
}

impl Ended {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.known.contains(&self.hasher.hash_one(id))
    }

    /// False if it is known.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        let hash = self.hasher.hash_one(id);
        if !self.known.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session lasts for days: what is stored is bounded, and late lines are about the last ones.
    #[test]
    fn ended_calls_are_remembered_up_to_a_bound() {
        let mut ended = Ended::default();
        let last = 3 * REMEMBERED;
        assert!((0..last).all(|number| ended.insert(&number.to_string())));
        assert_eq!((ended.known.len(), ended.order.len()), (REMEMBERED, REMEMBERED));
        assert!((last - REMEMBERED..last).all(|number| ended.contains(&number.to_string())));
    }
}
