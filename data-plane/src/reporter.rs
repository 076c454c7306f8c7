//! Once a second: asks the workers for their numbers, tells the control plane, keeps the totals for `/metrics`, and lets
//! the route table age.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::Mutex;
use penstock_decision::breaker::State;
use penstock_model::outcome::Outcome;
use penstock_proto::fleet::v1 as wire;
use tokio::sync::{mpsc, oneshot};

use crate::clock::{Moment, unix_ms};
use crate::meter::{Names, Row};
use crate::process;
use crate::table::RouteTable;
use crate::worker::{Delta, Shared};

/// Where each worker is asked.
pub(crate) type Workers = Vec<mpsc::Sender<oneshot::Sender<Delta>>>;

/// Everything since the start, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) rows: BTreeMap<Names, Row>,
    pub(crate) refused: BTreeMap<u16, u64>,
    pub(crate) dropped: u64,
    pub(crate) lag: Duration,
}

/// See the module's documentation.
pub(crate) struct Reporter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) workers: Workers,
    pub(crate) totals: Arc<Mutex<Totals>>,
    /// To the control plane; `None` without one.
    pub(crate) out: Option<mpsc::Sender<wire::NodeReport>>,
    pub(crate) incarnation: String,
}

impl Reporter {
    /// Reports for as long as the process lives.
    pub(crate) async fn run(self) {
        let mut sequence = 0;
        let mut last = self.shared.clock.now();
        loop {
            // ±10 %, so that a fleet's reports do not arrive together.
            tokio::time::sleep(Duration::from_millis(900 + rand::random_range(0..200))).await;
            let now = self.shared.clock.now();
            let (rows, decisions, dropped, lag) = self.gather(now).await;
            self.shared.holder.refresh();
            sequence += 1;
            let report = self.report(sequence, last, now, &rows, decisions, dropped, lag);
            last = now;
            if let Some(out) = &self.out {
                // The link takes reports even while there is no connection; full means that it is far behind.
                let _ = out.try_send(report);
            }
        }
    }

