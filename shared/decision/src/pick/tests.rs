use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::*;
use crate::testing::planned;

/// Everyone usable and idle, unless changed.
struct View {
    standings: Vec<Standing>,
    signals: Vec<LocalSignal>,
}

impl View {
    fn idle(candidates: usize) -> Self {
        Self {
            standings: vec![Standing::Usable { ramp: 1.0 }; candidates],
            signals: vec![LocalSignal { in_flight: 0, cost_ratio: 1.0 }; candidates],
        }
    }

    fn with(mut self, index: usize, standing: Standing) -> Self {
        self.standings[index] = standing;
        self
    }

    fn loaded(mut self, index: usize, in_flight: u32, cost_ratio: f64) -> Self {
        self.signals[index] = LocalSignal { in_flight, cost_ratio };
        self
    }

    fn in_flight(&self) -> u32 {
        self.signals.iter().map(|signal| signal.in_flight).sum()
    }
}

impl LocalView for View {
    fn standing(&self, index: usize) -> Standing {
        self.standings[index]
    }

    fn signal(&self, index: usize) -> LocalSignal {
        self.signals[index]
    }
}

fn question<'a>(plan: &'a [Planned], view: &View) -> Question<'a> {
    Question { plan, tried: Mask::default(), in_flight: view.in_flight(), max_ejected: 0.5 }
}

fn mask(indices: &[usize]) -> Mask {
    let mut mask = Mask::default();
    indices.iter().for_each(|index| mask.insert(*index));
    mask
}

/// Shares over many picks.
fn shares(question: &Question<'_>, view: &View) -> Vec<f64> {
    const PICKS: usize = 20_000;
    let mut random = Pcg64::seed_from_u64(7);
    let mut counts = vec![0; question.plan.len()];
    for _ in 0..PICKS {
        counts[pick(question, view, || random.random()).expect("somebody can serve").index] += 1;
    }
    counts.into_iter().map(|count| f64::from(count) / PICKS as f64).collect()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.015
}

#[test]
fn with_everyone_as_planned_the_shares_are_the_weights() {
    let plan = planned(&[(6.0, 1.0), (3.0, 1.0), (1.0, 1.0)]);
    let shares = shares(&question(&plan, &View::idle(3)), &View::idle(3));
    assert!(close(shares[0], 0.6) && close(shares[1], 0.3) && close(shares[2], 0.1), "{shares:?}");
}

#[test]
fn nobody_gets_more_than_twice_its_weight_however_idle_it_looks() {
    let plan = planned(&[(9.0, 1.0), (1.0, 1.0)]);
    // Busier than planned, but not badly so.
    let view = View::idle(2).loaded(0, 10, 1.7).loaded(1, 0, 0.1);
    let shares = shares(&question(&plan, &view), &view);
    assert!(close(shares[1], 1.0 - 0.9 * 0.9), "{shares:?}");
}

#[test]
fn a_candidate_that_is_badly_overloaded_gets_nothing_even_when_it_is_drawn_twice() {
    let plan = planned(&[(9.0, 1.0), (1.0, 1.0)]);
    let view = View::idle(2).loaded(0, 40, 3.0);
    assert_eq!(shares(&question(&plan, &view), &view), [0.0, 1.0]);
}

#[test]
fn a_third_draw_does_not_make_a_worse_candidate_win() {
    let plan = planned(&[(9.0, 1.0), (1.0, 1.0)]);
    let view = View::idle(2).loaded(0, 9, 2.5).loaded(1, 1, 9.0);
    assert_eq!(shares(&question(&plan, &view), &view)[1], 0.0);
}

#[test]
fn a_small_difference_is_noise() {
    let plan = planned(&[(1.0, 1.0), (1.0, 1.0)]);
    let view = View::idle(2).loaded(0, 0, 1.1);
    assert!(close(shares(&question(&plan, &view), &view)[0], 0.5));
}

#[test]
fn the_load_is_relative_to_what_the_plan_implies() {
    // A tenth of the requests, but ten times as long: half of what is in flight.
    let plan = planned(&[(10.0, 1.0), (1.0, 10.0)]);
    let view = View::idle(2).loaded(0, 5, 1.0).loaded(1, 5, 1.0);
    let mut draws = [0.0, 0.99].into_iter();
    let pick = pick(&question(&plan, &view), &view, || draws.next().unwrap()).unwrap();
    let loads = pick.draws.map(|draw| draw.map(|draw| (draw.index, (draw.load * 1e6).round() / 1e6)));
    assert_eq!(loads, [Some((0, 1.0)), Some((1, 1.0)), None]);
}

#[test]
fn what_was_tried_is_tried_again_only_when_there_is_nothing_else() {
    let plan = planned(&[(1.0, 1.0), (1.0, 1.0)]);
    let view = View::idle(2);
    let after = |tried| Question { tried, ..question(&plan, &view) };
    assert_eq!(shares(&after(mask(&[0])), &view), [0.0, 1.0]);
    assert!(close(shares(&after(mask(&[0, 1])), &view)[0], 0.5));
    let alone = View::idle(2).with(1, Standing::Excluded);
    assert_eq!(shares(&after(mask(&[0])), &alone), [1.0, 0.0]);
    let broken = View::idle(2).with(1, Standing::Ejected);
    assert_eq!(
        shares(&after(mask(&[0])), &broken),
        [1.0, 0.0],
        "rather again than to one that is known to fail"
    );
}

