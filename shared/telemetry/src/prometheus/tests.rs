use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::names::{self, ALL, attribute};

#[test]
fn counters_gauges_and_histograms_read_as_prometheus_expects() {
    let mut requests = Metric::new(&names::REQUESTS);
    requests.number(&[(attribute::ROUTE, "default"), (attribute::HTTP_STATUS, "200")], 3.0);
    let mut duration = Metric::new(&names::SERVER_OUTPUT_TOKEN);
    let mut histogram = Histogram::new(&names::SERVER_OUTPUT_TOKEN);
    histogram.record(0.02);
    histogram.record(0.06);
    histogram.record(9.0);
    duration.histogram(&[(attribute::BACKEND, "a")], histogram);
    let text = encode(vec![requests, Metric::single(&names::NODES, 2.0), duration]);

    let expected = "\
# HELP penstock_requests_total Requests that ended, by route, capability, backend and status
# TYPE penstock_requests_total counter
penstock_requests_total{penstock_route=\"default\",http_response_status_code=\"200\"} 3.0
# HELP penstock_nodes Nodes known to the control plane, by state
# TYPE penstock_nodes gauge
penstock_nodes 2.0
# HELP gen_ai_server_time_per_output_token_seconds Time per output token after the first
# TYPE gen_ai_server_time_per_output_token_seconds histogram
";
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "gen_ai_server_time_per_output_token_seconds_sum{penstock_backend=\"a\"} 9.08",
        "gen_ai_server_time_per_output_token_seconds_count{penstock_backend=\"a\"} 3",
        "gen_ai_server_time_per_output_token_seconds_bucket{penstock_backend=\"a\",le=\"0.01\"} 0",
        "gen_ai_server_time_per_output_token_seconds_bucket{penstock_backend=\"a\",le=\"0.025\"} 1",
        "gen_ai_server_time_per_output_token_seconds_bucket{penstock_backend=\"a\",le=\"2.5\"} 2",
        "gen_ai_server_time_per_output_token_seconds_bucket{penstock_backend=\"a\",le=\"+Inf\"} 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn label_values_are_escaped() {
    let mut metric = Metric::new(&names::ATTEMPTS);
    metric.number(&[(attribute::BACKEND, "a\"b\\c\nd")], 1.0);
    assert!(encode(vec![metric]).contains(r#"penstock_backend="a\"b\\c\nd""#));
}

#[test]
fn a_metric_without_series_is_left_out() {
    assert_eq!(encode(vec![Metric::new(&names::ATTEMPTS)]), "");
}

/// What `promtool check metrics` asks of a text, for every metric there is.
#[test]
fn every_metric_obeys_the_exposition_rules() {
    let metrics = ALL.iter().map(|&descriptor| {
        let mut metric = Metric::new(descriptor);
        for backend in ["a", "b"] {
            let attributes = [(attribute::BACKEND, backend)];
            if descriptor.kind == Kind::Histogram {
                let mut histogram = Histogram::new(descriptor);
                histogram.record(0.3);
                histogram.record(1e12);
                metric.histogram(&attributes, histogram);
            } else {
                metric.number(&attributes, 1.0);
            }
        }
        metric
    });
    check(&encode(metrics.collect()));
}

fn check(text: &str) {
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut helped = HashSet::new();
    let mut buckets: BTreeMap<String, Vec<(f64, u64)>> = BTreeMap::new();
    let mut series = HashSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a name and a text");
            assert!(!help.is_empty() && helped.insert(name), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a kind");
            assert!(helped.contains(name), "HELP comes before TYPE: {line}");
            assert!(kinds.insert(name, kind).is_none(), "TYPE once per name: {line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (left, value) = line.rsplit_once(' ').expect("a series and a value");
            assert!(series.insert(left.to_owned()), "each series once: {line}");
            let value: f64 = value.parse().expect("a number");
            let name = left.split('{').next().expect("a name");
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix).filter(|base| kinds.contains_key(base)))
                .unwrap_or(name);
            assert!(kinds.contains_key(family), "TYPE comes before {line}");
            if name.ends_with("_bucket") {
                let (labels, bound) = left.split_once("le=\"").expect("a bucket has a bound");
                let bound = bound.trim_end_matches("\"}");
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
                buckets.entry(labels.to_owned()).or_default().push((bound, value as u64));
            }
        }
    }
    assert!(!buckets.is_empty());
    for (series, buckets) in buckets {
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{series}: {buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, 2)), "{series} ends with +Inf");
    }
}
