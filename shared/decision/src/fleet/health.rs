//! Is a target fit to get its share? The fleet's breaker, and its answer to sudden slowness.
//!
//! ```text
//!  Well ──failing or suddenly slow──▶ Out ──`probes` good answers──▶ Returning ──ramp──▶ Well
//!   ▲                                  ▲                                │
//!   └──────────────────────────────────┴────────────────────────────────┘ again
//! ```
//!
//! While it is out, a target gets a trickle of about one request a second, fleet-wide, which finds out when it is well
//! again. That trickle is a weight like any other, so probing needs no coordination among proxies.
//!
//! *Failing*: the failure rate is above the policy's ratio beyond doubt (Wilson's lower bound), or enough nodes have
//! opened their own breakers. *Slow*: several times slower than it used to be itself. The weights follow the score in
//! steps that cannot oscillate, which takes ten seconds over a factor of ten; a sudden change of that size is no noise
//! and need not be waited for. A target that is slow by nature has never been faster than itself, and is left to the
//! weights. So is one that has been slow for minutes: the baseline follows.

use penstock_model::policy::BreakerSettings;
use penstock_stats::{Decayed, decay, wilson_lower};

use super::Gauges;
use crate::breaker::ramp_factor;

/// Slow is so many times the baseline.
const SLOW: f64 = 3.0;
/// Well again is less than so many times the baseline.
const FAST_AGAIN: f64 = 2.0;
/// How fast the baseline forgets, seconds.
const BASELINE_TAU: f64 = 600.0;
/// Seconds of baseline before anything can be called slow.
const LEAST_BASELINE: f64 = 3.0;
/// What a second that is suspiciously slow adds to the baseline, where others add 1.
const SUSPICIOUS: f64 = 0.1;
/// A request is overdue after so many mean times to the first token ...
const OVERDUE: f64 = 4.0;
/// ... and a target stalls when this many standard deviations more requests wait than its rate explains.
const CROWD_SIGMAS: f64 = 4.0;
/// Calls that the windows of 2, 10 and 60 seconds must hold before their failure rate counts.
const LEAST_CALLS: [u64; 3] = [50, 50, 20];
/// Share of the nodes, and number of them (all, where there are fewer), whose own breakers decide for the fleet.
const QUORUM_SHARE: f64 = 0.3;
const QUORUM_NODES: u32 = 3;
/// So many times slow within a minute is a pattern: the weights deal with it, for so long.
const MOST_SLOW_SPELLS: usize = 3;
const SPELLS_WITHIN: f64 = 60.0;
const LEFT_ALONE_FOR: f64 = 300.0;

/// Where the fleet's breaker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is wrong.
    Closed,
    /// Out because it fails.
    Open,
    /// Out because it failed, but there are good answers again.
    HalfOpen,
    /// Its share grows back.
    Ramp,
    /// Out because it has become slow.
    Slow,
}

/// What one tick has seen of a target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signs {
    pub(super) now: f64,
    /// Good answers and failures since the last tick.
    pub(super) ok: f64,
    pub(super) failed: f64,
    /// Mean latency and time to the first token of these good answers.
    pub(super) latency: Option<f64>,
    pub(super) first_token: Option<f64>,
    /// Faded mean latency, if there are enough samples to trust it.
    pub(super) smoothed_latency: Option<f64>,
    /// Attempts started per second.
    pub(super) rate: f64,
    pub(super) gauges: Gauges,
    /// Calls and failures of the last 2, 10 and 60 seconds.
    pub(super) windows: [(u64, u64); 3],
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: State,
    /// What is normal for this target: means of seconds, not of requests.
    latency: Decayed,
    first_token: Decayed,
    last_tick: f64,
    /// When it became slow, the last few times.
    slow_spells: Vec<f64>,
    left_alone_until: f64,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Well,
    Out {
        failing: bool,
        /// Good answers since, less what was not good, and their latency.
        good: Decayed,
    },
    Returning {
        since: f64,
    },
}

impl Health {
    /// Moves on by a tick. When the target comes back, returns the good answers that brought it back.
    pub(super) fn tick(&mut self, signs: &Signs, breaker: &BreakerSettings) -> Option<Decayed> {
        let failing = is_failing(signs, breaker);
        let slow = self.is_slow(signs);
        self.learn(signs);
        match &mut self.state {
            State::Out { failing: was_failing, good } => {
                *was_failing |= failing;
                let slow_answers = self
                    .latency
                    .mean()
                    .zip(signs.latency)
                    .is_some_and(|(base, latency)| latency > FAST_AGAIN * base);
                let bad = signs.failed + if slow_answers { signs.ok } else { 0.0 };
                if bad > 0.0 {
                    // Stragglers from before its recovery fail late; each costs what two good answers earn.
                    good.cap((good.den - 2.0 * bad).max(0.0));
                }
                if !slow_answers {
                    good.add(signs.latency.unwrap_or(0.0) * signs.ok, signs.ok);
                }
                let good = *good;
                if good.den >= f64::from(breaker.probes) {
                    self.state = State::Returning { since: signs.now };
                    return Some(good);
                }
            }
            State::Well | State::Returning { .. } if failing || slow => {
                if slow && !failing {
                    self.remember_spell(signs.now);
                }
                self.state = State::Out { failing, good: Decayed::default() };
            }
            State::Returning { since } if signs.now - *since >= breaker.ramp.as_secs_f64() => {
                self.state = State::Well;
            }
            State::Well | State::Returning { .. } => {}
        }
        None
    }

