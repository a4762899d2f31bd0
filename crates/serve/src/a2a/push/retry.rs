//! What the outcome of an attempt means for its delivery. Pure.

use std::time::Duration;

use multitap_event::Timestamp;
use multitap_hub::DeliveryOutcome;

use super::{PushOptions, after};

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempted {
    Answered {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// No answer: the reason, without secrets.
    Failed(String),
    /// It was not sent, and never can be: the reason.
    Impossible(String),
}

/// What becomes of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) outcome: DeliveryOutcome,
    pub(super) http_status: Option<u16>,
    pub(super) error: Option<String>,
}

impl PushOptions {
    /// Judges attempt number `attempt` of a delivery. `chance`, from 0 to 1, spreads the retries of many deliveries.
    pub(super) fn judge(
        &self,
        attempted: Attempted,
        attempt: u32,
        created: Timestamp,
        now: Timestamp,
        chance: f64,
    ) -> Verdict {
        let (http_status, asked, why) = match attempted {
            Attempted::Answered { status: status @ 200..=299, .. } => {
                return Verdict { outcome: DeliveryOutcome::Delivered, http_status: Some(status), error: None };
            }
            Attempted::Impossible(why) => {
                return Verdict { outcome: DeliveryOutcome::GivenUp, http_status: None, error: Some(why) };
            }
            Attempted::Failed(why) => (None, None, why),
            Attempted::Answered { status, retry_after } => {
                if let Some((outcome, why)) = final_answer(status) {
                    return Verdict { outcome, http_status: Some(status), error: Some(why.to_owned()) };
                }
                (Some(status), retry_after, "the webhook cannot take it now".to_owned())
            }
        };
        let verdict = |outcome, error| Verdict { outcome, http_status, error: Some(error) };
        if attempt >= self.attempts {
            return verdict(DeliveryOutcome::GivenUp, format!("{why}; given up after {attempt} attempts"));
        }
        let at = after(now, self.wait(attempt, asked, chance));
        if at.millis_since(created) > u64::try_from(self.longest_age.as_millis()).unwrap_or(u64::MAX) {
            return verdict(DeliveryOutcome::GivenUp, format!("{why}; given up because it is too old"));
        }
        verdict(DeliveryOutcome::Retry { at }, why)
    }

    /// The wait after that many attempts: between half of the doubled wait and all of it, but at least what the webhook
    /// asks for.
    fn wait(&self, attempt: u32, asked: Option<Duration>, chance: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(30);
        let doubled = self.first_wait.saturating_mul(1 << doublings).min(self.longest_wait);
        let wait = doubled.mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        wait.max(asked.unwrap_or_default()).min(self.longest_wait)
    }
}

/// The outcome of an answer after which nothing is sent again.
fn final_answer(status: u16) -> Option<(DeliveryOutcome, &'static str)> {
    let given_up = DeliveryOutcome::GivenUp;
    match status {
        408 | 425 | 429 => None,
        410 => Some((DeliveryOutcome::Gone, "the webhook is gone: its config was deleted")),
        401 | 403 => Some((given_up, "the webhook does not accept the token or credentials of its config")),
        300..=399 => Some((given_up, "redirects are not followed: register the address itself")),
        400..=499 => Some((given_up, "the webhook refuses it")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created() -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn judged(attempted: Attempted, attempt: u32, now: i64) -> Verdict {
        PushOptions::default().judge(attempted, attempt, created(), Timestamp::from_millis(now), 1.0)
    }

    fn answered(status: u16) -> Attempted {
        Attempted::Answered { status, retry_after: None }
    }

    fn wait(verdict: &Verdict, now: i64) -> Option<i64> {
        match verdict.outcome {
            DeliveryOutcome::Retry { at } => Some(at.as_millis() - now),
            DeliveryOutcome::Delivered | DeliveryOutcome::GivenUp | DeliveryOutcome::Gone => None,
        }
    }

    #[test]
    fn an_answer_says_whether_to_send_it_again() {
        for (status, outcome) in [
            (200, DeliveryOutcome::Delivered),
            (204, DeliveryOutcome::Delivered),
            (301, DeliveryOutcome::GivenUp),
            (307, DeliveryOutcome::GivenUp),
            (400, DeliveryOutcome::GivenUp),
            (401, DeliveryOutcome::GivenUp),
            (403, DeliveryOutcome::GivenUp),
            (404, DeliveryOutcome::GivenUp),
            (410, DeliveryOutcome::Gone),
            (422, DeliveryOutcome::GivenUp),
        ] {
            let verdict = judged(answered(status), 1, 0);
            assert_eq!((verdict.outcome, verdict.http_status), (outcome, Some(status)), "{status}");
            assert_eq!(verdict.error.is_none(), outcome == DeliveryOutcome::Delivered, "{status}");
        }
        for status in [408, 425, 429, 500, 502, 503, 504, 599, 999] {
            assert_eq!(wait(&judged(answered(status), 1, 0), 0), Some(1000), "{status}");
        }
        assert_eq!(wait(&judged(Attempted::Failed("down".to_owned()), 1, 0), 0), Some(1000));
        let refused = judged(Attempted::Impossible("no".to_owned()), 1, 0);
        assert_eq!((refused.outcome, refused.error.as_deref()), (DeliveryOutcome::GivenUp, Some("no")));
    }

    #[test]
    fn waits_double_to_an_hour_and_end_after_sixteen_attempts() {
        let (mut now, mut waits) = (0, Vec::new());
        for attempt in 1.. {
            let verdict = judged(Attempted::Failed("down".to_owned()), attempt, now);
            let Some(wait) = wait(&verdict, now) else {
                assert_eq!(verdict.error.as_deref(), Some("down; given up after 16 attempts"));
                break;
            };
            waits.push(wait / 1000);
            now += wait;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600]);
    }

    #[test]
    fn waits_are_spread() {
        let options = PushOptions::default();
        let spread = [0.0, 0.5, 1.0].map(|chance| options.wait(3, None, chance).as_millis());
        assert_eq!(spread, [2000, 3000, 4000]);
    }

    #[test]
    fn a_webhook_may_ask_for_time_up_to_an_hour() {
        let busy = |seconds| Attempted::Answered { status: 429, retry_after: Some(Duration::from_secs(seconds)) };
        assert_eq!(wait(&judged(busy(30), 1, 0), 0), Some(30_000));
        assert_eq!(wait(&judged(busy(0), 1, 0), 0), Some(1000), "never sooner than it would be");
        assert_eq!(wait(&judged(busy(100_000), 1, 0), 0), Some(3_600_000));
    }

    #[test]
    fn what_is_a_day_old_is_given_up() {
        let day = 24 * 60 * 60 * 1000;
        let verdict = judged(answered(503), 2, day);
        assert_eq!(verdict.outcome, DeliveryOutcome::GivenUp);
        assert!(verdict.error.unwrap().contains("too old"));
        assert_eq!(judged(answered(200), 2, day).outcome, DeliveryOutcome::Delivered);
    }
}
