//! The admin API as JSON over HTTP.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use serde_json::json;
use support::control::{Control, document};
use support::http::{get, post};

const POLICY: &str = "/api/v1/policies/default";

#[tokio::test]
async fn a_policy_is_applied_read_and_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let http = control.running.http_addr();
    let path = format!("{POLICY}/apply?author=ann&message=first%20one&expected_version=0");
    let applied = post(http, &path, "", document("one").as_bytes()).await;
    assert_eq!(applied.status, 200, "{}", applied.body);
    let version = &applied.json()["version"];
    assert_eq!((&version["version"], &version["author"]), (&json!(1), &json!("ann")));
    assert_eq!((&version["message"], &version["stable"]), (&json!("first one"), &json!(true)));
    post(http, &format!("{POLICY}/apply"), "", document("two").as_bytes()).await;
    let back = post(http, &format!("{POLICY}/rollback?to_version=1&author=bob"), "", b"").await.json();
    assert_eq!((&back["version"]["version"], &back["version"]["restoredFrom"]), (&json!(3), &json!(1)));
    let listed = get(http, &format!("{POLICY}/versions?limit=2")).await.json();
    assert_eq!((&listed["stableVersion"], listed["versions"].as_array().unwrap().len()), (&json!(3), 2));
    let shown = get(http, &format!("{POLICY}/versions/0")).await.json();
    assert_eq!(shown["document"], json!(document("one")), "text, not bytes");
    let audit = get(http, "/api/v1/audit").await.json();
    assert_eq!(audit["entries"][0]["action"], "policy.rollback");
    for path in ["/api/v1/nodes", "/api/v1/backends", "/api/v1/decisions?failed_only=true"] {
        assert_eq!(get(http, path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn errors_have_a_status_a_stable_code_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let http = control.running.http_addr();
    let told = async |status: u16, code: &str, answer: support::http::Answer| {
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(answer.json()["code"], code, "{}", answer.body);
        assert!(!answer.json()["message"].as_str().unwrap().is_empty());
    };
    told(404, "policy_version_not_found", get(http, &format!("{POLICY}/versions/1")).await).await;
    let good = document("one");
    post(http, &format!("{POLICY}/apply"), "", good.as_bytes()).await;
    let apply =
        async |query: &str, body: &[u8]| post(http, &format!("{POLICY}/apply{query}"), "", body).await;
    let refused = apply("", b"version: 1\nroutes: 7\n").await;
    assert!(!refused.json()["problems"].as_array().unwrap().is_empty());
    told(422, "policy_invalid", refused).await;
    told(409, "policy_conflict", apply("?expected_version=7", document("x").as_bytes()).await).await;
    told(413, "policy_too_large", apply("", &vec![b'#'; (1 << 20) + 1]).await).await;
    told(413, "policy_too_large", apply("", &vec![b'#'; 3 << 20]).await).await;
    told(400, "invalid_argument", apply("?colour=red", good.as_bytes()).await).await;
    let rollback = format!("{POLICY}/rollback");
    told(400, "invalid_argument", post(http, &rollback, "", br#"{"to_version":1}"#).await).await;
    told(404, "policy_unknown", post(http, "/api/v1/policies/other/apply", "", good.as_bytes()).await).await;
    told(404, "decision_not_found", get(http, "/api/v1/decisions/none").await).await;
    told(404, "not_found", get(http, "/api/v1/nothing").await).await;
    assert_eq!(control.versions().await.len(), 1);
}

#[tokio::test]
async fn an_idempotency_key_makes_one_version() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let http = control.running.http_addr();
    for note in ["one", "two", "two"] {
        let key = format!("Idempotency-Key: {note}\r\n");
        let answer = post(http, &format!("{POLICY}/apply"), &key, document(note).as_bytes()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["unchanged"], false);
    }
    assert_eq!(control.versions().await.len(), 2);
}

#[tokio::test]
async fn a_web_page_of_another_origin_cannot_change_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let http = control.running.http_addr();
    let apply = async |origin: &str| {
        let origin = format!("Origin: {origin}\r\n");
        post(http, &format!("{POLICY}/apply"), &origin, document("one").as_bytes()).await
    };
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let refused = apply(origin).await;
        assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("cross_origin")), "{origin}");
    }
    assert!(control.versions().await.is_empty());
    assert_eq!(apply(&format!("http://{http}")).await.status, 200, "the console's own");
}

#[tokio::test]
async fn health_readiness_and_metrics_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let control = Control::embedded(&folder).await;
    let http = control.running.http_addr();
    assert_eq!(get(http, "/health").await.body, "ok\n");
    control.version_of(&document("one")).await;
    let ready = support::eventually("readiness", async || {
        let ready = get(http, "/ready").await;
        (ready.status == 200 && ready.json()["policy_version"] == 1).then_some(ready)
    })
    .await;
    assert!(ready.json()["store_age_seconds"].as_f64().unwrap() < 60.0);
    control.apply("not a policy").await.unwrap();
    let metrics = get(http, "/metrics").await.body;
    for wanted in [
        "penstock_policy_version 1.0",
        "penstock_nodes{penstock_node_state=\"connected\"} 0.0",
        "penstock_policy_changes_total{penstock_action=\"apply\",penstock_result=\"ok\"} 1.0",
        "penstock_policy_changes_total{penstock_action=\"apply\",penstock_result=\"failed\"} 1.0",
        "penstock_store_resyncs_total 0.0",
        "penstock_store_revision_age_seconds",
        "penstock_store_duration_seconds_count{penstock_store_operation=\"commit\"}",
    ] {
        assert!(metrics.contains(wanted), "{wanted} is not in\n{metrics}");
    }
}