    pub(super) fn is_out(&self) -> bool {
        matches!(self.state, State::Out { .. })
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Well => Phase::Closed,
            State::Out { failing: false, .. } => Phase::Slow,
            State::Out { good, .. } if good.den > 0.0 => Phase::HalfOpen,
            State::Out { .. } => Phase::Open,
            State::Returning { .. } => Phase::Ramp,
        }
    }

    /// The part of its share the target gets; `None` while it is out.
    pub(super) fn share(&self, now: f64, breaker: &BreakerSettings) -> Option<f64> {
        match self.state {
            State::Well => Some(1.0),
            State::Out { .. } => None,
            State::Returning { since } => Some(ramp_factor(now - since, breaker.ramp.as_secs_f64())),
        }
    }

    /// What the requests that are being waited for say about the latency: at least this; `None` when there is nothing
    /// unusual about them.
    ///
    /// One request that takes long is normal, and so are many that wait at a busy target. A stall is both at once: an
    /// overdue one, and more of them than rate times time to the first token explains.
    pub(super) fn stalled_latency(&self, signs: &Signs) -> Option<f64> {
        let first_token = self.first_token.mean().filter(|_| self.first_token.den >= LEAST_BASELINE)?;
        let expected = signs.rate * first_token;
        let crowd = expected + CROWD_SIGMAS * (expected.sqrt() + 1.0);
        let gauges = &signs.gauges;
        if gauges.oldest_wait < OVERDUE * first_token || (gauges.waiting as f64) < crowd {
            return None;
        }
        Some(self.latency.mean()? * gauges.oldest_wait / first_token)
    }

    fn is_slow(&self, signs: &Signs) -> bool {
        if signs.now < self.left_alone_until || self.latency.den < LEAST_BASELINE {
            return false;
        }
        let Some(base) = self.latency.mean() else { return false };
        self.stalled_latency(signs).or(signs.smoothed_latency).is_some_and(|latency| latency > SLOW * base)
    }

    /// Lets the baseline follow: quickly while all is well, slowly otherwise.
    fn learn(&mut self, signs: &Signs) {
        let kept = decay(signs.now - self.last_tick, BASELINE_TAU);
        self.last_tick = signs.now;
        for (baseline, new) in
            [(&mut self.latency, signs.latency), (&mut self.first_token, signs.first_token)]
        {
            baseline.fade(kept);
            let Some(new) = new else { continue };
            let suspicious = baseline.mean().is_some_and(|mean| new > FAST_AGAIN * mean);
            let out = matches!(self.state, State::Out { .. });
            let weight = if suspicious || out { SUSPICIOUS } else { 1.0 };
            baseline.add(new * weight, weight);
        }
    }

    fn remember_spell(&mut self, now: f64) {
        self.slow_spells.retain(|&at| now - at < SPELLS_WITHIN);
        self.slow_spells.push(now);
        if self.slow_spells.len() >= MOST_SLOW_SPELLS {
            self.slow_spells.clear();
            self.left_alone_until = now + LEFT_ALONE_FOR;
        }
    }
}

fn is_failing(signs: &Signs, breaker: &BreakerSettings) -> bool {
    let beyond_doubt = signs.windows.iter().zip(LEAST_CALLS).any(|(&(calls, failures), least)| {
        calls >= least && wilson_lower(failures as f64, calls as f64, 1.96) > breaker.failure_ratio
    });
    let gauges = &signs.gauges;
    let quorum = gauges.nodes_open > 0
        && gauges.nodes_open >= QUORUM_NODES.min(gauges.nodes_using)
        && f64::from(gauges.nodes_open) >= QUORUM_SHARE * f64::from(gauges.nodes_using);
    // Nodes notice a recovery one by one; their breakers alone, without failures, are yesterday's news.
    let [(calls, failures), ..] = signs.windows;
    let still = failures > 0 && failures as f64 >= breaker.failure_ratio * calls as f64;
    beyond_doubt || quorum && still
}

#[cfg(test)]
mod tests;
