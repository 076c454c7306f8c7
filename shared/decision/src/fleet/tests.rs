use super::*;
use crate::testing::policy;

const BACKENDS: &str = "
version: 1
capabilities: {chat: {default: true}}
breaker: {ramp: 5s}
backends:
  a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [chat], models: [{name: m}]}
  b: {provider: openai, base_url: \"http://127.0.0.1:2/v1\", capabilities: [chat], models: [{name: m}]}
";

/// Backends `a` and `b` in one route, with more of either, if given.
fn document(more_backends: &str, routes: &str) -> Arc<Policy> {
    Arc::new(policy(&format!("{BACKENDS}{more_backends}routes:\n  - {{name: rest{routes}}}\n")))
}

fn fleet() -> Fleet {
    Fleet::new(document("", ""))
}

/// A second's worth of one target.
#[derive(Debug, Clone, Copy)]
struct Second {
    ok: u64,
    failed: u64,
    rate_limited: u64,
    latency: f64,
}

const WELL: Second = Second { ok: 50, failed: 0, rate_limited: 0, latency: 0.2 };

impl Second {
    fn row(&self) -> RowSums<'static> {
        RowSums {
            ended: self.ok + self.failed + self.rate_limited,
            ok: self.ok,
            failed: self.failed,
            rate_limited: self.rate_limited,
            latency_sum: self.latency * self.ok as f64,
            latency_square_sum: self.latency * self.latency * self.ok as f64,
            first_token_sum: self.latency * self.ok as f64,
            first_token_count: self.ok,
            ..RowSums::default()
        }
    }

    fn gauges(&self) -> Gauges {
        let in_flight = (self.latency * self.ok as f64) as u64;
        Gauges {
            in_flight,
            waiting: in_flight,
            oldest_wait: 2.0 * self.latency,
            nodes_using: 1,
            ..Gauges::default()
        }
    }
}

fn live(fleet: &mut Fleet, seconds: u32, targets: &[Second]) -> LiveState {
    let mut state = LiveState::default();
    for _ in 0..seconds {
        for (index, target) in targets.iter().enumerate() {
            fleet.absorb(TargetId(index as u32), &target.row());
        }
        state = fleet
            .tick(1.0, 7, 3, |target| targets.get(target.index()).map_or(Gauges::default(), Second::gauges));
    }
    state
}

/// The shares of the only pool by backend.
fn shares(state: &LiveState) -> Vec<(&str, f64)> {
    let share =
        |&(target, weight, _): &(u32, f64, f64)| (state.targets[target as usize].backend.as_str(), weight);
    state.pools[0].weights.iter().map(share).collect()
}

fn share(state: &LiveState, backend: &str) -> f64 {
    shares(state).into_iter().find(|(name, _)| *name == backend).expect("it is in the pool").1
}

#[test]
fn before_anything_is_known_the_shares_are_the_policys() {
    let state = live(&mut fleet(), 1, &[]);
    assert_eq!(shares(&state), [("a", 0.5), ("b", 0.5)]);
    assert_eq!((state.policy_version, state.sequence, state.nodes), (7, 1, 3));
    assert!(state.targets.iter().all(|target| !target.breaker_open && target.breaker_ttl_ms == 30_000));
}

#[test]
fn what_is_reported_becomes_the_fleets_view() {
    let mut fleet = fleet();
    let state = live(&mut fleet, 30, &[WELL, Second { latency: 0.4, failed: 5, ..WELL }]);
    let [a, b] = state.targets.as_slice() else { panic!("{state:?}") };
    assert!((a.latency - 0.2).abs() < 0.01 && (b.latency - 0.4).abs() < 0.01, "{state:?}");
    assert!(a.success > 0.99 && (b.success - 50.0 / 55.0).abs() < 0.01, "{state:?}");
    assert_eq!((a.latency_term, a.cost_term), (1.0, 1.0));
    assert!((b.latency_term - 0.5).abs() < 0.02 && b.quality < a.quality && b.cost > a.cost, "{state:?}");
    assert!(share(&state, "a") > 0.8, "{state:?}");
}

#[test]
fn an_answer_that_is_not_streamed_has_its_first_token_at_its_end() {
    let mut fleet = fleet();
    let row = RowSums { first_token_sum: 10.0 * 0.05, first_token_count: 10, ..WELL.row() };
    fleet.absorb(TargetId(0), &row);
    let state = fleet.tick(1.0, 1, 1, |_| WELL.gauges());
    assert!((state.targets[0].first_token - (10.0 * 0.05 + 40.0 * 0.2) / 50.0).abs() < 1e-9, "{state:?}");
}

#[test]
fn status_counts_windows_and_reads_quantiles_off_the_sketches() {
    let mut fleet = fleet();
    let mut sketch = Sketch::default();
    (0..100).for_each(|value| sketch.record_us(1_000_000 + value * 10_000));
    for _ in 0..20 {
        let row = RowSums { latency: Some(&sketch), ..Second { failed: 2, ..WELL }.row() };
        fleet.absorb(TargetId(0), &row);
        fleet.tick(1.0, 1, 1, |_| WELL.gauges());
    }
    let status = fleet.status(TargetId(0)).unwrap();
    assert_eq!((status.recent_calls, status.recent_failures), (520, 20));
    assert_eq!((status.minute_calls, status.minute_failures), (1_040, 40));
    assert_eq!((status.in_flight, status.phase), (10, Phase::Closed));
    let quantiles = (status.latency_p50.unwrap(), status.latency_p95.unwrap());
    assert!((quantiles.0 - 1.5).abs() < 0.03 && (quantiles.1 - 1.94).abs() < 0.05, "{quantiles:?}");
    assert_eq!(status.first_token_p95, None);
    assert_eq!(fleet.status(TargetId(9)), None);
    assert_eq!(fleet.beta(PoolId(0)), Some(2.0));
    fleet.absorb(TargetId(9), &WELL.row());
}

