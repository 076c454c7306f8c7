//! What is shipped beside the binary must fit the binary: dashboards and alerts name metrics that exist, and example
//! policies are policies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use penstock_telemetry::names::{self, Kind};
use serde_json::Value;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(repository().join(path)).with_context(|| path.to_owned())
}

#[test]
fn every_series_and_label_on_the_dashboard_exists() -> Result<()> {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/penstock.json")?)?;
    let mut queries = Vec::new();
    find_queries(&dashboard, &mut queries);
    assert!(queries.len() > 30, "the dashboard has {} queries", queries.len());
    for query in queries {
        assert_eq!(unknown_words(query), BTreeSet::new(), "in {query}");
    }
    Ok(())
}

#[test]
fn every_series_and_label_in_the_alerts_exists() -> Result<()> {
    let alerts = read("deploy/prometheus/alerts.yml")?;
    let rules = alerts.split("- alert: ").skip(1);
    for rule in rules.clone() {
        let query = rule.split_once("expr:").and_then(|(_, rest)| rest.split_once("labels: {"));
        let query = query.context("a rule has an expression and then labels")?.0;
        let query = query.split("for: ").next().unwrap_or_default().trim_start_matches([' ', '|']);
        assert_eq!(unknown_words(query), BTreeSet::new(), "in {query}");
    }
    assert!(rules.count() >= 10);
    Ok(())
}

#[test]
fn what_the_chart_scales_on_is_a_metric() -> Result<()> {
    let values = read("deploy/helm/penstock/values.yaml")?;
    let metric = values.lines().find_map(|line| line.trim().strip_prefix("metric: "));
    assert_eq!(unknown_words(metric.context("the chart names a metric")?), BTreeSet::new());
    Ok(())
}

#[test]
fn the_chart_gives_commands_only_flags_they_have() -> Result<()> {
    let reference = read("docs/reference/cli.md")?;
    for (template, command) in [
        ("proxy-deployment.yaml", "penstock proxy"),
        ("control-statefulset.yaml", "penstock control"),
        ("tests/nodes.yaml", "penstock node list"),
    ] {
        let section = reference
            .split("\n##")
            .find(|part| part.lines().next().is_some_and(|line| line.ends_with(command)));
        let section = section.with_context(|| format!("the reference has no {command}"))?;
        let text = read(&format!("deploy/helm/penstock/templates/{template}"))?;
        let flags: Vec<&str> =
            text.split("--").skip(1).filter_map(|rest| rest.split_once('=')).map(|(flag, _)| flag).collect();
        assert!(!flags.is_empty());
        for flag in flags {
            assert!(
                ["<", "[<"].iter().any(|value| section.contains(&format!("--{flag} {value}")))
                    || section.contains(&format!("--{flag}]")),
                "{command} has no --{flag}"
            );
        }
    }
    Ok(())
}

#[test]
fn example_policies_are_valid() -> Result<()> {
    for path in [
        "deploy/helm/penstock/files/policy.yaml",
        "examples/capabilities/policy.yaml",
        "tests/bench/policy.yaml",
        "tests/real/policy.yaml",
    ] {
        let loaded = penstock_model::load(&read(path)?);
        assert!(loaded.policy.is_some(), "{path}: {:?}", loaded.problems);
        assert!(loaded.problems.is_empty(), "{path}: {:?}", loaded.problems);
    }
    Ok(())
}

/// The texts of all `expr`, and of `query` where it looks up label values.
fn find_queries<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str() {
                    Some(text) if key == "expr" || text.starts_with("label_values(") => found.push(text),
                    _ => find_queries(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| find_queries(value, found)),
        _ => {}
    }
}

/// The words of a PromQL query that are neither part of the language nor a series or label of ours.
fn unknown_words(query: &str) -> BTreeSet<&str> {
    const LANGUAGE: &[&str] = &[
        "sum",
        "max",
        "min",
        "avg",
        "by",
        "rate",
        "increase",
        "changes",
        "histogram_quantile",
        "and",
        "or",
        "vector",
        "label_values",
    ];
    const SCRAPED: &[&str] = &["le", "instance", "job"];
    let labels: BTreeSet<String> = names::attribute::ALL.iter().map(|key| key.replace('.', "_")).collect();
    let series: BTreeSet<String> = names::ALL.iter().flat_map(|metric| series(metric)).collect();
    words(query)
        .filter(|word| {
            !LANGUAGE.contains(word)
                && !SCRAPED.contains(word)
                && !labels.contains(*word)
                && !series.contains(*word)
        })
        .collect()
}

/// The series of a metric, as Prometheus names them.
fn series(metric: &names::Descriptor) -> Vec<String> {
    let name = metric.prometheus_name();
    let endings: &[&str] = match metric.kind {
        Kind::Counter => &["_total"],
        Kind::Gauge => &[""],
        Kind::Histogram => &["_bucket", "_sum", "_count"],
    };
    endings.iter().map(|ending| format!("{name}{ending}")).collect()
}

/// The identifiers of a query: no strings, no numbers, no durations, no dashboard variables.
fn words(query: &str) -> impl Iterator<Item = &str> {
    let outside_strings = query.split('"').step_by(2);
    outside_strings
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$'))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

#[test]
fn words_of_a_query_are_its_identifiers() {
    let query = r#"sum by (le) (rate(a_bucket{b=~"c|d"}[5m])) > 0.5 and e[$__rate_interval]"#;
    assert_eq!(words(query).collect::<Vec<_>>(), ["sum", "by", "le", "rate", "a_bucket", "b", "and", "e"]);
    assert_eq!(
        unknown_words("rate(penstock_no_such_thing_total[1m])"),
        BTreeSet::from(["penstock_no_such_thing_total"])
    );
}
