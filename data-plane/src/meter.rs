//! What a worker counts, and hands over once a second. Plain numbers: a worker is one thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use penstock_model::Usage;
use penstock_model::outcome::Outcome;
use penstock_model::policy::PoolId;
use penstock_stats::Sketch;
use penstock_telemetry::Histogram;
use penstock_telemetry::names;

use crate::table::RouteTable;

/// Whom a row is about: a candidate of a pool of a policy version.
type Key = (u64, u32, u32);

/// Requests that never had a candidate.
const NOBODY: u32 = u32::MAX;

/// The numbers of one worker since they were last handed over.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    rows: HashMap<Key, (Arc<RouteTable>, Row)>,
    /// Requests that were refused before there was a pool, by status.
    pub(crate) refused: BTreeMap<u16, u64>,
}

/// Names of a row; empty where there is no such thing.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Names {
    pub(crate) backend: String,
    pub(crate) model: String,
    pub(crate) route: String,
    pub(crate) capability: String,
}

/// The numbers of one candidate.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) outcomes: [u64; Outcome::ALL.len()],
    pub(crate) input_tokens: u64,
    pub(crate) cached_input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) usage_unknown: u64,
    pub(crate) cost_nanos: u64,
    pub(crate) currency: String,
    pub(crate) latency_sum_us: u64,
    pub(crate) latency_square_sum_ms2: f64,
    pub(crate) first_token_sum_us: u64,
    pub(crate) first_token_count: u64,
    pub(crate) latency: Sketch,
    pub(crate) first_token: Sketch,
    pub(crate) attempt_seconds: Histogram,
    pub(crate) first_chunk_seconds: Histogram,
    pub(crate) input_histogram: Histogram,
    pub(crate) output_histogram: Histogram,
    pub(crate) requests: BTreeMap<u16, u64>,
    pub(crate) request_seconds: Histogram,
    pub(crate) request_first_token: Histogram,
    pub(crate) request_output_token: Histogram,
    pub(crate) overhead: Histogram,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            outcomes: [0; Outcome::ALL.len()],
            input_tokens: 0,
            cached_input_tokens: 0,
            output_tokens: 0,
            usage_unknown: 0,
            cost_nanos: 0,
            currency: String::new(),
            latency_sum_us: 0,
            latency_square_sum_ms2: 0.0,
            first_token_sum_us: 0,
            first_token_count: 0,
            latency: Sketch::default(),
            first_token: Sketch::default(),
            attempt_seconds: Histogram::new(&names::CLIENT_OPERATION_DURATION),
            first_chunk_seconds: Histogram::new(&names::CLIENT_FIRST_CHUNK),
            input_histogram: Histogram::new(&names::CLIENT_TOKEN_USAGE),
            output_histogram: Histogram::new(&names::CLIENT_TOKEN_USAGE),
            requests: BTreeMap::new(),
            request_seconds: Histogram::new(&names::SERVER_REQUEST_DURATION),
            request_first_token: Histogram::new(&names::SERVER_FIRST_TOKEN),
            request_output_token: Histogram::new(&names::SERVER_OUTPUT_TOKEN),
            overhead: Histogram::new(&names::OVERHEAD),
        }
    }
}

/// What one attempt adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptNumbers {
    pub(crate) outcome: Outcome,
    pub(crate) duration_us: u64,
    pub(crate) first_token_us: Option<u64>,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost_nanos: Option<u64>,
}

/// What one request adds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestNumbers {
    pub(crate) status: u16,
    pub(crate) duration_us: u64,
    pub(crate) first_token_us: Option<u64>,
    /// Time per output token after the first, where it is known.
    pub(crate) output_token_seconds: Option<f64>,
    /// Of the duration, what was not spent waiting for services.
    pub(crate) overhead_us: u64,
}

impl Meter {
    fn row(&mut self, table: &Arc<RouteTable>, pool: PoolId, index: u32) -> &mut Row {
        let key = (table.snapshot.version, pool.0, index);
        &mut self.rows.entry(key).or_insert_with(|| (Arc::clone(table), Row::default())).1
    }

