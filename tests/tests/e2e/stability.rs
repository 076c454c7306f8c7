//! Nothing that happens to the control plane or its store stops traffic.

use std::time::Duration;

use anyhow::Result;
use penstock_tests::client::{self, chat};
use penstock_tests::cluster::{Control, Proxy};
use penstock_tests::load::{Load, failures};
use penstock_tests::process::{Etcd, until};

use crate::{alone, policy};

const SECOND: Duration = Duration::from_secs(1);

/// CP-05: the control plane and etcd are killed, a third proxy starts from its disk, and traffic goes on; when they come
/// back, nothing needs repair.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_goes_on_without_control_plane_and_store() -> Result<()> {
    let _turn = alone().await;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let service = penstock_sim::start(penstock_sim::ServiceConfig {
        models: vec!["sim".to_owned()],
        ..penstock_sim::ServiceConfig::default()
    })
    .await?;
    let named = [("only", service.addr())];
    let mut etcd = Etcd::start(folder).await?;
    let mut control = Control::start(folder, &etcd.store_url(), &policy(&named, "first")).await?;
    let first = Proxy::start(folder, "p1", &control.url(), &[]).await?;
    let second = Proxy::start(folder, "p2", &control.url(), &[]).await?;
    let mut third = Proxy::start(folder, "p3", &control.url(), &[]).await?;
    third.kill();
    let load = Load::start(
        vec![first.traffic, second.traffic],
        "/v1/chat/completions",
        chat("hello", false).to_string(),
        200,
        8,
    );
    tokio::time::sleep(SECOND).await;

    etcd.kill();
    let file = folder.join("second.yaml");
    std::fs::write(&file, policy(&named, "second"))?;
    let refused = control.try_command(&["policy", "apply", &file.to_string_lossy()]).await?;
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "apply cannot succeed without its store");
    assert!(says.contains("etcd") || says.contains("store"), "it says what is wrong: {says}");
    control.kill();

    third.launch()?;
    third.ready().await?;
    let answer = client::post(third.traffic, "/v1/chat/completions", &chat("hello", false)).await?;
    assert_eq!((answer.status.as_u16(), answer.header("x-penstock-policy")), (200, "1"));
    tokio::time::sleep(3 * SECOND).await;

    etcd.restart().await?;
    control.launch()?;
    control.ready().await?;
    control.command(&["policy", "apply", &file.to_string_lossy()]).await?;
    for proxy in [&first, &second, &third] {
        until("every proxy serves version 2", Duration::from_secs(60), async || {
            let answer = client::post(proxy.traffic, "/v1/chat/completions", &chat("hello", false)).await;
            answer.is_ok_and(|answer| answer.header("x-penstock-policy") == "2")
        })
        .await?;
    }

    let calls = load.stop().await;
    let failed = failures(&calls);
    assert!(failed.is_empty(), "{} of {} calls failed, first {:?}", failed.len(), calls.len(), failed[0]);
    Ok(())
}
