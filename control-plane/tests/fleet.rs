//! Nodes on their streams: snapshots, answers, reports.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use penstock_control_plane::StoreConfig;
use penstock_control_plane::store::{Embedded, Store, Txn, keys};
use penstock_decision::classifier::{Examples, Model, Settings, checksum};
use penstock_proto::admin::v1::{
    GetDecisionRequest, ListBackendsRequest, ListDecisionsRequest, ListNodesRequest, Node as NodeState,
    RollbackPolicyRequest,
};
use penstock_proto::fleet::v1::{BreakerState, Decision, Hello, LiveState, NodeReport, OutcomeCount, Row};
use support::control::{Control, config, document};
use support::node::Node;
use tonic::Code;

fn url(control: &Control) -> String {
    format!("http://{}", control.running.grpc_addr())
}

async fn nodes(control: &Control) -> Vec<NodeState> {
    control.state.clone().list_nodes(ListNodesRequest::default()).await.unwrap().into_inner().nodes
}

/// The state of one node, once it is as wanted.
async fn node_state(control: &Control, id: &str, wanted: impl Fn(&NodeState) -> bool) -> NodeState {
    support::eventually("the node's state", async || {
        let found = nodes(control).await.into_iter().find(|node| node.identity.as_ref().unwrap().id == id);
        found.filter(&wanted)
    })
    .await
}

fn row(attempts: u64, ok: u64) -> Row {
    Row {
        backend: "a".to_owned(),
        model: "m".to_owned(),
        route: "everything".to_owned(),
        capability: "chat".to_owned(),
        attempts,
        ok,
        latency_sum_us: attempts * 1_000_000,
        latency_square_sum_ms2: attempts as f64 * 1e6,
        ..Row::default()
    }
}

fn report(sequence: u64, rows: Vec<Row>) -> NodeReport {
    NodeReport {
        node_id: "n1".to_owned(),
        incarnation: "i".to_owned(),
        sequence,
        interval_ms: 1000,
        rows,
        ..NodeReport::default()
    }
}

#[tokio::test]
async fn a_node_gets_the_current_snapshot_and_every_change_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    let first = node.snapshot().await;
    assert_eq!((first.version, first.policy.as_str()), (1, "default"));
    assert_eq!(first.document, document("one").into_bytes());
    assert_eq!(first.content_hash, penstock_model::content_hash(&document("one")));
    assert!(!first.lineage.is_empty());
    node.ack(&first).await;
    control.version_of(&document("two")).await;
    let second = node.snapshot().await;
    assert_eq!((second.version, &second.lineage), (2, &first.lineage));
    assert_ne!(second.nonce, first.nonce);
    node.ack(&second).await;
    let back = RollbackPolicyRequest { to_version: 1, ..RollbackPolicyRequest::default() };
    control.policy.clone().rollback_policy(back).await.unwrap();
    let third = node.snapshot().await;
    assert_eq!((third.version, &third.content_hash), (3, &first.content_hash));
}

#[tokio::test]
async fn a_node_that_connects_before_the_first_version_gets_it_when_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    node_state(&control, "n1", |node| node.connected).await;
    control.version_of(&document("one")).await;
    assert_eq!(node.snapshot().await.version, 1);
}

#[tokio::test]
async fn a_node_that_holds_the_current_version_is_not_sent_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let held = Node::connect(&url(&control), "n1").await.snapshot().await;
    let hello = Hello {
        have_version: held.version,
        have_hash: held.content_hash.clone(),
        have_lineage: held.lineage.clone(),
        ..Hello::default()
    };
    let mut node = Node::connect_with(&url(&control), "n1", hello.clone()).await;
    node.live().await;
    node.live().await;
    assert_eq!(node_state(&control, "n1", |node| node.connected).await.acked_version, 1);
    // The same number from another store is another version.
    let hello = Hello { have_lineage: "another".to_owned(), ..hello };
    let mut node = Node::connect_with(&url(&control), "n2", hello).await;
    assert_eq!(node.snapshot().await.version, 1);
}

