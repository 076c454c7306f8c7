use penstock_model::policy::{Candidate, CapabilityId, Preset, RouteId, TargetId};
use proptest::prelude::*;

use super::*;

const SCORING: Scoring = Scoring { preset: Preset::Classic, sharpness: 2.0, floor: 0.01 };

fn pool(weights: &[f64]) -> Pool {
    let candidate = |(index, &weight): (usize, &f64)| Candidate {
        target: TargetId(index as u32),
        weight,
        capability_match: 1.0,
        resident: true,
    };
    Pool {
        route: RouteId(0),
        capability: CapabilityId(0),
        candidates: weights.iter().enumerate().map(candidate).collect(),
    }
}

fn part(score: f64) -> Part {
    Part { score, cost: (-score).exp(), success: 1.0, configured: 1.0, share: Share::Part(1.0) }
}

fn out(score: f64) -> Part {
    Part { share: Share::Trickle(1.0), ..part(score) }
}

/// The weights after so many ticks.
fn after(weights: &mut PoolWeights, ticks: u32, parts: &[Part]) -> Vec<f64> {
    (0..ticks).map(|tick| weights.tick(f64::from(tick), parts, 150.0, 0.5)).last().expect("at least one tick")
}

fn equal(candidates: usize) -> PoolWeights {
    PoolWeights::new(&pool(&vec![1.0; candidates]), &SCORING)
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-3
}

#[test]
fn it_starts_with_the_policys_weights() {
    let mut weights = PoolWeights::new(&pool(&[3.0, 1.0]), &SCORING);
    let parts = [part(3.0_f64.ln() + MATCH_REWARD), part(MATCH_REWARD)];
    assert!(close(after(&mut weights, 1, &parts)[0], 0.75));
}

#[test]
fn a_weight_follows_its_score_and_no_faster_than_twofold_per_tick() {
    let mut weights = equal(2);
    let first = after(&mut weights, 1, &[part(MATCH_REWARD), part(MATCH_REWARD - 4.0)]);
    let ratio = first[0] / first[1];
    assert!(close(ratio, LARGEST_STEP.exp()), "{ratio}");
    let settled = after(&mut weights, 60, &[part(MATCH_REWARD), part(MATCH_REWARD - 2.0)]);
    assert!(close(settled[1], 1.0 / (1.0 + 2.0_f64.exp())), "{settled:?}");
}

#[test]
fn nobody_falls_below_the_floor_and_the_way_back_from_there_is_short() {
    let mut weights = equal(2);
    let lost = after(&mut weights, 600, &[part(MATCH_REWARD), part(MATCH_REWARD - 50.0)]);
    assert!(close(lost[1], 0.01), "{lost:?}");
    let back = after(&mut weights, 12, &[part(MATCH_REWARD), part(MATCH_REWARD)]);
    assert!(back[1] > 0.4, "{back:?}");
}

#[test]
fn a_floor_above_equal_shares_is_equal_shares() {
    let scoring = Scoring { floor: 0.2, ..SCORING };
    let mut weights = PoolWeights::new(&pool(&[1.0; 10]), &scoring);
    let mut parts = [part(MATCH_REWARD); 10];
    parts[0] = part(MATCH_REWARD + 9.0);
    let shares = after(&mut weights, 60, &parts);
    assert!(shares[1] > 0.05 && shares[0] < 0.6, "{shares:?}");
}

#[test]
fn who_is_out_gets_a_trickle_and_takes_up_where_it_was() {
    let mut weights = equal(2);
    let ill = after(&mut weights, 30, &[out(MATCH_REWARD - 9.0), part(MATCH_REWARD)]);
    assert!(close(ill[0], 0.005), "{ill:?}");
    let back = after(&mut weights, 1, &[part(MATCH_REWARD), part(MATCH_REWARD)]);
    assert!(close(back[0], 0.5), "{back:?}");
}

