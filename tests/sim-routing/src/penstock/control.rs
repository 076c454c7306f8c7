//! The control plane: every proxy's newest word, and the fleet's view of it.

use std::sync::Arc;

use penstock_decision::fleet::{Fleet, Gauges};
use penstock_model::Policy;
use penstock_model::live::LiveState;
use penstock_model::policy::TargetId;

use super::proxy::{Report, State};

pub(crate) struct Control {
    fleet: Fleet,
    /// By proxy: how each target stood there at last.
    newest: Vec<Vec<State>>,
}

impl Control {
    pub(crate) fn new(policy: &Arc<Policy>, proxies: usize) -> Self {
        Self { fleet: Fleet::new(Arc::clone(policy)), newest: vec![Vec::new(); proxies] }
    }

    pub(crate) fn absorb(&mut self, proxy: usize, report: Report) {
        for (target, sums) in report.sums {
            self.fleet.absorb(TargetId(target as u32), &sums);
        }
        self.newest[proxy] = report.states;
    }

    pub(crate) fn tick(&mut self) -> LiveState {
        let newest = &self.newest;
        let gauges = |target: TargetId| {
            let states = newest.iter().filter_map(|states| states.get(target.index()));
            states.fold(Gauges::default(), add)
        };
        self.fleet.tick(1.0, 1, newest.len() as u32, gauges)
    }
}

fn add(sum: Gauges, state: &State) -> Gauges {
    Gauges {
        in_flight: sum.in_flight + u64::from(state.in_flight),
        waiting: sum.waiting + u64::from(state.waiting),
        oldest_wait: sum.oldest_wait.max(state.oldest_wait as f64),
        nodes_using: sum.nodes_using + u32::from(state.used || state.open),
        nodes_open: sum.nodes_open + u32::from(state.open),
        ..sum
    }
}
