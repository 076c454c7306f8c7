//! Runs the scenarios and prints their figures.
#![expect(clippy::print_stdout, reason = "it is what it is for")]

use penstock_sim_routing::measure::Summary;
use penstock_sim_routing::policy::Contender;
use penstock_sim_routing::scenario::{SIX, Scenario};

fn main() {
    let scenario = Scenario::language_models(&SIX, 0.65);
    for contender in Contender::ALL {
        for seed in 0..3 {
            let s = Summary::new(&scenario, &contender.run(&scenario, seed));
            println!(
                "{:30} {:5.0}/{:6.0}  {:5.0}/{:6.0}  {:5.2}/{:5.1} {:6.0} {:4.1}/{:4.1} {:4.1} {:.2}/{:.2} {:.2}/{:.2} {:.1}",
                contender.name(),
                s.normal.first_token_p50 * 1e3,
                s.normal.first_token_p99 * 1e3,
                s.incident.first_token_p50 * 1e3,
                s.incident.first_token_p99 * 1e3,
                s.incident.latency_p50,
                s.incident.latency_p99,
                s.after.first_token_p99 * 1e3,
                s.normal.misrouted * 100.0,
                s.incident.misrouted * 100.0,
                s.incident.to_sick * 100.0,
                s.normal.movement,
                s.incident.movement,
                s.oscillation_normal,
                s.oscillation_incident,
                s.incident.failed * 100.0
            );
        }
    }
}
