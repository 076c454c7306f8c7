//! How the backends are doing, for conditions that ask: from the plans, and from what this process sees itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use penstock_decision::breaker::State;
use penstock_decision::plan::Planned;
use penstock_model::Policy;
use penstock_model::condition::{BackendFacts, Fact, FactValue};
use penstock_model::policy::{BackendId, PoolId, TargetId};

use crate::clock::Moment;
use crate::table::RouteTable;

/// Of each target: the first pool that has it, and where in it. Worked out once per policy.
#[derive(Debug)]
pub(crate) struct Places(Vec<Option<(PoolId, usize)>>);

impl Places {
    pub(crate) fn new(policy: &Policy) -> Arc<Self> {
        let mut places = vec![None; policy.targets.len()];
        for (pool, index) in policy.pools.iter().zip(0..) {
            for (at, candidate) in pool.candidates.iter().enumerate() {
                places[candidate.target.index()].get_or_insert((PoolId(index), at));
            }
        }
        Arc::new(Self(places))
    }
}

/// The backends as they are `now`.
pub(crate) struct LiveFacts<'a> {
    table: &'a RouteTable,
    now: Moment,
}

impl fmt::Debug for LiveFacts<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LiveFacts").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> LiveFacts<'a> {
    pub(crate) fn new(table: &'a RouteTable, now: Moment) -> Self {
        Self { table, now }
    }

    fn planned(&self, target: TargetId) -> Option<&'a Planned> {
        let (pool, index) = self.table.places.0[target.index()]?;
        self.table.plans.pool(pool).get(index)
    }

    fn breaker(&self, target: TargetId) -> &'static str {
        if self.planned(target).is_some_and(|planned| planned.fleet_open) {
            return "open";
        }
        let table = self.table;
        match table.target(target).state.state(self.now, &table.policy().breaker) {
            State::Closed => "closed",
            State::Open { .. } => "open",
            State::HalfOpen => "half_open",
            State::Ramp { .. } => "ramp",
        }
    }
}

impl BackendFacts for LiveFacts<'_> {
    fn fact(&self, name: &str, fact: Fact) -> Option<FactValue> {
        use FactValue::{Count, Number, Word};
        let target = find(self.table.policy(), name)?;
        let state = &self.table.target(target).state;
        let planned = || self.planned(target);
        Some(match fact {
            Fact::SuccessRate => Number(planned()?.success),
            Fact::ErrorRate => Number(1.0 - planned()?.success),
            Fact::Latency => Number(planned()?.latency),
            Fact::FirstToken => Number(planned()?.first_token),
            Fact::Score => Number(planned()?.log_score),
            Fact::InFlight => Count(state.in_flight.load(Relaxed).into()),
            Fact::CostPer1kTokens => Number(cost_per_1k(self.table.policy(), target)?),
            Fact::Breaker => Word(self.breaker(target)),
            Fact::Cooldown => Number(state.cooldown_until().since(self.now).as_secs_f64()),
        })
    }
}

/// Two tokens of input to one of output, as when prices are compared.
fn cost_per_1k(policy: &Policy, target: TargetId) -> Option<f64> {
    // Prices are nano-units per million tokens.
    const UNITS_PER_1K: f64 = 1e-12;
    let price = policy.targets[target.index()].price.as_ref()?;
    Some((2.0 * price.input as f64 + price.output as f64) / 3.0 * UNITS_PER_1K)
}

/// The target called `backend/model`, or the first of `backend`. Backends are in alphabetical order, and targets in that of
/// their backends.
fn find(policy: &Policy, name: &str) -> Option<TargetId> {
    let (backend, model) = name.split_once('/').map_or((name, None), |(name, model)| (name, Some(model)));
    let index = policy.backends.binary_search_by(|known| known.name.as_str().cmp(backend)).ok()?;
    let id = BackendId(index as u32);
    let first = policy.targets.partition_point(|target| target.backend < id);
    let of_backend = policy.targets[first..].iter().take_while(|target| target.backend == id);
    let is_it = |target: &penstock_model::policy::Target| model.is_none_or(|model| target.model == model);
    let at = of_backend.into_iter().position(is_it)?;
    Some(TargetId((first + at) as u32))
}
