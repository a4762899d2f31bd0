//! Requests to the agent that have no answer yet.

use std::collections::HashMap;

/// Open requests by number. `R` is the kind of request.
#[derive(Debug)]
pub(crate) struct Requests<R> {
    count: u64,
    open: HashMap<u64, R>,
}

impl<R> Default for Requests<R> {
    fn default() -> Self {
        Self { count: 0, open: HashMap::new() }
    }
}

impl<R> Requests<R> {
    pub(crate) fn open(&mut self, asked: R) -> u64 {
        let number = self.next_number();
        self.open.insert(number, asked);
        number
    }

    /// A number for a request whose answer does not matter.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(crate) fn answered(&mut self, number: u64) -> Option<R> {
        self.open.remove(&number)
    }
}
