//! The control plane's half of deciding: from what all proxies report to the live state, once a second.
//!
//! ```text
//! rows ──absorb──▶ evidence per target ──▶ health ──▶ score ──▶ weights per pool ──▶ LiveState
//! ```
//!
//! One [`Fleet`] per policy. It keeps no clock: a tick is told how much time has passed.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_model::Policy;
use penstock_model::live::{LiveState, PoolLive, TargetLive};
use penstock_model::policy::{Pool, PoolId, TargetId};
use penstock_stats::Sketch;

use crate::score::{Observed, Score, UNKNOWN, score_pool};

mod baseline;
mod evidence;
mod guard;
mod health;
mod weights;

use evidence::Evidence;
pub use health::Phase;
use weights::{Part, PoolWeights};

/// How long proxies may believe a breaker verdict. Sent anew every second while it is true, so a dead control plane
/// cannot keep a target out.
const BREAKER_TTL_MS: u32 = 30_000;
/// What one report says about one target: sums over attempts that ended in its interval. Times in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowSums<'a> {
    /// Attempts that ended, whatever the outcome.
    pub ended: u64,
    /// Good answers.
    pub ok: u64,
    /// Failures that count ([`penstock_model::outcome::Outcome::is_failure`]).
    pub failed: u64,
    /// Rate limits: they count for the score, not for the breaker.
    pub rate_limited: u64,
    /// Total latency of the good answers.
    pub latency_sum: f64,
    /// Its square.
    pub latency_square_sum: f64,
    /// Time to the first token of the good answers.
    pub first_token_sum: f64,
    /// How many of them had one.
    pub first_token_count: u64,
    /// Distribution of the latency.
    pub latency: Option<&'a Sketch>,
    /// Distribution of the time to the first token.
    pub first_token: Option<&'a Sketch>,
}

/// What is true of one target now, over all nodes: from the newest report of each.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gauges {
    /// Attempts in flight.
    pub in_flight: u64,
    /// Those of them that wait for their first byte.
    pub waiting: u64,
    /// How long the oldest of these has waited, seconds; the largest of all nodes.
    pub oldest_wait: f64,
    /// Nodes that used the target in the last ten seconds or have its breaker open.
    pub nodes_using: u32,
    /// Nodes whose own breaker for it is open or half-open.
    pub nodes_open: u32,
    /// Has an operator taken it out of service? It gets nothing then, and afterwards its share grows back.
    pub drained: bool,
}

/// What there is to show of a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetStatus {
    /// Attempts of the last ten seconds that ended well or in a failure that counts.
    pub recent_calls: u64,
    /// The failures among them.
    pub recent_failures: u64,
    /// The same over the last minute.
    pub minute_calls: u64,
    /// The same over the last minute.
    pub minute_failures: u64,
    /// Median latency of the last minute, seconds.
    pub latency_p50: Option<f64>,
    /// 95th percentile.
    pub latency_p95: Option<f64>,
    /// 95th percentile of the time to the first token.
    pub first_token_p95: Option<f64>,
    /// Attempts in flight at the last tick.
    pub in_flight: u64,
    /// Where its fleet-wide breaker is.
    pub phase: Phase,
}

/// Everything known about the targets of one policy.
#[derive(Debug)]
pub struct Fleet {
    policy: Arc<Policy>,
    /// By target.
    evidence: Vec<Evidence>,
    /// By pool.
    weights: Vec<PoolWeights>,
    /// Seconds since the first tick.
    now: f64,
    sequence: u64,
}

impl Fleet {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(policy: Arc<Policy>) -> Self {
        let evidence = policy.targets.iter().map(|_| Evidence::default()).collect();
        let weights = policy.pools.iter().map(|pool| PoolWeights::new(pool, &policy.scoring)).collect();
        Self { policy, evidence, weights, now: 0.0, sequence: 0 }
    }