#[tokio::test]
async fn who_serves_and_who_refused_a_version_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut takes = Node::connect(&url(&control), "takes").await;
    let mut refuses = Node::connect(&url(&control), "refuses").await;
    for node in [&mut takes, &mut refuses] {
        let snapshot = node.snapshot().await;
        node.ack(&snapshot).await;
    }
    node_state(&control, "refuses", |node| node.acked_version == 1).await;
    control.version_of(&document("two")).await;
    let snapshot = takes.snapshot().await;
    takes.ack(&snapshot).await;
    let snapshot = refuses.snapshot().await;
    refuses.nack(&snapshot, "/routes/0/condition", "unknown name `hat`").await;
    let served = node_state(&control, "takes", |node| node.acked_version == 2).await;
    assert!(served.ack_latency_us > 0 && served.nacked_version == 0);
    assert_eq!(served.acked_hash, snapshot.content_hash);
    let refused = node_state(&control, "refuses", |node| node.nacked_version == 2).await;
    assert_eq!(refused.acked_version, 1, "it serves on with what it had");
    assert_eq!(refused.nack_problems[0].path, "/routes/0/condition");
    let versions = control.versions().await;
    let counts: Vec<_> = versions.iter().map(|v| (v.version, v.acked, v.nacked)).collect();
    assert_eq!(counts, [(2, 1, 1), (1, 1, 0)]);
    drop(takes);
    node_state(&control, "takes", |node| !node.connected).await;
    assert_eq!(control.versions().await[0].acked, 0, "only connected nodes count");
}

/// CP-04: a version that does not validate gets into the store past the API; the later good change is served.
#[tokio::test]
async fn a_bad_version_written_past_the_api_is_refused_by_name_and_the_next_good_one_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let control = Control::embedded(&folder).await;
    control.version_of(&document("good")).await;
    control.shutdown().await;
    let store = Embedded::open(path).await.unwrap();
    let record: serde_json::Value =
        serde_json::from_slice(&store.get(&keys::version("default", 1)).await.unwrap().unwrap().value)
            .unwrap();
    let bad = "version: 1\nroutes: [{name: r, match: {paths: ['/x']}, weird: 1}]\n";
    let mut bad_record = record.clone();
    bad_record["version"] = 2.into();
    bad_record["document"] = bad.into();
    bad_record["content_hash"] = penstock_model::content_hash(bad).into();
    let head = serde_json::json!({"stable": 2, "content_hash": penstock_model::content_hash(bad)});
    let txn = Txn::default().put(keys::version("default", 2), bad_record.to_string());
    store.commit(txn.put(keys::head("default"), head.to_string())).await.unwrap();
    drop(store);

    let control = Control::embedded(&folder).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    let pushed = node.snapshot().await;
    assert_eq!((pushed.version, pushed.document.as_slice()), (2, bad.as_bytes()));
    let problems = penstock_model::load(bad).problems;
    node.nack(&pushed, &problems[0].path, &problems[0].message).await;
    let refused = node_state(&control, "n1", |node| node.nacked_version == 2).await;
    assert_eq!(refused.nack_problems[0].path, problems[0].path);
    assert_eq!(control.version_of(&document("good again")).await, 3);
    assert_eq!(node.snapshot().await.version, 3);
}

#[tokio::test]
async fn a_slow_node_gets_the_newest_version_and_delays_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut slow = Node::connect(&url(&control), "slow").await;
    let mut fast = Node::connect(&url(&control), "fast").await;
    assert_eq!(fast.snapshot().await.version, 1);
    let filler = "x".repeat(700 << 10);
    for version in 2..=12 {
        control.version_of(&format!("{}# {version} {filler}\n", document("big"))).await;
        while fast.snapshot().await.version != version {}
    }
    // What was on its way may be old; then comes the newest, not all eleven.
    let mut received = Vec::new();
    while received.last() != Some(&12) {
        received.push(slow.snapshot().await.version);
    }
    assert!(received.is_sorted() && received.len() < 12, "{received:?}");
}

#[tokio::test]
async fn live_states_come_every_second_with_growing_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    node.snapshot().await;
    let first = node.live().await;
    let second = node.live().await;
    assert_eq!((first.policy_version, second.policy_version), (1, 1));
    assert!(second.sequence > first.sequence);
    let apart = second.computed_unix_ms - first.computed_unix_ms;
    assert!((500..60_000).contains(&apart), "{apart} ms apart");
}

