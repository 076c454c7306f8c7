//! Route, then capability, then pool.

use penstock_model::policy::{CapabilityId, PoolId, RouteId};

use crate::capability::{CapabilitySource, Classification};
use crate::facts::Facts;
use crate::rules::{ConditionFailure, Rules};

/// Where a request goes.
#[derive(Debug)]
pub struct Decided {
    /// The route that matched.
    pub route: RouteId,
    /// What the request needs.
    pub classification: Classification,
    /// The candidates.
    pub pool: PoolId,
    /// Conditions that could not be evaluated; each counted as not matched.
    pub failed: Vec<ConditionFailure>,
}

/// Why a request goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undecided {
    /// No route matches.
    NoRoute,
    /// The route has no backend for the capability that the client, or the route, insists on.
    NoBackend {
        /// The route that matched.
        route: RouteId,
        /// What was asked for.
        capability: CapabilityId,
    },
}

/// Decides.
///
/// A capability guessed from the text is a guess: where the route has no backend for it, the default takes over. One that
/// was asked for is not.
///
/// # Errors
/// When no route matches, or the one that does cannot give what was asked for.
pub fn decide(rules: &Rules, facts: &Facts<'_>) -> Result<Decided, Undecided> {
    let matched = rules.match_route(facts);
    let route_id = matched.route.ok_or(Undecided::NoRoute)?;
    let policy = facts.policy;
    let route = &policy.routes[route_id.index()];
    let pool_of = |capability: CapabilityId| route.pools.get(capability.index()).copied().flatten();
    let decided =
        |classification, pool| Decided { route: route_id, classification, pool, failed: matched.failed };

    let told = route.capability.map(|capability| Classification {
        capability,
        confidence: 1.0,
        source: CapabilitySource::Route,
    });
    let needed = told.unwrap_or_else(|| facts.classification());
    let missing = Undecided::NoBackend { route: route_id, capability: needed.capability };
    if let Some(pool) = pool_of(needed.capability) {
        return Ok(decided(needed, pool));
    }
    if matches!(needed.source, CapabilitySource::Route | CapabilitySource::Caller) {
        return Err(missing);
    }
    let capability = policy.default_capability;
    let pool = pool_of(capability).ok_or(missing)?;
    Ok(decided(Classification { capability, confidence: 0.0, source: CapabilitySource::Default }, pool))
}

#[cfg(test)]
mod tests;
