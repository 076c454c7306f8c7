//! What is normal for a target, and how far from it it is now.
//!
//! Normal is the mean over seconds, not over requests, so that a slow minute with much traffic does not count more than
//! a good one with little. What looks suspicious moves it little, but does move it: a target that stays slow for as long
//! as it was fast is not sick but slow, and then the weights are the ones to deal with it.

use penstock_stats::{Decayed, decay};

use super::Gauges;

/// How fast the baseline forgets, seconds.
const TAU: f64 = 600.0;
/// The baseline stands after so many seconds, and after so many times itself: the first answers are the short ones.
const LEAST_SECONDS: f64 = 3.0;
const LEAST_LATENCIES: f64 = 5.0;
/// Slower than so many times the baseline is suspicious, and adds so much to it where another second adds 1.
const SUSPICIOUS: f64 = 2.0;
const SUSPICIOUS_WEIGHT: f64 = 0.1;
/// Slower by less than this, seconds, is normal: a target that answers at once is not sick when it does not.
const LEAST_SLOWDOWN: f64 = 0.1;
/// Waiting times are taken over about this time, seconds, and with so many imagined requests that waited as usual.
const WAIT_TAU: f64 = 1.0;
const WAIT_PRIOR: f64 = 10.0;

/// What a tick has seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Mean latency of the good answers since the last tick, and time to their first token.
    pub(super) latency: Option<f64>,
    pub(super) first_token: Option<f64>,
    /// Faded mean latency, when there are enough samples to trust it.
    pub(super) smoothed_latency: Option<f64>,
    /// Attempts started, and in how many seconds, when that is known.
    pub(super) started: Option<(f64, f64)>,
    pub(super) gauges: Gauges,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    latency: Decayed,
    first_token: Decayed,
    /// Seconds that requests have spent waiting for their first token of late, over how many have got it.
    wait: Decayed,
    waiting: f64,
}

impl Baseline {
    /// Takes note of who waits; to be called first in a tick.
    pub(super) fn follow_waiting(&mut self, seen: &Seen) {
        let Some((started, elapsed)) = seen.started else { return };
        let waiting = seen.gauges.waiting as f64;
        let served = (started + self.waiting - waiting).max(0.0);
        self.wait.fade(decay(elapsed, WAIT_TAU));
        self.wait.add((self.waiting + waiting) / 2.0 * elapsed, served);
        self.waiting = waiting;
    }

    /// How many times slower than normal the target is; `None` when that cannot be said.
    pub(super) fn slowness(&self, seen: &Seen) -> Option<f64> {
        let base = standing(&self.latency)?;
        let answered = seen.smoothed_latency.map(|latency| times(latency, base));
        answered.into_iter().chain(self.stall(seen)).reduce(f64::max)
    }

    /// How many times slower than normal the target is by the requests that wait for it. An answer that never comes is
    /// in no mean; it shows here within a second or two.
    ///
    /// The mean wait is the time spent waiting over the number served (Little's law). It is too long while requests pile
    /// up that need that long, as at a target that comes back; so it counts only as far as one of them is overdue.
    fn stall(&self, seen: &Seen) -> Option<f64> {
        let first_token = standing(&self.first_token)?;
        let wait = self.wait.mean_with(first_token, WAIT_PRIOR);
        Some(times(wait.min(seen.gauges.oldest_wait), first_token))
    }

    /// The latency that the waiting requests foretell, seconds; `None` when there is nothing unusual about them.
    pub(super) fn stalled_latency(&self, seen: &Seen) -> Option<f64> {
        let stall = self.stall(seen).filter(|&stall| stall > SUSPICIOUS)?;
        Some(stall * self.latency.mean()?)
    }

    /// Is an answer that took `latency` a slow one?
    pub(super) fn is_slow(&self, latency: f64) -> bool {
        self.latency.mean().is_some_and(|base| times(latency, base) > SUSPICIOUS)
    }

    /// Lets the baseline follow; to be called last in a tick. `out`: what is seen of a target that is out is suspicious.
    pub(super) fn learn(&mut self, seen: &Seen, elapsed: f64, out: bool) {
        for (baseline, new) in [(&mut self.latency, seen.latency), (&mut self.first_token, seen.first_token)]
        {
            baseline.fade(decay(elapsed, TAU));
            let Some(new) = new else { continue };
            let suspicious = out || standing(baseline).is_some_and(|base| times(new, base) > SUSPICIOUS);
            let weight = if suspicious { SUSPICIOUS_WEIGHT } else { 1.0 };
            baseline.add(new * weight, weight);
        }
    }
}

/// A baseline that can be relied on.
fn standing(baseline: &Decayed) -> Option<f64> {
    baseline.mean().filter(|&mean| baseline.den >= LEAST_SECONDS.max(LEAST_LATENCIES * mean))
}

/// How many times `base` it is; 1 when the difference does not matter.
fn times(seconds: f64, base: f64) -> f64 {
    if seconds < base + LEAST_SLOWDOWN { 1.0 } else { seconds / base }
}

#[cfg(test)]
mod tests;
