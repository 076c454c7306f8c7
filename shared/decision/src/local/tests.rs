use super::*;
use crate::testing::planned;

fn plan(latency: f64, success: f64) -> Planned {
    let mut plan = planned(&[(1.0, latency)]).remove(0);
    plan.success = success;
    plan
}

fn slot(ok: u32, failed: u32, latency: f64) -> Slot {
    Slot { ok, failed, latency_sum_us: (f64::from(ok) * latency * 1e6) as u64 }
}

fn ratio(slots: &[(u64, Slot)], plan: &Planned, oldest_wait: f64) -> f64 {
    Recent::new(slots.iter().copied()).cost_ratio(plan, oldest_wait)
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 0.01 * expected
}

#[test]
fn without_experience_of_ones_own_the_fleet_is_believed() {
    assert_eq!(ratio(&[], &plan(0.2, 0.9), 0.0), 1.0);
    assert_eq!(ratio(&[(10, slot(50, 0, 2.0))], &plan(0.2, 0.9), 0.0), 1.0, "too old");
}

#[test]
fn ones_own_latency_is_blended_with_two_observations_of_the_fleets() {
    let found = ratio(&[(0, slot(4, 0, 2.0))], &plan(0.5, 1.0), 0.0);
    assert!(close(found, (4.0 * 2.0 + 2.0 * 0.5) / 6.0 / 0.5), "{found}");
}

#[test]
fn older_seconds_count_less_and_not_at_all_once_newer_ones_say_enough() {
    let plan = plan(0.2, 1.0);
    let new_and_old = ratio(&[(3, slot(8, 0, 0.2)), (0, slot(8, 0, 2.0))], &plan, 0.0);
    let old_and_new = ratio(&[(0, slot(8, 0, 0.2)), (3, slot(8, 0, 2.0))], &plan, 0.0);
    assert!(new_and_old > 1.5 * old_and_new, "{new_and_old} {old_and_new}");
    let busy = ratio(&[(5, slot(10_000, 0, 0.2)), (0, slot(40, 0, 2.0))], &plan, 0.0);
    assert!(close(busy, (32.0 * 2.0 + 2.0 * 0.2) / 34.0 / 0.2), "{busy}");
}

#[test]
fn a_request_that_waits_makes_the_target_look_slow_before_it_ends() {
    let plan = plan(0.5, 1.0);
    assert_eq!(ratio(&[], &plan, 1.9), 1.0, "within four times the usual");
    assert!(close(ratio(&[], &plan, 10.0), 5.0));
}

/// RES-14: what fails fast is not fast.
#[test]
fn failures_cost_seconds() {
    let plan = plan(0.2, 1.0);
    let failing = ratio(&[(0, Slot { ok: 1, failed: 9, latency_sum_us: 10_000 })], &plan, 0.0);
    assert!(failing > 20.0, "{failing}");
    let known = ratio(&[(0, slot(1, 9, 0.2))], &self::plan(0.2, 0.1), 0.0);
    assert!(known < 1.1, "the fleet knew it already: {known}");
}
