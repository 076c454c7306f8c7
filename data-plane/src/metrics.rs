//! The proxy's numbers as metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;
use penstock_decision::breaker::State;
use penstock_model::outcome::Outcome;
use penstock_telemetry::names::{self, Descriptor, attribute};
use penstock_telemetry::{Histogram, Metric, MetricsSource};

use crate::cache::Answers;
use crate::meter::{Names, Row};
use crate::process;
use crate::reporter::Totals;
use crate::table::RouteTable;
use crate::worker::Shared;

/// Gathers everything, for a scrape or an export. Rows are up to a second old.
pub(crate) fn source(shared: Arc<Shared>, totals: Arc<Mutex<Totals>>) -> MetricsSource {
    Arc::new(move || {
        let mut metrics = process_metrics(&shared);
        {
            let totals = totals.lock();
            metrics.extend(traffic(&totals));
            metrics.push(Metric::single(&names::DECISIONS_DROPPED, totals.dropped as f64));
            metrics.push(Metric::single(&names::RUNTIME_LAG, totals.lag.as_secs_f64()));
        }
        if let Some(table) = shared.holder.table.load().as_ref() {
            metrics.extend(targets(&shared, table));
            metrics.push(retries_denied(table));
            metrics.extend(table.answers.as_deref().into_iter().flat_map(cache));
        }
        metrics
    })
}

fn process_metrics(shared: &Shared) -> Vec<Metric> {
    let now = shared.clock.now();
    let mut metrics = vec![
        Metric::single(&names::REQUESTS_IN_FLIGHT, f64::from(shared.requests_in_flight.load(Relaxed))),
        Metric::single(&names::CONNECTIONS, f64::from(shared.connections.load(Relaxed))),
        Metric::single(&names::POLICY_REJECTED, shared.holder.rejected() as f64),
        Metric::single(&names::CONTROL_CONNECTED, f64::from(u8::from(shared.holder.is_connected()))),
        Metric::single(&names::POLICY_FROM_DISK, f64::from(u8::from(shared.holder.is_from_disk()))),
        Metric::single(&names::PROCESS_CPU, process::cpu_seconds()),
        Metric::single(&names::PROCESS_MEMORY, process::resident_bytes() as f64),
    ];
    if let Some(table) = shared.holder.table.load().as_ref() {
        metrics.push(Metric::single(&names::POLICY_VERSION, table.snapshot.version as f64));
    }
    if let Some(age) = shared.holder.live_age_ms(now) {
        metrics.push(Metric::single(&names::LIVE_STATE_AGE, age as f64 / 1e3));
    }
    metrics
}

fn traffic(totals: &Totals) -> Vec<Metric> {
    let mut requests = Metric::new(&names::REQUESTS);
    let mut attempts = Metric::new(&names::ATTEMPTS);
    let mut cost = Metric::new(&names::COST);
    let mut unknown = Metric::new(&names::USAGE_UNKNOWN);
    let mut tokens = Metric::new(&names::CLIENT_TOKEN_USAGE);
    for (status, count) in &totals.refused {
        requests.number(&[(attribute::HTTP_STATUS, &status.to_string())], *count as f64);
    }
    for (names, row) in &totals.rows {
        let pool = [(attribute::ROUTE, names.route.as_str()), (attribute::CAPABILITY, &names.capability)];
        for (status, count) in &row.requests {
            let status = status.to_string();
            let more = [(attribute::BACKEND, names.backend.as_str()), (attribute::HTTP_STATUS, &status)];
            requests.number(&[pool.as_slice(), &more].concat(), *count as f64);
        }
        if row.attempts() == 0 {
            continue;
        }
        let target = [(attribute::BACKEND, names.backend.as_str()), (attribute::REQUEST_MODEL, &names.model)];
        let all = [target.as_slice(), &pool].concat();
        for outcome in Outcome::ALL {
            let count = row.outcomes[outcome.index()];
            if count > 0 {
                let more = [(attribute::OUTCOME, outcome.as_str())];
                attempts.number(&[all.as_slice(), &more].concat(), count as f64);
            }
        }
        unknown.number(&all, row.usage_unknown as f64);
        if !row.currency.is_empty() {
            let more = [(attribute::COST_CURRENCY, row.currency.as_str())];
            cost.number(&[all.as_slice(), &more].concat(), row.cost_nanos as f64 / 1e9);
        }
        for (kind, histogram) in [("input", &row.input_histogram), ("output", &row.output_histogram)] {
            let more = [(attribute::TOKEN_TYPE, kind), (attribute::PROVIDER, "openai")];
            tokens.histogram(&[target.as_slice(), &more].concat(), histogram.clone());
        }
    }
    // A target can be in several pools, and a series must come once.
    let mut metrics = vec![requests, attempts, cost, unknown, merged(tokens)];
    metrics.extend(histograms(&totals.rows));
    metrics
}

