//! From a pool to one candidate: what this process knows of each, and why some cannot be chosen.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use penstock_decision::breaker::Availability;
use penstock_decision::pick::{LocalSignal, LocalView, Mask, Pick, Question, Standing, pick};
use penstock_model::policy::PoolId;

use crate::clock::Moment;
use crate::table::{RouteTable, Target};
use crate::worker::Worker;

/// A pool as this process sees it now.
pub(crate) struct View<'a> {
    table: &'a RouteTable,
    pool: PoolId,
    now: Moment,
    /// Prompt and answer, as estimated.
    tokens: u64,
    /// Those that were found unable to take the request.
    barred: Mask,
}

impl<'a> View<'a> {
    pub(crate) fn new(table: &'a RouteTable, pool: PoolId, tokens: u64, now: Moment) -> Self {
        Self { table, pool, now, tokens, barred: Mask::default() }
    }

    /// Leaves out those that were found unable to take the request.
    pub(crate) fn without(self, barred: Mask) -> Self {
        Self { barred, ..self }
    }

    /// Those whose context window is not known to be larger than that of `index`: of no use where that was too small.
    pub(crate) fn no_larger_than(&self, index: usize) -> Mask {
        let window = |index: usize| {
            let id = self.table.candidate(self.pool, index).target;
            self.table.policy().targets[id.index()].context_window
        };
        let mut mask = Mask::default();
        for other in 0..self.table.pool(self.pool).candidates.len() {
            let larger = window(index).zip(window(other)).is_some_and(|(this, other)| other > this);
            if !larger {
                mask.insert(other);
            }
        }
        mask
    }

    fn target(&self, index: usize) -> &'a Target {
        self.table.target(self.table.candidate(self.pool, index).target)
    }

    /// Why a candidate cannot serve the request at all.
    fn exclusion(&self, index: usize) -> Option<&'static str> {
        let target = self.target(index);
        let id = self.table.candidate(self.pool, index).target;
        let window = self.table.policy().targets[id.index()].context_window;
        if self.barred.contains(index) {
            Some("unsupported")
        } else if window.is_some_and(|window| self.tokens > u64::from(window)) {
            Some("context_window")
        } else if target.credential_missing {
            Some("credential_missing")
        } else if target.state.is_cooling(self.now) {
            Some("cooldown")
        } else {
            None
        }
    }

    /// Why a candidate was not to be chosen, breakers included; empty when it was.
    pub(crate) fn why_not(&self, index: usize) -> &'static str {
        match self.standing(index) {
            Standing::Excluded => self.exclusion(index).unwrap_or(""),
            Standing::Ejected => "breaker_open",
            Standing::Probe => "breaker_half_open",
            Standing::Usable { .. } => "",
        }
    }

    /// How long until the first key that is cooling down may be used again.
    pub(crate) fn first_free(&self) -> Option<Duration> {
        let candidates = 0..self.table.pool(self.pool).candidates.len();
        let cooling = candidates.filter(|&index| self.exclusion(index) == Some("cooldown"));
        cooling.map(|index| self.target(index).state.cooldown_until().since(self.now)).min()
    }

    /// Is the request too long for every candidate? Then waiting is of no use.
    pub(crate) fn is_too_long(&self) -> bool {
        let mut candidates = 0..self.table.pool(self.pool).candidates.len();
        candidates.all(|index| self.exclusion(index) == Some("context_window"))
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
        if self.exclusion(index).is_some() {
            return Standing::Excluded;
        }
        match self.target(index).state.availability(self.now, &self.table.policy().breaker) {
            (Availability::Usable, ramp) => Standing::Usable { ramp },
            (Availability::Probe, _) => Standing::Probe,
            (Availability::Ejected, _) => Standing::Ejected,
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
