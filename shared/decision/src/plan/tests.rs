use penstock_model::live::PoolLive;

use super::*;
use crate::testing::policy;

const DOCUMENT: &str = "
version: 1
capabilities: {chat: {default: true}}
backends:
  a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: {chat: 1.0}, weight: 3, models: [{name: m}]}
  b: {provider: openai, base_url: \"http://127.0.0.1:2/v1\", capabilities: {chat: 1.0}, weight: 1, models: [{name: m}]}
routes: [{name: rest}]
";

fn target(backend: &str, latency: f64) -> TargetLive {
    TargetLive {
        backend: backend.to_owned(),
        model: "m".to_owned(),
        latency,
        first_token: latency / 2.0,
        cost: latency,
        success: 1.0,
        latency_term: 1.0,
        cost_term: 1.0,
        stability_term: 0.5,
        quality: 1.0,
        breaker_open: false,
        drained: false,
        breaker_ttl_ms: 30_000,
    }
}

/// `b` is gone from the first place, so that nothing can rely on the order.
fn live() -> LiveState {
    LiveState {
        policy_version: 1,
        sequence: 1,
        nodes: 1,
        targets: vec![target("gone", 9.0), target("b", 0.4), target("a", 0.2)],
        pools: vec![PoolLive {
            route: "rest".to_owned(),
            capability: "chat".to_owned(),
            weights: vec![(2, 0.2, -1.0), (1, 0.8, -2.0)],
        }],
    }
}

fn weights(live: &LiveState, age: f64) -> [f64; 2] {
    let policy = policy(DOCUMENT);
    let plans = Plans::new(&policy, Some((live, Duration::from_secs_f64(age))));
    let pool = plans.pool(PoolId(0));
    [pool[0].weight, pool[1].weight]
}

fn close(found: [f64; 2], first: f64) -> bool {
    (found[0] - first).abs() < 1e-6 && (found[0] + found[1] - 1.0).abs() < 1e-9
}

#[test]
fn without_a_live_state_the_policys_weights_are_the_plan() {
    let policy = policy(DOCUMENT);
    let plans = Plans::new(&policy, None);
    let pool = plans.pool(PoolId(0));
    assert_eq!([pool[0].weight, pool[1].weight], [0.75, 0.25]);
    assert!(pool.iter().all(|planned| planned.latency == 1.0 && !planned.fleet_open));
}

#[test]
fn targets_are_found_by_name_and_bring_their_numbers() {
    let policy = policy(DOCUMENT);
    let live = live();
    let plans = Plans::new(&policy, Some((&live, Duration::ZERO)));
    let [a, b] = plans.pool(PoolId(0)) else { panic!("two candidates") };
    assert_eq!((a.weight, a.latency, a.first_token, a.log_score), (0.2, 0.2, 0.1, -1.0));
    assert_eq!((b.weight, b.latency, b.first_token, b.log_score), (0.8, 0.4, 0.2, -2.0));
    assert_eq!((a.configured, b.configured), (3.0, 1.0));
    assert!(a.cost < b.cost);
    let latency = b.terms.iter().find(|term| term.name == "latency").unwrap();
    assert_eq!(latency.value, 0.5);
}

#[test]
fn a_target_or_pool_that_the_live_state_lacks_gets_its_configured_share() {
    let mut without_b = live();
    without_b.pools[0].weights.pop();
    assert!(close(weights(&without_b, 0.0), 0.2 / 0.45));
    let mut without_pool = live();
    without_pool.pools.clear();
    assert!(close(weights(&without_pool, 0.0), 0.75));
}

#[test]
fn a_breaker_verdict_is_believed_for_its_time_to_live() {
    let mut open = live();
    open.targets[2].breaker_open = true;
    open.pools[0].weights = vec![(2, 0.005, -9.0), (1, 0.995, 0.0)];
    let policy = policy(DOCUMENT);
    let plan = |age: u64| Plans::new(&policy, Some((&open, Duration::from_secs(age))));
    assert!(plan(29).pool(PoolId(0))[0].fleet_open);
    assert!(close(weights(&open, 29.0), 0.005));
    assert!(!plan(30).pool(PoolId(0))[0].fleet_open);
    assert!(close(weights(&open, 30.0), 0.75 / 1.745), "its configured share beside what the other has");
}

#[test]
fn shares_drift_back_to_the_policys_after_ten_minutes() {
    assert!(close(weights(&live(), 600.0), 0.2));
    let one_tau = weights(&live(), 1_200.0);
    assert!(close(one_tau, 0.2 + (0.75 - 0.2) * (1.0 - (-1.0_f64).exp())), "{one_tau:?}");
    assert!((weights(&live(), 1e6)[0] - 0.75).abs() < 1e-6);
}

#[test]
fn numbers_that_make_no_sense_do_no_harm() {
    let mut mad = live();
    for target in &mut mad.targets {
        target.latency = f64::NAN;
        target.first_token = -1.0;
        target.success = f64::INFINITY;
        target.stability_term = 0.0;
    }
    mad.pools[0].weights = vec![(2, f64::NAN, f64::NAN), (1, -3.0, 0.0), (77, 1.0, 0.0)];
    let policy = policy(DOCUMENT);
    let plans = Plans::new(&policy, Some((&mad, Duration::ZERO)));
    for planned in plans.pool(PoolId(0)) {
        assert!(planned.weight > 0.0 && planned.weight < 1.0, "{planned:?}");
        assert!(planned.cost.is_finite() && planned.cost > 0.0 && planned.first_token > 0.0, "{planned:?}");
    }
}
