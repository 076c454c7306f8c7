//! Waiting between tries.

use std::time::Duration;

use rand::RngExt;

/// Exponential back-off with full jitter, so that many who fail together do not come back together.
#[derive(Debug)]
pub(crate) struct Backoff {
    base: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: 0 }
    }

    /// Waits a random part of `base · 2^failures`, at most `max`.
    pub(crate) async fn wait(&mut self) {
        let ceiling = self.base.saturating_mul(1 << self.failures.min(16)).min(self.max);
        self.failures = self.failures.saturating_add(1);
        let share = rand::rng().random_range(0.0..1.0);
        tokio::time::sleep(ceiling.mul_f64(share)).await;
    }

    /// What was tried has been working for a while.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}
