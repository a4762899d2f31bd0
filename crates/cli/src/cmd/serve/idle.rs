//! Which sessions rest, and since when: those may be ended, since a message to them takes them up again. Pure.

use std::collections::HashMap;
use std::time::Duration;

use multitap_event::SessionId;
use tokio::time::Instant;

/// What is known of a session at one moment.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) session: SessionId,
    /// The last event of it.
    pub(super) last: u64,
    /// Nothing runs, waits or is asked, and nobody is connected.
    pub(super) rests: bool,
}

/// Since when each session has rested.
#[derive(Debug, Default)]
pub(super) struct Resting {
    since: HashMap<SessionId, (u64, Instant)>,
}

impl Resting {
    /// Takes in how they are now.
    pub(super) fn look(&mut self, all: &[Seen], now: Instant) {
        let resting = all.iter().filter(|seen| seen.rests).map(|seen| {
            let before = self.since.get(&seen.session).filter(|(last, _)| *last == seen.last);
            (seen.session.clone(), (seen.last, before.map_or(now, |(_, since)| *since)))
        });
        self.since = resting.collect();
    }

    /// Those that have rested so long.
    pub(super) fn for_at_least(&self, long: Duration, now: Instant) -> Vec<SessionId> {
        let long = self.since.iter().filter(|(_, (_, since))| now.saturating_duration_since(*since) >= long);
        long.map(|(session, _)| session.clone()).collect()
    }

    /// The one that has rested longest.
    pub(super) fn longest(&self) -> Option<SessionId> {
        self.since.iter().min_by_key(|(_, (_, since))| *since).map(|(session, _)| session.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(session: &str, last: u64, rests: bool) -> Seen {
        Seen { session: session.into(), last, rests }
    }

    #[test]
    fn only_those_that_rest_on_count() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut resting = Resting::default();
        resting.look(&[seen("a", 5, true), seen("b", 5, true), seen("busy", 5, false)], at(0));
        resting.look(&[seen("a", 5, true), seen("b", 6, true), seen("busy", 9, false)], at(60));
        assert_eq!(resting.for_at_least(Duration::from_secs(60), at(60)), ["a".into()]);
        assert_eq!(resting.longest(), Some("a".into()));
        // One that did something rests anew, one that is gone is forgotten.
        resting.look(&[seen("b", 6, true)], at(90));
        assert_eq!(resting.for_at_least(Duration::from_secs(30), at(90)), ["b".into()]);
        assert_eq!(resting.longest(), Some("b".into()));
    }
}
