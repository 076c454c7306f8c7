//! What a proxy's own last seconds say about a target, beside what the fleet says.
//!
//! The fleet's view is one to two seconds old. A proxy's own is fresh, but small: hence a blend, in which the fleet's
//! view stands for a few observations of one's own.

use penstock_stats::Decayed;

use crate::plan::Planned;
use crate::score::{failure_cost, failure_penalty};

/// What is left of an observation after a second: e^(-1/τ) with τ = 3 s.
const KEPT_PER_SECOND: f64 = 0.716_531_310_573_789_3;
/// Seconds to look back; beyond it a fifth of a per cent is left.
pub const WINDOW_SECONDS: u64 = 10;
/// How many observations of one's own the fleet's latency stands for.
const LATENCY_PRIOR: f64 = 2.0;
/// How many the fleet's success rate stands for.
const SUCCESS_PRIOR: f64 = 5.0;
/// The newest so many observations are enough; older ones would only hide a change.
const MOST_SAMPLES: f64 = 32.0;
/// Mean times to the first token that a request may wait before it counts as slow: requests differ in size.
const PATIENCE: f64 = 4.0;

/// What happened at one target within one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot {
    /// Good answers.
    pub ok: u32,
    /// Failures that count ([`penstock_model::outcome::Outcome::is_failure`]), and rate limits.
    pub failed: u32,
    /// Total latency of the good answers, microseconds.
    pub latency_sum_us: u64,
}

/// A target's last seconds, the older the less.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Recent {
    latency: Decayed,
    success: Decayed,
}

impl Recent {
    /// Sums up slots, each with its age in whole seconds, in any order.
    #[must_use]
    pub fn new(slots: impl IntoIterator<Item = (u64, Slot)>) -> Self {
        let mut by_age = [Slot::default(); WINDOW_SECONDS as usize];
        for (age, slot) in slots {
            if let Some(place) = by_age.get_mut(age as usize) {
                *place = slot;
            }
        }
        let mut recent = Self::default();
        let mut kept_of_age = 1.0;
        for slot in by_age {
            let kept = kept_of_age;
            kept_of_age *= KEPT_PER_SECOND;
            let room = MOST_SAMPLES - recent.success.den;
            let count = f64::from(slot.ok) + f64::from(slot.failed);
            if count == 0.0 || room <= 0.0 {
                continue;
            }
            let kept = f64::min(kept, room / count);
            recent.latency.add(slot.latency_sum_us as f64 / 1e6 * kept, f64::from(slot.ok) * kept);
            recent.success.add(f64::from(slot.ok) * kept, count * kept);
        }
        recent
    }

    /// Ĉ/C: what an answer of this target costs by one's own experience over what the fleet says; 1 without any.
    /// `oldest_wait` is how long the oldest request that still waits for its first token has waited, in seconds: what
    /// never answers must look slow before it times out.
    #[must_use]
    pub fn cost_ratio(&self, plan: &Planned, oldest_wait: f64) -> f64 {
        let penalty = failure_penalty(plan.latency);
        let waited = oldest_wait * plan.latency / (PATIENCE * plan.first_token);
        let latency = self.latency.mean_with(plan.latency, LATENCY_PRIOR).max(waited);
        let success = self.success.mean_with(plan.success, SUCCESS_PRIOR);
        (latency + failure_cost(success, penalty)) / (plan.latency + failure_cost(plan.success, penalty))
    }
}

#[cfg(test)]
mod tests;