/// MET-05: what is sent again counts once.
#[tokio::test]
async fn a_report_that_is_sent_twice_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    node.snapshot().await;
    node.live().await;
    let mut reports = node.reports().await;
    assert_eq!(reports.send(report(1, vec![row(10, 9)])).await, 1);
    assert_eq!(reports.send(report(1, vec![row(10, 9)])).await, 1);
    assert_eq!(reports.send(report(2, vec![row(20, 20)])).await, 2);
    drop(reports);
    // The connection broke before the acks came: the node sends all of it again.
    let mut reports = node.reports().await;
    assert_eq!(reports.send(report(1, vec![row(10, 9)])).await, 2);
    assert_eq!(reports.send(report(2, vec![row(20, 20)])).await, 2);
    let target = support::eventually("the scores", async || {
        let request = ListBackendsRequest::default();
        let backends = control.state.clone().list_backends(request).await.unwrap().into_inner();
        let found = backends.targets.into_iter().find(|target| target.state.as_ref().unwrap().backend == "a");
        found.filter(|target| target.calls_per_second > 0.0)
    })
    .await;
    assert!((target.calls_per_second * 60.0 - 30.0).abs() < 1e-6, "{}", target.calls_per_second);
    assert_eq!(
        target.state.unwrap().recent_calls,
        29,
        "the attempt that did not end well or badly is no call"
    );
    let metrics = support::http::get(control.running.http_addr(), "/metrics").await.body;
    assert!(metrics.contains("penstock_reports_total 2"), "{metrics}");
    assert!(metrics.contains("penstock_reports_duplicate_total 3"), "{metrics}");
}

#[tokio::test]
async fn a_failing_target_loses_its_share_and_operators_see_why() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    node.snapshot().await;
    let share = |live: &LiveState, backend: &str| {
        let target = live.targets.iter().position(|target| target.backend == backend).unwrap();
        let pool = &live.pools[0];
        assert!((pool.targets.iter().map(|weighted| weighted.weight).sum::<f64>() - 1.0).abs() < 1e-9);
        pool.targets.iter().find(|weighted| weighted.target as usize == target).unwrap().weight
    };
    let first = node.live().await;
    assert!((share(&first, "a") - 0.5).abs() < 0.01, "nothing is known yet");
    let failed = |backend: &str, ok, failed| Row {
        backend: backend.to_owned(),
        failures: vec![OutcomeCount { outcome: "server_error".to_owned(), count: failed }],
        ..row(ok + failed, ok)
    };
    let mut reports = node.reports().await;
    let mut last = first;
    for sequence in 1.. {
        reports.send(report(sequence, vec![failed("a", 0, 100), failed("b", 100, 0)])).await;
        last = node.live().await;
        let target = last.targets.iter().find(|target| target.backend == "a").unwrap();
        if target.breaker() == BreakerState::Open {
            break;
        }
        assert!(sequence < 20, "{target:?}");
    }
    assert!(share(&last, "a") < 0.05, "{last:?}");
    assert!(share(&last, "b") > 0.95);
    assert_eq!(last.nodes, 1);
    let backends =
        control.state.clone().list_backends(ListBackendsRequest::default()).await.unwrap().into_inner();
    let (a, b) = (&backends.targets[0], &backends.targets[1]);
    assert_eq!((a.success_rate, b.success_rate), (0.0, 1.0));
    assert_eq!((a.provider.as_str(), &a.capabilities), ("openai", &vec!["chat".to_owned()]));
    assert_eq!((a.pools[0].route.as_str(), a.pools[0].capability.as_str()), ("everything", "chat"));
    let metrics = support::http::get(control.running.http_addr(), "/metrics").await.body;
    let open = "penstock_breaker_state{penstock_backend=\"a\",gen_ai_request_model=\"m\"} 3.0";
    assert!(metrics.contains(open), "{metrics}");
    assert!(metrics.contains("penstock_scoring_duration_seconds_count"), "{metrics}");
}

#[tokio::test]
async fn decisions_are_found_by_either_id() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    let decision = |number: u32, error_code: &str| Decision {
        id: format!("d{number}"),
        request_id: format!("r{number}"),
        error_code: error_code.to_owned(),
        ..Decision::default()
    };
    let sent = NodeReport { decisions: vec![decision(1, ""), decision(2, "no_target")], ..report(1, vec![]) };
    node.reports().await.send(sent).await;
    let get = async |id: &str| {
        let request = GetDecisionRequest { id: id.to_owned() };
        control.state.clone().get_decision(request).await.map(|found| found.into_inner().decision.unwrap().id)
    };
    assert_eq!(get("d1").await.unwrap(), "d1");
    assert_eq!(get("r2").await.unwrap(), "d2");
    let missing = get("d3").await.unwrap_err();
    assert_eq!((missing.code(), support::control::code(&missing)), (Code::NotFound, "decision_not_found"));
    let failed = ListDecisionsRequest { failed_only: true, ..ListDecisionsRequest::default() };
    let failed = control.state.clone().list_decisions(failed).await.unwrap().into_inner().decisions;
    assert_eq!(failed.iter().map(|decision| decision.id.as_str()).collect::<Vec<_>>(), ["d2"]);
}

