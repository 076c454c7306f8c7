//! Every name of every metric, span and attribute, once.
//!
//! Names that OpenTelemetry's GenAI conventions (status: development) or HTTP conventions define are used as they are;
//! everything else begins with `penstock.`. The Prometheus form of a name follows the OpenTelemetry rules: dots become
//! underscores, the unit is appended as a word, counters end in `_total`.
//!
//! No attribute of a metric ever carries text of a request (keys, users, paths, unknown models): series stay bounded by
//! the policy.

pub mod attribute;
mod metrics;
pub mod span;

pub use metrics::*;

/// What a number means over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts per bucket.
    Histogram,
}

/// A metric's name and what stands beside it.
#[derive(Debug, PartialEq)]
pub struct Descriptor {
    /// OpenTelemetry form, for example `gen_ai.server.request.duration`.
    pub name: &'static str,
    /// UCUM: `s`, `By`, `1` for a share, or an annotation such as `{token}` for things that are counted.
    pub unit: &'static str,
    /// Counter, gauge or histogram.
    pub kind: Kind,
    /// One sentence without a full stop.
    pub help: &'static str,
    /// Upper bounds of a histogram's buckets; empty for the others.
    pub buckets: &'static [f64],
}

impl Descriptor {
    /// Prometheus form, for example `gen_ai_server_request_duration_seconds`. A counter's `_total` is not part of it.
    #[must_use]
    pub fn prometheus_name(&self) -> String {
        let name = self.name.replace('.', "_");
        match (self.unit, self.kind) {
            ("s", _) => name + "_seconds",
            ("By", _) => name + "_bytes",
            ("1", Kind::Gauge) => name + "_ratio",
            _ => name,
        }
    }
}

/// Seconds, of whole calls (GenAI conventions); the last bounds are ours, so that no call within the usual timeouts is
/// in the last bucket.
pub const DURATION_BUCKETS: &[f64] = &[
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68,
    655.36,
];
/// Seconds to the first token (GenAI conventions); bounds above 10 are ours.
pub const FIRST_TOKEN_BUCKETS: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0,
];
/// Seconds per output token (GenAI conventions).
pub const OUTPUT_TOKEN_BUCKETS: &[f64] =
    &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];
/// Tokens (GenAI conventions).
pub const TOKEN_BUCKETS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Seconds of work inside Penstock: 10 µs to 5 s.
pub const INTERNAL_BUCKETS: &[f64] = &[
    0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2,
    0.5, 1.0, 2.0, 5.0,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn prometheus_names_carry_their_unit() {
        assert_eq!(SERVER_REQUEST_DURATION.prometheus_name(), "gen_ai_server_request_duration_seconds");
        assert_eq!(PROCESS_MEMORY.prometheus_name(), "process_memory_usage_bytes");
        assert_eq!(POOL_WEIGHT.prometheus_name(), "penstock_pool_weight_ratio");
        assert_eq!(REQUESTS.prometheus_name(), "penstock_requests");
    }

    #[test]
    fn every_metric_has_a_unique_well_formed_name_and_help() {
        let mut seen = HashSet::new();
        for metric in ALL {
            let name = metric.prometheus_name();
            assert!(seen.insert(name.clone()), "{name} is there twice");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
                "{name}"
            );
            for reserved in ["_total", "_bucket", "_count", "_sum", "_counter", "_gauge", "_histogram"] {
                assert!(!name.ends_with(reserved), "{name} ends like a series of another kind");
            }
            assert!(!metric.help.is_empty() && !metric.help.ends_with('.'), "{name}: {}", metric.help);
        }
    }

    #[test]
    fn only_histograms_have_buckets_and_those_ascend() {
        for metric in ALL {
            assert_eq!(metric.kind == Kind::Histogram, !metric.buckets.is_empty(), "{}", metric.name);
            assert!(metric.buckets.is_sorted_by(|a, b| a < b), "{}", metric.name);
        }
    }

    #[test]
    fn attributes_are_unique() {
        let unique: HashSet<_> = attribute::ALL.iter().collect();
        assert_eq!(unique.len(), attribute::ALL.len());
    }

    /// MET-02: no call within the longest default timeout (120 s) falls into the last, endless bucket.
    #[test]
    fn duration_buckets_reach_beyond_the_longest_default_timeout() {
        assert!(DURATION_BUCKETS.last().is_some_and(|&bound| bound > 120.0));
    }
}
