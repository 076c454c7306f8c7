//! From a pool to one candidate: what this process knows of each, and why some cannot be chosen.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use penstock_decision::breaker::Availability;
use penstock_decision::filter::{Exclusion, Needs, Now, all_lack, exclusion};
use penstock_decision::pick::{LocalSignal, LocalView, MAX_CANDIDATES, Mask, Pick, Question, Standing, pick};
use penstock_model::policy::PoolId;

use crate::clock::Moment;
use crate::table::{RouteTable, Target};
use crate::worker::Worker;

/// Why each candidate of a pool cannot be chosen, breakers included; `None` for one that can.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exclusions([Option<Exclusion>; MAX_CANDIDATES]);

impl Exclusions {
    /// Of the candidate with this index, where it is within what is looked at.
    pub(crate) fn of(&self, index: usize) -> Option<Exclusion> {
        self.0.get(index).copied().flatten()
    }

    /// As records show it; empty for one that can be chosen.
    pub(crate) fn name(&self, index: usize) -> &'static str {
        self.of(index).map_or("", Exclusion::as_str)
    }
}

impl Default for Exclusions {
    fn default() -> Self {
        Self([None; MAX_CANDIDATES])
    }
}

/// A pool as this process sees it now.
pub(crate) struct View<'a> {
    table: &'a RouteTable,
    pool: PoolId,
    now: Moment,
    why: Exclusions,
}

impl<'a> View<'a> {
    /// `barred`: those that were found unable to carry the request.
    pub(crate) fn new(table: &'a RouteTable, pool: PoolId, needs: &Needs, barred: Mask, now: Moment) -> Self {
        let mut view = Self { table, pool, now, why: Exclusions::default() };
        for index in 0..view.len().min(MAX_CANDIDATES) {
            view.why.0[index] = view.look_at(index, needs, barred);
        }
        view
    }

    /// Why each candidate cannot be chosen.
    pub(crate) fn exclusions(&self) -> Exclusions {
        self.why
    }

    /// Those whose context window is not known to be larger than that of `index`: of no use where that was too small.
    pub(crate) fn no_larger_than(&self, index: usize) -> Mask {
        let window = |index: usize| {
            let id = self.table.candidate(self.pool, index).target;
            self.table.policy().targets[id.index()].context_window
        };
        let mut mask = Mask::default();
        for other in 0..self.len() {
            let larger = window(index).zip(window(other)).is_some_and(|(this, other)| other > this);
            if !larger {
                mask.insert(other);
            }
        }
        mask
    }

    fn len(&self) -> usize {
        self.table.pool(self.pool).candidates.len()
    }

    fn target(&self, index: usize) -> &'a Target {
        self.table.target(self.table.candidate(self.pool, index).target)
    }

    fn look_at(&self, index: usize, needs: &Needs, barred: Mask) -> Option<Exclusion> {
        let target = self.target(index);
        let now = Now {
            drained: self.table.plans.pool(self.pool)[index].drained,
            credential_missing: target.credential_missing,
            cooling: target.state.is_cooling(self.now),
        };
        let candidate = &self.table.pool(self.pool).candidates[index];
        let found = exclusion(self.table.policy(), candidate, needs, now);
        found.or_else(|| barred.contains(index).then_some(Exclusion::Unsupported)).or_else(|| {
            match target.state.availability(self.now, &self.table.policy().breaker) {
                Availability::Usable => None,
                Availability::Probe => Some(Exclusion::BreakerHalfOpen),
                Availability::Ejected => Some(Exclusion::BreakerOpen),
            }
        })
    }

    /// How long until the first key that is cooling down may be used again.
    pub(crate) fn first_free(&self) -> Option<Duration> {
        let cooling = (0..self.len()).filter(|&index| self.why.of(index) == Some(Exclusion::Cooldown));
        cooling.map(|index| self.target(index).state.cooldown_until().since(self.now)).min()
    }

    /// What every candidate lacks, so that waiting is of no use.
    pub(crate) fn all_lack(&self) -> Option<Exclusion> {
        all_lack((0..self.len()).map(|index| self.why.of(index)))
    }

    /// Chooses a candidate that was not tried yet, where there is one.
    pub(crate) fn pick(&self, worker: &Worker, tried: Mask) -> Option<Pick> {
        let question = Question {
            plan: self.table.plans.pool(self.pool),
            tried,
            in_flight: worker.shared.attempts_in_flight.load(Relaxed),
            max_ejected: self.table.policy().breaker.max_ejected,
        };
        pick(&question, self, || worker.chance())
    }
}

impl LocalView for View<'_> {
    fn standing(&self, index: usize) -> Standing {
        match self.why.of(index) {
            None => Standing::Usable {
                ramp: self.target(index).state.ramp_factor(self.now, &self.table.policy().breaker),
            },
            Some(Exclusion::BreakerHalfOpen) => Standing::Probe,
            Some(Exclusion::BreakerOpen) => Standing::Ejected,
            Some(_) => Standing::Excluded,
        }
    }

    fn signal(&self, index: usize) -> LocalSignal {
        let state = &self.target(index).state;
        let plan = &self.table.plans.pool(self.pool)[index];
        let (_, oldest) = state.waiting(self.now);
        LocalSignal {
            in_flight: state.in_flight.load(Relaxed),
            cost_ratio: state.recent(self.now).cost_ratio(plan, oldest as f64),
        }
    }
}
