//! Is a target fit to get its share? The fleet's breaker, and its answer to sudden slowness.
//!
//! ```text
//!  Well ──failing or suddenly slow──▶ Out ──`probes` good answers──▶ Returning ──ramp──▶ Well
//!                                      ▲                                │
//!                                      └────────────────────────────────┘ again
//! ```
//!
//! While it is out, a target gets a trickle of less than a request a second, fleet-wide, which finds out when it is well
//! again. That trickle is a weight like any other, so probing needs no coordination among proxies.
//!
//! *Failing*: the failure rate is above the policy's ratio beyond doubt (Wilson's lower bound), or enough nodes have
//! opened their own breakers. *Slow*: several times slower than it used to be itself, and more so than any peer. The
//! weights follow the score in steps that cannot oscillate, which takes ten seconds over a factor of ten; a sudden change
//! of that size is no noise and need not be waited for. The comparison with peers tells a sick target from a crowded
//! pool: when all of them slow down, taking one out would only bring down the next.

use penstock_model::policy::BreakerSettings;
use penstock_stats::{Decayed, wilson_lower};

use super::Gauges;
use crate::breaker::ramp_factor;

/// Slow is so many times slower than normal, and than the peer that is nearest to normal.
const SLOW: f64 = 2.5;
/// So many times slow within a minute is a pattern: the weights deal with it, for so long.
const MOST_SLOW_SPELLS: usize = 3;
const SPELLS_WITHIN: f64 = 60.0;
const LEFT_ALONE_FOR: f64 = 300.0;
/// Share of the nodes, and number of them (all, where there are fewer), whose own breakers decide for the fleet.
const QUORUM_SHARE: f64 = 0.3;
const QUORUM_NODES: u32 = 3;
/// Good answers that a failure undoes while the target is out; a slow answer undoes one.
const FAILURE_UNDOES: f64 = 2.0;
/// What each good answer adds to the trickle.
const GOOD_ANSWER_ADDS: f64 = 4.0;
/// Two standard deviations: 97.5 % sure.
const BEYOND_DOUBT: f64 = 1.96;

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

/// What a target gets of the requests that its weight would bring it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Share {
    /// So much: 1, less while it comes back.
    Part(f64),
    /// So many times the trickle for targets that are out: more with each good answer.
    Trickle(f64),
    /// An operator has taken it out of service.
    Nothing,
}

/// Calls and failures of a window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) failures: u64,
}

/// What one tick has brought.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signs {
    pub(super) now: f64,
    /// Good answers since the last tick with their latency, failures, and whether these answers were slow ones.
    pub(super) answers: Decayed,
    pub(super) failed: f64,
    pub(super) slow_answers: bool,
    /// How many times slower than normal, and the least of that among the peers; `None` when that cannot be said.
    pub(super) slowness: Option<f64>,
    pub(super) peers: Option<f64>,
    pub(super) gauges: Gauges,
    /// The last 1, 2, 10 and 60 seconds.
    pub(super) windows: [Counts; 4],
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Health {
    state: State,
    /// When it became slow, the last few times.
    slow_spells: Vec<f64>,
    left_alone_until: f64,
    drained: bool,
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
        if self.drained || signs.gauges.drained {
            if self.drained && !signs.gauges.drained {
                self.state = State::Returning { since: signs.now };
            }
            self.drained = signs.gauges.drained;
            return None;
        }
        let (failing, slow) = (is_failing(signs, breaker), self.is_slow(signs));
        match &mut self.state {
            State::Out { failing: was_failing, good } => {
                *was_failing |= failing;
                count_good(good, signs);
                let good = *good;
                if good.den >= f64::from(breaker.probes) {
                    self.state = State::Returning { since: signs.now };
                    return Some(good);
                }
            }
            State::Well | State::Returning { .. } if failing || slow => {
                if !failing {
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

    pub(super) fn is_drained(&self) -> bool {
        self.drained
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

    /// What the target gets.
    pub(super) fn share(&self, now: f64, breaker: &BreakerSettings) -> Share {
        match self.state {
            _ if self.drained => Share::Nothing,
            State::Well => Share::Part(1.0),
            State::Out { good, .. } => Share::Trickle(1.0 + GOOD_ANSWER_ADDS * good.den),
            State::Returning { since } => Share::Part(ramp_factor(now - since, breaker.ramp.as_secs_f64())),
        }
    }

    fn is_slow(&self, signs: &Signs) -> bool {
        let judged = signs.slowness.zip(signs.peers).filter(|_| signs.now >= self.left_alone_until);
        judged.is_some_and(|(slowness, peers)| slowness > SLOW * peers.max(1.0))
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

/// Counts the good answers of a target that is out. Stragglers from before its recovery end late, so a bad one does not
/// undo everything.
fn count_good(good: &mut Decayed, signs: &Signs) {
    let answers = signs.answers;
    let (fine, undone) = if signs.slow_answers { (0.0, answers.den) } else { (answers.den, 0.0) };
    let kept = good.den + fine - undone - FAILURE_UNDOES * signs.failed;
    if fine > 0.0 {
        good.add(answers.num, fine);
    }
    good.cap(kept.max(0.0));
}

fn is_failing(signs: &Signs, breaker: &BreakerSettings) -> bool {
    let beyond_doubt = signs.windows.iter().any(|window| {
        let least = wilson_lower(window.failures as f64, window.calls as f64, BEYOND_DOUBT);
        window.calls >= u64::from(breaker.minimum_calls) && least > breaker.failure_ratio
    });
    let gauges = &signs.gauges;
    let quorum = gauges.nodes_open > 0
        && gauges.nodes_open >= QUORUM_NODES.min(gauges.nodes_using)
        && f64::from(gauges.nodes_open) >= QUORUM_SHARE * f64::from(gauges.nodes_using);
    // Nodes notice a recovery one by one; their breakers alone, without failures, are yesterday's news.
    let two_seconds = signs.windows[1];
    let still = two_seconds.failures > 0
        && two_seconds.failures as f64 >= breaker.failure_ratio * two_seconds.calls as f64;
    beyond_doubt || quorum && still
}

#[cfg(test)]
mod tests;
