//! Taking backends out of service: who is told, what is remembered, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use penstock_control_plane::StoreConfig;
use penstock_proto::admin::v1::{
    DrainBackendRequest, DrainBackendResponse, DrainedTarget, ListAuditRequest, ListBackendsRequest,
};
use penstock_proto::fleet::v1::LiveState;
use support::control::{Control, code, config, document};
use support::etcd::EtcdProcess;
use support::http::{get, post};
use support::node::Node;
use tonic::Code;

fn url(control: &Control) -> String {
    format!("http://{}", control.running.grpc_addr())
}

fn backend(name: &str) -> DrainBackendRequest {
    DrainBackendRequest {
        backend: name.to_owned(),
        author: "ann".to_owned(),
        message: "new disks".to_owned(),
        ..DrainBackendRequest::default()
    }
}

async fn drain(control: &Control, name: &str) -> DrainBackendResponse {
    control.state.clone().drain_backend(backend(name)).await.unwrap().into_inner()
}

async fn undrain(control: &Control, name: &str) -> DrainBackendResponse {
    control.state.clone().undrain_backend(backend(name)).await.unwrap().into_inner()
}

/// Waits for a live state in which exactly these backends are drained.
async fn told(node: &mut Node, drained: &[&str]) -> LiveState {
    loop {
        let live = node.live().await;
        let marked = live.targets.iter().filter(|target| target.drained);
        if !live.targets.is_empty()
            && marked.map(|target| target.backend.as_str()).eq(drained.iter().copied())
        {
            return live;
        }
    }
}

#[tokio::test]
async fn nodes_are_told_at_once_and_the_backend_gets_no_share_until_it_is_brought_back() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    node.snapshot().await;
    let before = told(&mut node, &[]).await;
    let answer = drain(&control, "a").await;
    let whole = DrainedTarget { backend: "a".to_owned(), model: String::new() };
    assert_eq!((answer.drained, answer.unchanged), (vec![whole], false));
    let told_first = told(&mut node, &["a"]).await;
    assert!(told_first.sequence <= before.sequence + 1, "without waiting for the next tick but one");
    let next = told(&mut node, &["a"]).await;
    let weights: Vec<f64> = next.pools[0].targets.iter().map(|target| target.weight).collect();
    assert_eq!(weights, [0.0, 1.0]);
    let shown = control.state.clone().list_backends(ListBackendsRequest {}).await.unwrap().into_inner();
    let marked: Vec<bool> =
        shown.targets.iter().map(|target| target.state.as_ref().is_some_and(|state| state.drained)).collect();
    assert_eq!(marked, [true, false]);

    assert!(drain(&control, "a").await.unchanged);
    assert!(undrain(&control, "a").await.drained.is_empty());
    told(&mut node, &[]).await;
    let back = told(&mut node, &[]).await;
    let weight = back.pools[0].targets[0].weight;
    assert!((0.01..0.3).contains(&weight), "its share grows back: {weight}");
}

#[tokio::test]
async fn it_holds_across_versions_and_restarts_and_is_in_the_audit_trail() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let http = control.running.http_addr();
    let answer = post(http, "/api/v1/backends/b/drain?model=m&author=ann&message=hot", "", b"").await;
    assert_eq!((answer.status, &answer.json()["unchanged"]), (200, &false.into()), "{}", answer.body);
    control.version_of(&document("two")).await;
    control.shutdown().await;

    let control = Control::embedded(&folder).await;
    let mut node = Node::connect(&url(&control), "n1").await;
    node.snapshot().await;
    let first = node.live().await;
    let marked: Vec<&str> =
        first.targets.iter().filter(|target| target.drained).map(|target| target.backend.as_str()).collect();
    assert_eq!(marked, ["b"], "in the very first live state");
    let audit = control.state.clone().list_audit(ListAuditRequest::default()).await.unwrap().into_inner();
    let entry = audit.entries.iter().find(|entry| entry.action == "backend.drain").unwrap();
    assert_eq!((&*entry.subject, &*entry.actor, &*entry.message), ("b/m", "ann", "hot"));
    let answer = post(control.running.http_addr(), "/api/v1/backends/b/undrain", "", b"").await;
    assert_eq!(answer.status, 200);
    told(&mut node, &[]).await;
    let audit = get(control.running.http_addr(), "/api/v1/audit").await.json();
    assert_eq!(audit["entries"][0]["action"], "backend.undrain");
}

#[tokio::test]
async fn a_name_that_the_policy_lacks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    control.version_of(&document("one")).await;
    let mut state = control.state.clone();
    let mut node = Node::connect(&url(&control), "n1").await;
    node.snapshot().await;
    let refused = state.drain_backend(backend("c")).await.unwrap_err();
    assert_eq!((refused.code(), code(&refused)), (Code::NotFound, "backend_not_found"));
    let model = DrainBackendRequest { model: "large".to_owned(), ..backend("a") };
    let refused = state.drain_backend(model.clone()).await.unwrap_err();
    assert_eq!((refused.code(), code(&refused)), (Code::NotFound, "backend_not_found"));
    drain(&control, "a").await;
    let refused =
        state.undrain_backend(DrainBackendRequest { model: "m".to_owned(), ..model }).await.unwrap_err();
    assert_eq!((refused.code(), code(&refused)), (Code::InvalidArgument, "invalid_argument"));
    assert!(undrain(&control, "c").await.unchanged, "what a policy no longer has can be forgotten");
}

#[tokio::test]
async fn a_drain_through_one_control_plane_reaches_the_nodes_of_another() {
    let etcd = EtcdProcess::start().await;
    let on = async || {
        let mut settings = config(StoreConfig::Etcd(vec![etcd.url()]));
        settings.initial_policy = Some(document("first"));
        Control::start(settings).await
    };
    let (one, other) = (on().await, on().await);
    let mut node = Node::connect(&url(&other), "n1").await;
    node.snapshot().await;
    let drained = support::eventually("the store to take the change", async || {
        one.state.clone().drain_backend(backend("b")).await.ok()
    });
    drained.await;
    told(&mut node, &["b"]).await;
}
