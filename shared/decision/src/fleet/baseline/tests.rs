use super::*;

/// A second in which `rate` requests came and were answered after `latency`.
fn second(latency: f64, rate: f64) -> Seen {
    let waiting = (latency * rate).round();
    Seen {
        latency: Some(latency),
        first_token: Some(latency),
        smoothed_latency: Some(latency),
        started: Some((rate, 1.0)),
        gauges: Gauges { waiting: waiting as u64, oldest_wait: 2.0 * latency, ..Gauges::default() },
    }
}

fn live(baseline: &mut Baseline, seconds: u32, seen: &Seen, out: bool) {
    for _ in 0..seconds {
        baseline.follow_waiting(seen);
        baseline.learn(seen, 1.0, out);
    }
}

fn known() -> Baseline {
    let mut baseline = Baseline::default();
    live(&mut baseline, 60, &second(0.5, 20.0), false);
    baseline
}

fn slowness(baseline: &mut Baseline, seen: &Seen) -> f64 {
    baseline.follow_waiting(seen);
    baseline.slowness(seen).expect("the baseline stands")
}

#[test]
fn nothing_is_slow_before_the_baseline_stands() {
    let mut young = Baseline::default();
    live(&mut young, 2, &second(0.5, 20.0), false);
    assert_eq!(young.slowness(&second(5.0, 20.0)), None);
    let mut slow = Baseline::default();
    live(&mut slow, 40, &second(10.0, 20.0), false);
    assert_eq!(slow.slowness(&second(90.0, 20.0)), None, "answers of ten seconds take longer to get to know");
}

#[test]
fn slowness_is_latency_over_the_baseline() {
    let mut baseline = known();
    assert!((slowness(&mut baseline, &second(0.5, 20.0)) - 1.0).abs() < 0.05);
    assert!((slowness(&mut baseline, &second(2.0, 20.0)) - 4.0).abs() < 0.2);
}

#[test]
fn milliseconds_do_not_make_a_target_slow() {
    let mut fast = Baseline::default();
    live(&mut fast, 60, &second(0.005, 20.0), false);
    assert_eq!(slowness(&mut fast, &second(0.05, 20.0)), 1.0);
    assert!(slowness(&mut fast, &second(0.5, 20.0)) > 10.0);
}

#[test]
fn answers_that_never_come_show_in_the_requests_that_wait_for_them() {
    let mut baseline = known();
    let mut hanging = Seen { latency: None, first_token: None, ..second(0.5, 20.0) };
    let mut seen = Vec::new();
    for second in 1..4 {
        hanging.gauges =
            Gauges { waiting: 10 + 20 * second, oldest_wait: second as f64, ..Gauges::default() };
        seen.push(slowness(&mut baseline, &hanging));
    }
    assert!(seen[0] < 2.1 && seen[1] > 2.5 && seen[2] > 4.0, "{seen:?}");
    assert!(baseline.stalled_latency(&hanging).expect("it stalls") > 2.0);
}

#[test]
fn a_single_request_that_takes_for_ever_is_no_stall() {
    let mut baseline = known();
    let mut odd = second(0.5, 20.0);
    odd.gauges.oldest_wait = 60.0;
    assert!(slowness(&mut baseline, &odd) < 1.5);
    assert_eq!(baseline.stalled_latency(&odd), None);
}

#[test]
fn requests_that_pile_up_but_are_not_overdue_are_no_stall() {
    let mut baseline = known();
    let mut surge = second(0.5, 20.0);
    surge.started = Some((200.0, 1.0));
    surge.gauges = Gauges { waiting: 100, oldest_wait: 0.6, ..Gauges::default() };
    assert!(slowness(&mut baseline, &surge) < 1.5);
}

#[test]
fn a_second_without_reports_changes_nothing_about_who_waits() {
    let mut baseline = known();
    let silent = Seen { started: None, ..second(0.5, 20.0) };
    for _ in 0..20 {
        assert!(slowness(&mut baseline, &silent) < 1.1);
    }
}

#[test]
fn a_spell_of_slowness_hardly_moves_the_baseline_but_lasting_slowness_becomes_normal() {
    let slow = second(5.0, 20.0);
    let mut baseline = known();
    live(&mut baseline, 10, &slow, true);
    assert!(slowness(&mut baseline, &slow) > 5.0);
    live(&mut baseline, 900, &slow, true);
    assert!(slowness(&mut baseline, &slow) < 2.5);
}