/// RES-14, first and second run: 500, or 429, in two milliseconds.
#[test]
fn the_target_that_fails_fastest_does_not_look_fastest() {
    for bad in [
        Second { ok: 0, failed: 20, rate_limited: 0, latency: 0.002 },
        Second { ok: 0, failed: 0, rate_limited: 20, latency: 0.002 },
    ] {
        let state = live(&mut fleet(), 15, &[Second { latency: 0.4, ..WELL }, bad]);
        assert!(share(&state, "a") >= 0.9, "{bad:?}: {state:?}");
        assert!(share(&state, "b") > 0.0, "it is still tried");
    }
}

#[test]
fn a_target_that_fails_is_out_within_a_tick_and_comes_back_step_by_step() {
    let mut fleet = fleet();
    live(&mut fleet, 20, &[WELL, WELL]);
    let state = live(&mut fleet, 1, &[Second { ok: 2, failed: 48, ..WELL }, WELL]);
    assert!(state.targets[0].breaker_open && share(&state, "a") < 0.01, "{state:?}");
    assert_eq!(fleet.status(TargetId(0)).unwrap().phase, Phase::Open);

    let trickle = |ok, failed| Second { ok, failed, ..WELL };
    let state = live(&mut fleet, 10, &[trickle(0, 1), WELL]);
    assert!(state.targets[0].breaker_open && share(&state, "a") < 0.02, "{state:?}");
    let state = live(&mut fleet, 1, &[trickle(3, 0), WELL]);
    assert!(!state.targets[0].breaker_open, "{state:?}");
    let mut grows = vec![share(&state, "a")];
    for ok in [6, 15, 25, 35, 45, 50] {
        grows.push(share(&live(&mut fleet, 1, &[trickle(ok, 0), WELL]), "a"));
    }
    assert!(grows.is_sorted() && grows[0] < 0.12 && grows[6] > 0.45 && grows[6] < 0.51, "{grows:?}");
}

#[test]
fn a_target_that_is_suddenly_slow_is_out_and_no_breaker_is_open() {
    let mut fleet = fleet();
    live(&mut fleet, 30, &[WELL, WELL]);
    let state = live(&mut fleet, 2, &[Second { ok: 10, latency: 2.0, ..WELL }, WELL]);
    assert!(!state.targets[0].breaker_open && share(&state, "a") < 0.01, "{state:?}");
    assert_eq!(fleet.status(TargetId(0)).unwrap().phase, Phase::Slow);
}

#[test]
fn when_all_get_slow_or_fail_nobody_is_out() {
    for worse in [Second { latency: 2.0, ..WELL }, Second { ok: 2, failed: 48, ..WELL }] {
        let mut fleet = fleet();
        live(&mut fleet, 30, &[WELL, WELL]);
        let state = live(&mut fleet, 10, &[worse, worse]);
        assert!(shares(&state).iter().all(|(_, share)| (0.45..0.55).contains(share)), "{worse:?}: {state:?}");
    }
}

#[test]
fn one_that_is_slow_by_nature_keeps_the_share_that_its_score_earns() {
    let mut fleet = fleet();
    let state = live(&mut fleet, 60, &[WELL, Second { latency: 0.8, ..WELL }]);
    assert!((0.03..0.1).contains(&share(&state, "b")), "{state:?}");
    assert_eq!(fleet.status(TargetId(1)).unwrap().phase, Phase::Closed);
}

#[test]
fn another_policy_version_keeps_what_is_known_by_name() {
    let mut fleet = fleet();
    live(&mut fleet, 60, &[WELL, Second { latency: 0.8, ..WELL }]);
    let before = fleet.status(TargetId(1)).unwrap();
    // In alphabetical order: a0 comes between a and b.
    let more = "  a0: {provider: openai, base_url: \"http://127.0.0.1:3/v1\", capabilities: [chat], models: [{name: m}]}\n";
    fleet.set_policy(document(more, ""));
    assert_eq!(fleet.status(TargetId(2)).unwrap(), before);
    assert_eq!(fleet.status(TargetId(1)).unwrap().minute_calls, 0);
    let state = live(&mut fleet, 1, &[]);
    assert!(share(&state, "b") < 0.2 * share(&state, "a"), "{state:?}");
    assert!(
        (share(&state, "a0") / share(&state, "a") - 1.0).abs() < 0.4,
        "the new one is taken for a typical one"
    );
}

#[test]
fn a_target_that_no_route_uses_is_left_out() {
    let only_b = document("", ", targets: [{backend: b}]");
    let state = live(&mut Fleet::new(only_b), 3, &[WELL, WELL]);
    assert_eq!(shares(&state), [("b", 1.0)]);
    assert_eq!(state.targets.len(), 1);
}