#[tokio::test]
async fn a_node_that_does_not_say_who_it_is_or_wants_another_policy_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let nameless = Node::connect(&url(&control), "").await.next().await.unwrap_err();
    assert_eq!(nameless.code(), Code::InvalidArgument);
    let hello = Hello { policy: "other".to_owned(), ..Hello::default() };
    let other = Node::connect_with(&url(&control), "n1", hello).await.next().await.unwrap_err();
    assert_eq!(other.code(), Code::FailedPrecondition);
    assert!(other.message().contains("--policy-name default"), "{}", other.message());
    assert!(nodes(&control).await.is_empty());
}

#[tokio::test]
async fn shutting_down_ends_the_streams_and_frees_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    let control = Control::start(config(StoreConfig::Embedded(path.clone()))).await;
    control.version_of(&document("one")).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    node.snapshot().await;
    let started = std::time::Instant::now();
    control.shutdown().await;
    assert!(started.elapsed() < std::time::Duration::from_secs(4), "{:?}", started.elapsed());
    let end = loop {
        if let Err(end) = node.next().await {
            break end;
        }
    };
    assert_eq!(end.code(), Code::Unavailable);
    Embedded::open(path).await.unwrap();
}

/// A policy whose capabilities have examples; `fruit` is one of them.
fn with_examples(fruit: &str) -> String {
    let examples = format!(
        "chat: {{default: true, examples: [{fruit}, pears, 苹果]}}\n  code: {{examples: [compile it, 编译]}}"
    );
    document("examples").replace("chat: {default: true}", &examples)
}

#[tokio::test]
async fn a_version_comes_with_its_model_and_a_rollback_with_the_model_of_then() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("no examples")).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    assert!(node.snapshot().await.capability_model.is_empty());
    let mut models = Vec::new();
    for fruit in ["apples", "cherries"] {
        control.version_of(&with_examples(fruit)).await;
        let snapshot = node.snapshot().await;
        let model = Model::decode(&snapshot.capability_model).unwrap();
        let policy = penstock_model::load(&with_examples(fruit)).policy.unwrap();
        let expected = Examples::of(&policy).unwrap().hash(&Settings::default());
        assert_eq!(model.trained_from(), expected);
        models.push(snapshot.capability_model);
    }
    assert_ne!(models[0], models[1]);
    let back = RollbackPolicyRequest { to_version: 2, ..RollbackPolicyRequest::default() };
    control.policy.clone().rollback_policy(back).await.unwrap();
    assert_eq!(node.snapshot().await.capability_model, models[0]);
}

#[tokio::test]
async fn a_node_without_the_model_of_its_version_is_sent_the_snapshot_again() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&with_examples("apples")).await;
    let mut first = Node::connect(&url(&control), "n1").await;
    let snapshot = first.snapshot().await;
    let hello = |model: &str| Hello {
        have_version: snapshot.version,
        have_hash: snapshot.content_hash.clone(),
        have_lineage: snapshot.lineage.clone(),
        have_capability_model: model.to_owned(),
        ..Hello::default()
    };
    let mut bare = Node::connect_with(&url(&control), "n2", hello("")).await;
    assert_eq!(bare.snapshot().await.capability_model, snapshot.capability_model);
    let model = checksum(&snapshot.capability_model);
    let mut complete = Node::connect_with(&url(&control), "n3", hello(&model)).await;
    complete.live().await;
}

#[tokio::test]
async fn a_control_plane_that_starts_again_finds_the_model_it_trained() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&with_examples("apples")).await;
    let before = Node::connect(&url(&control), "n1").await.snapshot().await;
    control.shutdown().await;
    let key = keys::model("capability", Model::decode(&before.capability_model).unwrap().trained_from());
    let store = Embedded::open(folder.path().join("store.redb")).await.unwrap();
    let stored = store.get(&key).await.unwrap().unwrap();
    assert_eq!(stored.value, before.capability_model);
    store.close().await;
    drop(store);

    let control = Control::embedded(&folder).await;
    let after = Node::connect(&url(&control), "n1").await.snapshot().await;
    assert_eq!(after.capability_model, before.capability_model);
    control.shutdown().await;
    let store = Embedded::open(folder.path().join("store.redb")).await.unwrap();
    assert_eq!(store.get(&key).await.unwrap().unwrap().revision, stored.revision, "it was not written again");
}
