//! How long to wait before a call is repeated.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// When and how often a call is repeated. The wait doubles each time, and is randomized, so that clients that lost the
/// same agent do not all return at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub attempts: u32,
    pub first_wait: Duration,
    /// Also the longest accepted `Retry-After`: a longer one counts as a refusal.
    pub longest_wait: Duration,
}

impl RetryPolicy {
    pub const NEVER: Self = Self { attempts: 0, first_wait: Duration::ZERO, longest_wait: Duration::ZERO };
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 4, first_wait: Duration::from_millis(250), longest_wait: Duration::from_secs(20) }
    }
}

impl RetryPolicy {
    /// The wait after that many attempts; `None` to stop.
    pub(super) fn wait(&self, attempt: u32, asked: Option<Duration>) -> Option<Duration> {
        if attempt > self.attempts || asked.is_some_and(|asked| asked > self.longest_wait) {
            return None;
        }
        let doubled = self.first_wait.saturating_mul(1 << (attempt.saturating_sub(1)).min(16)).min(self.longest_wait);
        // Between half of the wait and all of it.
        let chance = u32::try_from(RandomState::new().hash_one(attempt) % 1000).unwrap_or_default();
        Some((doubled / 2 + doubled * chance / 2000).max(asked.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_longest_and_end() {
        let retry =
            RetryPolicy { attempts: 5, first_wait: Duration::from_secs(1), longest_wait: Duration::from_secs(6) };
        for (attempt, most) in [(1, 1), (2, 2), (3, 4), (4, 6), (5, 6)] {
            let wait = retry.wait(attempt, None).unwrap();
            assert!(wait >= Duration::from_secs(most) / 2 && wait <= Duration::from_secs(most), "{attempt}: {wait:?}");
        }
        assert_eq!(retry.wait(6, None), None);
        assert_eq!(RetryPolicy::NEVER.wait(1, None), None);
        let endless = RetryPolicy { attempts: u32::MAX, ..retry };
        assert!(endless.wait(u32::MAX, None).unwrap() <= Duration::from_secs(6));
    }

    #[test]
    fn an_agent_may_ask_for_time_but_not_for_too_much() {
        let retry = RetryPolicy { attempts: 1, first_wait: Duration::ZERO, longest_wait: Duration::from_secs(6) };
        assert_eq!(retry.wait(1, Some(Duration::from_secs(5))), Some(Duration::from_secs(5)));
        assert_eq!(retry.wait(1, Some(Duration::from_secs(7))), None);
    }
}
