//! Remembers which events were delivered.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

/// Number of events to remember: a connection repeats only the latest.
const MOST: usize = 4096;

/// The latest events, by number and content: some agents restart their numbers with each connection, so the same number
/// may be another event.
#[derive(Debug, Default)]
pub(super) struct Seen {
    marks: HashSet<u64>,
    order: VecDeque<u64>,
    hasher: RandomState,
}

impl Seen {
    /// Remembers a frame. Returns whether it is new.
    pub(super) fn insert(&mut self, id: Option<&str>, text: &str) -> bool {
        let mark = self.hasher.hash_one((id, text));
        if !self.marks.insert(mark) {
            return false;
        }
        self.order.push_back(mark);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.marks.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_with_other_words_is_another_event() {
        let mut seen = Seen::default();
        assert!(seen.insert(Some("1"), "a"));
        assert!(!seen.insert(Some("1"), "a"));
        assert!(seen.insert(Some("1"), "b"));
        assert!(seen.insert(Some("2"), "a"));
        assert!(seen.insert(None, "a"));
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let mut seen = Seen::default();
        for number in 0..3 * MOST {
            assert!(seen.insert(Some(&number.to_string()), ""));
        }
        assert_eq!((seen.marks.len(), seen.order.len()), (MOST, MOST));
        assert!(!seen.insert(Some(&(2 * MOST).to_string()), ""));
        assert!(seen.insert(Some("0"), ""));
    }
}
