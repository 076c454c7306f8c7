use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::super::{LocalSignal, Pick, Standing, pick};
use super::*;
use crate::plan::Planned;
use crate::testing::planned;

struct View {
    standings: Vec<Standing>,
    signals: Vec<LocalSignal>,
}

impl LocalView for View {
    fn standing(&self, index: usize) -> Standing {
        self.standings[index]
    }

    fn signal(&self, index: usize) -> LocalSignal {
        self.signals[index]
    }
}

/// Everyone usable, with these loads in flight and cost ratios.
fn view(signals: &[(u32, f64)]) -> View {
    View {
        standings: vec![Standing::Usable { ramp: 1.0 }; signals.len()],
        signals: signals
            .iter()
            .map(|&(in_flight, cost_ratio)| LocalSignal { in_flight, cost_ratio })
            .collect(),
    }
}

fn question<'a>(plan: &'a [Planned], view: &View) -> Question<'a> {
    let in_flight = view.signals.iter().map(|signal| signal.in_flight).sum();
    Question { plan, tried: Mask::default(), in_flight, max_ejected: 0.5 }
}

fn probabilities(question: &Question<'_>, view: &View) -> Vec<f64> {
    odds(question, view).iter().map(|odds| odds.probability).collect()
}

fn close(found: &[f64], expected: &[f64]) {
    let all = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12);
    assert!(all && found.len() == expected.len(), "{found:?} for {expected:?}");
}

#[test]
fn with_everyone_as_planned_the_odds_are_the_weights() {
    let plan = planned(&[(6.0, 1.0), (3.0, 1.0), (1.0, 1.0)]);
    let view = view(&[(0, 1.0), (0, 1.0), (0, 1.0)]);
    close(&probabilities(&question(&plan, &view), &view), &[0.6, 0.3, 0.1]);
}

#[test]
fn of_two_the_less_loaded_wins_unless_the_other_is_drawn_twice() {
    let plan = planned(&[(3.0, 1.0), (1.0, 1.0)]);
    let view = view(&[(0, 1.9), (0, 1.0)]);
    close(&probabilities(&question(&plan, &view), &view), &[0.5625, 0.4375]);
}

