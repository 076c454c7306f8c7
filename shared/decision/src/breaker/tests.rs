use std::time::Duration;

use proptest::prelude::*;

use super::*;

const SETTINGS: BreakerSettings = BreakerSettings {
    consecutive_failures: 5,
    failure_ratio: 0.5,
    minimum_calls: 10,
    open: Duration::from_secs(2),
    open_max: Duration::from_secs(60),
    probes: 3,
    ramp: Duration::from_secs(30),
    max_ejected: 0.5,
};
/// Jitter at its largest: periods are as long as they can be.
const CHANCE: f64 = 1.0;
const PROBE_MS: u64 = 5_000;

fn ending(outcome: Outcome, token: Option<ProbeToken>) -> Ending {
    Ending { outcome, token, retry_after_ms: None, chance: CHANCE }
}

fn no_window(_: u64) -> WindowCounts {
    WindowCounts::default()
}

/// Reports `times` outcomes of requests that were admitted while the breaker was closed.
fn report(breaker: &mut Breaker, now_ms: u64, outcome: Outcome, times: usize) {
    for _ in 0..times {
        breaker.on_outcome(now_ms, &ending(outcome, None), &SETTINGS, no_window);
    }
}

/// A breaker that opened at 0 and turns half-open at 2,000.
fn tripped() -> Breaker {
    let mut breaker = Breaker::default();
    report(&mut breaker, 0, Outcome::ServerError, 5);
    assert_eq!(breaker.state(0, &SETTINGS), State::Open { until_ms: 2_000 });
    breaker
}

fn probe(breaker: &mut Breaker, now_ms: u64) -> ProbeToken {
    match breaker.try_admit(now_ms, PROBE_MS, &SETTINGS) {
        Admission::Probe(token) => token,
        other => panic!("{other:?} in {breaker:?}"),
    }
}

fn end_probe(breaker: &mut Breaker, now_ms: u64, token: ProbeToken, outcome: Outcome) -> Option<Transition> {
    breaker.on_outcome(now_ms, &ending(outcome, Some(token)), &SETTINGS, no_window)
}

/// Lets three good probes through.
fn recover(breaker: &mut Breaker, now_ms: u64) {
    for _ in 0..SETTINGS.probes {
        let token = probe(breaker, now_ms);
        end_probe(breaker, now_ms, token, Outcome::Ok);
    }
    assert_eq!(breaker.state(now_ms, &SETTINGS), State::Ramp { since_ms: now_ms });
}

#[test]
fn five_hard_failures_in_a_row_open_it_and_a_good_answer_in_between_does_not_let_them() {
    let mut breaker = Breaker::default();
    report(&mut breaker, 0, Outcome::Reset, 4);
    report(&mut breaker, 0, Outcome::Ok, 1);
    report(&mut breaker, 0, Outcome::Reset, 4);
    assert_eq!(breaker.state(0, &SETTINGS), State::Closed);
    let tripped = breaker.on_outcome(0, &ending(Outcome::Reset, None), &SETTINGS, no_window);
    let to = State::Open { until_ms: 2_000 };
    assert_eq!(tripped, Some(Transition { from: State::Closed, to }));
    assert_eq!(breaker.try_admit(1_999, PROBE_MS, &SETTINGS), Admission::No);
}

#[test]
fn the_failure_ratio_counts_from_the_least_number_of_calls_on() {
    let failing = |calls, failures| {
        let mut breaker = Breaker::default();
        let window = |_| WindowCounts { calls, failures };
        breaker.on_outcome(0, &ending(Outcome::Overloaded, None), &SETTINGS, window);
        breaker.state(0, &SETTINGS) != State::Closed
    };
    assert!(!failing(9, 9));
    assert!(failing(10, 5));
    assert!(!failing(100, 49));
    assert!(failing(100, 50));
}

