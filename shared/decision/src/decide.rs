//! Route, then capability, then pool.

use penstock_model::Policy;
use penstock_model::policy::{CapabilityId, PoolId, RouteId};

use crate::capability::{CapabilitySource, Classification, Classifier};
use crate::context::RequestContext;
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

/// Decides. `asked` is the capability the client named, if any; `texts` are those of the last user message.
///
/// A capability guessed from the text is a guess: where the route has no backend for it, the default takes over. One that
/// was asked for is not.
///
/// # Errors
/// When no route matches, or the one that does cannot give what was asked for.
pub fn decide<'t>(
    rules: &Rules,
    classifier: &Classifier,
    policy: &Policy,
    request: &RequestContext<'_>,
    asked: Option<CapabilityId>,
    texts: impl IntoIterator<Item = &'t str>,
) -> Result<Decided, Undecided> {
    let matched = rules.match_route(policy, request);
    let route_id = matched.route.ok_or(Undecided::NoRoute)?;
    let route = &policy.routes[route_id.index()];
    let told = route
        .capability
        .map(|capability| (capability, CapabilitySource::Route))
        .or(asked.map(|capability| (capability, CapabilitySource::Caller)));
    let pool_of = |capability: CapabilityId| route.pools.get(capability.index()).copied().flatten();
    let decided =
        |classification, pool| Decided { route: route_id, classification, pool, failed: matched.failed };

    if let Some((capability, source)) = told {
        let pool = pool_of(capability).ok_or(Undecided::NoBackend { route: route_id, capability })?;
        return Ok(decided(Classification { capability, confidence: 1.0, source }, pool));
    }
    let guess = classifier.classify(texts);
    if let Some(pool) = pool_of(guess.capability) {
        return Ok(decided(guess, pool));
    }
    let capability = policy.default_capability;
    let missing = Undecided::NoBackend { route: route_id, capability: guess.capability };
    let pool = pool_of(capability).ok_or(missing)?;
    Ok(decided(Classification { capability, confidence: 0.0, source: CapabilitySource::Default }, pool))
}

#[cfg(test)]
mod tests;
