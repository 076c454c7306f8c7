//! From scores to shares, one step a second.
//!
//! ```text
//! x += clip(0.3·(S − x), ±0.7)                follow the score, at most a factor of two per tick
//! w  = softmax(x) · part                      part: 1, less while the target comes back
//! w  ≥ floor                                  so that everybody goes on being measured
//! ```
//!
//! Small steps because the observations behind S are one to two ticks old and react to w: with β·ε < 1 (ε: by how many
//! per cent latency grows when load grows by one) this converges whatever the delay.
//!
//! A target that is out gets a fixed trickle instead, and its x rests: when it comes back it takes up where it was.

use penstock_model::policy::{Candidate, Pool, Scoring, TargetId};

use super::guard::Guard;
use super::health::Share;
use crate::score::MATCH_REWARD;

/// α.
const STEP: f64 = 0.3;
/// Requests a second, of the whole fleet, that find out whether a target that is out is well again ...
const TRICKLE_PER_SECOND: f64 = 0.75;
/// ... no less than this share, and where the floor is less than that, still one in so many seconds.
const LEAST_TRICKLE: f64 = 0.001;
const SELDOM_SECONDS: f64 = 30.0;
/// Never more than this all together, however few requests there are and however good the first answers.
const LARGEST_TRICKLE: f64 = 0.2;
/// ln 2: at most twice or half the weight per tick.
const LARGEST_STEP: f64 = 0.7;

/// One candidate at a tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// S.
    pub(super) score: f64,
    /// C, seconds.
    pub(super) cost: f64,
    /// s.
    pub(super) success: f64,
    /// The policy's weight.
    pub(super) configured: f64,
    /// What it gets of what its weight would bring it.
    pub(super) share: Share,
}

/// The weights of one pool.
#[derive(Debug)]
pub(super) struct PoolWeights {
    /// x.
    log_weights: Vec<f64>,
    floor: f64,
    guard: Guard,
}

impl PoolWeights {
    /// Starts with the policy's weights.
    pub(super) fn new(pool: &Pool, scoring: &Scoring) -> Self {
        let log_weight =
            |candidate: &Candidate| candidate.weight.ln() + MATCH_REWARD * candidate.capability_match;
        Self {
            log_weights: pool.candidates.iter().map(log_weight).collect(),
            floor: scoring.floor.min(1.0 / pool.candidates.len() as f64),
            guard: Guard::new(scoring.sharpness, pool.candidates.len()),
        }
    }

    /// Takes over log weights from an earlier version of the pool, where it had the target.
    pub(super) fn inherit(mut self, pool: &Pool, before: impl Fn(TargetId) -> Option<f64>) -> Self {
        for (log_weight, candidate) in self.log_weights.iter_mut().zip(&pool.candidates) {
            *log_weight = before(candidate.target).unwrap_or(*log_weight);
        }
        self
    }

    /// x, in the order of the candidates.
    pub(super) fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }

    /// The sharpness in force.
    pub(super) fn beta(&self) -> f64 {
        self.guard.beta()
    }

    /// The weights after this tick; they sum to 1. `rate` is that of the pool's targets, per second. At most `max_ejected`
    /// of the configured weight can be, the most expensive first, and never all of them.
    pub(super) fn tick(&mut self, now: f64, parts: &[Part], rate: f64, max_ejected: f64) -> Vec<f64> {
        let mut out = ejected(parts, max_ejected);
        let drained = |part: &Part| part.share == Share::Nothing;
        out.iter_mut().zip(parts).for_each(|(out, part)| *out |= drained(part));
        if parts.iter().all(drained) {
            return vec![0.0; parts.len()];
        }
        for ((log_weight, part), out) in self.log_weights.iter_mut().zip(parts).zip(&out) {
            if !out {
                *log_weight += (STEP * (part.score - *log_weight)).clamp(-LARGEST_STEP, LARGEST_STEP);
            }
        }
        let seen = self.log_weights.iter().zip(parts).zip(&out);
        let seen = seen.map(|((&log_weight, part), &out)| (!out).then_some((log_weight, part.success)));
        self.guard.tick(now, seen);
        // Further down than the floor shows, a weight would only have a longer way back.
        let largest = self.log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = largest + self.floor.max(1e-6).ln() - LARGEST_STEP;
        self.log_weights.iter_mut().for_each(|log_weight| *log_weight = log_weight.max(least));
        self.shares(parts, &out, self.trickle(rate), largest)
    }

    /// The share of a target that is out.
    fn trickle(&self, rate: f64) -> f64 {
        let rate = rate.max(1e-6);
        let usual = (TRICKLE_PER_SECOND / rate).max(LEAST_TRICKLE).min(self.floor);
        usual.max(1.0 / (SELDOM_SECONDS * rate)).min(LARGEST_TRICKLE)
    }

    /// Trickles first, the rest by weight, none below the floor.
    fn shares(&self, parts: &[Part], out: &[bool], trickle: f64, largest: f64) -> Vec<f64> {
        let mut shares = vec![0.0; parts.len()];
        let (mut trickles, mut weights) = (0.0, 0.0);
        let is_trickle = |part: &&Part| matches!(part.share, Share::Trickle(_));
        let most = LARGEST_TRICKLE / parts.iter().filter(is_trickle).count().max(1) as f64;
        for (index, part) in parts.iter().enumerate() {
            let weight = (self.log_weights[index] - largest).exp();
            match part.share {
                Share::Trickle(times) if out[index] => {
                    shares[index] = (trickle * times).min(most);
                    trickles += shares[index];
                }
                Share::Trickle(_) => shares[index] = weight,
                Share::Part(part) => shares[index] = weight * part,
                Share::Nothing => {}
            }
            weights += if out[index] { 0.0 } else { shares[index] };
        }
        for (share, out) in shares.iter_mut().zip(out) {
            if !out {
                *share = (*share / weights * (1.0 - trickles)).max(self.floor);
            }
        }
        let total: f64 = shares.iter().sum();
        shares.iter().map(|share| share / total).collect()
    }
}

/// Whose breaker really takes them out. When all of them should be, nobody is: there is no better place to go.
fn ejected(parts: &[Part], max_ejected: f64) -> Vec<bool> {
    let mut wanted: Vec<usize> =
        (0..parts.len()).filter(|&index| matches!(parts[index].share, Share::Trickle(_))).collect();
    if parts.iter().all(|part| !matches!(part.share, Share::Part(_))) {
        wanted.clear();
    }
    wanted.sort_by(|&one, &other| parts[other].cost.total_cmp(&parts[one].cost));
    let mut left = max_ejected * parts.iter().map(|part| part.configured).sum::<f64>() + 1e-9;
    let mut out = vec![false; parts.len()];
    for index in wanted {
        if parts[index].configured <= left {
            left -= parts[index].configured;
            out[index] = true;
        }
    }
    out
}

#[cfg(test)]
mod tests;
