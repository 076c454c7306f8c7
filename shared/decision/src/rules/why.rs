//! Why a route did not match: the first of its demands that was not met.

use penstock_model::policy::{Route, RouteId};

use super::{ConditionFailure, Rules};
use crate::facts::Facts;

/// Of the routes before the one that matched, this many are looked at again.
const MOST: usize = 8;

/// What a request did not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// This one of [`Route::constraints`], which is about a field of this kind.
    Demand(u16, &'static str),
    /// The condition is false.
    Condition,
    /// The condition cannot be evaluated.
    ConditionFailed,
}

impl Miss {
    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Demand(_, kind) => kind,
            Self::Condition => "condition",
            Self::ConditionFailed => "condition_failed",
        }
    }
}

/// The first demand of a route that does not hold.
pub(super) fn unmet(route: &Route, facts: &Facts<'_>) -> Option<Miss> {
    let (index, constraint) =
        route.constraints.iter().enumerate().find(|(_, demand)| !facts.holds(demand))?;
    Some(Miss::Demand(u16::try_from(index).unwrap_or(u16::MAX), constraint.field.kind()))
}

/// The routes just before the one that matched, and why each did not. A fixed size: it is noted of every request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    nearest: [Option<(RouteId, Miss)>; MOST],
    /// How many routes before these are not noted.
    pub more: u32,
}

impl Missed {
    /// Of a request that took `route`. Conditions are not evaluated again: where every demand is met, the rest of the
    /// condition was false, or is among the `failed`.
    #[must_use]
    pub fn before(route: RouteId, facts: &Facts<'_>, failed: &[ConditionFailure]) -> Self {
        let is_failed = |id: RouteId| failed.iter().any(|failure| failure.route == id);
        let condition = |id| if is_failed(id) { Miss::ConditionFailed } else { Miss::Condition };
        let why = |id: RouteId| unmet(&facts.policy.routes[id.index()], facts);
        Self::of(route.index(), |id| why(id).unwrap_or(condition(id)))
    }

    /// Of a request that no route takes.
    #[must_use]
    pub fn all(rules: &Rules, facts: &Facts<'_>) -> Self {
        // Each of them has a reason, unless the policy has changed meanwhile, which it cannot.
        Self::of(facts.policy.routes.len(), |id| {
            rules.why_not(facts, id).map_or(Miss::Condition, |(miss, _)| miss)
        })
    }

    fn of(before: usize, why: impl Fn(RouteId) -> Miss) -> Self {
        let first = before.saturating_sub(MOST);
        let mut missed = Self { more: first as u32, ..Self::default() };
        for (place, index) in missed.nearest.iter_mut().zip(first..before) {
            let id = RouteId(index as u32);
            *place = Some((id, why(id)));
        }
        missed
    }

    /// In the policy's order.
    pub fn iter(&self) -> impl Iterator<Item = (RouteId, Miss)> {
        self.nearest.iter().flatten().copied()
    }
}

impl Rules {
    /// Why `route` does not match, with what CEL said of a condition that cannot be evaluated; `None` when it does.
    ///
    /// # Panics
    /// When `route` is of another policy.
    #[must_use]
    pub fn why_not(&self, facts: &Facts<'_>, route: RouteId) -> Option<(Miss, String)> {
        let route = &facts.policy.routes[route.index()];
        if let Some(miss) = unmet(route, facts) {
            return Some((miss, String::new()));
        }
        match self.evaluator(facts).all_hold(&route.condition.as_ref()?.rest) {
            Ok(true) => None,
            Ok(false) => Some((Miss::Condition, String::new())),
            Err(error) => Some((Miss::ConditionFailed, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
