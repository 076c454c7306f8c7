//! One of two services gets slow, hangs or fails, and gets well again: how fast does its traffic go and come back? And
//! does anything move when all is well?
//!
//! A small simulation of proxies, control plane and the time between them; every run is determined by its seed.

mod proxy;
mod world;

use std::sync::Arc;

use penstock_model::Policy;

use crate::world::{Fault, Log, Scenario, run};

const SEEDS: u64 = 20;
const FAULTS: [Fault; 3] = [Fault::Slow(10.0), Fault::Hang, Fault::Fail(0.9)];
const PRESETS: [&str; 2] = ["classic", "quality"];

fn policy(preset: &str) -> Arc<Policy> {
    let document = format!(
        r#"
version: 1
capabilities: {{chat: {{default: true}}}}
backends:
  a: {{provider: openai, base_url: "http://127.0.0.1:1/v1", capabilities: [chat], models: [{{name: m}}]}}
  b: {{provider: openai, base_url: "http://127.0.0.1:2/v1", capabilities: [chat], models: [{{name: m}}]}}
routes: [{{name: default}}]
scoring: {{preset: {preset}}}
breaker: {{open: 1s, open_max: 4s, ramp: 5s}}
"#
    );
    let loaded = penstock_model::load(&document);
    Arc::new(loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.problems)))
}

/// Eight proxies, 200 requests/s, two services that answer in 0.2 s; the first one is sick from 20 s to 30 s.
fn scenario(preset: &str, fault: Option<Fault>) -> Scenario {
    Scenario {
        policy: policy(preset),
        proxies: 8,
        rate: 200.0,
        surge: 1.0,
        latency: vec![0.2, 0.2],
        variation: 0.5,
        capacity: vec![f64::INFINITY; 2],
        first_token_timeout: 3.0,
        delay: 0.5,
        control_ends: f64::INFINITY,
        fault,
        onset: 20.0,
        recovery: 30.0,
        end: 48.0,
    }
}

/// What happened to the sick service's share of the attempts, over all seeds.
#[derive(Debug, Default)]
struct Incident {
    /// In the last seconds before it fell ill; mean.
    before: f64,
    /// In the first three seconds of its illness; mean.
    early: f64,
    /// From then on until its recovery; mean and largest.
    during: f64,
    during_most: f64,
    /// Two seconds around the fifteenth after its recovery; least.
    after_least: f64,
    /// Seconds until it had 30 % of all attempts again, per seed, ascending.
    back: Vec<f64>,
    lost: usize,
}

fn incident(scenario: &Scenario, seeds: u64) -> Incident {
    let (onset, recovery) = (scenario.onset, scenario.recovery);
    let mut incident = Incident { after_least: 1.0, ..Incident::default() };
    for seed in 0..seeds {
        let log = run(scenario, seed);
        let mean = |share: f64| share / seeds as f64;
        incident.before += mean(log.share(0, onset - 4.0, onset));
        incident.early += mean(log.share(0, onset, onset + 3.0));
        let during = log.share(0, onset + 3.0, recovery);
        incident.during += mean(during);
        incident.during_most = incident.during_most.max(during);
        incident.after_least = incident.after_least.min(log.share(0, recovery + 14.0, recovery + 16.0));
        let is_back = |second: &f64| log.share(0, recovery + second, recovery + second + 1.0) >= 0.3;
        let back = (0..36).map(|half| f64::from(half) / 2.0).find(is_back);
        incident.back.push(back.unwrap_or(f64::INFINITY));
        incident.lost += log.lost;
    }
    incident.back.sort_by(f64::total_cmp);
    incident
}

fn check(name: &str, scenario: &Scenario, seeds: u64) {
    let incident = incident(scenario, seeds);
    let label = format!("{name}, {:?}: {incident:?}", scenario.fault);
    assert!((0.45..0.55).contains(&incident.before), "{label}");
    assert!(incident.during < 0.01 && incident.during_most < 0.02, "{label}");
    assert!(incident.after_least >= 0.3, "{label}");
    assert_eq!(incident.lost, 0, "{label}");
}

#[test]
fn a_sick_service_loses_its_traffic_in_three_seconds_and_has_it_back_in_fifteen() {
    for preset in PRESETS {
        for fault in FAULTS {
            check(preset, &scenario(preset, Some(fault)), SEEDS);
        }
    }
}

#[test]
fn so_it_does_with_a_single_proxy() {
    for fault in FAULTS {
        check("1 proxy", &Scenario { proxies: 1, rate: 100.0, ..scenario("classic", Some(fault)) }, SEEDS);
    }
}

#[test]
fn so_it_does_with_proxies_that_see_two_requests_a_second_each() {
    for fault in FAULTS {
        let base = scenario("classic", Some(fault));
        check("1000 proxies", &Scenario { proxies: 1_000, rate: 2_000.0, ..base }, 3);
    }
}