#[test]
fn a_target_with_few_calls_is_judged_by_its_last_twenty_within_two_minutes() {
    let mut breaker = Breaker::default();
    for call in 0..9 {
        report(&mut breaker, call * 11_000, Outcome::Truncated, 1);
    }
    assert_eq!(breaker.state(88_000, &SETTINGS), State::Closed, "nine calls are too few");
    report(&mut breaker, 99_000, Outcome::Truncated, 1);
    assert!(matches!(breaker.state(99_000, &SETTINGS), State::Open { .. }));

    let mut rare = Breaker::default();
    for call in 0..40 {
        report(&mut rare, call * 15_000, Outcome::Truncated, 1);
    }
    assert_eq!(rare.state(600_000, &SETTINGS), State::Closed, "never ten within two minutes");
}

/// RES-12
#[test]
fn what_clients_do_wrong_and_rate_limits_and_rejected_keys_never_move_it() {
    let mut breaker = Breaker::default();
    for outcome in [
        Outcome::ClientError,
        Outcome::ContentFiltered,
        Outcome::ClientCancelled,
        Outcome::DeadlineExceeded,
        Outcome::RateLimited,
        Outcome::CredentialRejected,
    ] {
        for now_ms in 0..200 {
            let window = |_| WindowCounts { calls: 100, failures: 100 };
            assert_eq!(breaker.on_outcome(now_ms, &ending(outcome, None), &SETTINGS, window), None);
        }
        assert_eq!(breaker.try_admit(200, PROBE_MS, &SETTINGS), Admission::Yes);
    }
    report(&mut breaker, 300, Outcome::ServerError, 4);
    report(&mut breaker, 300, Outcome::ClientError, 50);
    report(&mut breaker, 300, Outcome::ServerError, 1);
    assert!(matches!(breaker.state(300, &SETTINGS), State::Open { .. }), "nor do they count as good answers");
}

#[test]
fn half_open_it_lets_one_probe_through_at_a_time_and_after_three_good_ones_the_share_grows_back() {
    let mut breaker = tripped();
    for _ in 0..3 {
        let token = probe(&mut breaker, 2_000);
        assert_eq!(breaker.availability(2_000, &SETTINGS), Availability::Ejected);
        assert_eq!(breaker.try_admit(2_000, PROBE_MS, &SETTINGS), Admission::No);
        end_probe(&mut breaker, 2_000, token, Outcome::Ok);
    }
    assert_eq!(breaker.try_admit(2_000, PROBE_MS, &SETTINGS), Admission::Yes);
    assert_eq!(breaker.since_ms(), 2_000, "what was before its return counts no more");
    let factors =
        [0, 10_000, 20_000, 29_999, 30_000].map(|after| breaker.ramp_factor(2_000 + after, &SETTINGS));
    assert_eq!(factors[0], 0.1);
    assert!((factors[1] - 0.4).abs() < 1e-9 && (factors[2] - 0.7).abs() < 1e-9 && factors[3] < 1.0);
    assert_eq!(factors[4], 1.0);
    assert_eq!(breaker.state(32_000, &SETTINGS), State::Closed);
}

/// RES-06 (a)
#[test]
fn a_probe_whose_client_leaves_frees_the_slot() {
    let mut breaker = tripped();
    let token = probe(&mut breaker, 2_000);
    breaker.release_probe(token);
    let second = probe(&mut breaker, 2_000);
    end_probe(&mut breaker, 2_000, second, Outcome::ClientCancelled);
    recover(&mut breaker, 2_000);
}

/// RES-06 (b)
#[test]
fn a_probe_that_is_answered_400_shows_that_the_service_is_alive() {
    let mut breaker = tripped();
    for _ in 0..3 {
        let token = probe(&mut breaker, 2_000);
        end_probe(&mut breaker, 2_000, token, Outcome::ClientError);
    }
    assert_eq!(breaker.state(2_000, &SETTINGS), State::Ramp { since_ms: 2_000 });
}

