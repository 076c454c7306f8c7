//! A service is taken out for maintenance: nothing new reaches it, what runs is finished, and afterwards it is back.

use std::time::Duration;

use anyhow::{Result, ensure};
use penstock_sim::{Fault, ServiceConfig};
use penstock_tests::client::{chat, post};
use penstock_tests::cluster::{Control, Proxy};

use crate::policy;

/// More calls than any of this takes.
const MANY: u32 = 2_000;

async fn simulated(name: &str) -> Result<penstock_sim::Running> {
    let config = ServiceConfig { models: vec!["sim".to_owned()], ..ServiceConfig::new(name) };
    Ok(penstock_sim::start(config).await?)
}

/// Which backend answers the next call.
async fn answered_by(proxy: &Proxy) -> Result<String> {
    let answer = post(proxy.traffic, "/v1/chat/completions", &chat("hello", false)).await?;
    ensure!(answer.status == 200, "{}: {:?}", answer.status, answer.body);
    Ok(answer.header("x-penstock-backend").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_service_gets_nothing_new_and_finishes_what_runs() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (a, b) = (simulated("a").await?, simulated("b").await?);
    let named = [("a", a.addr()), ("b", b.addr())];
    let control = Control::start(folder.path(), "embedded", &policy(&named, "drain")).await?;
    let proxy = Proxy::start(folder.path(), "p1", &control.url(), &[]).await?;

    // Some calls wait at `a` while it is drained.
    a.set_fault(Fault { latency: Some(Duration::from_secs(2)), ..Fault::default() });
    let mut calls = Vec::new();
    let traffic = proxy.traffic;
    while a.stats().requests == 0 {
        ensure!(calls.len() < 100, "`a` was never drawn");
        calls.push(tokio::spawn(async move {
            post(traffic, "/v1/chat/completions", &chat("slow", false)).await.map(|answer| answer.status)
        }));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let said = control.command(&["backend", "drain", "a", "-m", "new disks"]).await?;
    ensure!(said.contains("a is drained"), "{said}");
    let (mut in_a_row, mut asked) = (0, 0);
    while in_a_row < 50 {
        ensure!(asked < MANY, "calls still go to `a`");
        asked += 1;
        let before = a.stats().requests;
        let elsewhere = answered_by(&proxy).await? == "b" && a.stats().requests == before;
        in_a_row = if elsewhere { in_a_row + 1 } else { 0 };
    }
    for call in calls {
        assert_eq!(call.await??, 200, "what was running is finished");
    }

    a.set_fault(Fault::default());
    control.command(&["backend", "undrain", "a"]).await?;
    for asked in 0.. {
        ensure!(asked < MANY, "`a` gets nothing");
        if answered_by(&proxy).await? == "a" {
            break;
        }
        // Its share grows back over seconds.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
