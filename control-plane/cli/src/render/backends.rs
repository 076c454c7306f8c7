//! Backends and how they are doing.

use penstock_proto::admin::v1::{BackendTarget, ListBackendsResponse, PoolShare};
use penstock_proto::fleet::v1::BreakerState;

use super::table::table;
use super::units::{known_seconds, money, percent};

/// One line per (backend, model).
pub(crate) fn backends(response: &ListBackendsResponse) -> String {
    let header = vec![
        "BACKEND",
        "MODEL",
        "ZONE",
        "SHARE",
        "BREAKER",
        "CALLS/S",
        "SUCCESS",
        "P50",
        "P95",
        "FIRST TOKEN P95",
        "IN FLIGHT",
        "QUALITY",
        "SPENT (1M)",
    ];
    table(header, response.targets.iter().map(row).collect())
}

fn row(target: &BackendTarget) -> Vec<String> {
    let state = target.state.clone().unwrap_or_default();
    // Without calls a success rate would be made up.
    let success = if target.calls_per_second > 0.0 { percent(target.success_rate) } else { "-".to_owned() };
    vec![
        state.backend.clone(),
        state.model.clone(),
        if target.zone.is_empty() { "-".to_owned() } else { target.zone.clone() },
        shares(&target.pools),
        if state.drained { "drained" } else { breaker(state.breaker()) }.to_owned(),
        format!("{:.1}", target.calls_per_second),
        success,
        known_seconds(state.latency_p50_seconds),
        known_seconds(state.latency_p95_seconds),
        known_seconds(state.first_token_p95_seconds),
        state.in_flight.to_string(),
        format!("{:.2}", state.quality),
        money(target.cost_nanos, &target.currency),
    ]
}

/// `chat 62 %`; with the route's name in front where there is more than one route.
fn shares(pools: &[PoolShare]) -> String {
    let one_route = pools.windows(2).all(|pair| pair[0].route == pair[1].route);
    let share = |pool: &PoolShare| {
        let name =
            if one_route { pool.capability.clone() } else { format!("{}/{}", pool.route, pool.capability) };
        format!("{name} {:.0} %", pool.weight * 100.0)
    };
    if pools.is_empty() { "-".to_owned() } else { pools.iter().map(share).collect::<Vec<_>>().join(", ") }
}

fn breaker(state: BreakerState) -> &'static str {
    match state {
        BreakerState::Unspecified => "-",
        BreakerState::Closed => "closed",
        BreakerState::Open => "open",
        BreakerState::HalfOpen => "half-open",
        BreakerState::Ramp => "growing back",
        BreakerState::Slow => "slow",
    }
}
