//! Live state: what changes every second and belongs to no policy version.

/// The control plane's newest verdict on every target and pool. Targets are named, so that a state computed for one
/// version can be applied to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveState {
    /// The policy version it was computed for.
    pub policy_version: u64,
    /// Grows by one per state.
    pub sequence: u64,
    /// Nodes that report.
    pub nodes: u32,
    /// The fleet's view of each target.
    pub targets: Vec<TargetLive>,
    /// Planned shares.
    pub pools: Vec<PoolLive>,
}

/// The fleet's view of one target. Terms are unitless, 0..1, higher is better.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetLive {
    /// Backend name.
    pub backend: String,
    /// Model name.
    pub model: String,
    /// T̂: seconds a standard request takes.
    pub latency: f64,
    /// Seconds to the first token.
    pub first_token: f64,
    /// C: generalised cost, seconds.
    pub cost: f64,
    /// s: success rate.
    pub success: f64,
    /// Best latency of the pool over this one's.
    pub latency_term: f64,
    /// Best price of the pool over this one's.
    pub cost_term: f64,
    /// 1/(1+CV).
    pub stability_term: f64,
    /// 0.4·success + 0.3·latency + 0.2·cost + 0.1·stability.
    pub quality: f64,
    /// Is the fleet's breaker open? Believed for `breaker_ttl_ms` after arrival.
    pub breaker_open: bool,
    /// Milliseconds.
    pub breaker_ttl_ms: u32,
    /// Has an operator taken it out of service?
    pub drained: bool,
}

/// Planned shares of one (route, capability).
#[derive(Debug, Clone, PartialEq)]
pub struct PoolLive {
    /// Route name.
    pub route: String,
    /// Capability name.
    pub capability: String,
    /// Index into [`LiveState::targets`], weight (sums to 1), log score.
    pub weights: Vec<(u32, f64, f64)>,
}
