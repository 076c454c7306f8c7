use penstock_proto::admin::v1::{
    BackendTarget, ListBackendsResponse, ListNodesResponse, ListPolicyVersionsResponse, Node, PolicyVersion,
    PoolShare,
};
use penstock_proto::fleet::v1::{
    Attempt, BreakerState, Candidate, Decision, NodeHealth, NodeIdentity, TargetState, Term,
};

use super::*;

/// 2026-12-01 09:30:12 UTC.
const NOW: i64 = 1_796_117_412_000;

#[test]
fn policy_versions_are_listed_with_who_serves_them() {
    let version = PolicyVersion {
        version: 3,
        content_hash: "ba7816bf8f01cfea414140de5dae2223".to_owned(),
        author: "ann".to_owned(),
        created_unix_ms: NOW,
        restored_from: 1,
        stable: true,
        acked: 2,
        nacked: 1,
        ..PolicyVersion::default()
    };
    let earlier = PolicyVersion {
        version: 2,
        message: "加一个聊天服务".to_owned(),
        stable: false,
        restored_from: 0,
        nacked: 0,
        acked: 0,
        ..version.clone()
    };
    let text = policies::versions(&ListPolicyVersionsResponse {
        versions: vec![version, earlier],
        stable_version: 3,
    });
    let expected = "\
VERSION  STABLE  NODES  REFUSED BY  CREATED               AUTHOR  MESSAGE         CONTENT
3        *       2      1           2026-12-01 09:30:12Z  ann     (back to 1)     ba7816bf8f01
2                0      0           2026-12-01 09:30:12Z  ann     加一个聊天服务  ba7816bf8f01
";
    assert_eq!(text, expected);
}

#[test]
fn nodes_are_listed_with_what_they_serve() {
    let node = |id: &str, connected: bool| Node {
        identity: Some(NodeIdentity {
            id: id.to_owned(),
            zone: "zone-a".to_owned(),
            build: "0.1.0".to_owned(),
            address: "127.0.0.1:8080".to_owned(),
            ..NodeIdentity::default()
        }),
        connected,
        acked_version: 4,
        acked_unix_ms: NOW - 61_000,
        ack_latency_us: 3_420,
        last_report_unix_ms: NOW - 900,
        attempts_per_second: 120.25,
        ..Node::default()
    };
    let gone = Node {
        nacked_version: 5,
        health: Some(NodeHealth { from_disk: true, ..NodeHealth::default() }),
        ..node("p2", false)
    };
    let nodes = nodes::nodes(&ListNodesResponse { nodes: vec![node("p1", true), gone] }, NOW);
    let expected = "\
NODE  STATE      ZONE    VERSION   TAKEN    TOOK     REFUSED  CALLS/S  REPORT  BUILD  ADDRESS
p1    connected  zone-a  4         61s ago  3.42 ms  -        120.2    0s ago  0.1.0  127.0.0.1:8080
p2    gone       zone-a  4 (disk)  61s ago  3.42 ms  5        120.2    0s ago  0.1.0  127.0.0.1:8080
";
    assert_eq!(nodes, expected);
}

#[test]
fn backends_are_listed_with_share_and_breaker() {
    let target = |breaker: BreakerState, calls: f64| BackendTarget {
        state: Some(TargetState {
            backend: "chat-a".to_owned(),
            model: "large".to_owned(),
            latency_p50_seconds: 0.18,
            latency_p95_seconds: 2.5,
            in_flight: 3,
            quality: 0.874,
            breaker: breaker.into(),
            ..TargetState::default()
        }),
        pools: vec![PoolShare { route: "default".to_owned(), capability: "chat".to_owned(), weight: 0.62 }],
        calls_per_second: calls,
        success_rate: 0.985,
        cost_nanos: 12_300_000,
        currency: "USD".to_owned(),
        ..BackendTarget::default()
    };
    let mut idle = target(BreakerState::HalfOpen, 0.0);
    idle.pools.push(PoolShare { route: "beta".to_owned(), capability: "chat".to_owned(), weight: 1.0 });
    let response =
        ListBackendsResponse { targets: vec![target(BreakerState::Open, 12.0), idle], ..Default::default() };
    let expected = "\
BACKEND  MODEL  ZONE  SHARE                               BREAKER    CALLS/S  SUCCESS  P50     P95     FIRST TOKEN P95  IN FLIGHT  QUALITY  SPENT (1M)
chat-a   large  -     chat 62 %                           open       12.0     98.5 %   180 ms  2.50 s  -                3          0.87     0.0123 USD
chat-a   large  -     default/chat 62 %, beta/chat 100 %  half-open  0.0      -        180 ms  2.50 s  -                3          0.87     0.0123 USD
";
    assert_eq!(backends::backends(&response), expected);
}

