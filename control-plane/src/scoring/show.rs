//! The outcome of a tick for the wire: what nodes get, and what operators see.

use std::collections::HashMap;
use std::time::Instant;

use penstock_decision::fleet::{Phase, TargetStatus};
use penstock_model::Policy;
use penstock_model::live::{LiveState, PoolLive, TargetLive};
use penstock_model::policy::{Backend, TargetId};
use penstock_proto::admin::v1::{BackendTarget, ListBackendsResponse, PoolShare};
use penstock_proto::fleet::v1::{
    BreakerState, LiveState as WireLiveState, PoolState, TargetState, WeightedTarget,
};

use crate::evidence::Evidence;

/// The computed state with what was observed beside it.
pub(super) fn live_state(live: &LiveState, evidence: &Evidence, computed_unix_ms: i64) -> WireLiveState {
    WireLiveState {
        policy_version: live.policy_version,
        sequence: live.sequence,
        computed_unix_ms,
        targets: live.targets.iter().map(|target| target_state(target, evidence)).collect(),
        pools: live.pools.iter().map(|pool| pool_state(pool, evidence)).collect(),
        nodes: live.nodes,
    }
}

fn target_state(target: &TargetLive, evidence: &Evidence) -> TargetState {
    let computed = TargetState {
        backend: target.backend.clone(),
        model: target.model.clone(),
        latency_seconds: target.latency,
        first_token_seconds: target.first_token,
        cost_seconds: target.cost,
        success: target.success,
        latency_term: target.latency_term,
        cost_term: target.cost_term,
        stability_term: target.stability_term,
        quality: target.quality,
        breaker_ttl_ms: target.breaker_ttl_ms,
        drained: target.drained,
        ..TargetState::default()
    };
    let Some(status) = evidence.status(&target.backend, &target.model) else { return computed };
    TargetState {
        recent_calls: status.recent_calls,
        recent_failures: status.recent_failures,
        latency_p50_seconds: status.latency_p50.unwrap_or(0.0),
        latency_p95_seconds: status.latency_p95.unwrap_or(0.0),
        first_token_p95_seconds: status.first_token_p95.unwrap_or(0.0),
        breaker: breaker(status.phase).into(),
        in_flight: status.in_flight,
        ..computed
    }
}

fn breaker(phase: Phase) -> BreakerState {
    match phase {
        Phase::Closed => BreakerState::Closed,
        Phase::Open => BreakerState::Open,
        Phase::HalfOpen => BreakerState::HalfOpen,
        Phase::Ramp => BreakerState::Ramp,
        Phase::Slow => BreakerState::Slow,
    }
}

fn pool_state(pool: &PoolLive, evidence: &Evidence) -> PoolState {
    let weighted =
        |&(target, weight, log_score): &(u32, f64, f64)| WeightedTarget { target, weight, log_score };
    PoolState {
        route: pool.route.clone(),
        capability: pool.capability.clone(),
        targets: pool.weights.iter().map(weighted).collect(),
        beta: evidence.beta(&pool.route, &pool.capability).unwrap_or_default(),
    }
}

/// One row per target of the policy, in its order.
pub(super) fn backends(
    policy: &Policy,
    live: &WireLiveState,
    evidence: &Evidence,
    now: Instant,
) -> ListBackendsResponse {
    let states: HashMap<(&str, &str), (usize, &TargetState)> = live
        .targets
        .iter()
        .enumerate()
        .map(|(index, state)| ((state.backend.as_str(), state.model.as_str()), (index, state)))
        .collect();
    let targets = (0..policy.targets.len() as u32).map(TargetId).map(|id| {
        let (name, model) = policy.target_key(id);
        let backend = &policy.backends[policy.targets[id.index()].backend.index()];
        let (index, state) = states.get(&(name, model)).copied().unzip();
        let used = evidence.used(name, model, now);
        BackendTarget {
            state: Some(state.cloned().unwrap_or_else(|| unknown(name, model))),
            provider: backend.vendor.name.clone(),
            zone: backend.zone.clone().unwrap_or_default(),
            capabilities: capabilities(policy, backend),
            pools: index.map(|index| shares(live, index as u32)).unwrap_or_default(),
            calls_per_second: used.attempts as f64 / 60.0,
            success_rate: evidence.status(name, model).map_or(1.0, |status| success_rate(&status)),
            input_tokens: used.input_tokens,
            output_tokens: used.output_tokens,
            cost_nanos: used.cost_nanos,
            currency: used.currency,
        }
    });
    ListBackendsResponse {
        targets: targets.collect(),
        policy_version: live.policy_version,
        computed_unix_ms: live.computed_unix_ms,
    }
}

fn unknown(backend: &str, model: &str) -> TargetState {
    TargetState { backend: backend.to_owned(), model: model.to_owned(), ..TargetState::default() }
}

fn capabilities(policy: &Policy, backend: &Backend) -> Vec<String> {
    let matched = policy.capabilities.iter().zip(&backend.capability_match);
    matched.filter(|(_, degree)| **degree > 0.0).map(|(capability, _)| capability.name.clone()).collect()
}

fn shares(live: &WireLiveState, target: u32) -> Vec<PoolShare> {
    let share = |pool: &PoolState| {
        let weighted = pool.targets.iter().find(|weighted| weighted.target == target)?;
        Some(PoolShare {
            route: pool.route.clone(),
            capability: pool.capability.clone(),
            weight: weighted.weight,
        })
    };
    live.pools.iter().filter_map(share).collect()
}

/// Of the last minute's attempts that say something about the target; 1 when none did.
fn success_rate(status: &TargetStatus) -> f64 {
    match status.minute_calls {
        0 => 1.0,
        calls => (calls - status.minute_failures) as f64 / calls as f64,
    }
}