    async fn gather(&self, now: Moment) -> (BTreeMap<Names, Row>, Vec<wire::Decision>, u64, Duration) {
        let mut rows: BTreeMap<Names, Row> = BTreeMap::new();
        let (mut decisions, mut dropped, mut lag) = (Vec::new(), 0, Duration::ZERO);
        let mut refused = BTreeMap::<u16, u64>::new();
        for worker in &self.workers {
            let (answer, delta) = oneshot::channel();
            if worker.send(answer).await.is_err() {
                continue;
            }
            let Ok(delta) = delta.await else { continue };
            lag = lag.max(self.shared.clock.now().since(now));
            for (names, row) in delta.rows {
                rows.entry(names).or_default().merge(&row);
            }
            for (status, count) in delta.refused {
                *refused.entry(status).or_default() += count;
            }
            decisions.extend(delta.decisions);
            dropped += delta.dropped;
        }
        let mut totals = self.totals.lock();
        for (names, row) in &rows {
            totals.rows.entry(names.clone()).or_default().merge(row);
        }
        for (status, count) in refused {
            *totals.refused.entry(status).or_default() += count;
        }
        totals.dropped += dropped;
        totals.lag = lag;
        // What the policy does not name any more is forgotten: series stay bounded by the policy.
        if let Some(table) = self.shared.holder.table.load().as_ref() {
            totals.rows.retain(|names, _| is_in(table, names));
        }
        (rows, decisions, dropped, lag)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one message, each from elsewhere")]
    fn report(
        &self,
        sequence: u64,
        last: Moment,
        now: Moment,
        rows: &BTreeMap<Names, Row>,
        decisions: Vec<wire::Decision>,
        dropped: u64,
        lag: Duration,
    ) -> wire::NodeReport {
        let table = self.shared.holder.table.load_full();
        wire::NodeReport {
            node_id: self.shared.node.id.clone(),
            incarnation: self.incarnation.clone(),
            sequence,
            interval_ms: (now.micros_since(last) / 1_000) as u32,
            policy_version: table.as_ref().map_or(0, |table| table.snapshot.version),
            rows: table.as_ref().map(|table| wire_rows(table, rows, now)).unwrap_or_default(),
            decisions,
            health: Some(wire::NodeHealth {
                cpu_seconds_total: process::cpu_seconds(),
                resident_bytes: process::resident_bytes(),
                connections: self.shared.connections.load(Relaxed),
                requests_in_flight: self.shared.requests_in_flight.load(Relaxed),
                loop_lag_us: lag.as_micros() as u32,
                live_state_age_ms: self.shared.holder.live_age_ms(now).unwrap_or(0),
                from_disk: self.shared.holder.is_from_disk(),
                dropped,
            }),
            breakers: table.as_ref().map(|table| breakers(table, now)).unwrap_or_default(),
            sent_unix_ms: unix_ms(self.shared.clock.wall(now)),
        }
    }
}

fn is_in(table: &RouteTable, names: &Names) -> bool {
    let policy = table.policy();
    let pool = policy.find_pool(&names.route, &names.capability).is_some();
    pool && (names.backend.is_empty() || policy.find_target(&names.backend, &names.model).is_some())
}

/// One row for each candidate that had attempts, and one for each target that has some under way: the gauges are the
/// target's, so they go with the first of its rows.
fn wire_rows(table: &RouteTable, rows: &BTreeMap<Names, Row>, now: Moment) -> Vec<wire::Row> {
    let mut out: Vec<wire::Row> = rows
        .iter()
        .filter(|(names, row)| !names.backend.is_empty() && row.attempts() > 0)
        .map(|(names, row)| wire_row(names, row))
        .collect();
    for target in &table.targets {
        let in_flight = target.state.in_flight.load(Relaxed);
        if in_flight == 0 {
            continue;
        }
        let state = &target.state;
        let (waiting, oldest) = state.waiting(now);
        let is_it = |row: &wire::Row| row.backend == state.backend && row.model == state.model;
        let at = out.iter().position(is_it).unwrap_or_else(|| {
            out.push(idle_row(table, &state.backend, &state.model));
            out.len() - 1
        });
        out[at].in_flight = in_flight;
        out[at].waiting = waiting;
        out[at].oldest_wait_ms = (oldest * 1_000) as u32;
    }
    out
}

/// A row without attempts, in the first pool that has the target.
fn idle_row(table: &RouteTable, backend: &str, model: &str) -> wire::Row {
    let mut row = wire::Row { backend: backend.to_owned(), model: model.to_owned(), ..wire::Row::default() };
    let policy = table.policy();
    let target = policy.find_target(backend, model);
    let pool = policy
        .pools
        .iter()
        .find(|pool| pool.candidates.iter().any(|candidate| Some(candidate.target) == target));
    if let Some(pool) = pool {
        row.route.clone_from(&policy.routes[pool.route.index()].name);
        row.capability.clone_from(&policy.capabilities[pool.capability.index()].name);
    }
    row
}

fn wire_row(names: &Names, row: &Row) -> wire::Row {
    let failures = Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Ok);
    let failures =
        failures.map(|outcome| (outcome, row.outcomes[outcome.index()])).filter(|(_, count)| *count > 0);
    let sketch = |sketch: &penstock_stats::Sketch| {
        (!sketch.is_empty()).then(|| wire::Sketch { gaps_and_counts: sketch.to_wire() })
    };
    wire::Row {
        backend: names.backend.clone(),
        model: names.model.clone(),
        route: names.route.clone(),
        capability: names.capability.clone(),
        attempts: row.attempts(),
        ok: row.outcomes[Outcome::Ok.index()],
        failures: failures
            .map(|(outcome, count)| wire::OutcomeCount { outcome: outcome.as_str().to_owned(), count })
            .collect(),
        input_tokens: row.input_tokens,
        cached_input_tokens: row.cached_input_tokens,
        output_tokens: row.output_tokens,
        cost_nanos: i64::try_from(row.cost_nanos).unwrap_or(i64::MAX),
        currency: row.currency.clone(),
        latency_sum_us: row.latency_sum_us,
        latency_square_sum_ms2: row.latency_square_sum_ms2,
        first_token_sum_us: row.first_token_sum_us,
        first_token_count: row.first_token_count,
        latency: sketch(&row.latency),
        first_token: sketch(&row.first_token),
        usage_unknown: row.usage_unknown,
        ..wire::Row::default()
    }
}

/// Every breaker that is not closed.
fn breakers(table: &RouteTable, now: Moment) -> Vec<wire::LocalBreaker> {
    let settings = &table.policy().breaker;
    let not_closed = table.targets.iter().filter_map(|target| {
        let state = match target.state.state(now, settings) {
            State::Closed => return None,
            State::Open { .. } => wire::BreakerState::Open,
            State::HalfOpen => wire::BreakerState::HalfOpen,
            State::Ramp { .. } => wire::BreakerState::Ramp,
        };
        Some(wire::LocalBreaker {
            backend: target.state.backend.clone(),
            model: target.state.model.clone(),
            state: state.into(),
        })
    });
    not_closed.collect()
}
