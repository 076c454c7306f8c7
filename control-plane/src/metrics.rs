//! The control plane's numbers, gathered when somebody asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use penstock_proto::admin::v1::ListBackendsResponse;
use penstock_proto::fleet::v1::BreakerState;
use penstock_telemetry::names::{self, attribute};
use penstock_telemetry::{Metric, MetricsSource};
use tokio::sync::watch;

use crate::fleet::Fleet;
use crate::policy::{self, Action, Outcome, Published, StoreHealth};
use crate::store::Measured;

/// Policy changes since the process started: by action, those that worked and those that did not.
#[derive(Debug, Default)]
pub(crate) struct PolicyChanges {
    by_action: [[AtomicU64; 2]; Action::COUNT],
}

impl PolicyChanges {
    pub(crate) fn record(&self, action: Action, outcome: &Result<Outcome, policy::Error>) {
        let worked = outcome.as_ref().is_ok_and(|outcome| outcome.version.is_some());
        self.counters(action)[usize::from(!worked)].fetch_add(1, Ordering::Relaxed);
    }

    fn counters(&self, action: Action) -> &[AtomicU64; 2] {
        &self.by_action[action as usize]
    }
}

/// Everything that counts something.
pub(crate) struct Sources {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) changes: Arc<PolicyChanges>,
    pub(crate) store: Arc<Measured>,
    pub(crate) health: Arc<StoreHealth>,
    pub(crate) published: watch::Receiver<Option<Arc<Published>>>,
}

impl Sources {
    pub(crate) fn into_source(self) -> MetricsSource {
        Arc::new(move || self.gather())
    }

    fn gather(&self) -> Vec<Metric> {
        let mut metrics = vec![self.build(), self.nodes(), self.policy_changes()];
        metrics.extend(self.fleet_counters());
        metrics.extend(self.store());
        if let Some(scored) = self.fleet.scores.borrow().clone() {
            metrics.extend(targets(&scored.backends));
        }
        metrics
    }

    fn build(&self) -> Metric {
        let mut build = Metric::new(&names::BUILD_INFO);
        build.number(&[(attribute::VERSION, env!("CARGO_PKG_VERSION"))], 1.0);
        build
    }

    fn nodes(&self) -> Metric {
        let (connected, gone) = self.fleet.nodes.count();
        let mut nodes = Metric::new(&names::NODES);
        nodes.number(&[(attribute::NODE_STATE, "connected")], connected as f64);
        nodes.number(&[(attribute::NODE_STATE, "gone")], gone as f64);
        nodes
    }

    fn policy_changes(&self) -> Metric {
        let mut metric = Metric::new(&names::POLICY_CHANGES);
        for (action, name) in [(Action::Apply, "apply"), (Action::Rollback, "rollback")] {
            for (counter, result) in self.changes.counters(action).iter().zip(["ok", "failed"]) {
                let attributes = [(attribute::ACTION, name), (attribute::RESULT, result)];
                metric.number(&attributes, load(counter));
            }
        }
        metric
    }

    fn fleet_counters(&self) -> Vec<Metric> {
        let counters = &self.fleet.counters;
        let mut push = Metric::new(&names::POLICY_PUSH_DURATION);
        push.histogram(&[], counters.push_durations.lock().clone());
        let mut scoring = Metric::new(&names::SCORING_DURATION);
        scoring.histogram(&[], counters.scoring_durations.lock().clone());
        vec![
            Metric::single(&names::REPORTS, load(&counters.reports)),
            Metric::single(&names::REPORTS_DUPLICATE, load(&counters.duplicate_reports)),
            Metric::single(&names::POLICY_ACKS, load(&counters.acks)),
            Metric::single(&names::POLICY_NACKS, load(&counters.nacks)),
            push,
            scoring,
        ]
    }

    fn store(&self) -> Vec<Metric> {
        let version = self.published.borrow().as_ref().map_or(0, |published| published.version.version);
        let (duration, errors) = self.store.metrics();
        let resyncs = self.health.resyncs() as f64;
        let mut metrics = vec![
            Metric::single(&names::POLICY_VERSION, version as f64),
            Metric::single(&names::STORE_RESYNCS, resyncs),
            duration,
            errors,
        ];
        if let Some(age) = self.health.age() {
            metrics.push(Metric::single(&names::STORE_REVISION_AGE, age.as_secs_f64()));
        }
        metrics
    }
}

/// Scores, shares and breakers of the last tick.
fn targets(backends: &ListBackendsResponse) -> Vec<Metric> {
    let mut breakers = Metric::new(&names::BREAKER_STATE);
    let mut latencies = Metric::new(&names::TARGET_LATENCY);
    let mut terms = Metric::new(&names::TARGET_TERM);
    let mut weights = Metric::new(&names::POOL_WEIGHT);
    for target in &backends.targets {
        let Some(state) = &target.state else { continue };
        let name = [(attribute::BACKEND, state.backend.as_str()), (attribute::REQUEST_MODEL, &state.model)];
        breakers.number(&name, breaker_number(state.breaker()));
        latencies.number(&name, state.latency_seconds);
        for (term, value) in [
            ("success", state.success),
            ("latency", state.latency_term),
            ("cost", state.cost_term),
            ("stability", state.stability_term),
            ("quality", state.quality),
        ] {
            terms.number(&[name[0], name[1], (attribute::TERM, term)], value);
        }
        for pool in &target.pools {
            let pool_name =
                [(attribute::ROUTE, pool.route.as_str()), (attribute::CAPABILITY, &pool.capability)];
            weights.number(&[name[0], name[1], pool_name[0], pool_name[1]], pool.weight);
        }
    }
    vec![breakers, latencies, terms, weights]
}

/// As the metric's description says.
fn breaker_number(state: BreakerState) -> f64 {
    match state {
        BreakerState::Unspecified | BreakerState::Closed => 0.0,
        BreakerState::Ramp => 1.0,
        BreakerState::HalfOpen => 2.0,
        BreakerState::Open => 3.0,
        BreakerState::Slow => 4.0,
    }
}

fn load(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}
