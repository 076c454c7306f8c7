//! What a proxy plans to do: shares and expectations per pool, from the policy and the newest live state.
//!
//! Built when either changes and once a second while the live state ages, never per request. The older the live state,
//! the less it is believed:
//!
//! | age | |
//! |---|---|
//! | none ever came | the policy's weights, and a guess of one second per answer |
//! | up to the breaker's time to live (30 s) | as it is |
//! | beyond | what the fleet's breaker had taken out gets its configured share back; the local breaker is on its own |
//! | beyond 10 min | shares drift back to the policy's weights (time constant 10 min) |

use std::collections::HashMap;
use std::time::Duration;

use penstock_model::live::{LiveState, TargetLive};
use penstock_model::policy::{Policy, Pool, PoolId, TargetId};
use penstock_stats::decay;

use crate::score::{MATCH_REWARD, Observed, Term, UNKNOWN, score_pool};

/// Beyond this age shares drift back.
const DRIFT_AFTER: f64 = 600.0;
const DRIFT_TAU: f64 = 600.0;

/// What a proxy expects of one candidate of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Which target.
    pub target: TargetId,
    /// Share of the pool's requests; a pool's shares sum to 1.
    pub weight: f64,
    /// The policy's weight, for how much of the pool's capacity is out.
    pub configured: f64,
    /// C: generalised cost, seconds.
    pub cost: f64,
    /// T: seconds an answer takes.
    pub latency: f64,
    /// Seconds to the first token.
    pub first_token: f64,
    /// s: success rate, 0..1.
    pub success: f64,
    /// Has the fleet taken it out? It then gets only the trickle of requests that finds out when it is well again.
    pub fleet_open: bool,
    /// Has an operator taken it out of service?
    pub drained: bool,
    /// S, the score that the share follows.
    pub log_score: f64,
    /// What the score is made of.
    pub terms: [Term; 6],
}

/// The plans of all pools of a policy.
#[derive(Debug, Clone, Default)]
pub struct Plans {
    pools: Vec<Vec<Planned>>,
}

impl Plans {
    /// Plans for `policy` with the newest live state and its age, if there is one.
    #[must_use]
    pub fn new(policy: &Policy, live: Option<(&LiveState, Duration)>) -> Self {
        let live = live.map(|(state, age)| Live::new(state, age));
        let pools = policy.pools.iter().map(|pool| plan(policy, pool, live.as_ref())).collect();
        Self { pools }
    }

    /// The candidates of a pool, in the policy's order.
    ///
    /// # Panics
    /// When `pool` is of another policy.
    #[must_use]
    pub fn pool(&self, pool: PoolId) -> &[Planned] {
        &self.pools[pool.index()]
    }
}

/// Route and capability, or backend and model.
type Names<'a> = (&'a str, &'a str);
/// Weight and score.
type Share = (f64, f64);

/// A live state with its names looked up once.
struct Live<'a> {
    age: Duration,
    targets: HashMap<Names<'a>, &'a TargetLive>,
    /// By pool, then by target.
    shares: HashMap<Names<'a>, HashMap<Names<'a>, Share>>,
}

impl<'a> Live<'a> {
    fn new(state: &'a LiveState, age: Duration) -> Self {
        let key = |target: &'a TargetLive| (target.backend.as_str(), target.model.as_str());
        let shares = state.pools.iter().map(|pool| {
            let weights = pool.weights.iter().filter_map(|&(index, weight, score)| {
                let sane = (0.0..=1.0).contains(&weight) && score.is_finite();
                Some((key(state.targets.get(index as usize).filter(|_| sane)?), (weight, score)))
            });
            ((pool.route.as_str(), pool.capability.as_str()), weights.collect())
        });
        Self {
            age,
            targets: state.targets.iter().map(|target| (key(target), target)).collect(),
            shares: shares.collect(),
        }
    }

    fn breaker_believed(&self, target: &TargetLive) -> bool {
        self.age < Duration::from_millis(u64::from(target.breaker_ttl_ms))
    }
}

fn plan(policy: &Policy, pool: &Pool, live: Option<&Live<'_>>) -> Vec<Planned> {
    let names = (
        policy.routes[pool.route.index()].name.as_str(),
        policy.capabilities[pool.capability.index()].name.as_str(),
    );
    let shares = live.and_then(|live| live.shares.get(&names));
    let known: Vec<Option<&TargetLive>> = pool
        .candidates
        .iter()
        .map(|candidate| live?.targets.get(&policy.target_key(candidate.target)).copied())
        .collect();
    let observed: Vec<Observed> = known.iter().map(|target| target.map_or(UNKNOWN, observed)).collect();
    let scoring = &policy.scoring;
    let scores = score_pool(policy, &pool.candidates, &observed, scoring, scoring.sharpness);
    let drift =
        live.map_or(1.0, |live| 1.0 - decay((live.age.as_secs_f64() - DRIFT_AFTER).max(0.0), DRIFT_TAU));
    let configured = normalised(
        pool.candidates
            .iter()
            .map(|candidate| candidate.weight * (MATCH_REWARD * candidate.capability_match).exp()),
    );

    let mut planned = Vec::with_capacity(pool.candidates.len());
    for (index, candidate) in pool.candidates.iter().enumerate() {
        let target = known[index];
        let was_open = target.is_some_and(|target| target.breaker_open);
        let believed = target.zip(live).is_some_and(|(target, live)| live.breaker_believed(target));
        let share = shares.and_then(|shares| shares.get(&policy.target_key(candidate.target)));
        let (live_weight, log_score) = share.copied().unwrap_or((configured[index], scores[index].log_score));
        let live_weight = if was_open && !believed { configured[index] } else { live_weight };
        let known_first_token = target.map(|target| target.first_token).filter(|&seconds| seconds > 0.0);
        planned.push(Planned {
            target: candidate.target,
            weight: live_weight * (1.0 - drift) + configured[index] * drift,
            configured: candidate.weight,
            cost: scores[index].cost,
            latency: observed[index].latency,
            first_token: known_first_token.unwrap_or(observed[index].latency),
            success: observed[index].success,
            fleet_open: was_open && believed,
            drained: target.is_some_and(|target| target.drained),
            log_score,
            terms: scores[index].terms,
        });
    }
    let total: f64 = planned.iter().map(|planned| planned.weight).sum();
    for (planned, configured) in planned.iter_mut().zip(configured) {
        planned.weight = if total > 0.0 { planned.weight / total } else { configured };
    }
    planned
}

/// What a live state says of a target; its numbers come over the wire, so they are taken for nothing but numbers.
fn observed(target: &TargetLive) -> Observed {
    let sane = |value: f64, least: f64, most: f64, otherwise: f64| {
        if value.is_finite() { value.clamp(least, most) } else { otherwise }
    };
    let stability = sane(target.stability_term, 0.01, 1.0, 1.0);
    Observed {
        latency: sane(target.latency, 1e-4, 3_600.0, UNKNOWN.latency),
        success: sane(target.success, 0.0, 1.0, UNKNOWN.success),
        variation: 1.0 / stability - 1.0,
    }
}

fn normalised(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let weights: Vec<f64> = weights.collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

#[cfg(test)]
mod tests;
