//! Which route a request takes: the first whose matchers and condition all hold.

use std::sync::Arc;

use cel::parser::Expression;
use cel::{Context, Env, ExecutionError, Value};
use penstock_model::Policy;
use penstock_model::condition::library;
use penstock_model::policy::{Condition, Route, RouteId};

use crate::facts::Facts;

mod index;
mod table;
mod why;

pub use why::{Miss, Missed};

/// The routes of one policy, ready to be matched.
pub struct Rules {
    library: Arc<Env>,
    index: index::Index,
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

impl std::fmt::Debug for Rules {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rules").field("index", &self.index).finish_non_exhaustive()
    }
}

impl Rules {
    /// Compiles the routes of `policy`.
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        Self { library: library(), index: index::Index::new(&policy.routes) }
    }

    /// The first route that matches a request under the policy that these are the rules of. A condition that fails counts
    /// as not matched and is reported, except that asking for what is absent, as a header can be, is no failure.
    #[must_use]
    pub fn match_route(&self, facts: &Facts<'_>) -> RouteMatch {
        let mut evaluator = self.evaluator(facts);
        let mut failed = Vec::new();
        for id in self.index.candidates(facts) {
            let route = &facts.policy.routes[id.index()];
            if !route.constraints.iter().all(|constraint| facts.holds(constraint)) {
                continue;
            }
            match route.condition.as_ref().map(|condition| evaluator.all_hold(&condition.rest)) {
                None | Some(Ok(true)) => return RouteMatch { route: Some(id), failed },
                Some(Ok(false)) => {}
                Some(Err(error)) => failed.push(ConditionFailure { route: id, error }),
            }
        }
        RouteMatch { route: None, failed }
    }

    /// The same without the index: every route is looked at, its matchers first and then its condition as it is written.
    /// What [`Self::match_route`] is tested against and compared with.
    #[must_use]
    pub fn scan(&self, facts: &Facts<'_>) -> Option<RouteId> {
        let matches = |route: &Route| {
            let condition = route.condition.as_ref();
            let hoisted = condition.map_or(0, |condition| condition.constraints.len());
            let matchers = &route.constraints[..route.constraints.len() - hoisted];
            matchers.iter().all(|constraint| facts.holds(constraint))
                && condition.is_none_or(|condition| self.whole_holds(condition, facts))
        };
        facts.policy.routes.iter().position(matches).map(|index| RouteId(index as u32))
    }

    fn evaluator<'a, 'f>(&'a self, facts: &'a Facts<'f>) -> Evaluator<'a, 'f> {
        Evaluator { library: &self.library, facts, context: None }
    }

    fn whole_holds(&self, condition: &Condition, facts: &Facts<'_>) -> bool {
        let mut context = Context::with_env(Arc::clone(&self.library));
        context.set_variable_resolver(facts);
        condition.program.execute(&context) == Ok(Value::Bool(true))
    }
}

/// Evaluates what is left of conditions. Its context is made for the first.
struct Evaluator<'a, 'f> {
    library: &'a Arc<Env>,
    facts: &'a Facts<'f>,
    context: Option<Context<'a, 'a>>,
}

impl Evaluator<'_, '_> {
    /// Like `&&`: what is false decides, whatever fails beside it.
    fn all_hold(&mut self, parts: &[Expression]) -> Result<bool, ExecutionError> {
        let context = self.context.get_or_insert_with(|| {
            let mut context = Context::with_env(Arc::clone(self.library));
            context.set_variable_resolver(self.facts);
            context
        });
        let mut failure = None;
        for part in parts {
            match context.resolve(part) {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) | Err(ExecutionError::NoSuchKey(_)) => return Ok(false),
                Ok(other) => {
                    failure = Some(ExecutionError::UnexpectedType {
                        got: other.type_of().to_string(),
                        want: "bool".to_owned(),
                    });
                }
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(true), Err)
    }
}

#[cfg(test)]
mod tests;