#[test]
fn a_badly_loaded_one_that_is_drawn_twice_gives_way_to_a_third() {
    // The first is drawn twice for a ninth of the picks, and so is each other one.
    let plan = planned(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
    let view = view(&[(0, 9.0), (0, 1.0), (0, 1.0)]);
    close(&probabilities(&question(&plan, &view), &view), &[0.0, 0.5, 0.5]);
    // Of two badly loaded ones the third draw spares the requests that drew only them, and no others: (a, a), (b, b), (a, b)
    // and (b, a) are four ninths of the picks, of which the third draw after (a, a) or (b, b) is as often the other bad one.
    let view = self::view(&[(0, 9.0), (0, 9.0), (0, 1.0)]);
    close(
        &probabilities(&question(&plan, &view), &view),
        &[1.0 / 18.0, 1.0 / 18.0, 5.0 / 9.0 + 2.0 / 9.0 + 1.0 / 9.0],
    );
}

#[test]
fn the_odds_say_what_they_come_from() {
    let mut plan = planned(&[(3.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
    plan[2].configured = 0.5;
    let mut view = view(&[(4, 1.0), (0, 1.0), (0, 1.0)]);
    view.standings[2] = Standing::Ejected;
    let odds = odds(&question(&plan, &view), &view);
    close(&[odds[0].share, odds[0].load.unwrap()], &[0.75, 5.0 / 4.0]);
    close(&[odds[1].share, odds[1].load.unwrap()], &[0.25, 0.5]);
    assert_eq!(odds[2], Odds { probability: 0.0, share: 0.0, load: None });
}

#[test]
fn nobody_to_choose_from_has_no_odds() {
    let plan = planned(&[(1.0, 1.0)]);
    let mut view = view(&[(0, 1.0)]);
    view.standings[0] = Standing::Excluded;
    assert_eq!(probabilities(&question(&plan, &view), &view), [0.0]);
    assert!(odds(&question(&[], &view), &view).is_empty());
}

/// A pool as it can be, and as it can hardly be.
fn any(random: &mut Pcg64) -> (Vec<Planned>, View, Mask) {
    let candidates = random.random_range(1..=6);
    let weight = |random: &mut Pcg64| match random.random_range(0..8) {
        0 => 0.0,
        1 => 1e-3,
        _ => random.random_range(0.05..1.0),
    };
    let mut plan: Vec<Planned> =
        planned(&(0..candidates).map(|_| (1.0, random.random_range(0.1..4.0))).collect::<Vec<_>>());
    let mut view = view(&vec![(0, 1.0); candidates]);
    let mut tried = Mask::default();
    for (index, planned) in plan.iter_mut().enumerate() {
        planned.weight = weight(random);
        planned.success = random.random();
        planned.fleet_open = random.random_bool(0.2);
        view.signals[index] =
            LocalSignal { in_flight: random.random_range(0..20), cost_ratio: random.random_range(0.3..6.0) };
        view.standings[index] = match random.random_range(0..10) {
            0 => Standing::Excluded,
            1 => Standing::Ejected,
            2 => Standing::Probe,
            3 => Standing::Usable { ramp: 0.3 },
            _ => Standing::Usable { ramp: 1.0 },
        };
        if random.random_bool(0.1) {
            tried.insert(index);
        }
    }
    (plan, view, tried)
}

#[test]
fn the_odds_are_what_many_picks_give() {
    const PICKS: u32 = 20_000;
    let mut random = Pcg64::seed_from_u64(11);
    let (mut probed, mut thirds) = (0, 0);
    for case in 0..300 {
        let (plan, view, tried) = any(&mut random);
        let question = Question { tried, ..question(&plan, &view) };
        let mut counts = vec![0_u32; plan.len()];
        for _ in 0..PICKS {
            let Some(Pick { index, probe, draws, .. }) = pick(&question, &view, || random.random()) else {
                break;
            };
            counts[index] += 1;
            probed += u32::from(probe);
            thirds += u32::from(draws[2].is_some());
        }
        for (index, probability) in probabilities(&question, &view).into_iter().enumerate() {
            let share = f64::from(counts[index]) / f64::from(PICKS);
            // Five standard deviations.
            let margin = 5.0 * (probability * (1.0 - probability) / f64::from(PICKS)).sqrt() + 1e-4;
            assert!((share - probability).abs() < margin, "case {case}: {index} {share} for {probability}");
        }
    }
    assert!(probed > 10_000 && thirds > 100_000, "every branch is taken: {probed} {thirds}");
}

#[test]
fn the_odds_of_a_pool_sum_to_one_and_none_is_negative() {
    let mut random = Pcg64::seed_from_u64(12);
    for _ in 0..20_000 {
        let (plan, view, tried) = any(&mut random);
        let question = Question { tried, ..question(&plan, &view) };
        let odds = probabilities(&question, &view);
        let total: f64 = odds.iter().sum();
        let somebody = pick(&question, &view, || 0.5).is_some();
        assert!((total - f64::from(somebody)).abs() < 1e-9, "{odds:?}");
        assert!(odds.iter().all(|&probability| (0.0..=1.0).contains(&probability)), "{odds:?}");
    }
}

#[test]
fn whatever_is_picked_has_odds() {
    let mut random = Pcg64::seed_from_u64(13);
    for _ in 0..20_000 {
        let (plan, view, tried) = any(&mut random);
        let question = Question { tried, ..question(&plan, &view) };
        if let Some(pick) = pick(&question, &view, || random.random()) {
            assert!(probabilities(&question, &view)[pick.index] > 0.0, "{pick:?}");
        }
    }
}