/// RES-06 (c)
#[test]
fn a_probe_that_is_answered_401_says_nothing_and_the_next_may_go() {
    let mut breaker = tripped();
    let token = probe(&mut breaker, 2_000);
    assert_eq!(end_probe(&mut breaker, 2_100, token, Outcome::CredentialRejected), None);
    assert_eq!(breaker.state(2_100, &SETTINGS), State::HalfOpen);
    recover(&mut breaker, 2_100);
}

/// RES-06 (d)
#[test]
fn a_probe_that_is_never_heard_of_loses_its_slot_and_its_late_result_changes_nothing() {
    for late in [Outcome::Ok, Outcome::FirstTokenTimeout] {
        let mut breaker = tripped();
        let lost = probe(&mut breaker, 2_000);
        assert_eq!(breaker.try_admit(2_000 + PROBE_MS - 1, PROBE_MS, &SETTINGS), Admission::No);
        assert_eq!(end_probe(&mut breaker.clone(), 2_000 + PROBE_MS, lost, late), None, "too late");
        let next = probe(&mut breaker, 2_000 + PROBE_MS);
        assert_eq!(end_probe(&mut breaker, 2_001 + PROBE_MS, lost, late), None);
        breaker.release_probe(lost);
        assert_eq!(
            breaker.try_admit(2_001 + PROBE_MS, PROBE_MS, &SETTINGS),
            Admission::No,
            "the slot is the next one's"
        );
        end_probe(&mut breaker, 2_001 + PROBE_MS, next, Outcome::Ok);
        let token = probe(&mut breaker, 2_001 + PROBE_MS);
        end_probe(&mut breaker, 2_001 + PROBE_MS, token, Outcome::Ok);
        assert_eq!(breaker.state(2_001 + PROBE_MS, &SETTINGS), State::HalfOpen, "two good ones, not three");
        let token = probe(&mut breaker, 2_001 + PROBE_MS);
        end_probe(&mut breaker, 2_001 + PROBE_MS, token, Outcome::Ok);
        assert!(matches!(breaker.state(2_001 + PROBE_MS, &SETTINGS), State::Ramp { .. }));
    }
}

/// RES-06 (e)
#[test]
fn a_probe_whose_stream_breaks_off_opens_it_for_twice_as_long_and_then_it_recovers() {
    let mut breaker = tripped();
    let token = probe(&mut breaker, 2_000);
    end_probe(&mut breaker, 2_500, token, Outcome::Truncated);
    assert_eq!(breaker.state(2_500, &SETTINGS), State::Open { until_ms: 6_500 });
    recover(&mut breaker, 6_500);
}

