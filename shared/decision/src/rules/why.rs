//! Why a route did not match: the first of its demands that was not met.

use penstock_model::policy::{Pattern, Policy, Route, RouteId};

use super::{ConditionFailure, Rules};
use crate::context::{RequestContext, Variables};

/// Of the routes before the one that matched, this many are looked at again.
const MOST: usize = 8;

/// What a request did not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// Only streams, or only others.
    Stream,
    /// None of the paths.
    Path,
    /// None of the models.
    Model,
    /// This one of [`Route::headers`].
    Header(u16),
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
            Self::Stream => "stream",
            Self::Path => "path",
            Self::Model => "model",
            Self::Header(_) => "header",
            Self::Condition => "condition",
            Self::ConditionFailed => "condition_failed",
        }
    }
}

/// The first matcher of a route that does not hold.
pub(super) fn unmet(route: &Route, request: &RequestContext<'_>) -> Option<Miss> {
    let none_of = |patterns: &[Pattern], value: &str| {
        !patterns.is_empty() && !patterns.iter().any(|pattern| pattern.matches(value))
    };
    if route.stream.is_some_and(|stream| stream != request.stream) {
        return Some(Miss::Stream);
    }
    if none_of(&route.paths, request.path) {
        return Some(Miss::Path);
    }
    if none_of(&route.models, request.model) {
        return Some(Miss::Model);
    }
    let wrong = |(name, pattern): &(String, Pattern)| {
        !request.header(name).is_some_and(|value| pattern.matches(value))
    };
    route.headers.iter().position(wrong).map(|index| Miss::Header(u16::try_from(index).unwrap_or(u16::MAX)))
}

/// The routes just before the one that matched, and why each did not. A fixed size: it is noted of every request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missed {
    nearest: [Option<(RouteId, Miss)>; MOST],
    /// How many routes before these are not noted.
    pub more: u32,
}

impl Missed {
    /// Of a request that took `route`. Conditions are not evaluated again: where every matcher holds, the condition was
    /// false, or is among the `failed`.
    #[must_use]
    pub fn before(
        route: RouteId,
        policy: &Policy,
        request: &RequestContext<'_>,
        failed: &[ConditionFailure],
    ) -> Self {
        let is_failed = |id: RouteId| failed.iter().any(|failure| failure.route == id);
        let condition = |id| if is_failed(id) { Miss::ConditionFailed } else { Miss::Condition };
        Self::of(route.index(), |id| unmet(&policy.routes[id.index()], request).unwrap_or(condition(id)))
    }

    /// Of a request that no route takes.
    #[must_use]
    pub fn all(rules: &Rules, policy: &Policy, request: &RequestContext<'_>) -> Self {
        // Each of them has a reason, unless the policy has changed meanwhile, which it cannot.
        Self::of(policy.routes.len(), |id| {
            rules.why_not(policy, request, id).map_or(Miss::Condition, |(miss, _)| miss)
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
    pub fn why_not(
        &self,
        policy: &Policy,
        request: &RequestContext<'_>,
        route: RouteId,
    ) -> Option<(Miss, String)> {
        let route = &policy.routes[route.index()];
        if let Some(miss) = unmet(route, request) {
            return Some((miss, String::new()));
        }
        match self.holds(route.condition.as_ref()?, &Variables::new(*request)) {
            Ok(true) => None,
            Ok(false) => Some((Miss::Condition, String::new())),
            Err(error) => Some((Miss::ConditionFailed, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests;
