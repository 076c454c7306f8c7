//! A policy is changed and rolled back under load: no call fails, every answer names one version, and within a second
//! every node serves the new one.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use penstock_tests::client::chat;
use penstock_tests::cluster::{Control, Proxy};
use penstock_tests::load::{Load, failures};
use penstock_tests::process::Etcd;

use crate::{alone, policy};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apply_and_rollback_under_load_fail_no_call_with_the_embedded_store() -> Result<()> {
    let _turn = alone().await;
    let folder = tempfile::tempdir()?;
    apply_and_rollback_under_load(folder.path(), "embedded").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apply_and_rollback_under_load_fail_no_call_with_etcd() -> Result<()> {
    let _turn = alone().await;
    let folder = tempfile::tempdir()?;
    let etcd = Etcd::start(folder.path()).await?;
    apply_and_rollback_under_load(folder.path(), &etcd.store_url()).await
}

async fn apply_and_rollback_under_load(folder: &Path, store: &str) -> Result<()> {
    let services = [simulated("a").await?, simulated("b").await?];
    let named = [("a", services[0].addr()), ("b", services[1].addr())];
    let control = Control::start(folder, store, &policy(&named, "first")).await?;
    let mut proxies = Vec::new();
    for name in ["p1", "p2", "p3"] {
        proxies.push(Proxy::start(folder, name, &control.url(), &[]).await?);
    }
    let targets: Vec<_> = proxies.iter().map(|proxy| proxy.traffic).collect();
    let load = Load::start(targets, "/v1/chat/completions", chat("hello", false).to_string(), 2_000, 24);
    tokio::time::sleep(2 * SECOND).await;

    // Each change: when its command had succeeded, and the version that then holds.
    let mut changes = vec![(Duration::ZERO, 1_u64)];
    for round in 0..2 {
        let file = folder.join(format!("change-{round}.yaml"));
        std::fs::write(&file, policy(&named, &format!("change {round}")))?;
        control.command(&["policy", "apply", &file.to_string_lossy(), "-m", "a test"]).await?;
        changes.push((load.elapsed(), changes.len() as u64 + 1));
        tokio::time::sleep(2 * SECOND).await;
        control.command(&["policy", "rollback", "1"]).await?;
        changes.push((load.elapsed(), changes.len() as u64 + 1));
        tokio::time::sleep(2 * SECOND).await;
    }
    let nodes = control.command(&["node", "list", "-o", "json"]).await?;
    let calls = load.stop().await;

    let failed = failures(&calls);
    assert!(failed.is_empty(), "{} of {} calls failed, first {:?}", failed.len(), calls.len(), failed[0]);
    let rate = calls.len() as f64 / calls.last().map_or(1.0, |call| call.sent.as_secs_f64());
    assert!(rate > 1_800.0, "the load itself was only {rate} calls a second");
    for call in &calls {
        let version: u64 = call.policy.parse().expect("every answer names exactly one version");
        let due = changes.iter().rev().find(|(at, _)| call.sent >= *at + SECOND).map_or(1, |(_, due)| *due);
        assert!(version >= due, "sent at {:?} and served by version {version}, not {due}", call.sent);
    }
    assert!(nodes.contains("p1") && nodes.contains("p2") && nodes.contains("p3"), "{nodes}");
    Ok(())
}

/// A service that answers at once.
async fn simulated(name: &str) -> Result<penstock_sim::Running> {
    let config = penstock_sim::ServiceConfig {
        name: name.to_owned(),
        models: vec!["sim".to_owned()],
        ..penstock_sim::ServiceConfig::default()
    };
    Ok(penstock_sim::start(config).await?)
}
