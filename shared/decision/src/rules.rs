//! Which route a request takes: the first whose matchers and condition all hold.

mod why;

use std::sync::Arc;

use cel::{Context, Env, ExecutionError, Value};
use penstock_model::policy::{Condition, Policy, Route, RouteId};

use crate::context::{RequestContext, Variables};

pub use why::{Miss, Missed};

/// The rule engine. One per process is enough: it holds CEL's standard library, which takes 70 µs to set up.
pub struct Rules {
    library: Arc<Env>,
}

/// Where a request goes, and which conditions could not be evaluated on the way.
#[derive(Debug)]
pub struct RouteMatch {
    /// `None` when no route matches.
    pub route: Option<RouteId>,
    /// Conditions that failed. Each counted as not matched.
    pub failed: Vec<ConditionFailure>,
}

/// A condition that could not be evaluated.
#[derive(Debug)]
pub struct ConditionFailure {
    /// Whose condition.
    pub route: RouteId,
    /// What CEL said.
    pub error: ExecutionError,
}

impl Default for Rules {
    fn default() -> Self {
        Self { library: Arc::new(Env::stdlib()) }
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// The first route of `policy` that matches. Matchers come first; a condition is evaluated only when all of them
    /// hold. A condition that fails counts as not matched and is reported, except that asking for an absent header is
    /// no failure.
    #[must_use]
    pub fn match_route(&self, policy: &Policy, request: &RequestContext<'_>) -> RouteMatch {
        let variables = Variables::new(*request);
        let mut failed = Vec::new();
        for (index, route) in policy.routes.iter().enumerate() {
            if !matchers_hold(route, request) {
                continue;
            }
            let route_id = RouteId(index as u32);
            match route.condition.as_ref().map(|condition| self.holds(condition, &variables)) {
                None | Some(Ok(true)) => return RouteMatch { route: Some(route_id), failed },
                Some(Ok(false)) => {}
                Some(Err(error)) => failed.push(ConditionFailure { route: route_id, error }),
            }
        }
        RouteMatch { route: None, failed }
    }

    fn holds(&self, condition: &Condition, variables: &Variables<'_>) -> Result<bool, ExecutionError> {
        let mut context = Context::with_env(Arc::clone(&self.library));
        context.set_variable_resolver(variables);
        match condition.program.execute(&context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(ExecutionError::UnexpectedType {
                got: other.type_of().to_string(),
                want: "bool".to_owned(),
            }),
            Err(ExecutionError::NoSuchKey(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn matchers_hold(route: &Route, request: &RequestContext<'_>) -> bool {
    why::unmet(route, request).is_none()
}

#[cfg(test)]
mod tests;
