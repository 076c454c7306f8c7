//! How long to wait before the next try.

use std::time::Duration;

/// Exponential, with full jitter from the first wait on.
#[derive(Debug)]
pub(super) struct Backoff {
    base: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(super) fn new(base: Duration, longest: Duration) -> Self {
        Self { base, longest, failures: 0 }
    }

    /// The next wait; `chance` is uniform in 0..1.
    pub(super) fn next(&mut self, chance: f64) -> Duration {
        self.failures = (self.failures + 1).min(16);
        self.base.saturating_mul(1 << self.failures).min(self.longest).mul_f64(chance)
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CP-06
    #[test]
    fn waits_grow_to_a_limit_and_are_spread_from_the_first_on() {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(15));
        assert_eq!(backoff.next(0.0), Duration::ZERO);
        assert_eq!(backoff.next(0.5), Duration::from_millis(400));
        for _ in 0..100 {
            assert!(backoff.next(1.0) <= Duration::from_secs(15));
        }
        backoff.reset();
        assert_eq!(backoff.next(1.0), Duration::from_millis(400));
    }
}