#[test]
fn so_it_does_after_five_seconds_of_history() {
    for fault in FAULTS {
        let scenario = scenario("classic", Some(fault));
        check("young", &Scenario { onset: 5.0, recovery: 15.0, end: 33.0, ..scenario }, SEEDS);
    }
}

#[test]
fn without_the_control_plane_the_proxies_still_turn_away_from_a_sick_service() {
    for fault in FAULTS {
        let scenario = Scenario { control_ends: 20.0, ..scenario("classic", Some(fault)) };
        let incident = incident(&scenario, SEEDS);
        assert!(incident.during < 0.12, "{fault:?}: {incident:?}");
        assert!(incident.after_least >= 0.3, "{fault:?}: {incident:?}");
        assert_eq!(incident.lost, 0, "{fault:?}: {incident:?}");
    }
}

/// How far a share moved: the variance of the first service's share over bins of five seconds, over that of
/// independent draws. 1 is pure chance.
fn oscillation(log: &Log, scenario: &Scenario) -> f64 {
    let (from, bins) = (20.0, 36);
    let share = log.share(0, from, from + 5.0 * f64::from(bins));
    let expected = share * (1.0 - share) / (scenario.rate * 5.0);
    let squares = (0..bins).map(|bin| {
        let start = from + 5.0 * f64::from(bin);
        (log.share(0, start, start + 5.0) - share).powi(2)
    });
    squares.sum::<f64>() / f64::from(bins) / expected
}

fn check_calm(name: &str, scenario: Scenario, shares: std::ops::Range<f64>) {
    let scenario = Scenario { end: 200.0, ..scenario };
    for seed in 0..4 {
        let log = run(&scenario, seed);
        let weights = || log.weights.iter().filter(|(at, _)| *at > 20.0).map(|(_, weights)| weights[0]);
        let (least, most) = (weights().fold(1.0, f64::min), weights().fold(0.0, f64::max));
        assert!(shares.contains(&least) && shares.contains(&most), "{name}, {seed}: {least} to {most}");
        assert_eq!(log.lost, 0, "{name}, {seed}");
        let oscillation = oscillation(&log, &scenario);
        assert!(oscillation < 1.5, "{name}, {seed}: {oscillation}");
    }
}

#[test]
fn nothing_oscillates_when_all_is_well() {
    for preset in PRESETS {
        let base = || scenario(preset, None);
        check_calm("equal", base(), 0.45..0.55);
        check_calm("one proxy", Scenario { proxies: 1, ..base() }, 0.44..0.56);
        check_calm("late telemetry", Scenario { delay: 2.0, ..base() }, 0.44..0.56);
        check_calm(
            "long answers",
            Scenario { latency: vec![4.0; 2], first_token_timeout: 60.0, ..base() },
            0.42..0.58,
        );
        check_calm("one slower by nature", Scenario { latency: vec![0.2, 0.8], ..base() }, 0.85..0.97);
    }
}

/// Services that get slower with load, up to their limit.
#[test]
fn nothing_oscillates_close_to_saturation() {
    for preset in PRESETS {
        let base = || scenario(preset, None);
        check_calm("85 %", Scenario { capacity: vec![23.5; 2], ..base() }, 0.4..0.6);
        check_calm("95 %", Scenario { capacity: vec![21.0; 2], ..base() }, 0.35..0.65);
        check_calm("unequal, 85 %", Scenario { capacity: vec![30.0, 17.0], delay: 2.0, ..base() }, 0.5..0.72);
    }
}

/// Taking out the slower of two that are both overloaded would only bring down the other.
#[test]
fn in_an_overload_nobody_is_taken_out() {
    for preset in PRESETS {
        for capacity in [vec![26.0, 26.0], vec![36.0, 15.0]] {
            let base = scenario(preset, None);
            let scenario = Scenario { capacity, surge: 1.6, first_token_timeout: 15.0, end: 150.0, ..base };
            for seed in 0..4 {
                let log = run(&scenario, seed);
                let least = log.weights.iter().flat_map(|(_, weights)| weights).copied().fold(1.0, f64::min);
                assert!(least > 0.1, "{preset}, {:?}, {seed}: {least}", scenario.capacity);
                assert!(log.lost < 10, "{preset}, {:?}, {seed}: {} lost", scenario.capacity, log.lost);
            }
        }
    }
}

#[test]
fn a_surge_of_traffic_is_no_illness() {
    let base = scenario("classic", None);
    let scenario = Scenario { surge: 3.0, variation: 1.2, first_token_timeout: 60.0, end: 120.0, ..base };
    for seed in 0..4 {
        let log = run(&scenario, seed);
        let least = log.weights.iter().flat_map(|(_, weights)| weights).copied().fold(1.0, f64::min);
        assert!(least > 0.35, "{seed}: {least}");
    }
}
