//! How much is tried again, and until when.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::{chat, chat_body, raw, request};
use crate::support::scripted::{Script, Step, good, whole};
use crate::support::{Proxy, policy, with_timeouts};

/// Retries that one proxy on its own may always make within the window of ten seconds.
const FLOOR: usize = 100;

#[tokio::test]
async fn an_outage_is_multiplied_by_the_budget_and_no_more_res_02() {
    let script = Script::new([whole(500, "", "{}")]);
    let mut policy = policy(&[("a", script.listen().await), ("b", script.listen().await)]);
    policy["routes"][0]["retry"] = json!({"attempts": 2, "budget": 0.1});
    let proxy = Proxy::start(&policy).await;
    let begun = Instant::now();
    let calls = 200;
    for _ in 0..calls {
        let answer = chat(proxy.addr(), false).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (502, "upstream_error"));
        assert!(["1", "2"].contains(&answer.header("x-penstock-attempts").unwrap()));
    }
    let (sent, windows) = (script.requests().len(), begun.elapsed().as_secs() as usize / 10 + 1);
    assert!(sent > calls && sent <= calls + calls / 10 + windows * FLOOR, "{sent}");
    assert!(proxy.metric("penstock_retries_denied_total", &["route=\"all\""]).await >= 1.0);
}

#[tokio::test]
async fn the_client_may_shorten_its_time_but_not_lengthen_it() {
    let script = Script::new([vec![Step::Silence]]);
    let backends = [("a", script.listen().await)];
    let limits = json!({"first_token": "10s", "total": "600ms"});
    let proxy = Proxy::start(&with_timeouts(policy(&backends), limits)).await;
    for (value, least) in [("150ms", 150), ("0.15", 150), ("1m", 600)] {
        let begun = Instant::now();
        let header = format!("x-request-timeout: {value}\r\n");
        let call = request("/v1/chat/completions", &header, &chat_body(false));
        let answer = raw(proxy.addr(), call.as_bytes()).await;
        assert_eq!((answer.status, answer.error_code().as_str()), (504, "deadline_exceeded"), "{value}");
        assert!(begun.elapsed() >= Duration::from_millis(least), "{value}");
        script.left(1).await;
    }
    let call = request("/v1/chat/completions", "x-request-timeout: soon\r\n", &chat_body(false));
    let answer = raw(proxy.addr(), call.as_bytes()).await;
    assert_eq!((answer.status, answer.error_code().as_str()), (400, "invalid_body"));
    assert!(answer.text().contains("x-request-timeout"), "{}", answer.text());
}

#[tokio::test]
async fn the_same_service_is_given_the_time_it_asked_for_res_01() {
    let script = Script::new([whole(503, "retry-after: 1\r\n", "{}"), good()]);
    let proxy = Proxy::start(&policy(&[("a", script.listen().await)])).await;
    let begun = Instant::now();
    let answer = chat(proxy.addr(), false).await;
    assert_eq!((answer.status, answer.header("x-penstock-attempts")), (200, Some("2")));
    assert!(begun.elapsed() >= Duration::from_secs(1));

    // More than the request has left: the client hears of it at once.
    let script = Script::new([whole(503, "retry-after: 30\r\n", "{}"), good()]);
    let limits = json!({"total": "5s"});
    let proxy = Proxy::start(&with_timeouts(policy(&[("a", script.listen().await)]), limits)).await;
    let begun = Instant::now();
    let answer = chat(proxy.addr(), false).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")));
    assert!(begun.elapsed() < Duration::from_secs(5));
}
