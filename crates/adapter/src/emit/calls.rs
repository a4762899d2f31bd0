//! Calls by their ids: the open ones, in the order of their beginning, and the last ones that ended.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::BuildHasher as _;
use std::sync::Arc;

/// Number of ended calls that are remembered. A late line for an older one would begin a second call; agents send such
/// lines at most a few calls later.
const REMEMBERED: usize = 16 * 1024;

/// Calls of one agent. No id begins twice, and the cost of a call does not depend on how many there are.
#[derive(Debug)]
pub(crate) struct Calls<T> {
    /// Open calls by number: a later call has a higher number.
    open: BTreeMap<u64, (Arc<str>, T)>,
    numbers: HashMap<Arc<str>, u64>,
    next: u64,
    ended: Ended,
}

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), numbers: HashMap::new(), next: 0, ended: Ended::default() }
    }
}

impl<T> Calls<T> {
    /// Opens a call, unless its id is known.
    pub(crate) fn begin(&mut self, id: &str, call: T) {
        if self.has_seen(id) {
            return;
        }
        let id: Arc<str> = id.into();
        self.numbers.insert(Arc::clone(&id), self.next);
        self.open.insert(self.next, (id, call));
        self.next += 1;
    }

    pub(crate) fn find(&self, id: &str) -> Option<&T> {
        self.open.get(self.numbers.get(id)?).map(|(_, call)| call)
    }

    pub(crate) fn find_mut(&mut self, id: &str) -> Option<&mut T> {
        self.open.get_mut(self.numbers.get(id)?).map(|(_, call)| call)
    }

    pub(crate) fn take(&mut self, id: &str) -> Option<T> {
        let number = self.numbers.remove(id)?;
        self.ended.insert(id);
        self.open.remove(&number).map(|(_, call)| call)
    }

    /// Ends the oldest open call if there are more than `most`.
    pub(crate) fn take_surplus(&mut self, most: usize) -> Option<T> {
        let id = self.open.first_key_value().filter(|_| self.open.len() > most).map(|(_, (id, _))| Arc::clone(id))?;
        self.take(&id)
    }

    /// Ends the open calls that `is_over` selects, the oldest first.
    pub(crate) fn take_if(&mut self, mut is_over: impl FnMut(&T) -> bool) -> Vec<T> {
        let over: Vec<Arc<str>> =
            self.open.values().filter(|(_, call)| is_over(call)).map(|(id, _)| Arc::clone(id)).collect();
        over.iter().filter_map(|id| self.take(id)).collect()
    }

    /// Records the end of a call that never began. Returns `false` if the id is known.
    pub(crate) fn ends_unbegun(&mut self, id: &str) -> bool {
        !self.numbers.contains_key(id) && self.ended.insert(id)
    }

    /// Whether a call of that id is open or has ended.
    pub(crate) fn has_seen(&self, id: &str) -> bool {
        self.numbers.contains_key(id) || self.is_over(id)
    }

    pub(crate) fn is_over(&self, id: &str) -> bool {
        self.ended.contains(id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The open calls, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.open.values().map(|(_, call)| call)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.open.values_mut().map(|(_, call)| call)
    }
}

/// The last ids that ended, by their hashes: an id may be long.
#[derive(Debug, Default)]
struct Ended {
    hasher: RandomState,
    known: HashSet<u64>,
    /// The same hashes, the oldest first.
    order: VecDeque<u64>,
}

impl Ended {
    fn contains(&self, id: &str) -> bool {
        self.known.contains(&self.hasher.hash_one(id))
    }

    /// Returns `false` if the id is known.
    fn insert(&mut self, id: &str) -> bool {
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

    #[test]
    fn a_call_begins_once() {
        let mut calls = Calls::default();
        calls.begin("a", 1);
        calls.begin("a", 2);
        assert_eq!((calls.find("a"), calls.has_seen("a"), calls.is_over("a")), (Some(&1), true, false));
        assert!(!calls.ends_unbegun("a"));
        assert_eq!(calls.take("a"), Some(1));
        calls.begin("a", 3);
        assert!(calls.find("a").is_none() && calls.is_over("a"));
        assert!(calls.ends_unbegun("b") && !calls.ends_unbegun("b"));
        calls.begin("b", 4);
        assert!(calls.is_empty());
    }

    #[test]
    fn open_calls_keep_their_order() {
        let mut calls = Calls::default();
        ["a", "b", "c", "d"].into_iter().for_each(|id| calls.begin(id, id));
        calls.take("b");
        assert_eq!(calls.iter().copied().collect::<String>(), "acd");
        assert_eq!(calls.take_if(|id| *id != "c"), ["a", "d"]);
        assert_eq!(calls.iter().copied().collect::<String>(), "c");
        assert!(calls.is_over("d") && !calls.is_over("c"));
    }

    /// A session lasts for days: what is stored of ended calls is bounded, and those of late lines are among it.
    #[test]
    fn ended_calls_are_remembered_up_to_a_bound() {
        let mut calls = Calls::default();
        calls.begin("open", 0);
        let last = 3 * REMEMBERED;
        for number in 0..last {
            calls.begin(&number.to_string(), number);
            calls.take(&number.to_string());
        }
        assert_eq!((calls.ended.known.len(), calls.ended.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!((calls.numbers.len(), calls.open.len()), (1, 1));
        assert!((last - REMEMBERED..last).all(|number| calls.is_over(&number.to_string())));
        assert_eq!(calls.find("open"), Some(&0), "an open call is never forgotten");
    }

    /// Open calls were once searched one by one: with this many that does not end.
    #[test]
    fn a_call_costs_the_same_however_many_are_open() {
        let ids: Vec<String> = (0..300_000).map(|number| format!("call-{number}")).collect();
        let mut calls = Calls::default();
        ids.iter().for_each(|id| calls.begin(id, id.as_str()));
        for id in ids.iter().rev().chain(&ids) {
            assert_eq!(calls.find_mut(id).copied(), Some(id.as_str()));
        }
        let odd = |id: &str| id.ends_with(['1', '3', '5', '7', '9']);
        assert_eq!(calls.take_if(|id| odd(id)).len(), ids.len() / 2);
        ids.iter().filter(|id| !odd(id)).for_each(|id| assert_eq!(calls.take(id), Some(id.as_str())));
        assert!(calls.is_empty());
    }
}