    /// Goes over to another version. Targets keep what is known of them, pools their weights, by name.
    pub fn set_policy(&mut self, policy: Arc<Policy>) {
        let old = Arc::clone(&self.policy);
        let known = std::mem::take(&mut self.evidence);
        let mut known: HashMap<_, _> = known
            .into_iter()
            .enumerate()
            .map(|(index, evidence)| (old.target_key(TargetId(index as u32)), evidence))
            .collect();
        self.evidence = (0..policy.targets.len())
            .map(|index| known.remove(&policy.target_key(TargetId(index as u32))).unwrap_or_default())
            .collect();
        let before: HashMap<_, HashMap<_, f64>> = old
            .pools
            .iter()
            .zip(&self.weights)
            .map(|(pool, weights)| named_weights(&old, pool, weights))
            .collect();
        let inherited = |pool: &Pool| {
            let before = before.get(&pool_names(&policy, pool));
            PoolWeights::new(pool, &policy.scoring)
                .inherit(pool, |target| before?.get(&policy.target_key(target)).copied())
        };
        self.weights = policy.pools.iter().map(inherited).collect();
        self.policy = policy;
    }

    /// Takes in what one node reports of one target. A target that the policy lacks is ignored.
    pub fn absorb(&mut self, target: TargetId, sums: &RowSums<'_>) {
        if let Some(evidence) = self.evidence.get_mut(target.index()) {
            evidence.absorb(sums);
        }
    }

    /// Draws the conclusions of what was absorbed since the last tick, `elapsed` seconds ago.
    pub fn tick(
        &mut self,
        elapsed: f64,
        policy_version: u64,
        nodes: u32,
        gauges: impl Fn(TargetId) -> Gauges,
    ) -> LiveState {
        self.now += elapsed;
        self.sequence += 1;
        let policy = Arc::clone(&self.policy);
        for (index, evidence) in self.evidence.iter_mut().enumerate() {
            evidence.observe(self.now, elapsed, &gauges(TargetId(index as u32)));
        }
        let peers = self.peers();
        for (evidence, peers) in self.evidence.iter_mut().zip(peers) {
            evidence.conclude(peers, &policy.breaker);
        }
        let mut targets: Vec<Option<TargetLive>> = vec![None; policy.targets.len()];
        let mut pools = Vec::with_capacity(policy.pools.len());
        for (index, pool) in policy.pools.iter().enumerate() {
            let observed = self.observe(pool);
            let beta = self.weights[index].beta();
            let scores = score_pool(&policy, &pool.candidates, &observed, &policy.scoring, beta);
            let weights = self.weigh(index, pool, &observed, &scores);
            for (candidate, (observed, score)) in pool.candidates.iter().zip(observed.iter().zip(&scores)) {
                targets[candidate.target.index()]
                    .get_or_insert_with(|| self.target_live(candidate.target, observed, score));
            }
            let (route, capability) = pool_names(&policy, pool);
            let shares = pool.candidates.iter().zip(weights.iter().zip(&scores));
            let shares =
                shares.map(|(candidate, (&weight, score))| (candidate.target, weight, score.log_score));
            pools.push((route.to_owned(), capability.to_owned(), shares.collect()));
        }
        live_state(policy_version, self.sequence, nodes, targets, pools)
    }

    /// What there is to show of a target; `None` when the policy lacks it.
    #[must_use]
    pub fn status(&self, target: TargetId) -> Option<TargetStatus> {
        self.evidence.get(target.index()).map(|evidence| evidence.status(self.now))
    }

    /// The sharpness β in force for the pool with this index.
    #[must_use]
    pub fn beta(&self, pool: PoolId) -> Option<f64> {
        self.weights.get(pool.index()).map(PoolWeights::beta)
    }

    /// For each target, how slow the best of the others is that share a pool with it.
    fn peers(&self) -> Vec<Option<f64>> {
        let slowness: Vec<Option<f64>> = self.evidence.iter().map(Evidence::slowness).collect();
        let mut peers: Vec<Option<f64>> = vec![None; slowness.len()];
        for pool in &self.policy.pools {
            let targets = || pool.candidates.iter().map(|candidate| candidate.target.index());
            let mut known: Vec<(usize, f64)> =
                targets().filter_map(|target| Some((target, slowness[target]?))).collect();
            known.sort_by(|one, other| one.1.total_cmp(&other.1));
            for target in targets() {
                let best =
                    known.iter().take(2).find(|(other, _)| *other != target).map(|(_, slowness)| *slowness);
                peers[target] = best.into_iter().chain(peers[target]).reduce(f64::min);
            }
        }
        peers
    }