    /// Counts an attempt at a candidate.
    pub(crate) fn attempt(
        &mut self,
        table: &Arc<RouteTable>,
        pool: PoolId,
        index: usize,
        numbers: &AttemptNumbers,
    ) {
        let row = self.row(table, pool, index as u32);
        row.outcomes[numbers.outcome.index()] += 1;
        row.attempt_seconds.record(numbers.duration_us as f64 / 1e6);
        if numbers.outcome != Outcome::Ok {
            return;
        }
        // Only good answers say anything about speed (RES-14).
        row.latency_sum_us += numbers.duration_us;
        row.latency_square_sum_ms2 += (numbers.duration_us as f64 / 1e3).powi(2);
        row.latency.record_us(numbers.duration_us);
        if let Some(first_token) = numbers.first_token_us {
            row.first_token_sum_us += first_token;
            row.first_token_count += 1;
            row.first_token.record_us(first_token);
            row.first_chunk_seconds.record(first_token as f64 / 1e6);
        }
        row.count_usage(numbers.usage);
        if let Some(cost) = numbers.cost_nanos {
            row.cost_nanos += cost;
            if row.currency.is_empty() {
                let target = table.candidate(pool, index).target;
                let price = table.policy().targets[target.index()].price.as_ref();
                row.currency = price.map_or_else(String::new, |price| price.currency.clone());
            }
        }
    }

    /// Counts a request that ended, under the candidate of its last attempt.
    pub(crate) fn request(
        &mut self,
        table: &Arc<RouteTable>,
        pool: PoolId,
        index: Option<usize>,
        numbers: &RequestNumbers,
    ) {
        let row = self.row(table, pool, index.map_or(NOBODY, |index| index as u32));
        *row.requests.entry(numbers.status).or_default() += 1;
        row.request_seconds.record(numbers.duration_us as f64 / 1e6);
        row.overhead.record(numbers.overhead_us as f64 / 1e6);
        if let Some(first_token) = numbers.first_token_us {
            row.request_first_token.record(first_token as f64 / 1e6);
        }
        if let Some(seconds) = numbers.output_token_seconds {
            row.request_output_token.record(seconds);
        }
    }

    /// Hands over everything, with names in the place of indices.
    pub(crate) fn take(&mut self) -> (Vec<(Names, Row)>, BTreeMap<u16, u64>) {
        let rows = self.rows.drain().map(|((_, pool, index), (table, row))| {
            let pool = PoolId(pool);
            let (route, capability) = table.pool_names(pool);
            let (backend, model) = match index {
                NOBODY => ("", ""),
                index => table.policy().target_key(table.candidate(pool, index as usize).target),
            };
            let names = Names {
                backend: backend.to_owned(),
                model: model.to_owned(),
                route: route.to_owned(),
                capability: capability.to_owned(),
            };
            (names, row)
        });
        (rows.collect(), std::mem::take(&mut self.refused))
    }
}

impl Row {
    fn count_usage(&mut self, usage: Option<Usage>) {
        let known = usage.and_then(|usage| Some((usage, usage.input_tokens?, usage.output_tokens?)));
        let Some((usage, input, output)) = known else {
            self.usage_unknown += 1;
            return;
        };
        self.input_tokens += input;
        self.cached_input_tokens += usage.cached_input_tokens.unwrap_or(0);
        self.output_tokens += output;
        self.input_histogram.record(input as f64);
        self.output_histogram.record(output as f64);
    }

    /// Adds all of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
        self.input_tokens += other.input_tokens;
        self.cached_input_tokens += other.cached_input_tokens;
        self.output_tokens += other.output_tokens;
        self.usage_unknown += other.usage_unknown;
        self.cost_nanos = self.cost_nanos.saturating_add(other.cost_nanos);
        if self.currency.is_empty() {
            self.currency.clone_from(&other.currency);
        }
        self.latency_sum_us += other.latency_sum_us;
        self.latency_square_sum_ms2 += other.latency_square_sum_ms2;
        self.first_token_sum_us += other.first_token_sum_us;
        self.first_token_count += other.first_token_count;
        self.latency.merge(&other.latency);
        self.first_token.merge(&other.first_token);
        self.attempt_seconds.merge(&other.attempt_seconds);
        self.first_chunk_seconds.merge(&other.first_chunk_seconds);
        self.input_histogram.merge(&other.input_histogram);
        self.output_histogram.merge(&other.output_histogram);
        for (status, count) in &other.requests {
            *self.requests.entry(*status).or_default() += count;
        }
        self.request_seconds.merge(&other.request_seconds);
        self.request_first_token.merge(&other.request_first_token);
        self.request_output_token.merge(&other.request_output_token);
        self.overhead.merge(&other.overhead);
    }

    /// Attempts that ended, however.
    pub(crate) fn attempts(&self) -> u64 {
        self.outcomes.iter().sum()
    }
}
