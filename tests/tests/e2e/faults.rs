//! A service that gets slow, fails or hangs loses its traffic, clients notice nothing, and it gets its traffic back.

use std::time::Duration;

use anyhow::Result;
use penstock_tests::client::chat;
use penstock_tests::cluster::Demo;
use penstock_tests::load::{Load, failures, share};

use crate::alone;

const SECOND: Duration = Duration::from_secs(1);

struct Case {
    service: &'static str,
    fault: &'static str,
    prompt: &'static str,
}

/// Three faults at the same time, each on one of the two services of its capability.
const CASES: [Case; 3] = [
    Case { service: "chat-a", fault: "latency=2s", prompt: "你好今天天气怎么样" },
    Case { service: "summarize-a", fault: "errors=0.9", prompt: "请总结这篇文章的核心要点" },
    Case { service: "code-a", fault: "hang", prompt: "帮我写一个快速排序算法" },
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sick_service_loses_its_traffic_in_three_seconds_and_has_it_back_in_fifteen() -> Result<()> {
    let _turn = alone().await;
    let folder = tempfile::tempdir()?;
    let demo = Demo::start(folder.path(), &["--access-log", "off"]).await?;
    let loads = CASES.map(|case| {
        let body = chat(case.prompt, false).to_string();
        Load::start(vec![demo.traffic], "/v1/chat/completions", body, 100, 96)
    });

    tokio::time::sleep(5 * SECOND).await;
    for case in &CASES {
        demo.fault(case.service, case.fault).await?;
    }
    let sick = loads.each_ref().map(Load::elapsed);
    tokio::time::sleep(10 * SECOND).await;
    for case in &CASES {
        demo.fault(case.service, "clear").await?;
    }
    let well = loads.each_ref().map(Load::elapsed);
    tokio::time::sleep(18 * SECOND).await;

    for (index, load) in loads.into_iter().enumerate() {
        let (case, sick, well) = (&CASES[index], sick[index], well[index]);
        let calls = load.stop().await;
        let failed = failures(&calls);
        assert!(failed.is_empty(), "{}: {} calls failed, first {:?}", case.fault, failed.len(), failed[0]);
        // The share is that of calls answered by the service: an attempt that was moved on was no answer.
        let (before, count) = share(&calls, case.service, SECOND, sick - SECOND);
        assert!(
            before > 0.15,
            "{}: share of {before} in {count} calls before anything happened",
            case.service
        );
        let (during, count) = share(&calls, case.service, sick + 3 * SECOND, well);
        assert!(during < 0.02, "{}: share of {during} in {count} calls under {}", case.service, case.fault);
        let (after, count) = share(&calls, case.service, well + 15 * SECOND, well + 18 * SECOND);
        assert!(after > 0.25, "{}: share of {after} in {count} calls after {}", case.service, case.fault);
    }
    Ok(())
}