    /// The candidates' observations. One of which little is known is taken for a typical one of its pool, so that it is
    /// tried: the median latency, and the best success rate, for failures show quickly.
    fn observe(&self, pool: &Pool) -> Vec<Observed> {
        let evidence = || pool.candidates.iter().map(|candidate| &self.evidence[candidate.target.index()]);
        let mut latencies: Vec<f64> = evidence().filter_map(Evidence::latency_mean).collect();
        latencies.sort_by(f64::total_cmp);
        // The lower one of an even number: of two, the one that is well.
        let median = latencies.get(latencies.len().saturating_sub(1) / 2).copied().unwrap_or(UNKNOWN.latency);
        let success = evidence().filter_map(Evidence::success_mean).fold(UNKNOWN.success, f64::max);
        evidence().map(|evidence| evidence.observed((median, success))).collect()
    }

    fn weigh(&mut self, index: usize, pool: &Pool, observed: &[Observed], scores: &[Score]) -> Vec<f64> {
        let rate: f64 =
            pool.candidates.iter().map(|candidate| self.evidence[candidate.target.index()].rate()).sum();
        let breaker = &self.policy.breaker;
        let parts: Vec<Part> = pool
            .candidates
            .iter()
            .zip(observed.iter().zip(scores))
            .map(|(candidate, (observed, score))| Part {
                score: score.log_score,
                cost: score.cost,
                success: observed.success,
                configured: candidate.weight,
                share: self.evidence[candidate.target.index()].share(self.now, breaker),
            })
            .collect();
        self.weights[index].tick(self.now, &parts, rate, breaker.max_ejected)
    }

    fn target_live(&self, target: TargetId, observed: &Observed, score: &Score) -> TargetLive {
        let (backend, model) = self.policy.target_key(target);
        let evidence = &self.evidence[target.index()];
        TargetLive {
            backend: backend.to_owned(),
            model: model.to_owned(),
            latency: observed.latency,
            first_token: evidence.first_token().unwrap_or(observed.latency),
            cost: score.cost,
            success: observed.success,
            latency_term: score.latency_term,
            cost_term: score.cost_term,
            stability_term: score.stability_term,
            quality: score.quality,
            breaker_open: evidence.breaker_open(),
            breaker_ttl_ms: BREAKER_TTL_MS,
            drained: evidence.is_drained(),
        }
    }
}

type Names<'a> = (&'a str, &'a str);

/// A pool's names, and its log weights by the names of its targets.
fn named_weights<'a>(
    policy: &'a Policy,
    pool: &Pool,
    weights: &PoolWeights,
) -> (Names<'a>, HashMap<Names<'a>, f64>) {
    let targets = pool.candidates.iter().map(|candidate| policy.target_key(candidate.target));
    (pool_names(policy, pool), targets.zip(weights.log_weights().iter().copied()).collect())
}

fn pool_names<'a>(policy: &'a Policy, pool: &Pool) -> Names<'a> {
    (&policy.routes[pool.route.index()].name, &policy.capabilities[pool.capability.index()].name)
}

type NamedShares = (String, String, Vec<(TargetId, f64, f64)>);

/// Leaves out targets that no pool uses, and renumbers the others.
fn live_state(
    policy_version: u64,
    sequence: u64,
    nodes: u32,
    targets: Vec<Option<TargetLive>>,
    pools: Vec<NamedShares>,
) -> LiveState {
    let mut places = Vec::with_capacity(targets.len());
    let mut used = 0;
    for target in &targets {
        places.push(used);
        used += u32::from(target.is_some());
    }
    let pool = |(route, capability, shares): NamedShares| PoolLive {
        route,
        capability,
        weights: shares
            .into_iter()
            .map(|(target, weight, score)| (places[target.index()], weight, score))
            .collect(),
    };
    LiveState {
        policy_version,
        sequence,
        nodes,
        pools: pools.into_iter().map(pool).collect(),
        targets: targets.into_iter().flatten().collect(),
    }
}

#[cfg(test)]
mod tests;