fn candidate(backend: &str, load: f64, draws: u32, chosen: bool) -> Candidate {
    let term = |name: &str, value: f64, weight: f64| Term { name: name.to_owned(), value, weight };
    Candidate {
        backend: backend.to_owned(),
        model: "sim".to_owned(),
        weight: 0.5,
        score: 0.91,
        terms: vec![term("success", 0.99, 0.4), term("latency", 0.5, 0.3), term("zone", 1.0, 0.0)],
        chosen,
        draws,
        load,
        ..Candidate::default()
    }
}

#[test]
fn a_decision_is_explained_from_the_question_to_the_answer() {
    let excluded = Candidate { excluded: "breaker_open".to_owned(), ..candidate("code-c", 0.0, 0, false) };
    let attempt = |number: u32, backend: &str, outcome: &str, status: u32, first_token_us: u64| Attempt {
        number,
        backend: backend.to_owned(),
        model: "sim".to_owned(),
        outcome: outcome.to_owned(),
        status,
        started_after_us: u64::from(number) * 210,
        duration_us: 12_000,
        first_token_us,
        reused_connection: number == 2,
    };
    let record = Decision {
        id: "01KD".to_owned(),
        request_id: "01KR".to_owned(),
        node_id: "p1".to_owned(),
        unix_ms: NOW,
        policy: "default".to_owned(),
        policy_version: 4,
        route: "default".to_owned(),
        capability: "code".to_owned(),
        capability_confidence: 1.0,
        capability_source: "keyword".to_owned(),
        requested_model: "auto".to_owned(),
        protocol: "openai-chat".to_owned(),
        stream: true,
        candidates: vec![candidate("code-a", 0.31, 1, true), candidate("code-b", 0.52, 1, false), excluded],
        attempts: vec![attempt(1, "code-a", "reset", 0, 0), attempt(2, "code-b", "ok", 200, 9_000)],
        status: 200,
        duration_us: 25_000,
        kept: "sampled".to_owned(),
        preset: "quality".to_owned(),
        ..Decision::default()
    };
    let expected = "\
decision    01KD (kept because sampled)
request     01KR
when        2026-12-01 09:30:12Z on node p1
policy      default version 4
asked       openai-chat, model auto, streamed
route       default
capability  code (from keyword, confidence 1.00)
scoring     quality

candidates
     TARGET      WEIGHT  SCORE  SUCCESS ×0.4  LATENCY ×0.3  ZONE   DRAWN  LOAD J  EXCLUDED
  →  code-a/sim  0.500   0.910  0.990         0.500         1.000  1      0.310
     code-b/sim  0.500   0.910  0.990         0.500         1.000  1      0.520
     code-c/sim  -       -      0.990         0.500         1.000  0      -       breaker_open

pick        two draws by weight gave code-a/sim (J 0.310) and code-b/sim (J 0.520); code-a/sim has the lower load

attempts
  #  TARGET      OUTCOME  STATUS  STARTED AFTER  TOOK   FIRST TOKEN  CONNECTION
  1  code-a/sim  reset    -       0.21 ms        12 ms  -            new
  2  code-b/sim  ok       200     0.42 ms        12 ms  9.00 ms      reused

answer      200, after 25 ms
";
    assert_eq!(decision::decision(&record), expected);
}

#[test]
fn the_pick_is_told_as_it_happened() {
    let told = |candidates: Vec<Candidate>| {
        let record = Decision { candidates, error_code: "no_backend".to_owned(), ..Decision::default() };
        let text = decision::decision(&record);
        let line = text.lines().find(|line| line.starts_with("pick")).expect("a line");
        line.trim_start_matches("pick").trim().to_owned()
    };
    assert_eq!(told(vec![candidate("a", 0.3, 2, true)]), "both draws by weight gave a/sim (J 0.300)");
    assert_eq!(told(vec![candidate("a", 0.3, 1, true)]), "the draw by weight gave a/sim (J 0.300)");
    assert_eq!(told(vec![candidate("a", 0.0, 0, true)]), "a/sim without a draw: there was no other");
    assert_eq!(told(vec![candidate("a", 0.0, 0, false)]), "none: no candidate could be used");
}