#[test]
fn when_nobody_can_serve_it_says_so() {
    let plan = planned(&[(1.0, 1.0)]);
    let view = View::idle(1).with(0, Standing::Excluded);
    assert_eq!(pick(&question(&plan, &view), &view, || 0.5), None);
    assert_eq!(pick(&question(&[], &view), &view, || 0.5), None);
}

#[test]
fn an_ejected_candidate_gets_nothing() {
    let plan = planned(&[(1.0, 1.0), (1.0, 1.0)]);
    let view = View::idle(2).with(0, Standing::Ejected);
    let mut random = Pcg64::seed_from_u64(1);
    let pick = pick(&question(&plan, &view), &view, || random.random()).unwrap();
    assert_eq!((pick.index, pick.panic, pick.probe), (1, false, false));
    assert_eq!(shares(&question(&plan, &view), &view), [0.0, 1.0]);
}

/// RES-05
#[test]
fn when_too_much_is_ejected_everybody_is_tried_by_how_well_they_do() {
    let mut plan = planned(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]);
    plan[0].success = 0.0;
    plan[1].success = 0.3;
    let view = View::idle(3).with(0, Standing::Ejected).with(1, Standing::Ejected);
    let shares = shares(&question(&plan, &view), &view);
    assert!(close(shares[0], 0.05 / 1.35) && close(shares[1], 0.3 / 1.35), "{shares:?}");

    let alone = View::idle(1).with(0, Standing::Ejected);
    let pick = pick(&question(&plan[..1], &alone), &alone, || 0.5).unwrap();
    assert!(pick.panic && pick.index == 0, "the last one is never taken out");
}

#[test]
fn how_much_may_be_ejected_is_measured_in_configured_weight() {
    let mut plan = planned(&[(1.0, 1.0), (1.0, 1.0)]);
    plan[0].configured = 3.0;
    let panic = |max_ejected| {
        let view = View::idle(2).with(0, Standing::Ejected);
        let question = Question { max_ejected, ..question(&plan, &view) };
        pick(&question, &view, || 0.99).unwrap().panic
    };
    assert!(panic(0.5) && !panic(0.75));
}

#[test]
fn a_fifth_of_the_first_attempts_probe_a_half_open_candidate_and_no_second_attempt_does() {
    let plan = planned(&[(1.0, 1.0), (1.0, 1.0)]);
    let view = View::idle(2).with(0, Standing::Probe);
    let first = question(&plan, &view);
    assert!(close(shares(&first, &view)[0], 0.2));
    let mut low = || 0.0;
    let chosen = pick(&first, &view, &mut low).unwrap();
    assert_eq!(chosen, Pick { index: 0, draws: [None; 3], probe: true, panic: false });
    let again = Question { tried: mask(&[5]), ..first };
    assert_eq!(shares(&again, &view), [0.0, 1.0]);
    let nothing_else = Question { tried: mask(&[1]), ..first };
    assert_eq!(shares(&nothing_else, &view), [1.0, 0.0]);
}

#[test]
fn while_the_fleet_rations_probes_only_the_weight_decides_who_probes() {
    let mut plan = planned(&[(1.0, 1.0), (99.0, 1.0)]);
    plan[0].fleet_open = true;
    let view = View::idle(2).with(0, Standing::Probe);
    let mut random = Pcg64::seed_from_u64(3);
    let picks: Vec<Pick> =
        (0..20_000).map(|_| pick(&question(&plan, &view), &view, || random.random()).unwrap()).collect();
    let probes = picks.iter().filter(|pick| pick.index == 0).count();
    assert!((120..300).contains(&probes), "{probes}");
    assert!(picks.iter().all(|pick| pick.probe == (pick.index == 0)));
}

/// RES-15, second run.
#[test]
fn a_candidate_that_comes_back_gets_a_part_of_its_weight() {
    let plan = planned(&[(1.0, 1.0), (1.0, 1.0)]);
    let share = |ramp| {
        let view = View::idle(2).with(0, Standing::Usable { ramp });
        shares(&question(&plan, &view), &view)[0]
    };
    assert!(close(share(0.1), 0.1 / 1.1) && close(share(0.5), 0.5 / 1.5) && close(share(1.0), 0.5));
}

#[test]
fn weights_of_nothing_are_equal_weights() {
    let mut plan = planned(&[(1.0, 1.0), (1.0, 1.0)]);
    plan.iter_mut().for_each(|candidate| candidate.weight = 0.0);
    let shares = shares(&question(&plan, &View::idle(2)), &View::idle(2));
    assert!(close(shares[0], 0.5), "{shares:?}");
}

#[test]
fn of_more_candidates_than_it_sees_it_picks_among_those() {
    let plan = planned(&vec![(1.0, 1.0); MAX_CANDIDATES + 10]);
    let view = View::idle(MAX_CANDIDATES + 10);
    let pick = pick(&question(&plan, &view), &view, || 0.999_999).unwrap();
    assert_eq!(pick.index, MAX_CANDIDATES - 1);
}

#[test]
fn a_mask_is_a_set() {
    let set = mask(&[0, 64, 127, 128, 500]);
    assert_eq!(set.iter().collect::<Vec<_>>(), [0, 64, 127]);
    assert_eq!((set.len(), set.is_empty(), Mask::default().is_empty()), (3, false, true));
    assert!(set.contains(127) && !set.contains(1) && !set.contains(128));
    assert_eq!(set.without(mask(&[64])).union(mask(&[3])).iter().collect::<Vec<_>>(), [0, 3, 127]);
}
