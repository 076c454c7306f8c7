//! What the whole fleet saw of every target, and what follows from it.
//!
//! The arithmetic is `penstock_decision`'s; here reports find their targets by name, gauges of all nodes are added up,
//! and tokens and money are kept for a minute. Nothing is cumulative. Evidence outlives a change of policy, by name.
//! A report counts in the second it arrives, by the monotonic clock.

mod gauges;
mod usage;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use penstock_decision::fleet::{Fleet, Gauges as TargetGauges, RowSums, TargetStatus};
use penstock_model::Policy;
use penstock_model::live::LiveState;
use penstock_model::outcome::Outcome;
use penstock_model::policy::{PoolId, TargetId};
use penstock_proto::fleet::v1::{self as wire, NodeReport, Row};
use penstock_stats::Sketch;

use crate::policy::Drained;
use gauges::Gauges;
use usage::Usage;
pub(crate) use usage::Used;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Evidence {
    start: Instant,
    names: Names,
    /// `None` before the first policy: what is reported then concerns no target.
    known: Option<Known>,
    gauges: Gauges,
}

/// Hash of backend and model, keyed at random per process: found without building a pair of strings for every row.
type TargetKey = u64;

#[derive(Debug, Default)]
struct Names(RandomState);

impl Names {
    fn target(&self, backend: &str, model: &str) -> TargetKey {
        self.0.hash_one((backend, model))
    }

    fn row(&self, row: &Row) -> u64 {
        self.0.hash_one((&row.backend, &row.model, &row.route, &row.capability))
    }
}

/// Everything that concerns the targets of one policy.
#[derive(Debug)]
struct Known {
    policy: Arc<Policy>,
    targets: HashMap<TargetKey, TargetId>,
    fleet: Fleet,
    /// By target.
    usage: Vec<Usage>,
    ticked: Instant,
}

impl Evidence {
    /// Empty; `start` is second 0.
    pub(crate) fn new(start: Instant) -> Self {
        Self { start, names: Names::default(), known: None, gauges: Gauges::default() }
    }

    /// Goes over to a policy; the same one changes nothing.
    pub(crate) fn set_policy(&mut self, policy: &Arc<Policy>, now: Instant) {
        if self.known.as_ref().is_some_and(|known| Arc::ptr_eq(&known.policy, policy)) {
            return;
        }
        let targets: HashMap<TargetKey, TargetId> = (0..policy.targets.len() as u32)
            .map(|index| {
                let (backend, model) = policy.target_key(TargetId(index));
                (self.names.target(backend, model), TargetId(index))
            })
            .collect();
        let mut usage: Vec<Usage> = policy.targets.iter().map(|_| Usage::default()).collect();
        self.known = Some(match self.known.take() {
            None => Known {
                fleet: Fleet::new(Arc::clone(policy)),
                policy: Arc::clone(policy),
                targets,
                usage,
                ticked: now,
            },
            Some(mut known) => {
                for (name, old) in &known.targets {
                    if let Some(new) = targets.get(name) {
                        usage[new.index()] = std::mem::take(&mut known.usage[old.index()]);
                    }
                }
                known.fleet.set_policy(Arc::clone(policy));
                Known { policy: Arc::clone(policy), targets, usage, ..known }
            }
        });
    }

    /// Adds a report's rows and replaces what it says about now.
    pub(crate) fn merge(&mut self, report: &NodeReport, now: Instant) {
        let second = self.second(now);
        let gauges = self.gauges.of(&report.node_id, second);
        for row in &report.rows {
            let name = self.names.target(&row.backend, &row.model);
            gauges.set(self.names.row(row), name, row, second);
            if let Some(known) = &mut self.known {
                known.absorb(name, row, second);
            }
        }
        let open = report.breakers.iter().filter(|breaker| {
            matches!(breaker.state(), wire::BreakerState::Open | wire::BreakerState::HalfOpen)
        });
        gauges.open(open.map(|breaker| self.names.target(&breaker.backend, &breaker.model)));
    }

    /// Draws conclusions; `None` before the first policy.
    pub(crate) fn tick(
        &mut self,
        policy_version: u64,
        nodes: u32,
        drained: &Drained,
        now: Instant,
    ) -> Option<LiveState> {
        let second = self.second(now);
        self.gauges.forget(second);
        let gauges = self.gauges.by_target(second);
        let known = self.known.as_mut()?;
        let elapsed = now.saturating_duration_since(known.ticked).as_secs_f64();
        known.ticked = now;
        let policy = &known.policy;
        Some(known.fleet.tick(elapsed, policy_version, nodes, |target| {
            let (backend, model) = policy.target_key(target);
            let seen = gauges.get(&self.names.target(backend, model)).copied().unwrap_or_default();
            TargetGauges { drained: drained.contains(backend, model), ..seen }
        }))
    }

    /// What there is to show of a target.
    pub(crate) fn status(&self, backend: &str, model: &str) -> Option<TargetStatus> {
        let (known, target) = self.find(backend, model)?;
        known.fleet.status(target)
    }

    /// Attempts, tokens and money of a target over the last minute.
    pub(crate) fn used(&self, backend: &str, model: &str, now: Instant) -> Used {
        let found = self.find(backend, model);
        found.map(|(known, target)| known.usage[target.index()].minute(self.second(now))).unwrap_or_default()
    }

    /// The sharpness in force for a pool.
    pub(crate) fn beta(&self, route: &str, capability: &str) -> Option<f64> {
        let known = self.known.as_ref()?;
        let pool: PoolId = known.policy.find_pool(route, capability)?;
        known.fleet.beta(pool)
    }

    fn find(&self, backend: &str, model: &str) -> Option<(&Known, TargetId)> {
        let known = self.known.as_ref()?;
        let target = known.targets.get(&self.names.target(backend, model))?;
        Some((known, *target))
    }

    fn second(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs()
    }
}

impl Known {
    fn absorb(&mut self, name: TargetKey, row: &Row, second: u64) {
        let Some(&target) = self.targets.get(&name) else { return };
        let (latency, first_token) = (sketch(row.latency.as_ref()), sketch(row.first_token.as_ref()));
        self.fleet.absorb(target, &sums(row, latency.as_ref(), first_token.as_ref()));
        self.usage[target.index()].add(row, second);
    }
}

fn sums<'a>(row: &Row, latency: Option<&'a Sketch>, first_token: Option<&'a Sketch>) -> RowSums<'a> {
    // A failure of a kind that this build does not know cannot be judged, and is left out.
    let failed = |counts: fn(Outcome) -> bool| {
        let counted =
            row.failures.iter().filter(|failure| Outcome::parse(&failure.outcome).is_some_and(counts));
        counted.map(|failure| failure.count).sum()
    };
    RowSums {
        ended: row.attempts,
        ok: row.ok,
        failed: failed(Outcome::is_failure),
        rate_limited: failed(|outcome| outcome == Outcome::RateLimited),
        latency_sum: row.latency_sum_us as f64 / 1e6,
        latency_square_sum: row.latency_square_sum_ms2 / 1e6,
        first_token_sum: row.first_token_sum_us as f64 / 1e6,
        first_token_count: row.first_token_count,
        latency,
        first_token,
    }
}

/// `None` when there is none, or when it is broken: that costs its quantiles and nothing else.
fn sketch(wire: Option<&wire::Sketch>) -> Option<Sketch> {
    let sketch = Sketch::from_wire(&wire?.gaps_and_counts);
    sketch.inspect_err(|error| tracing::debug!(%error, "a report's sketch is left out")).ok()
}

#[cfg(test)]
mod tests;