fn histograms(rows: &BTreeMap<Names, Row>) -> Vec<Metric> {
    let of = |descriptor: &'static Descriptor, pick: fn(&Row) -> &Histogram| {
        let mut metric = Metric::new(descriptor);
        for (names, row) in rows.iter().filter(|(_, row)| pick(row).count() > 0) {
            let attributes = [
                (attribute::PROVIDER, "openai"),
                (attribute::BACKEND, names.backend.as_str()),
                (attribute::REQUEST_MODEL, &names.model),
                (attribute::ROUTE, &names.route),
                (attribute::CAPABILITY, &names.capability),
            ];
            metric.histogram(&attributes, pick(row).clone());
        }
        metric
    };
    vec![
        of(&names::SERVER_REQUEST_DURATION, |row| &row.request_seconds),
        of(&names::SERVER_FIRST_TOKEN, |row| &row.request_first_token),
        of(&names::CLIENT_OPERATION_DURATION, |row| &row.attempt_seconds),
        of(&names::CLIENT_FIRST_CHUNK, |row| &row.first_chunk_seconds),
        of(&names::SERVER_OUTPUT_TOKEN, |row| &row.request_output_token),
        of(&names::OVERHEAD, |row| &row.overhead),
    ]
}

/// Adds up points with the same attributes.
fn merged(metric: Metric) -> Metric {
    let mut sums = BTreeMap::new();
    for point in metric.points {
        match sums.entry(point.attributes) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(point.value);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => match (entry.get_mut(), point.value) {
                (penstock_telemetry::Value::Histogram(sum), penstock_telemetry::Value::Histogram(more)) => {
                    sum.merge(&more);
                }
                (penstock_telemetry::Value::Number(sum), penstock_telemetry::Value::Number(more)) => {
                    *sum += more
                }
                _ => {}
            },
        }
    }
    let points = sums.into_iter().map(|(attributes, value)| penstock_telemetry::Point { attributes, value });
    Metric { descriptor: metric.descriptor, points: points.collect() }
}

fn cache(answers: &Answers) -> [Metric; 3] {
    let (hits, misses) = answers.looked();
    [
        Metric::single(&names::CACHE_HITS, hits as f64),
        Metric::single(&names::CACHE_MISSES, misses as f64),
        Metric::single(&names::CACHE_SIZE, answers.bytes() as f64),
    ]
}

fn retries_denied(table: &RouteTable) -> Metric {
    let mut denied = Metric::new(&names::RETRIES_DENIED);
    for (route, budget) in table.policy().routes.iter().zip(&table.retry_budgets) {
        denied.number(&[(attribute::ROUTE, route.name.as_str())], budget.denied() as f64);
    }
    denied
}

fn targets(shared: &Shared, table: &RouteTable) -> Vec<Metric> {
    let now = shared.clock.now();
    let settings = &table.policy().breaker;
    let mut breaker = Metric::new(&names::BREAKER_STATE);
    let mut in_flight = Metric::new(&names::ATTEMPTS_IN_FLIGHT);
    for target in &table.targets {
        let attributes = [
            (attribute::BACKEND, target.state.backend.as_str()),
            (attribute::REQUEST_MODEL, target.state.model.as_str()),
        ];
        let state = match target.state.state(now, settings) {
            State::Closed => 0.0,
            State::Ramp { .. } => 1.0,
            State::HalfOpen => 2.0,
            State::Open { .. } => 3.0,
        };
        breaker.number(&attributes, state);
        in_flight.number(&attributes, f64::from(target.state.in_flight.load(Relaxed)));
    }
    let mut weight = Metric::new(&names::POOL_WEIGHT);
    for (index, pool) in table.policy().pools.iter().enumerate() {
        let id = penstock_model::policy::PoolId(index as u32);
        let (route, capability) = table.pool_names(id);
        for (planned, candidate) in table.plans.pool(id).iter().zip(&pool.candidates) {
            let (backend, model) = table.policy().target_key(candidate.target);
            let attributes = [
                (attribute::BACKEND, backend),
                (attribute::REQUEST_MODEL, model),
                (attribute::ROUTE, route),
                (attribute::CAPABILITY, capability),
            ];
            weight.number(&attributes, planned.weight);
        }
    }
    vec![breaker, in_flight, weight]
}
