//! Wire to domain and back, once, at the edge.

use penstock_model::live::{LiveState, PoolLive, TargetLive};
use penstock_model::{Problem, Severity};
use penstock_proto::fleet::v1 as wire;

/// Live state as the plans read it. Shares of targets that the message does not hold are left out.
pub(super) fn live(state: wire::LiveState) -> LiveState {
    let known = state.targets.len();
    LiveState {
        policy_version: state.policy_version,
        sequence: state.sequence,
        nodes: state.nodes,
        targets: state.targets.into_iter().map(target).collect(),
        pools: state.pools.into_iter().map(|state| pool(state, known)).collect(),
    }
}

fn target(state: wire::TargetState) -> TargetLive {
    let breaker_open = state.breaker() == wire::BreakerState::Open;
    TargetLive {
        latency: state.latency_seconds,
        first_token: state.first_token_seconds,
        cost: state.cost_seconds,
        success: state.success,
        latency_term: state.latency_term,
        cost_term: state.cost_term,
        stability_term: state.stability_term,
        quality: state.quality,
        breaker_open,
        drained: state.drained,
        breaker_ttl_ms: state.breaker_ttl_ms,
        backend: state.backend,
        model: state.model,
    }
}

fn pool(state: wire::PoolState, known: usize) -> PoolLive {
    let weights = state.targets.iter().filter(|share| (share.target as usize) < known);
    PoolLive {
        weights: weights.map(|share| (share.target, share.weight, share.log_score)).collect(),
        route: state.route,
        capability: state.capability,
    }
}

pub(super) fn problem(problem: Problem) -> wire::Problem {
    let severity = match problem.severity {
        Severity::Error => wire::Severity::Error,
        Severity::Warning => wire::Severity::Warning,
    };
    wire::Problem {
        path: problem.path,
        line: problem.line,
        column: problem.column,
        message: problem.message,
        hint: problem.hint,
        severity: severity.into(),
    }
}
