//! A control plane whose etcd is away: at its start, in the middle, and back again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use penstock_control_plane::StoreConfig;
use penstock_proto::admin::v1::{ListNodesRequest, ListPolicyVersionsRequest, RollbackPolicyRequest};
use support::control::{Control, code, config, document};
use support::etcd::EtcdProcess;
use support::http::get;
use support::node::Node;
use tonic::{Code, Status};

async fn on(etcd: &EtcdProcess, initial: Option<String>) -> Control {
    let mut settings = config(StoreConfig::Etcd(vec![etcd.url()]));
    settings.initial_policy = initial;
    Control::start(settings).await
}

fn url(control: &Control) -> String {
    format!("http://{}", control.running.grpc_addr())
}

/// The store has answered: connections that were refused are tried again after a short while.
async fn applied(control: &Control, document: &str) -> u64 {
    support::eventually("the store to take a change", async || {
        let outcome = control.apply(document).await.ok()?;
        outcome.version.map(|version| version.version)
    })
    .await
}

fn assert_unavailable(status: &Status) {
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(["store_unavailable", "store_unconfirmed"].contains(&code(status)), "{status:?}");
    assert!(!status.message().contains("127.0.0.1"), "no address is told: {}", status.message());
    assert!(status.message().contains("again"), "what to do: {}", status.message());
}

#[tokio::test]
async fn with_etcd_gone_known_versions_and_scores_go_on_and_changes_are_refused_with_what_to_do() {
    let mut etcd = EtcdProcess::start().await;
    let control = on(&etcd, None).await;
    applied(&control, &document("one")).await;
    let mut old = Node::connect(&url(&control), "old").await;
    assert_eq!(old.snapshot().await.version, 1);
    etcd.kill();

    assert_unavailable(&control.apply(&document("two")).await.unwrap_err());
    let back = RollbackPolicyRequest { to_version: 1, ..RollbackPolicyRequest::default() };
    assert_unavailable(&control.policy.clone().rollback_policy(back).await.unwrap_err());
    let list = control.policy.clone().list_policy_versions(ListPolicyVersionsRequest::default()).await;
    assert_unavailable(&list.unwrap_err());

    let first = old.live().await;
    assert!(old.live().await.sequence > first.sequence, "scores go on");
    let mut new = Node::connect(&url(&control), "new").await;
    assert_eq!(new.snapshot().await.version, 1, "so do pushes of what is known");
    let nodes = control.state.clone().list_nodes(ListNodesRequest::default()).await.unwrap().into_inner();
    assert_eq!(nodes.nodes.len(), 2);
    assert_eq!(get(control.running.http_addr(), "/health").await.status, 200);
    assert_eq!(get(control.running.http_addr(), "/ready").await.status, 200, "it is of use");

    etcd.restart().await;
    assert_eq!(applied(&control, &document("two")).await, 2);
    assert_eq!(new.snapshot().await.version, 2);
    assert_eq!(old.snapshot().await.version, 2);
}

#[tokio::test]
async fn a_control_plane_that_starts_without_its_etcd_waits_for_it() {
    let mut etcd = EtcdProcess::stopped();
    let control = on(&etcd, Some(document("first"))).await;
    let http = control.running.http_addr();
    let mut node = Node::connect(&url(&control), "n1").await;
    assert_unavailable(&control.apply(&document("two")).await.unwrap_err());
    let waiting = get(http, "/ready").await;
    assert_eq!(waiting.status, 503);
    assert_eq!(waiting.json()["ready"], false);
    assert_eq!(get(http, "/health").await.status, 200, "alive all the same");
    etcd.restart().await;
    let snapshot = node.snapshot().await;
    assert_eq!((snapshot.version, snapshot.document), (1, document("first").into_bytes()));
    support::eventually("readiness", async || (get(http, "/ready").await.status == 200).then_some(())).await;
}

#[tokio::test]
async fn a_change_through_one_control_plane_reaches_the_nodes_of_another() {
    let etcd = EtcdProcess::start().await;
    let (one, other) = (on(&etcd, Some(document("x"))).await, on(&etcd, Some(document("y"))).await);
    let mut node = Node::connect(&url(&other), "n1").await;
    let first = node.snapshot().await;
    assert_eq!(first.version, 1, "one of the two initial policies, not both");
    assert_eq!(applied(&one, &document("two")).await, 2);
    let second = node.snapshot().await;
    assert_eq!((second.version, &second.lineage), (2, &first.lineage));
    assert_eq!(other.versions().await.len(), 2);
}

/// CP-05: a store that lost everything is not followed: the fleet keeps what it serves, until somebody applies.
#[tokio::test]
async fn an_etcd_that_lost_its_data_takes_nothing_from_the_fleet() {
    let mut etcd = EtcdProcess::start().await;
    let control = on(&etcd, None).await;
    for note in ["one", "two", "three"] {
        applied(&control, &document(note)).await;
    }
    let mut node = Node::connect(&url(&control), "n1").await;
    let mut before = node.snapshot().await;
    while before.version != 3 {
        before = node.snapshot().await;
    }
    etcd.wipe();
    etcd.restart().await;
    let listed = support::eventually("the empty store", async || {
        let listed =
            control.policy.clone().list_policy_versions(ListPolicyVersionsRequest::default()).await.ok()?;
        Some(listed.into_inner())
    })
    .await;
    assert_eq!(listed.stable_version, 0);
    let mut late = Node::connect(&url(&control), "n2").await;
    assert_eq!(late.snapshot().await.version, 3, "the last known version is served on");
    assert_eq!(applied(&control, &document("four")).await, 1);
    let after = node.snapshot().await;
    assert_eq!(after.version, 1);
    assert_ne!(after.lineage, before.lineage, "so nodes take the lower number");
}
