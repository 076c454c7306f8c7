//! Starting, being ready, counting.

use std::fmt::Write as _;

use penstock_data_plane::lkg;
use serde_json::json;

use crate::support::client::{Client, chat, chat_body, get, request};
use crate::support::{PATIENCE, Proxy, policy, sim, snapshot};

#[tokio::test]
async fn a_proxy_without_a_policy_lives_but_is_not_ready_k8s_01() {
    let proxy = Proxy::start_in(tempfile::tempdir().unwrap()).await;
    assert_eq!(get(proxy.admin(), "/health").await.status, 200);
    let ready = get(proxy.admin(), "/ready").await;
    assert_eq!((ready.status, &ready.json()["ready"]), (503, &json!(false)));
    let answer = chat(proxy.addr(), false).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (503, "no_policy"));
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[tokio::test]
async fn a_proxy_starts_from_what_is_on_disk_cp_05() {
    let service = sim("a").await;
    let proxy = Proxy::start(&policy(&[("a", service.addr())])).await;
    let ready = get(proxy.admin(), "/ready").await;
    assert_eq!(ready.status, 200);
    let detail = ready.json();
    assert_eq!((&detail["policy_version"], &detail["from_disk"]), (&json!(7), &json!(true)));
    assert_eq!(proxy.metric("penstock_policy_from_disk", &[]).await, 1.0);
    assert_eq!(chat(proxy.addr(), false).await.status, 200);
}

#[tokio::test]
async fn what_is_damaged_on_disk_is_ignored_cp_05() {
    let good = snapshot(&policy(&[("a", "127.0.0.1:9".parse().unwrap())]));
    for damage in ["cut", "altered", "foreign", "hash", "invalid"] {
        let folder = tempfile::tempdir().unwrap();
        let mut wire = good.clone();
        match damage {
            "hash" => wire.content_hash = "00".repeat(32),
            "invalid" => {
                wire.document = b"version: 1".to_vec();
                wire.content_hash = penstock_model::content_hash("version: 1");
            }
            _ => {}
        }
        lkg::write(folder.path(), &wire).unwrap();
        let file = folder.path().join("snapshot.lkg");
        let mut bytes = std::fs::read(&file).unwrap();
        match damage {
            "cut" => bytes.truncate(bytes.len() - 1),
            "altered" => *bytes.last_mut().unwrap() ^= 1,
            "foreign" => bytes = b"#!/bin/sh\n".to_vec(),
            _ => {}
        }
        std::fs::write(&file, bytes).unwrap();
        let proxy = Proxy::start_in(folder).await;
        assert_eq!(get(proxy.admin(), "/ready").await.status, 503, "{damage}");
        assert_eq!(get(proxy.admin(), "/health").await.status, 200, "{damage}");
        assert_eq!(chat(proxy.addr(), false).await.error_code(), "no_policy", "{damage}");
    }
}

#[tokio::test]
async fn what_clients_write_makes_no_series_met_01() {
    let service = sim("a").await;
    let proxy = Proxy::start(&policy(&[("a", service.addr())])).await;
    let mut client = Client::connect(proxy.addr()).await;
    let mut series = Vec::new();
    for call in 0..1_000_u32 {
        let body = chat_body(false).replace("auto", &format!("model-{call}"));
        let headers = format!("user-agent: agent-{call}\r\nx-tenant: t-{call}\r\n");
        let unknown = format!("/v1/path-{call}");
        let path = if call % 2 == 0 { "/v1/chat/completions" } else { unknown.as_str() };
        client.send(request(path, &headers, &body).as_bytes()).await;
        assert_eq!(client.answer().await.status, if call % 2 == 0 { 200 } else { 404 });
        if call == 99 || call == 999 {
            let counted = f64::from(call + 1);
            let begun = std::time::Instant::now();
            while proxy.metric("penstock_requests_total", &[]).await < counted {
                assert!(begun.elapsed() < PATIENCE);
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let text = get(proxy.admin(), "/metrics").await.text();
            let mut names = String::new();
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                writeln!(names, "{}", line.rsplit_once(' ').unwrap().0).unwrap();
            }
            series.push(names);
        }
    }
    assert_eq!(series[0], series[1]);
    assert!(!series[1].contains("model-") && !series[1].contains("agent-") && !series[1].contains("path-"));
}

#[tokio::test]
async fn idle_connections_do_not_hold_up_the_end() {
    let service = sim("a").await;
    let proxy = Proxy::start(&policy(&[("a", service.addr())])).await;
    let mut used = Client::connect(proxy.addr()).await;
    used.post("/v1/chat/completions", &chat_body(false)).await;
    assert_eq!(used.answer().await.status, 200);
    let mut unused = Client::connect(proxy.addr()).await;
    let begun = std::time::Instant::now();
    proxy.shutdown().await;
    assert!(begun.elapsed() < PATIENCE / 4, "{:?}", begun.elapsed());
    assert!(used.is_closed().await && unused.is_closed().await);
}

#[tokio::test]
async fn several_workers_share_a_port_and_their_counts_add_up() {
    let service = sim("a").await;
    let folder = tempfile::tempdir().unwrap();
    lkg::write(folder.path(), &snapshot(&policy(&[("a", service.addr())]))).unwrap();
    let proxy = Proxy::start_with(folder, 3).await;
    for _ in 0..60 {
        assert_eq!(chat(proxy.addr(), false).await.status, 200);
    }
    let begun = std::time::Instant::now();
    while proxy.metric("penstock_requests_total", &["status_code=\"200\""]).await < 60.0 {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(proxy.log(60).await.len(), 60);
    // Each worker keeps connections of its own, and the kernel spreads 60 clients over more than one.
    assert!((2..=3).contains(&service.stats().connections), "{}", service.stats().connections);
}
