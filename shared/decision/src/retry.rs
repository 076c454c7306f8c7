//! How much may be tried again: so little that an outage is not multiplied.
//!
//! ```text
//! retries of the last ten seconds ≤ share · first attempts of the last ten seconds + floor
//! floor = 10 s · 10/s ÷ nodes, at least 1
//! ```
//!
//! The floor lets routes with little traffic retry at all; it is shared out to the nodes, so that a thousand of them are not
//! ten thousand retries a second. While everything fails, a service gets at most 1 + share times the calls (and the
//! floor), where two retries per request would make it three times.

use std::time::Duration;

/// The window of the budget, seconds.
pub const WINDOW_SECONDS: u64 = 10;
/// Retries per second that the whole fleet may make on a route whatever its traffic.
const FLOOR_PER_SECOND: f64 = 10.0;
/// The first wait before the same target is tried again is at most this; it doubles from there.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
/// The longest wait.
const LONGEST_BACKOFF: Duration = Duration::from_secs(2);

/// May one more retry be made, after `first` first attempts and `retries` retries in the window? `nodes` is how many proxies
/// there are.
#[must_use]
pub fn is_within_budget(first: u64, retries: u64, share: f64, nodes: u32) -> bool {
    let floor = FLOOR_PER_SECOND * WINDOW_SECONDS as f64 / f64::from(nodes.max(1));
    (retries + 1) as f64 <= share * first as f64 + floor.max(1.0)
}

/// How long to wait before a target is tried again that has failed already, before the retry with this number (from 1).
/// Full jitter: uniform up to a limit that doubles. What the service asked for is a lower bound. `chance` is uniform in
/// 0..1.
#[must_use]
pub fn backoff(retry: u32, asked: Option<Duration>, chance: f64) -> Duration {
    let limit = FIRST_BACKOFF.saturating_mul(1 << retry.saturating_sub(1).min(8)).min(LONGEST_BACKOFF);
    asked.unwrap_or_default() + limit.mul_f64(chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traffic_may_be_tried_again_and_a_floor_always() {
        // A thousand nodes: the floor is one retry in ten seconds.
        assert!(is_within_budget(0, 0, 0.1, 1_000));
        assert!(!is_within_budget(0, 1, 0.1, 1_000));
        assert!(is_within_budget(100, 10, 0.1, 1_000));
        assert!(!is_within_budget(100, 11, 0.1, 1_000));
        // One node has the floor for itself.
        assert!(is_within_budget(0, 99, 0.1, 1));
        assert!(!is_within_budget(0, 100, 0.1, 1));
        assert!(is_within_budget(10_000, 1_099, 0.1, 1));
        assert!(!is_within_budget(10_000, 1_100, 0.1, 1));
    }

    #[test]
    fn an_outage_is_multiplied_by_one_and_the_share() {
        let (mut first, mut retries) = (0, 0);
        for _ in 0..100_000 {
            first += 1;
            for _ in 0..2 {
                retries += u64::from(is_within_budget(first, retries, 0.1, 1));
            }
        }
        assert_eq!(retries, 10_000 + 100);
    }

    #[test]
    fn waits_double_up_to_a_limit_and_are_never_shorter_than_asked_for() {
        assert_eq!(backoff(1, None, 1.0), Duration::from_millis(200));
        assert_eq!(backoff(2, None, 1.0), Duration::from_millis(400));
        assert_eq!(backoff(4, None, 1.0), Duration::from_millis(1_600));
        assert_eq!(backoff(9, None, 1.0), Duration::from_secs(2));
        assert_eq!(backoff(u32::MAX, None, 0.5), Duration::from_secs(1));
        assert_eq!(backoff(1, None, 0.0), Duration::ZERO);
        assert_eq!(backoff(1, Some(Duration::from_secs(3)), 0.0), Duration::from_secs(3));
    }
}
