use std::time::Duration;

use penstock_proto::fleet::v1::OutcomeCount;

use super::*;

struct World {
    evidence: Evidence,
    start: Instant,
    second: u64,
}

fn policy(backends: &[&str]) -> Arc<Policy> {
    let mut document =
        "version: 1\ncapabilities: {chat: {default: true}}\nroutes: [{name: r}]\nbackends:\n".to_owned();
    for backend in backends {
        document += &format!(
            "  {backend}: {{provider: openai, base_url: 'http://127.0.0.1:1/v1', capabilities: [chat], models: [{{name: m}}]}}\n"
        );
    }
    let loaded = penstock_model::load(&document);
    Arc::new(loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.problems)))
}

impl World {
    fn new(backends: &[&str]) -> Self {
        let start = Instant::now();
        let mut evidence = Evidence::new(start);
        evidence.set_policy(&policy(backends), start);
        Self { evidence, start, second: 0 }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_secs(self.second)
    }

    fn set_policy(&mut self, backends: &[&str]) {
        let now = self.now();
        self.evidence.set_policy(&policy(backends), now);
    }

    /// One second in which one node reports `rows`.
    fn second(&mut self, rows: Vec<Row>) -> LiveState {
        self.second += 1;
        let now = self.now();
        self.evidence.merge(&NodeReport { node_id: "n".to_owned(), rows, ..NodeReport::default() }, now);
        self.evidence.tick(1, 1, &Drained::default(), now).unwrap()
    }

    fn success(&mut self, rows: Vec<Row>, backend: &str) -> f64 {
        let live = self.second(rows);
        live.targets.iter().find(|target| target.backend == backend).unwrap().success
    }
}

fn row(backend: &str, ok: u64, failures: u64, outcome: &str) -> Row {
    let mut sketch = Sketch::default();
    (0..ok).for_each(|_| sketch.record_us(200_000));
    Row {
        backend: backend.to_owned(),
        model: "m".to_owned(),
        route: "r".to_owned(),
        capability: "chat".to_owned(),
        attempts: ok + failures,
        ok,
        failures: vec![OutcomeCount { outcome: outcome.to_owned(), count: failures }],
        latency_sum_us: ok * 200_000,
        latency_square_sum_ms2: ok as f64 * 40_000.0,
        latency: Some(wire::Sketch { gaps_and_counts: sketch.to_wire() }),
        ..Row::default()
    }
}

fn good(backend: &str, ok: u64) -> Row {
    row(backend, ok, 0, "server_error")
}

/// MET-06: 10,000 failures, then success: forgotten within two windows.
#[test]
fn a_bad_time_long_ago_is_forgotten() {
    let mut world = World::new(&["a", "b"]);
    let bad = world.success(vec![row("a", 0, 10_000, "server_error")], "a");
    assert!(bad < 0.1, "{bad}");
    for _ in 0..120 {
        world.second(vec![good("a", 10)]);
    }
    assert!(world.success(vec![good("a", 10)], "a") > 0.97);
    let status = world.evidence.status("a", "m").unwrap();
    assert_eq!((status.minute_calls, status.minute_failures), (600, 0));
}

/// MET-06: a million successes do not hide a failure now.
#[test]
fn a_long_good_history_hides_no_failure() {
    let mut world = World::new(&["a", "b"]);
    for _ in 0..100 {
        world.second(vec![good("a", 10_000)]);
    }
    for _ in 0..9 {
        world.second(vec![row("a", 0, 100, "connect_error")]);
    }
    let success = world.success(vec![row("a", 0, 100, "connect_error")], "a");
    assert!(success < 0.2, "{success}: within one window");
}

/// MET-06: 85 % rate limited is no failure of the target, but the score shows it.
#[test]
fn rate_limits_lower_the_score_and_are_no_failures() {
    let mut world = World::new(&["a", "b"]);
    let mut success = 1.0;
    for _ in 0..20 {
        success = world.success(vec![row("a", 15, 85, "rate_limited")], "a");
    }
    assert!(success < 0.3, "{success}");
    assert_eq!(world.evidence.status("a", "m").unwrap().minute_failures, 0);
}

/// MET-06: with few calls the success rate stays near what is assumed of everybody.
#[test]
fn few_calls_say_little() {
    let mut world = World::new(&["a", "b"]);
    let success = world.success(vec![row("a", 0, 1, "server_error")], "a");
    assert!(success > 0.7, "{success}");
}

#[test]
fn client_errors_and_unknown_outcomes_count_for_nothing() {
    let mut world = World::new(&["a", "b"]);
    let rows = vec![row("a", 0, 1000, "client_error"), row("a", 0, 1000, "of_a_newer_build")];
    let success = world.success(rows, "a");
    assert!((success - 0.95).abs() < 1e-9, "{success}");
    assert_eq!(world.evidence.used("a", "m", world.now()).attempts, 2000);
}

#[test]
fn quantiles_come_from_the_sketches_and_a_broken_one_costs_only_itself() {
    let mut world = World::new(&["a"]);
    let broken = Row { latency: Some(wire::Sketch { gaps_and_counts: vec![1] }), ..good("a", 5) };
    world.second(vec![good("a", 100), broken]);
    let status = world.evidence.status("a", "m").unwrap();
    assert!((status.latency_p95.unwrap() - 0.2).abs() < 0.005, "{status:?}");
    assert_eq!(status.recent_calls, 105);
}

#[test]
fn evidence_outlives_a_change_of_policy_by_name() {
    let mut world = World::new(&["a", "b"]);
    for _ in 0..20 {
        world.second(vec![row("b", 0, 100, "server_error"), good("a", 100)]);
    }
    world.set_policy(&["aa", "b", "c"]);
    let success = world.success(vec![], "b");
    assert!(success < 0.2, "{success}");
    assert_eq!(world.evidence.used("b", "m", world.now()).attempts, 2000);
    assert_eq!(world.evidence.used("a", "m", world.now()), Used::default());
    assert_eq!(world.evidence.status("a", "m"), None);
    assert_eq!(world.evidence.used("c", "m", world.now()).attempts, 0);
}

#[test]
fn rows_of_targets_that_the_policy_lacks_are_left_out() {
    let mut world = World::new(&["a"]);
    let live = world.second(vec![good("gone", 10), good("a", 1)]);
    assert_eq!(live.targets.len(), 1);
    let mut before = Evidence::new(Instant::now());
    before.merge(&NodeReport { rows: vec![good("a", 1)], ..NodeReport::default() }, Instant::now());
    assert_eq!(before.tick(1, 1, &Drained::default(), Instant::now()), None);
}
