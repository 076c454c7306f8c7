use std::time::Duration;

use super::*;

const BREAKER: BreakerSettings = BreakerSettings {
    consecutive_failures: 5,
    failure_ratio: 0.5,
    minimum_calls: 10,
    open: Duration::from_secs(2),
    open_max: Duration::from_secs(60),
    probes: 3,
    ramp: Duration::from_secs(10),
    max_ejected: 0.5,
};

/// A quiet tick.
fn signs(now: f64) -> Signs {
    Signs {
        now,
        answers: Decayed::default(),
        failed: 0.0,
        slow_answers: false,
        slowness: Some(1.0),
        peers: Some(1.0),
        gauges: Gauges::default(),
        windows: [Counts::default(); 4],
    }
}

fn answers(now: f64, ok: f64, failed: f64) -> Signs {
    Signs { answers: Decayed { num: 0.2 * ok, den: ok }, failed, ..signs(now) }
}

fn failing(now: f64, calls: u64, failures: u64) -> Signs {
    Signs { windows: [Counts { calls, failures }; 4], ..signs(now) }
}

fn phase_after(signs: &Signs) -> Phase {
    let mut health = Health::default();
    health.tick(signs, &BREAKER);
    health.phase()
}

/// Out since second 0.
fn out() -> Health {
    let mut health = Health::default();
    health.tick(&failing(0.0, 40, 40), &BREAKER);
    assert_eq!(health.phase(), Phase::Open);
    health
}

#[test]
fn it_opens_when_the_failure_rate_is_too_high_beyond_doubt() {
    assert_eq!(phase_after(&failing(0.0, 9, 9)), Phase::Closed, "fewer than the least number of calls");
    assert_eq!(phase_after(&failing(0.0, 10, 10)), Phase::Open);
    assert_eq!(phase_after(&failing(0.0, 20, 12)), Phase::Closed, "0.6 of 20 may be 0.4");
    assert_eq!(phase_after(&failing(0.0, 200, 120)), Phase::Open, "0.6 of 200 may not");
}

#[test]
fn any_window_may_decide() {
    let mut signs = failing(0.0, 0, 0);
    signs.windows[3] = Counts { calls: 30, failures: 29 };
    assert_eq!(phase_after(&signs), Phase::Open);
}

#[test]
fn enough_nodes_whose_breakers_are_open_decide_while_there_are_failures() {
    let nodes = |using, open, failures| {
        let gauges = Gauges { nodes_using: using, nodes_open: open, ..Gauges::default() };
        phase_after(&Signs { gauges, ..failing(0.0, 4, failures) })
    };
    assert_eq!(nodes(10, 2, 4), Phase::Closed, "two may have trouble of their own");
    assert_eq!(nodes(10, 3, 4), Phase::Open);
    assert_eq!(nodes(100, 20, 4), Phase::Closed, "less than 30 %");
    assert_eq!(nodes(1, 1, 4), Phase::Open, "all there are");
    assert_eq!(nodes(10, 10, 0), Phase::Closed, "they have not noticed the recovery yet");
}

#[test]
fn slow_is_several_times_slower_than_it_was_and_than_any_peer() {
    let slow = |slowness, peers| phase_after(&Signs { slowness, peers, ..signs(0.0) });
    assert_eq!(slow(Some(2.4), Some(1.0)), Phase::Closed);
    assert_eq!(slow(Some(2.6), Some(1.0)), Phase::Slow);
    assert_eq!(slow(Some(5.0), Some(2.5)), Phase::Closed, "its pool is crowded");
    assert_eq!(slow(Some(2.6), Some(0.5)), Phase::Slow, "a peer that is faster than normal is normal");
    assert_eq!(slow(Some(9.0), None), Phase::Closed, "nobody to compare it with, and nobody to take over");
    assert_eq!(slow(None, Some(1.0)), Phase::Closed, "not known for long enough");
}

#[test]
fn good_answers_bring_it_back_and_its_share_grows() {
    let mut health = out();
    assert_eq!(health.share(1.0, &BREAKER), Share::Trickle(1.0));
    assert_eq!(health.tick(&answers(1.0, 2.0, 0.0), &BREAKER), None);
    assert_eq!((health.phase(), health.share(1.0, &BREAKER)), (Phase::HalfOpen, Share::Trickle(9.0)));
    let came_back = health.tick(&answers(2.0, 1.0, 0.0), &BREAKER);
    assert_eq!(came_back.map(|good| good.den), Some(3.0));
    assert_eq!((health.phase(), health.share(2.0, &BREAKER)), (Phase::Ramp, Share::Part(0.1)));
    assert_eq!(health.share(7.0, &BREAKER), Share::Part(0.55));
    health.tick(&signs(12.0), &BREAKER);
    assert_eq!((health.phase(), health.share(12.0, &BREAKER)), (Phase::Closed, Share::Part(1.0)));
}

#[test]
fn failures_and_slow_answers_undo_good_ones() {
    let mut health = out();
    health.tick(&answers(1.0, 2.0, 0.0), &BREAKER);
    health.tick(&answers(2.0, 1.0, 1.0), &BREAKER);
    assert_eq!(health.phase(), Phase::HalfOpen, "two and one, less two");
    health.tick(&answers(3.0, 1.0, 9.0), &BREAKER);
    assert_eq!(health.phase(), Phase::Open);
    health.tick(&Signs { slow_answers: true, ..answers(4.0, 50.0, 0.0) }, &BREAKER);
    assert_eq!(health.phase(), Phase::Open);
    for second in 5..7 {
        health.tick(&answers(f64::from(second), 10.0, 90.0), &BREAKER);
        assert_eq!(health.phase(), Phase::Open, "ten good ones among ninety failures are no recovery");
    }
}

#[test]
fn while_its_share_grows_it_can_fail_again() {
    let mut health = out();
    health.tick(&answers(1.0, 3.0, 0.0), &BREAKER);
    health.tick(&failing(2.0, 20, 20), &BREAKER);
    assert_eq!(health.phase(), Phase::Open);
}

#[test]
fn a_target_that_is_slow_again_and_again_is_left_to_the_weights() {
    let slow = |now| Signs { slowness: Some(5.0), ..signs(now) };
    let mut health = Health::default();
    for spell in 0..3 {
        let now = f64::from(spell) * 15.0;
        health.tick(&slow(now), &BREAKER);
        assert_eq!(health.phase(), Phase::Slow, "spell {spell}");
        health.tick(&answers(now + 2.0, 3.0, 0.0), &BREAKER);
    }
    health.tick(&slow(40.0), &BREAKER);
    assert_eq!(health.phase(), Phase::Ramp);
    health.tick(&slow(45.0), &BREAKER);
    health.tick(&failing(46.0, 20, 20), &BREAKER);
    assert_eq!(health.phase(), Phase::Open, "failing is another matter");
    health.tick(&answers(47.0, 3.0, 0.0), &BREAKER);
    health.tick(&slow(400.0), &BREAKER);
    assert_eq!(health.phase(), Phase::Slow, "five minutes later it is judged anew");
}
