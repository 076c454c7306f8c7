use proptest::prelude::*;

use super::*;
use crate::testing::policy;

const WELL: Observed = Observed { latency: 0.2, success: 1.0, variation: 0.0 };

/// A pool of targets with these prices, input and output alike, per million tokens.
fn with_prices(prices: &[Option<&str>]) -> Policy {
    let backend = |(index, price): (usize, &Option<&str>)| {
        let price = price.map_or(String::new(), |amount| {
            format!(", price: {{input: \"{amount}\", output: \"{amount}\"}}")
        });
        format!(
            "  b{index}: {{provider: openai, base_url: \"http://127.0.0.1:1{index}/v1\", capabilities: [chat], models: [{{name: m{price}}}]}}\n"
        )
    };
    let backends: String = prices.iter().enumerate().map(backend).collect();
    policy(&format!(
        "version: 1\ncapabilities: {{chat: {{default: true}}}}\nbackends:\n{backends}routes: [{{name: rest}}]\n"
    ))
}

fn scores(policy: &Policy, preset: Preset, observed: &[Observed]) -> Vec<Score> {
    let scoring = Scoring { preset, ..policy.scoring };
    score_pool(policy, &policy.pools[0].candidates, observed, &scoring, 2.0)
}

/// How much more of the traffic the first one's score brings than the second one's.
fn advantage(scores: &[Score]) -> f64 {
    (scores[0].log_score - scores[1].log_score).exp()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9 * expected.abs().max(1.0)
}

#[test]
fn classic_gives_weight_over_latency_to_the_power_of_beta() {
    let policy = with_prices(&[None, None]);
    let slower = Observed { latency: 0.6, ..WELL };
    assert!(close(advantage(&scores(&policy, Preset::Classic, &[WELL, slower])), 9.0));
    let mut candidates = policy.pools[0].candidates.clone();
    candidates[0].weight = 5.0;
    let scores = score_pool(&policy, &candidates, &[WELL, WELL], &policy.scoring, 2.0);
    assert!(close(advantage(&scores), 5.0));
}

#[test]
fn classic_does_not_depend_on_the_unit_of_latency() {
    let policy = with_prices(&[None, None]);
    let times = |factor: f64| {
        let observed = [0.2, 0.5].map(|latency| Observed { latency: latency * factor, ..WELL });
        advantage(&scores(&policy, Preset::Classic, &observed))
    };
    assert!(close(times(1.0), times(1_000.0)));
}

/// RES-14: 500 in 2 ms against 200 in 400 ms.
#[test]
fn what_fails_fast_is_worth_less_than_what_answers() {
    let policy = with_prices(&[None, None]);
    let good = Observed { latency: 0.4, ..WELL };
    // No good answer, no latency: what it is taken for is the pool's.
    let failing = Observed { success: 0.02, ..good };
    for preset in [Preset::Classic, Preset::Quality] {
        let advantage = advantage(&scores(&policy, preset, &[good, failing]));
        assert!(advantage > 9.0, "{preset:?}: {advantage}");
    }
}

#[test]
fn a_full_capability_match_is_worth_e_to_the_one_and_a_half() {
    let policy = with_prices(&[None, None]);
    let mut candidates = policy.pools[0].candidates.clone();
    candidates[1].capability_match = 0.0;
    let scores = score_pool(&policy, &candidates, &[WELL, WELL], &policy.scoring, 2.0);
    assert!(close(advantage(&scores), 1.5_f64.exp()));
}

#[test]
fn quality_is_the_weighted_mean_of_its_terms() {
    let policy = with_prices(&[Some("1.00"), Some("4.00")]);
    let other = Observed { latency: 0.4, success: 0.9, variation: 1.0 };
    let scores = scores(&policy, Preset::Quality, &[WELL, other]);
    assert!(close(scores[0].quality, 1.0));
    assert!(close(scores[1].quality, 0.4 * 0.9 + 0.3 * 0.5 + 0.2 * 0.25 + 0.1 * 0.5));
    assert_eq!((scores[1].latency_term, scores[1].cost_term, scores[1].stability_term), (0.5, 0.25, 0.5));
    let named = |name| scores[1].terms.iter().find(|term| term.name == name).copied().unwrap();
    assert_eq!((named("cost").value, named("cost").weight), (0.25, 0.2));
    assert_eq!(named("efficiency").weight, 0.0, "shown, but not used by this formula");
}

#[test]
fn quality_tells_targets_apart_although_its_band_is_narrow() {
    let policy = with_prices(&[None, None]);
    let worse = Observed { latency: 1.0, ..WELL };
    let scores = scores(&policy, Preset::Quality, &[WELL, worse]);
    assert!(close(scores[1].quality, 0.76));
    assert!((8.0..10.0).contains(&advantage(&scores)), "{}", advantage(&scores));
}

#[test]
fn an_unknown_price_neither_attracts_nor_repels() {
    let terms = |prices: &[Option<&str>]| {
        let policy = with_prices(prices);
        cost_terms(&policy, &policy.pools[0].candidates)
    };
    assert_eq!(terms(&[None, None]), [1.0, 1.0]);
    assert_eq!(terms(&[Some("1"), Some("2"), None]), [1.0, 0.5, 0.75]);
    assert_eq!(terms(&[Some("0"), Some("2")]), [1.0, 0.0]);
    assert_eq!(terms(&[Some("0"), Some("0")]), [1.0, 1.0]);
}

proptest! {
    #[test]
    fn every_term_is_between_0_and_1_and_every_score_is_finite(
        observed in proptest::collection::vec((1e-4_f64..4e3, 0.0_f64..=1.0, 0.0_f64..50.0), 2),
        quality in any::<bool>(),
    ) {
        let policy = with_prices(&[Some("1"), None]);
        let observed: Vec<Observed> = observed
            .into_iter()
            .map(|(latency, success, variation)| Observed { latency, success, variation })
            .collect();
        let preset = if quality { Preset::Quality } else { Preset::Classic };
        for score in scores(&policy, preset, &observed) {
            prop_assert!(score.log_score.is_finite() && score.cost.is_finite());
            for term in score.terms {
                prop_assert!((0.0..=1.0).contains(&term.value), "{term:?}");
            }
        }
    }

    #[test]
    fn being_faster_or_failing_less_never_lowers_a_share(
        latency in 0.01_f64..10.0, success in 0.1_f64..1.0, faster in 0.1_f64..1.0, better in 1.0_f64..2.0, quality in any::<bool>(),
    ) {
        let policy = with_prices(&[None, None]);
        let preset = if quality { Preset::Quality } else { Preset::Classic };
        let now = Observed { latency, success, variation: 0.5 };
        let improved = Observed { latency: latency * faster, success: (success * better).min(1.0), variation: 0.5 };
        let other = Observed { latency: 1.0, success: 0.9, variation: 0.5 };
        let before = advantage(&scores(&policy, preset, &[now, other]));
        let after = advantage(&scores(&policy, preset, &[improved, other]));
        prop_assert!(after >= before * (1.0 - 1e-9), "{before} {after}");
    }
}