#[test]
fn a_rate_limit_ends_the_probing_too_and_retry_after_is_honoured_within_reason() {
    let open_until = |retry_after_ms| {
        let mut breaker = tripped();
        let token = probe(&mut breaker, 2_000);
        let ending = Ending { retry_after_ms, chance: 0.0, ..ending(Outcome::RateLimited, Some(token)) };
        breaker.on_outcome(2_000, &ending, &SETTINGS, no_window);
        match breaker.state(2_000, &SETTINGS) {
            State::Open { until_ms } => until_ms - 2_000,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(open_until(None), 2_000, "4 s, jittered down to a half");
    assert_eq!(open_until(Some(500)), 2_000);
    assert_eq!(open_until(Some(7_000)), 7_000);
    assert_eq!(open_until(Some(86_400_000)), 300_000);
}

#[test]
fn stragglers_of_the_time_before_change_nothing() {
    let mut breaker = tripped();
    report(&mut breaker, 100, Outcome::Ok, 50);
    report(&mut breaker, 100, Outcome::ServerError, 50);
    assert_eq!(breaker.state(100, &SETTINGS), State::Open { until_ms: 2_000 });
    report(&mut breaker, 2_000, Outcome::Ok, 50);
    report(&mut breaker, 2_000, Outcome::ServerError, 50);
    assert_eq!(breaker.state(2_000, &SETTINGS), State::HalfOpen);
}

#[test]
fn open_periods_double_up_to_the_longest_and_are_forgiven_after_two_quiet_minutes() {
    let mut breaker = Breaker::default();
    let mut now_ms = 0;
    let mut periods = Vec::new();
    report(&mut breaker, now_ms, Outcome::ServerError, 5);
    for _ in 0..7 {
        let State::Open { until_ms } = breaker.state(now_ms, &SETTINGS) else { panic!("{breaker:?}") };
        periods.push((until_ms - now_ms) / 1_000);
        now_ms = until_ms;
        let token = probe(&mut breaker, now_ms);
        end_probe(&mut breaker, now_ms, token, Outcome::ServerError);
    }
    assert_eq!(periods, [2, 4, 8, 16, 32, 60, 60]);
    now_ms += 60_000;
    recover(&mut breaker, now_ms);
    now_ms += FORGIVEN_AFTER_MS + 1;
    report(&mut breaker, now_ms, Outcome::ServerError, 5);
    assert_eq!(breaker.state(now_ms, &SETTINGS), State::Open { until_ms: now_ms + 2_000 });
}

#[test]
fn while_the_share_grows_back_failures_count_from_the_return_on() {
    let mut breaker = tripped();
    recover(&mut breaker, 2_000);
    let mut asked_since = None;
    breaker.on_outcome(2_500, &ending(Outcome::Overloaded, None), &SETTINGS, |since| {
        asked_since = Some(since);
        WindowCounts { calls: 1, failures: 1 }
    });
    assert_eq!(asked_since, Some(2_000));
    assert!(matches!(breaker.state(2_500, &SETTINGS), State::Ramp { .. }));
    report(&mut breaker, 3_000, Outcome::ServerError, 5);
    assert_eq!(breaker.state(3_000, &SETTINGS), State::Open { until_ms: 7_000 });
}

#[derive(Debug, Clone)]
enum Step {
    Wait(u64),
    Send,
    End(usize, Outcome),
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u64..4_000).prop_map(Step::Wait),
        Just(Step::Send),
        (any::<usize>(), 0..Outcome::ALL.len())
            .prop_map(|(which, outcome)| Step::End(which, Outcome::ALL[outcome])),
        any::<usize>().prop_map(Step::Drop),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// Whatever happens to probes, once nothing more is heard of them and the service is well, it recovers.
    #[test]
    fn no_history_keeps_it_open_for_ever(steps in steps()) {
        let mut breaker = Breaker::default();
        let mut now_ms = 0;
        let mut sent: Vec<Option<ProbeToken>> = Vec::new();
        for step in steps {
            match step {
                Step::Wait(millis) => now_ms += millis,
                Step::Send => match breaker.try_admit(now_ms, PROBE_MS, &SETTINGS) {
                    Admission::Yes => sent.push(None),
                    Admission::Probe(token) => sent.push(Some(token)),
                    Admission::No => {}
                },
                Step::End(which, outcome) if !sent.is_empty() => {
                    let token = sent.swap_remove(which % sent.len());
                    breaker.on_outcome(now_ms, &ending(outcome, token), &SETTINGS, no_window);
                }
                Step::Drop(which) if !sent.is_empty() => {
                    if let Some(token) = sent.swap_remove(which % sent.len()) {
                        breaker.release_probe(token);
                    }
                }
                Step::End(..) | Step::Drop(_) => {}
            }
        }
        now_ms += 60_000 + PROBE_MS;
        if breaker.state(now_ms, &SETTINGS) == State::HalfOpen {
            let mut good = 0;
            while let Admission::Probe(token) = breaker.try_admit(now_ms, PROBE_MS, &SETTINGS) {
                end_probe(&mut breaker, now_ms, token, Outcome::Ok);
                good += 1;
            }
            prop_assert!(good <= SETTINGS.probes);
        }
        prop_assert_eq!(breaker.try_admit(now_ms, PROBE_MS, &SETTINGS), Admission::Yes);
    }
}