#[test]
fn the_trickle_is_a_rate_within_bounds_and_grows_with_good_answers() {
    let tick = |rate, times| {
        let parts = [Part { share: Share::Trickle(times), ..part(MATCH_REWARD) }, part(MATCH_REWARD)];
        equal(2).tick(0.0, &parts, rate, 0.5)[0]
    };
    assert!(close(tick(150.0, 1.0), 0.005), "0.75 a second");
    assert!(close(tick(150.0, 5.0), 0.025));
    assert!(close(tick(20.0, 1.0), 0.01), "the floor");
    assert!(close(tick(1.0, 1.0), 1.0 / 30.0), "one in thirty seconds");
    assert!(close(tick(0.0, 13.0), 0.2), "never more than a fifth");
    assert!((tick(1e6, 1.0) - 0.001).abs() < 1e-6);
}

/// RES-15, second run.
#[test]
fn a_share_that_grows_back_never_overshoots() {
    let mut weights = equal(3);
    let shares: Vec<f64> = (1..=10)
        .map(|tenth| {
            let parts =
                [Part { share: Share::Part(f64::from(tenth) / 10.0), ..part(0.0) }, part(0.0), part(0.0)];
            after(&mut weights, 1, &parts)[0]
        })
        .collect();
    assert!(shares.is_sorted() && close(shares[0], 0.1 / 2.1) && close(shares[9], 1.0 / 3.0), "{shares:?}");
}

#[test]
fn at_most_the_permitted_share_is_out_the_worst_first_and_when_all_are_ill_nobody() {
    let ejected_of = |parts: &[Part], max_ejected| ejected(parts, max_ejected);
    assert_eq!(ejected_of(&[out(-1.0), out(-3.0), part(0.0)], 0.5), [false, true, false]);
    assert_eq!(ejected_of(&[out(-1.0), out(-3.0), part(0.0)], 0.7), [true, true, false]);
    assert_eq!(ejected_of(&[out(-1.0), out(-3.0)], 1.0), [false, false]);
    let heavy = Part { configured: 5.0, ..out(-9.0) };
    assert_eq!(ejected_of(&[heavy, out(-1.0), part(0.0)], 0.5), [false, true, false], "too much to lose");
}

proptest! {
    #[test]
    fn shares_are_positive_and_sum_to_one(
        ticks in proptest::collection::vec(
            proptest::collection::vec((-60.0_f64..3.0, 0_u8..3, 0.0_f64..1.0), 4), 1..40
        ),
        rate in 0.0_f64..1e4,
        max_ejected in 0.0_f64..=1.0,
    ) {
        let mut weights = equal(4);
        for (now, tick) in ticks.iter().enumerate() {
            let parts: Vec<Part> = tick
                .iter()
                .map(|&(score, kind, amount)| {
                    let share = match kind {
                        0 => Share::Part(1.0),
                        1 => Share::Part(0.1 + 0.9 * amount),
                        _ => Share::Trickle(1.0 + 12.0 * amount),
                    };
                    Part { share, ..part(score) }
                })
                .collect();
            let shares = weights.tick(now as f64, &parts, rate, max_ejected);
            prop_assert!(shares.iter().all(|share| *share > 0.0 && share.is_finite()), "{shares:?}");
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    /// With β·ε < 1 it settles whatever the delay: here latency follows the share (ε = 1) and β is just below 1.
    #[test]
    fn it_settles_where_theory_says_it_does(delay in 0_usize..6, start in -2.0_f64..2.0) {
        let mut weights = equal(2);
        weights.log_weights[0] += start;
        let mut shares = vec![vec![0.5, 0.5]; delay + 1];
        let mut last = Vec::new();
        for tick in 0..400 {
            let seen: &Vec<f64> = &shares[shares.len() - 1 - delay];
            let parts = [part(-0.95 * seen[0].ln()), part(-0.95 * seen[1].ln())];
            last = weights.tick(f64::from(tick), &parts, 150.0, 0.5);
            shares.push(last.clone());
        }
        prop_assert!((last[0] - 0.5).abs() < 0.01, "{last:?}");
    }
}
