//! How well requests are routed, in simulated time.

use penstock_sim_routing::measure::Summary;
use penstock_sim_routing::policy::Contender;
use penstock_sim_routing::scenario::{SIX, Scenario};

#[test]
fn a_seed_determines_a_run() {
    let scenario = Scenario::language_models(&SIX, 0.65);
    let run = || Summary::new(&scenario, &Contender::Penstock.run(&scenario, 1));
    assert_eq!(run(), run());
}

#[test]
fn when_one_of_six_slows_down_requests_fare_better_than_with_policies_that_know_only_one_proxy() {
    let scenario = Scenario::language_models(&SIX, 0.65);
    for seed in 0..3 {
        let of = |contender: Contender| Summary::new(&scenario, &contender.run(&scenario, seed));
        let penstock = of(Contender::Penstock);
        for contender in [Contender::RoundRobin, Contender::FirstByteP2c, Contender::LatencyP2c] {
            let other = of(contender);
            let (name, label) = (contender.name(), format!("seed {seed}: {penstock:?} against {other:?}"));
            assert!(penstock.incident.misrouted < 0.8 * other.incident.misrouted, "{name}, {label}");
            assert!(penstock.incident.to_sick < 0.5 * other.incident.to_sick, "{name}, {label}");
            assert!(
                penstock.incident.first_token_p99 < 0.85 * other.incident.first_token_p99,
                "{name}, {label}"
            );
        }
    }
}
