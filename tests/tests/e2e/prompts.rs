//! The first thing a newcomer tries.

use anyhow::Result;
use penstock_tests::client;
use penstock_tests::cluster::Demo;

use crate::alone;

/// Each prompt is answered by a service of its capability, and every candidate's score is shown with its terms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_three_prompts_are_answered_by_code_summarize_and_chat() -> Result<()> {
    let _turn = alone().await;
    let folder = tempfile::tempdir()?;
    let demo = Demo::start(folder.path(), &[]).await?;
    for (prompt, capability) in [
        ("帮我写一个快速排序算法", "code"),
        ("请总结这篇文章的核心要点", "summarize"),
        ("你好今天天气怎么样", "chat"),
    ] {
        let answer =
            client::post(demo.traffic, "/api/invoke", &serde_json::json!({"prompt": prompt})).await?;
        let body = answer.json()?;
        assert_eq!(answer.status, 200, "{body}");
        let backend = body["backend_id"].as_str().unwrap_or_default();
        assert!(backend.starts_with(capability), "{prompt} went to {backend}");
        assert!(body["answer"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        assert!(body["latency_ms"].as_f64().is_some_and(|latency| latency > 0.0), "{body}");

        let detail = body["score_detail"].as_array().expect("score_detail is a list");
        assert_eq!(detail.len(), 2, "one entry for every candidate: {body}");
        for candidate in detail {
            for term in ["success", "latency", "cost", "stability", "capability"] {
                let value = candidate["terms"][term].as_f64();
                assert!(value.is_some_and(|value| (0.0..=1.0).contains(&value)), "{term} in {candidate}");
            }
        }
        assert_eq!(detail.iter().filter(|candidate| candidate["chosen"] == true).count(), 1);

        let id = answer.header("x-penstock-decision").to_owned();
        let explained = explain(&demo, &id).await?;
        assert!(explained.contains(capability) && explained.contains(backend), "{explained}");
    }
    Ok(())
}

/// Records reach the control plane with the next report, a second later at most.
async fn explain(demo: &Demo, id: &str) -> Result<String> {
    let patience = std::time::Duration::from_secs(10);
    penstock_tests::process::until("the decision record arrives", patience, async || {
        demo.command(&["explain", id]).await.is_ok()
    })
    .await?;
    demo.command(&["explain", id]).await
}
